/*
 * Requests that were under way when their server went: what became of them, by the rules, and that repeating them is safe.
 * All of it belongs to the thread that runs the case.
 */
#ifndef COUNTERPROOF_UNKNOWN_LAB_H
#define COUNTERPROOF_UNKNOWN_LAB_H

#include "lab.h"

/* All requests of the case so far, in order of invocation, with what became of the unknown ones. */
typedef struct
{
	HistoryOp *ops;
	size_t count;
	Resolved *resolved;
	size_t settled; /* requests before this one were settled after an earlier crash */
} Requests;

typedef struct
{
	int64_t unknown, committed, committed_changed, not_committed, beyond_horizon;
} Unknowns;

/*
 * Read the history, and decide those that are unknown since the last time they were sent again; `horizon` as for
 * like_resolve(). One check: all of them could be decided.
 */
extern Unknowns resolve_unknowns(Scene *scene, Session *lab, uint64_t horizon, Requests *requests);

/*
 * What is there before anything is drained or written: four checks of the audits, the unknown requests resolved, and four that
 * every outbox row has the one request that wrote it, and every request that was acknowledged or has committed its row.
 */
extern Unknowns look_after_crash(Scene *scene, Session *lab, uint64_t horizon, Requests *requests);

/*
 * With nothing in between: what committed is there already, what did not happens now; one event either way. Two checks.
 * They are on record as of `worker`.
 */
extern void send_unknowns_again(Scene *scene, Session *lab, Requests *requests, int worker);

extern void requests_free(Requests *requests);

#endif
