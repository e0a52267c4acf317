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

/* Load a file of sql/like over the function of the same name; it stays until another is loaded. */
extern void load_variant(Scene *scene, Session *session, const char *path);

/* Empty everything but the items and their count rows; numbers start again at 1. */
extern void clear_all(Scene *scene, Session *session);

/* End the transaction block of a session; a COMMIT that is refused ends the case. */
extern void commit(Scene *scene, Session *session);

/* like_count.n of an item that has a count row. */
extern int64_t count_of(Scene *scene, Session *session, int64_t item);

/* Users first..last like the item, one after another. */
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

#endif
