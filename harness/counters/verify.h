/* The end of a pass: read again what the run found, and what was written behind its reading; more to do, or the end of the run. */
#ifndef COUNTERPROOF_COUNTERS_VERIFY_H
#define COUNTERPROOF_COUNTERS_VERIFY_H

#include "../counters.h"
#include "record.h"

/*
 * Ends the pass in which `run` is, unless somebody else has, and loads what the run is in then: repairing, in another pass, or
 * finished. `inside`: in the caller's transaction, which has locked everything. false: reported, or interrupted.
 */
extern bool verify_pass(Session *session, const CountersRequest *request, const Counter *counter, Run *run,
						bool inside) MUST_CHECK;

#endif
