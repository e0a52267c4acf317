/*
 * The like system on a primary and its standby: which server may be written to, and what a count read on the standby is
 * worth. Its SQL is sql/like/parts/failover/, for any design, and sql/like/parts/standby/, where
 * one row has the last number.
 */
#ifndef COUNTERPROOF_FAILOVER_H
#define COUNTERPROOF_FAILOVER_H

#include "like.h"

typedef struct
{
	int64_t epoch, timeline;
	bool admitted;
} ServerEpoch;

/*
 * To be asked of a server that takes writes, before a connection to it is handed out: one that was promoted since it was last
 * asked enters the next epoch; one that is of an older epoch than `highest`, the highest that the caller has seen, is not
 * admitted. It writes: read like_recovery_horizon() before. What it does not reach: whoever holds a connection to
 * the old primary already.
 */
extern bool server_admit(Session *session, int64_t highest, ServerEpoch *epoch) MUST_CHECK;

typedef struct
{
	LikeCount count;    /* of what is replayed: |n - facts| <= pending for the facts that the standby shows */
	int64_t last;       /* events 1..last are replayed */
	char replayed[24];  /* at least up to this position in the WAL */
	int64_t since_ms;   /* since the last commit that was replayed was made; -1 for none */
	bool primary_known; /* it answered */
	int64_t beyond;     /* events of this item that the primary has above `last`; |n - its facts| <= pending + beyond */
} LikeStandbyCount;

/*
 * *found is false when the item has no count row there. `primary` may be NULL, or not answer: then no bound relative to it is
 * known, and the count is answered all the same.
 */
extern bool like_read_count_on_standby(Session *standby, Session *primary, int64_t item, int64_t allowed_lag,
									   bool *found, LikeStandbyCount *count) MUST_CHECK;

/* n=5 bound=0 of events 1..9, replayed=0/3000148 last commit 12 ms ago, bound of the primary=7 (or: unknown) */
extern void like_standby_count_describe(const LikeStandbyCount *count, Text *text);

#endif
