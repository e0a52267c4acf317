/* Workers of a run: each takes chunk after chunk, of a size that takes the time it should. */
#ifndef COUNTERPROOF_COUNTERS_WORKER_H
#define COUNTERPROOF_COUNTERS_WORKER_H

#include "../counters.h"
#include "record.h"

/*
 * Repair what is open in the run, with as many threads and sessions as asked for, until nothing is left, or an interrupt comes: then
 * each ends after its chunk. false: reported; no worker could go on. One that failed has given its chunk back, which the
 * others take.
 */
extern bool workers_run(Session *session, const CountersRequest *request, const CountersRepair *repair,
						const Counter *counter, const Run *run) MUST_CHECK;

/* The same in the caller's transaction, alone. */
extern bool worker_run_inside(Session *session, const CountersRequest *request, const CountersRepair *repair,
							  const Counter *counter, const Run *run) MUST_CHECK;

#endif
