#include "failover.h"

#include <inttypes.h>
#include <stdio.h>

bool
server_admit(Session *session, int64_t highest, ServerEpoch *epoch)
{
	SqlResult *rows;

	if (!session_query(session, &rows, "SELECT epoch, timeline, admitted FROM server_admit($1)",
					   ARGS(arg_int(highest))))
	{
		return false;
	}
	*epoch =
		(ServerEpoch){.epoch = sql_int(rows, 0, 0), .timeline = sql_int(rows, 0, 1), .admitted = sql_bool(rows, 0, 2)};
	sql_free(rows);
	return true;
}

static bool
read_progress(Session *standby, LikeStandbyCount *count)
{
	SqlResult *rows;

	if (!session_query(standby, &rows, "SELECT replayed, coalesce(since_ms, -1) FROM standby_progress()", NO_ARGS))
	{
		return false;
	}
	snprintf(count->replayed, sizeof(count->replayed), "%s", sql_text(rows, 0, 0));
	count->since_ms = sql_int(rows, 0, 1);
	sql_free(rows);
	return true;
}

/* A primary that does not answer is no failure. */
static void
ask_primary(Session *primary, int64_t item, LikeStandbyCount *count)
{
	SqlResult *rows = NULL;

	if (primary == NULL || session_try(primary, &rows, "SELECT like_events_beyond($1, $2)",
									   ARGS(arg_int(item), arg_int(count->last))) != SQL_OK)
	{
		return;
	}
	count->primary_known = true;
	count->beyond = sql_int(rows, 0, 0);
	sql_free(rows);
}

/* In this order: what was replayed at least, then the count in one snapshot, then what the primary has beyond that. */
bool
like_read_count_on_standby(Session *standby, Session *primary, int64_t item, int64_t allowed_lag, bool *found,
						   LikeStandbyCount *count)
{
	SqlResult *rows;

	*count = (LikeStandbyCount){0};
	if (!read_progress(standby, count) ||
		!session_query(standby, &rows, "SELECT n, lag, pending, stale, last FROM like_read_count_replayed($1, $2)",
					   ARGS(arg_int(item), arg_int(allowed_lag))))
	{
		return false;
	}
	*found = sql_rows(rows) == 1;
	if (*found)
	{
		count->count = (LikeCount){.n = sql_int(rows, 0, 0),
								   .lag = sql_int(rows, 0, 1),
								   .pending = sql_int(rows, 0, 2),
								   .stale = sql_bool(rows, 0, 3)};
		count->last = sql_int(rows, 0, 4);
		ask_primary(primary, item, count);
	}
	sql_free(rows);
	return true;
}

void
like_standby_count_describe(const LikeStandbyCount *count, Text *text)
{
	text_append(text, "n=%" PRId64 " bound=%" PRId64 " of events 1..%" PRId64 ", replayed=%s", count->count.n,
				count->count.pending, count->last, count->replayed);
	if (count->since_ms >= 0)
	{
		text_append(text, " last commit %" PRId64 " ms ago", count->since_ms);
	}
	if (count->primary_known)
	{
		text_append(text, ", bound of the primary=%" PRId64, count->count.pending + count->beyond);
	}
	else
	{
		text_append(text, ", bound of the primary=unknown");
	}
}
