#include "second.h"

#include <inttypes.h>

#include "like_private.h"


/* --- the consumer --- */

typedef struct
{
	const SqlResult *events; /* last, seqs, items, deltas, highest */
	LikeTotals *totals;      /* out */
} Application;

static SqlStatus
apply_body(Session *counts, void *context)
{
	const Application *this = context;
	SqlResult *rows;
	SqlStatus status = session_try(counts, &rows, "SELECT applied, covered, dup, watermark FROM like_apply($1, $2, $3)",
								   ARGS(arg_text(sql_text(this->events, 0, 1)), arg_text(sql_text(this->events, 0, 2)),
										arg_text(sql_text(this->events, 0, 3))));

	if (status == SQL_OK)
	{
		*this->totals = (LikeTotals){.applied = sql_int(rows, 0, 0),
									 .covered = sql_int(rows, 0, 1),
									 .dup = sql_int(rows, 0, 2),
									 .watermark = sql_int(rows, 0, 3)};
		sql_free(rows);
	}
	return status;
}

static bool
apply(Session *counts, const SqlResult *events, LikeTotals *totals)
{
	Application this = {.events = events, .totals = totals};
	SqlStatus status = session_transaction(counts, READ_COMMITTED, apply_body, &this);

	if (status != SQL_OK)
	{
		like_report(counts, status, "cannot count a batch in the second database");
		return false;
	}
	return true;
}

bool
like_stores_deliver(const LikeStores *stores, int64_t after, int64_t most, LikeTotals *totals, int64_t *highest)
{
	SqlResult *events;
	bool done;

	*totals = (LikeTotals){0};
	*highest = after;
	if (!session_query(stores->facts, &events,
					   "SELECT last, seqs, items, deltas, seqs[cardinality(seqs)] FROM like_fetch($1, $2)",
					   ARGS(arg_int(after), arg_int(most))))
	{
		return false;
	}
	done = sql_int(events, 0, 0) >= after;
	if (!done)
	{
		report_error("events up to %" PRId64 " are counted, but the log ends at %" PRId64
					 ": it is another one, or was restored",
					 after, sql_int(events, 0, 0));
	}
	else if (!sql_is_null(events, 0, 4))
	{
		*highest = sql_int(events, 0, 4);
		done = apply(stores->counts, events, totals);
	}
	sql_free(events);
	return done;
}

bool
like_stores_drain(const LikeStores *stores, int64_t batch_size, LikeTotals *totals)
{
	int64_t after, highest;

	if (!like_watermark(stores->counts, &after))
	{
		return false;
	}
	for (;; after = highest)
	{
		LikeTotals batch;

		if (!like_stores_deliver(stores, after, batch_size, &batch, &highest))
		{
			return false;
		}
		if (highest == after)
		{
			return like_watermark(stores->counts, &totals->watermark);
		}
		like_totals_add(totals, &batch);
	}
}


/* --- reading and auditing: the second first, then the first --- */

/* A first database that does not answer is no failure. */
static void
ask_log(Session *facts, int64_t item, const SqlResult *here, int64_t allowed_lag, LikeStoresCount *count)
{
	SqlResult *rows = NULL;

	if (facts == NULL ||
		session_try(facts, &rows, "SELECT lag, pending FROM like_pending($1, $2, $3)",
					ARGS(arg_int(item), arg_int(count->watermark), arg_text(sql_text(here, 0, 2)))) != SQL_OK)
	{
		return;
	}
	count->log_known = true;
	count->lag = sql_int(rows, 0, 0);
	count->pending = sql_int(rows, 0, 1);
	count->stale = count->lag > allowed_lag;
	sql_free(rows);
}

bool
like_stores_read_count(const LikeStores *stores, int64_t item, int64_t allowed_lag, bool *found, LikeStoresCount *count)
{
	SqlResult *here;

	*count = (LikeStoresCount){0};
	if (!session_query(stores->counts, &here, "SELECT n, watermark, above FROM like_count_here($1)",
					   ARGS(arg_int(item))))
	{
		return false;
	}
	*found = sql_rows(here) == 1;
	if (*found)
	{
		count->n = sql_int(here, 0, 0);
		count->watermark = sql_int(here, 0, 1);
		ask_log(stores->facts, item, here, allowed_lag, count);
	}
	sql_free(here);
	return true;
}

void
like_stores_count_describe(const LikeStoresCount *count, Text *text)
{
	text_append(text, "n=%" PRId64 " ", count->n);
	if (count->log_known)
	{
		text_append(text, "lag=%" PRId64 " bound=%" PRId64 " stale=%s", count->lag, count->pending,
					count->stale ? "true" : "false");
	}
	else
	{
		text_append(text, "lag=unknown bound=unknown stale=unknown");
	}
}

bool
like_stores_audit(const LikeStores *stores, LikeReadAudit *result)
{
	SqlResult *here, *rows = NULL;
	bool done;

	if (!session_query(stores->counts, &here, "SELECT items, ns, bases, watermark, processed FROM like_counts_here()",
					   NO_ARGS))
	{
		return false;
	}
	done = session_query(stores->facts, &rows,
						 "SELECT last_seq, watermark, lag, unprocessed, count_mismatch_items, max_abs_err, "
						 "exact_violations, bound_violations, watermark_violations "
						 "FROM like_audit_counts($1, $2, $3, $4, $5)",
						 ARGS(arg_text(sql_text(here, 0, 0)), arg_text(sql_text(here, 0, 1)),
							  arg_text(sql_text(here, 0, 2)), arg_text(sql_text(here, 0, 3)),
							  arg_text(sql_text(here, 0, 4))));
	if (done)
	{
		like_read_audit_take(rows, result);
	}
	sql_free(here);
	sql_free(rows);
	return done;
}
