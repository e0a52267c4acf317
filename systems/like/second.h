/*
 * The like system over two databases: facts and outbox in one, counts, registrations and watermark in another. Its SQL is
 * sql/like/parts/second/, facts/ over design row, counts/ by itself.
 *
 * Writers and the snapshot of a rebuild need the first alone (like_set(), like_snapshot()), an install the second
 * (like_install()).
 */
#ifndef COUNTERPROOF_SECOND_H
#define COUNTERPROOF_SECOND_H

#include "like.h"

typedef struct
{
	Session *facts, *counts; /* borrowed */
} LikeStores;

/*
 * Fetch events above `after` from the first, `most` at the most, and count them in the second, in one transaction there. The
 * totals are of this batch; *highest is the last number of it, `after` when there was none. A log that ends below `after`
 * is another one, or was restored: refused.
 */
extern bool like_stores_deliver(const LikeStores *stores, int64_t after, int64_t most, LikeTotals *totals,
								int64_t *highest) MUST_CHECK;

/* From the second's watermark until nothing is left. Adds to *totals. */
extern bool like_stores_drain(const LikeStores *stores, int64_t batch_size, LikeTotals *totals) MUST_CHECK;

typedef struct
{
	int64_t n, watermark;
	bool log_known;       /* the first answered; else nothing below is known */
	int64_t lag, pending; /* |n - facts| <= pending */
	bool stale;           /* lag > allowed_lag */
} LikeStoresCount;

/* *found is false where no event of the item has been counted. The first may be NULL, or not answer. */
extern bool like_stores_read_count(const LikeStores *stores, int64_t item, int64_t allowed_lag, bool *found,
								   LikeStoresCount *count) MUST_CHECK;
extern void like_stores_count_describe(const LikeStoresCount *count, Text *text); /* n=4 lag=1 bound=1 stale=true */

/* The proof audit of both: the second is read first, which is what makes the identity hold. */
extern bool like_stores_audit(const LikeStores *stores, LikeReadAudit *result) MUST_CHECK;

#endif
