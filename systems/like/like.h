/*
 * The like counter: facts, an outbox numbered without gaps in commit order, counts fed from it by a deduplicating
 * consumer, and a rebuild that races it. The rules and the lock order stand at the head of each file in sql/like/.
 *
 * Item ids are bigint; users likewise. A Like wraps one session and belongs to one thread at a time; it does not own
 * the session. Functions answer false when the session is unusable or the server refused what the schema always
 * allows; that has been reported.
 */
#ifndef COUNTERPROOF_LIKE_H
#define COUNTERPROOF_LIKE_H

#include "base.h"
#include "session.h"

/* Load schema and functions from a folder of SQL files (sql/like) into an empty database: the default of design.h. */
extern bool like_create(Session *session, const char *sql_folder) MUST_CHECK;

/* Add an item together with its count row, in one transaction. */
extern bool like_add_item(Session *session, int64_t item, const char *label) MUST_CHECK;


/* --- the write path --- */

typedef enum
{
	LIKE_UNSET = 0,
	LIKE_CHANGED,
	LIKE_NOOP,     /* it was so already: "already liked", "not liked" */
	LIKE_REJECTED, /* the server refused; sqlstate says why: 23503 for an unknown item */
	LIKE_UNKNOWN   /* the connection was lost, or the standby (01000), and the request may have been carried out */
} LikeOutcome;

typedef struct
{
	LikeOutcome outcome;
	bool liked;       /* state after the request */
	int64_t version;  /* state changes of this pair so far */
	int64_t seq;      /* event number, 0 unless CHANGED, and while the event has none yet */
	uint64_t xid;     /* xid8 of the transaction; 0 when it never became known */
	bool changed;     /* for UNKNOWN: it would be CHANGED if it committed */
	char sqlstate[6]; /* "" unless REJECTED or UNKNOWN */
} LikeResult;

/* Prepares this session's statements. */
extern bool like_prepare(Session *session) MUST_CHECK;

/*
 * Set the state of (user, item) to `want`. Safe to repeat. One round trip, one transaction, Read Committed, outside any
 * transaction block; 40001 and 40P01 are retried whole, bounded and counted. A lost connection is UNKNOWN when the
 * answer had arrived and the commit had not been confirmed (xid known: ask like_resolve() after recovery); lost before
 * any answer arrived, it certainly was not carried out (unix socket), which is REJECTED with the SQLSTATE of the loss,
 * 08006 or what the server said in parting. Confirmed without the synchronous standby that it was to wait for (01000), it
 * stands as long as this server does, and is UNKNOWN too, on a connection that goes on. false only for a session that was lost before the call.
 */
extern bool like_set(Session *session, int64_t user, int64_t item, bool want, LikeResult *result) MUST_CHECK;

/* The same inside the caller's transaction block; no retry here. */
extern bool like_set_within(Session *session, int64_t user, int64_t item, bool want, LikeResult *result) MUST_CHECK;

extern void like_describe(const LikeResult *result, Text *text); /* NOOP(liked, v1, already liked) */

typedef enum
{
	RESOLVED_UNSET = 0,
	RESOLVED_COMMITTED,
	RESOLVED_NOT_COMMITTED
} Resolved;

/*
 * Decide an UNKNOWN request by its xid. `horizon` is what like_recovery_horizon() answered after recovery and before
 * anything else wrote: a number at or above it never committed and is given out again.
 */
extern bool like_recovery_horizon(Session *session, uint64_t *horizon) MUST_CHECK;
extern bool like_resolve(Session *session, uint64_t xid, uint64_t horizon, Resolved *resolved) MUST_CHECK;


/* --- the consumer --- */

typedef struct
{
	int64_t applied, covered, dup, watermark; /* after the batch */
} LikeTotals;

/*
 * Deliver a list of event numbers as one batch in one transaction; any order, any repetition. totals are this batch's
 * (applied + covered + dup = count), watermark where it stands now. An event that is not in the outbox or whose item has
 * no count row fails the batch whole and is named. The points consumer.before_commit and consumer.after_commit are
 * reached with the detail "batch=N seq=A..B", the smallest and the largest number of the list.
 */
extern bool like_deliver(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals) MUST_CHECK;

/*
 * Give committed events their numbers, `most` at the most, in one transaction (Read Committed), where writers leave that to
 * others; *numbered is how many got one. Any number of callers may do so at once, they wait for one another.
 */
extern bool like_number(Session *session, int64_t most, int64_t *numbered) MUST_CHECK;

/*
 * The numbers of committed events above `after`, `most` at the most, in order. *seqs is allocated, caller frees. None is
 * answered when all that had committed is at or below `after`: events without a number are given theirs. Where each item
 * has a log of its own, what is at or below its watermark is left out.
 */
extern bool like_pull(Session *session, int64_t after, int64_t most, int64_t **seqs, size_t *count) MUST_CHECK;

/* Pull from above the watermark and deliver until nothing is left. Adds to *totals, whose watermark is replaced. */
extern bool like_drain(Session *session, int64_t batch_size, LikeTotals *totals) MUST_CHECK;

/* How many events lie at or below the watermark; to pull from above it, it is what `after` is. */
extern bool like_watermark(Session *session, int64_t *watermark) MUST_CHECK;

/*
 * When nothing was left to pull above `after`: the watermark, and whether something is left *behind, where each item has a
 * log of its own and they are pulled one after another. Then the next pass begins at 0. *watermark is where it stood at
 * the end of the pass before, -1 for the first: a pass that did not move it is not followed by another.
 */
extern bool like_end_of_log(Session *session, int64_t after, int64_t *watermark, bool *behind) MUST_CHECK;

extern void like_totals_add(LikeTotals *sum, const LikeTotals *batch);
extern void like_totals_describe(const LikeTotals *totals, Text *text); /* applied=45 covered=0 dup=25 watermark=120 */


/* --- the rebuild --- */

typedef struct
{
	int64_t item;
	char label[32];
	int64_t seq;   /* S: exactly the events up to this one are inside */
	int64_t facts; /* C(S) */
} LikeBaseline;

typedef struct
{
	int64_t seq;         /* S of the first item, and of all where their events are in one log */
	LikeBaseline *items; /* all rows of item, in order */
	size_t count;
} LikeSnapshot;

typedef enum
{
	INSTALL_UNSET = 0,
	INSTALL_DONE,
	INSTALL_SKIPPED /* a newer baseline was there */
} LikeInstallOutcome;

typedef struct
{
	LikeInstallOutcome outcome;
	bool row_missing;               /* it was inserted */
	int64_t old_n, new_n, base_seq, /* after the install */
		applied_after_base;
} LikeInstall;

/* S and C(S) of all items in one Repeatable Read transaction. Free with like_snapshot_free(). */
extern bool like_snapshot(Session *session, LikeSnapshot *snapshot) MUST_CHECK;
extern void like_snapshot_free(LikeSnapshot *snapshot);

/* Install one item's baseline: a transaction of its own, retried whole on 40001/40P01. */
extern bool like_install(Session *session, int64_t snapshot_seq, const LikeBaseline *baseline, Isolation isolation,
						 LikeInstall *install) MUST_CHECK;

/* Snapshot, then every item. `report` (may be NULL) is told of each, also where nothing changed. */
typedef void (*LikeInstallReport)(void *context, const LikeBaseline *baseline, const LikeInstall *install);
extern bool like_rebuild_all(Session *session, LikeInstallReport report, void *context) MUST_CHECK;

typedef struct
{
	int64_t wrong;      /* items whose row was missing or broke the identity in the snapshot */
	int64_t installed;  /* of them; the rest had a newer baseline by then */
	int64_t longest_ns; /* of the transactions that hold row locks */
} LikeMended;

/*
 * For many items: one snapshot finds the rows that are wrong, which alone are installed anew, `chunk` of them in one transaction,
 * retried whole on 40001/40P01. A row whose identity holds is not touched. Costs about one count of all facts, and what is wrong.
 */
extern bool like_rebuild_wrong(Session *session, int64_t chunk, LikeMended *mended) MUST_CHECK;


/* --- reading and auditing; each from one statement --- */

typedef struct
{
	int64_t n, lag, pending; /* unprocessed events of this item: the bound on |n - facts| */
	bool stale;              /* lag > allowed_lag */
} LikeCount;

/* *found is false when the item has no count row. Never reads facts. */
extern bool like_read_count(Session *session, int64_t item, int64_t allowed_lag, bool *found,
							LikeCount *count) MUST_CHECK;

typedef struct
{
	int64_t last_seq, outbox_rows, gap_violations, version_mismatch_pairs, delta_sum_mismatch_items;
} LikeWriteAudit;

typedef struct
{
	int64_t last_seq, watermark, lag, unprocessed, count_mismatch_items, max_abs_err, exact_violations,
		bound_violations, watermark_violations;
} LikeReadAudit;

extern bool like_audit_write_side(Session *session, LikeWriteAudit *result) MUST_CHECK;
extern bool like_audit_read_side(Session *session, LikeReadAudit *result) MUST_CHECK;
extern bool like_write_side_clean(const LikeWriteAudit *result);
extern bool like_read_side_holds(
	const LikeReadAudit *result); /* identity, bound, watermark and unprocessed <= lag; lag itself is allowed */
extern void like_write_audit_describe(const LikeWriteAudit *result, Text *text); /* the fields of the audit line */
extern void like_read_audit_describe(const LikeReadAudit *result, Text *text);


/* --- recovery, four steps in order --- */

typedef enum
{
	RECOVERY_UNSET = 0,
	RECOVERY_DONE,
	RECOVERY_WRITE_SIDE_DAMAGED, /* stopped after step 2: no rebuild may claim to mend facts */
	RECOVERY_INCOMPLETE          /* step 4 found lag or wrong counts */
} LikeRecoveryOutcome;

typedef struct
{
	LikeRecoveryOutcome outcome;
	LikeTotals totals; /* of the consumer restarted in step 1 and let go on in step 4 */
	LikeWriteAudit write_side;
	LikeReadAudit before; /* step 3 */
	bool rebuilt;
	LikeReadAudit after; /* step 4 */
} LikeRecovery;

/*
 * `tell` gets "recovery 1/4 ..." lines, a line per item that the rebuild changes among them. Step 1 delivers one batch
 * from the watermark, step 4 the rest in batches of `batch_size`. false: a step could not be done, reported.
 */
typedef void (*LikeTell)(void *context, const char *line);
extern bool like_recover(Session *session, int64_t batch_size, LikeTell tell, void *context,
						 LikeRecovery *recovery) MUST_CHECK;

#endif
