/* Reading a count, and the two proof audits. */
#include "like_private.h"

#include <inttypes.h>

bool
like_read_count(Session *session, int64_t item, int64_t allowed_lag, bool *found, LikeCount *count)
{
	SqlResult *rows;

	if (!session_query(session, &rows, "SELECT n, lag, pending, stale FROM like_read_count($1, $2)",
					   ARGS(arg_int(item), arg_int(allowed_lag))))
	{
		return false;
	}
	*found = sql_rows(rows) == 1;
	*count = (LikeCount){0};
	if (*found)
	{
		*count = (LikeCount){.n = sql_int(rows, 0, 0),
							 .lag = sql_int(rows, 0, 1),
							 .pending = sql_int(rows, 0, 2),
							 .stale = sql_bool(rows, 0, 3)};
	}
	sql_free(rows);
	return true;
}

void
like_count_clamp(LikeCount *count)
{
	if (count->n < 0)
	{
		count->n = 0;
		count->clamped = true;
	}
}

void
like_count_describe(const LikeCount *count, Text *text)
{
	text_append(text, "n=%" PRId64 " bound=%" PRId64 "%s", count->n, count->pending, count->clamped ? " clamped" : "");
}

bool
like_audit_write_side(Session *session, LikeWriteAudit *result)
{
	SqlResult *rows;

	if (!session_query(session, &rows,
					   "SELECT last_seq, outbox_rows, gap_violations, version_mismatch_pairs, delta_sum_mismatch_items "
					   "FROM like_audit_write_side()",
					   NO_ARGS))
	{
		return false;
	}
	*result = (LikeWriteAudit){.last_seq = sql_int(rows, 0, 0),
							   .outbox_rows = sql_int(rows, 0, 1),
							   .gap_violations = sql_int(rows, 0, 2),
							   .version_mismatch_pairs = sql_int(rows, 0, 3),
							   .delta_sum_mismatch_items = sql_int(rows, 0, 4)};
	sql_free(rows);
	return true;
}

void
like_read_audit_take(const SqlResult *rows, LikeReadAudit *result)
{
	*result = (LikeReadAudit){.last_seq = sql_int(rows, 0, 0),
							  .watermark = sql_int(rows, 0, 1),
							  .lag = sql_int(rows, 0, 2),
							  .unprocessed = sql_int(rows, 0, 3),
							  .count_mismatch_items = sql_int(rows, 0, 4),
							  .max_abs_err = sql_int(rows, 0, 5),
							  .exact_violations = sql_int(rows, 0, 6),
							  .bound_violations = sql_int(rows, 0, 7),
							  .watermark_violations = sql_int(rows, 0, 8)};
}

bool
like_audit_read_side(Session *session, LikeReadAudit *result)
{
	SqlResult *rows;

	if (!session_query(session, &rows,
					   "SELECT last_seq, watermark, lag, unprocessed, count_mismatch_items, max_abs_err, "
					   "exact_violations, bound_violations, watermark_violations FROM like_audit_read_side()",
					   NO_ARGS))
	{
		return false;
	}
	like_read_audit_take(rows, result);
	sql_free(rows);
	return true;
}

bool
like_audit_log(Session *session, Text *ahead)
{
	SqlResult *rows;

	if (!session_query(session, &rows, "SELECT line FROM like_audit_log() line", NO_ARGS))
	{
		return false;
	}
	for (int row = 0; row < sql_rows(rows); row++)
	{
		text_append(ahead, "%s%s", row == 0 ? "" : "\n", sql_text(rows, row, 0));
	}
	sql_free(rows);
	return true;
}

bool
like_write_side_clean(const LikeWriteAudit *result)
{
	return result->outbox_rows == result->last_seq && result->gap_violations == 0 &&
		   result->version_mismatch_pairs == 0 && result->delta_sum_mismatch_items == 0;
}

bool
like_read_side_holds(const LikeReadAudit *result)
{
	return result->exact_violations == 0 && result->bound_violations == 0 && result->watermark_violations == 0 &&
		   result->unprocessed <= result->lag;
}

void
like_write_audit_describe(const LikeWriteAudit *result, Text *text)
{
	text_append(text,
				"last_seq=%" PRId64 " outbox_rows=%" PRId64 " gap_violations=%" PRId64
				" version_mismatch_pairs=%" PRId64 " delta_sum_mismatch_items=%" PRId64,
				result->last_seq, result->outbox_rows, result->gap_violations, result->version_mismatch_pairs,
				result->delta_sum_mismatch_items);
}

void
like_read_audit_describe(const LikeReadAudit *result, Text *text)
{
	text_append(text,
				"last_seq=%" PRId64 " watermark=%" PRId64 " lag=%" PRId64 " unprocessed=%" PRId64
				" count_mismatch_items=%" PRId64 " max_abs_err=%" PRId64 " exact_violations=%" PRId64
				" bound_violations=%" PRId64 " watermark_violations=%" PRId64,
				result->last_seq, result->watermark, result->lag, result->unprocessed, result->count_mismatch_items,
				result->max_abs_err, result->exact_violations, result->bound_violations, result->watermark_violations);
}
