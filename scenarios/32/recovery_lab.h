/*
 * What the cases of suite 32 about damage, rebuilds and recovery share. All but deliver_in_batches() belongs to the
 * thread that runs the case.
 */
#ifndef COUNTERPROOF_RECOVERY_LAB_H
#define COUNTERPROOF_RECOVERY_LAB_H

#include "lab.h"

/*
 * For workers: deliver these numbers in their order, `size` a batch. Adds to *totals. A batch that the server refuses is
 * reported and counted in *refused, and the next one follows: that is for the case to judge. false: the session is lost.
 */
extern bool deliver_in_batches(Session *session, const int64_t *seqs, size_t count, size_t size, LikeTotals *totals,
							   int64_t *refused) MUST_CHECK;

/*
 * Load a file of the like system, "like/consume.sql", over the function of the same name, the design's own where it has
 * one; it stays until another is loaded. To load the right one is
 * to load the system's own: under a twin that has a file of this name, the twin's.
 */
extern void load_variant(Scene *scene, Session *session, const char *path);

/* Empty everything but the items and their count rows; numbers start again at 1. */
extern void clear_all(Scene *scene, Session *session);

/* End the transaction block of a session; a COMMIT that is refused is a failed check. */
extern void commit(Scene *scene, Session *session);

/*
 * A batch as "{1,2,3}" in the transaction block that the session has open; another one as a transaction of its own,
 * sent and expected to wait, and its totals once it need not wait any longer and is committed. Refused by the server: a
 * failed check, and totals of 0.
 */
extern LikeTotals deliver_within(Scene *scene, Session *session, const char *list);
extern void send_batch(Scene *scene, Session *session, const char *list);
extern LikeTotals await_batch(Scene *scene, Session *session);

/* One check: nobody holds this item's count row. */
extern void check_count_row_free(Scene *scene, Session *observer, int64_t item, const char *what);

/* like_count.n of an item that has a count row. */
extern int64_t count_of(Scene *scene, Session *session, int64_t item);

/* A like that did not change anything is a failed check; one that did is none. */
extern void expect_changed(Scene *scene, const LikeResult *result, int64_t user);

/* Users first..last like the item, one after another, and each of them is expected to change something. */
extern void like_in_order(Scene *scene, Session *session, int64_t item, int64_t first, int64_t last);

/* Install one item's baseline from this snapshot and print what became of it. */
extern LikeInstall install_baseline(Scene *scene, Session *session, const LikeSnapshot *snapshot, int64_t item,
									Isolation isolation);

/* S and C(S), printed for `item`. */
extern LikeSnapshot take_snapshot(Scene *scene, Session *session, int64_t item);

/*
 * Print both audits; three checks: n of this item, the read side as "watermark=3 lag=5 unprocessed=4
 * exact_violations=0 bound_violations=0 watermark_violations=0", and a clean write side.
 */
extern void check_state(Scene *scene, Session *session, int64_t item, int64_t n, const char *read_side,
						const char *when);

/* The recovery function of the like system, told step by step; two checks: it succeeded, with or without a rebuild. */
extern LikeRecovery recover(Scene *scene, Session *session, bool rebuild_expected);

/* The same over facts that do not agree with their events; one check: it said so, stopped and rebuilt nothing. */
extern void check_recovery_stops(Scene *scene, Session *session);

/* One check: the server refuses a statement, with this SQLSTATE and these words: "LK003 watermark 8 is ahead of ...". */
extern void check_statement_refused(Scene *scene, Session *session, const char *sql, const char *expected,
									const char *what);

/*
 * Run like-consumer with a new offset file, in batches of `batch`; two checks: it ends with EXIT_CODE_REFUSED, and prints
 * these words.
 */
extern void check_consumer_refused(Scene *scene, int batch, const char *words, const char *what);

#endif
