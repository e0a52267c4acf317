/* The write path from the client's side, and the fate of requests whose answer was lost. */
#include "like_private.h"

#include <inttypes.h>
#include <string.h>

#define LIKE_SET "like_set"

bool
like_prepare(Session *session)
{
	return session_prepare(session, LIKE_SET, "SELECT changed, liked, version, seq, xid FROM like_set($1, $2, $3)");
}

static void
result_read(const SqlResult *rows, LikeResult *result)
{
	result->changed = sql_bool(rows, 0, 0);
	result->liked = sql_bool(rows, 0, 1);
	result->version = sql_int(rows, 0, 2);
	result->seq = sql_int(rows, 0, 3);
	result->xid = (uint64_t) sql_int(rows, 0, 4);
}

/* What the client may believe after this status. Frees rows. */
static void
result_conclude(const Session *session, SqlStatus status, SqlResult *rows, LikeResult *result)
{
	*result = (LikeResult){.outcome = LIKE_REJECTED};
	if (rows != NULL)
	{
		result_read(rows, result);
		sql_free(rows);
	}
	if (status == SQL_OK)
	{
		result->outcome = result->changed ? LIKE_CHANGED : LIKE_NOOP;
		return;
	}
	if (status == SQL_UNKNOWN)
	{
		result->outcome = LIKE_UNKNOWN;
	}
	memcpy(result->sqlstate, session_error(session)->sqlstate, sizeof(result->sqlstate));
}

/* A session that was lost earlier can answer nothing about this request. */
static bool
session_usable(const Session *session)
{
	if (session_is_lost(session))
	{
		like_report(session, SQL_LOST, "like_set on a session that was lost before");
		return false;
	}
	return true;
}

bool
like_set(Session *session, int64_t user, int64_t item, bool want, LikeResult *result)
{
	const SqlArg args[] = {arg_int(user), arg_int(item), arg_bool(want)};

	if (!session_usable(session))
	{
		return false;
	}
	for (int attempt = 1;; attempt++)
	{
		SqlResult *rows = NULL;
		SqlStatus status = session_call(session, &rows, LIKE_SET, args, LENGTH_OF(args));

		if (status != SQL_ERROR || !session_retry_due(session, attempt))
		{
			result_conclude(session, status, rows, result);
			return true;
		}
	}
}

bool
like_set_within(Session *session, int64_t user, int64_t item, bool want, LikeResult *result)
{
	const SqlArg args[] = {arg_int(user), arg_int(item), arg_bool(want)};
	SqlResult *rows = NULL;
	SqlStatus status;

	if (!session_usable(session))
	{
		return false;
	}
	status = session_try_prepared(session, &rows, LIKE_SET, args, LENGTH_OF(args));
	result_conclude(session, status, rows, result);
	return true;
}

void
like_describe(const LikeResult *result, Text *text)
{
	const char *state = result->liked ? "liked" : "unliked";

	switch (result->outcome)
	{
		case LIKE_CHANGED:
			text_append(text, "CHANGED(%s, v%" PRId64, state, result->version);
			if (result->seq != 0)
			{
				text_append(text, ", seq=%" PRId64, result->seq);
			}
			text_append(text, ")");
			break;
		case LIKE_NOOP:
			text_append(text, "NOOP(%s, v%" PRId64 ", %s)", state, result->version,
						result->liked ? "already liked" : "not liked");
			break;
		case LIKE_REJECTED:
			text_append(text, "REJECTED(%s)", result->sqlstate);
			break;
		case LIKE_UNKNOWN:
			text_append(text, "UNKNOWN(%s, xid=%" PRIu64 ")", result->sqlstate, result->xid);
			break;
		case LIKE_UNSET:
			text_append(text, "UNSET");
			break;
	}
}

bool
like_recovery_horizon(Session *session, uint64_t *horizon)
{
	int64_t value;

	if (!session_query_int(session, &value, "SELECT pg_snapshot_xmax(pg_current_snapshot())", NO_ARGS))
	{
		return false;
	}
	*horizon = (uint64_t) value;
	return true;
}

bool
like_resolve(Session *session, uint64_t xid, uint64_t horizon, Resolved *resolved)
{
	SqlResult *rows;
	bool known;

	if (xid == 0)
	{
		report_error("cannot resolve a request whose transaction number never became known: read its pair back");
		return false;
	}
	/* It never reached the disk, and the server gives its number to another transaction: do not ask. */
	if (xid >= horizon)
	{
		*resolved = RESOLVED_NOT_COMMITTED;
		return true;
	}
	if (!session_query(session, &rows, "SELECT pg_xact_status($1::xid8)", ARGS(arg_int((int64_t) xid))))
	{
		return false;
	}
	*resolved = strcmp(sql_text(rows, 0, 0), "committed") == 0 ? RESOLVED_COMMITTED : RESOLVED_NOT_COMMITTED;
	known = *resolved == RESOLVED_COMMITTED || strcmp(sql_text(rows, 0, 0), "aborted") == 0;
	if (!known)
	{
		report_error("cannot resolve transaction %" PRIu64 " below the horizon %" PRIu64 ": its status is \"%s\"", xid,
					 horizon, sql_text(rows, 0, 0));
	}
	sql_free(rows);
	return known;
}
