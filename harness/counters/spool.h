/* Drift rows on disk, in the order in which they came: what a scan tells does not have to fit into memory. */
#ifndef COUNTERPROOF_COUNTERS_SPOOL_H
#define COUNTERPROOF_COUNTERS_SPOOL_H

#include "scan.h"

typedef struct Spool Spool;

extern Spool *spool_open(void) MUST_CHECK; /* NULL: there is no file to be had, reported */
extern void spool_close(Spool *spool);     /* NULL allowed; the file is gone */

extern bool spool_add(Spool *spool, const Counter *counter, const CounterDrift *drift) MUST_CHECK; /* false: reported */
extern int64_t spool_count(const Spool *spool);

/* From the first row on. No more spool_add() after it. false: reported. */
extern bool spool_rewind(Spool *spool) MUST_CHECK;

/* The next one, whose texts live until the next call; false: there is none, or it cannot be read, which is reported. */
extern bool spool_next(Spool *spool, const Counter *counter, CounterDrift *drift) MUST_CHECK;

#endif
