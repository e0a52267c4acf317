/* What the files of the like system share and nobody else needs. */
#ifndef COUNTERPROOF_LIKE_PRIVATE_H
#define COUNTERPROOF_LIKE_PRIVATE_H

#include "like.h"

/* like_deliver() without the report: the status and session_error() say all. */
extern SqlStatus like_try_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals);

/* Pull from above `after` and deliver until nothing is left. Adds to *totals. */
extern bool like_drain_from(Session *session, int64_t after, int64_t batch_size, LikeTotals *totals) MUST_CHECK;

/*
 * A crash empties an unlogged table. Without its registrations an event counts again, and no lag tells; without its
 * watermark nobody knows what was processed. *logged is false when one is unlogged, which is reported. false: reported.
 */
extern bool like_tables_logged(Session *session, bool *logged) MUST_CHECK;
/* One row with the columns of like_audit_read_side(), in their order. */
extern void like_read_audit_take(const SqlResult *rows, LikeReadAudit *result);

/* Report what went wrong with `what`, from a status that is not SQL_OK and the session's error. */
extern void like_report(const Session *session, SqlStatus status, const char *what);

#endif
