/*
 * The like system's events for the trace, with what is known to come before them. All may be called by workers.
 *
 * The words of the marks: `seq` are event numbers, which the server gives in commit order; `pair.U.I` versions of a pair;
 * `watermark` the row that every batch locks; `base.I` the baselines of an item, `baseline` those of all; `applied` batches
 * that applied something, by their greatest number.
 */
#ifndef COUNTERPROOF_TRACE_LAB_H
#define COUNTERPROOF_TRACE_LAB_H

#include "like.h"
#include "trace.h"
#include "twins/twins.h"

/* What clients and consumers do, recorded: set, deliver, snapshot and install. While there is no trace, `does` itself. */
extern const ClientSteps *traced_steps(const ClientSteps *does);

/* A request is sent, and answered. TRACE_OPEN: in a transaction block, which it does not end. */
extern void trace_request(const Session *session, int64_t user, int64_t item, bool want);
extern void trace_answer(const Session *session, int64_t user, int64_t item, const LikeResult *result,
						 TraceOutcome outcome);

/* A batch is sent, and committed; its numbers are between these two. */
extern void trace_batch_sent(const Session *session, int64_t lowest, int64_t highest);
extern void trace_batch(const Session *session, int64_t lowest, int64_t highest, const LikeTotals *totals);

/* Batches of which these totals are all that is known. */
extern void trace_consumed(const Session *session, const LikeTotals *totals);

/* For like_rebuild_all(), whose `context` is then the session. */
extern void trace_installed(void *session, const LikeBaseline *baseline, const LikeInstall *install);
/* A client that was doing something else has lost its server. */
extern void trace_lost(const Session *session);
extern void trace_audit(const Session *session, const LikeReadAudit *seen);

/* The lab changed the derived side past all that is recorded; with `all` the events and facts as well. */
extern void trace_forget(const Session *session, bool all, const char *what);

#endif
