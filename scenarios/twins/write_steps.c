/*
 * Wrong clients of the write path. Where the right one, like_set(), calls one function in one transaction, these need two.
 * Their functions are in write.sql of the twin.
 */
#include "wrong_steps.h"

#include <string.h>

/* A transaction of its own, tried again as like_set() does. */
static SqlStatus
call(Session *session, SqlResult **rows, const char *statement, const SqlArg *args, int count)
{
	for (int attempt = 1;; attempt++)
	{
		SqlStatus status = session_call(session, rows, statement, args, count);

		if (status != SQL_ERROR || !session_retry_due(session, attempt))
		{
			return status;
		}
	}
}

/* A call that answers as the function like_set() does, and what its client may believe then. */
static void
call_set(Session *session, const char *statement, const SqlArg *args, int count, LikeResult *result)
{
	SqlResult *rows = NULL;
	SqlStatus status = call(session, &rows, statement, args, count);

	*result = (LikeResult){.outcome = LIKE_REJECTED};
	memcpy(result->sqlstate, session_error(session)->sqlstate, sizeof(result->sqlstate));
	if (rows == NULL)
	{
		return;
	}
	result->changed = sql_bool(rows, 0, 0);
	result->liked = sql_bool(rows, 0, 1);
	result->version = sql_int(rows, 0, 2);
	result->seq = sql_int(rows, 0, 3);
	result->xid = (uint64_t) sql_int(rows, 0, 4);
	sql_free(rows);
	if (status == SQL_UNKNOWN)
	{
		result->outcome = LIKE_UNKNOWN;
		return;
	}
	result->outcome = result->changed ? LIKE_CHANGED : LIKE_NOOP;
}


/* --- M02: the event in a second transaction --- */

static bool
event_apart_prepare(Session *session)
{
	return like_prepare(session) &&
		   session_prepare(session, "like_set_fact",
						   "SELECT changed, liked, version, seq, xid FROM like_set_fact($1, $2, $3)") &&
		   session_prepare(session, "like_set_event",
						   "SELECT changed, liked, version, seq, xid FROM like_set_event($1, $2, $3, $4)");
}

static bool
event_apart_set(Session *session, int64_t user, int64_t item, bool want, LikeResult *result)
{
	if (session_is_lost(session))
	{
		report_error("like_set_fact on a session that was lost before");
		return false;
	}
	call_set(session, "like_set_fact", ARGS(arg_int(user), arg_int(item), arg_bool(want)), result);
	if (result->outcome == LIKE_CHANGED)
	{
		call_set(session, "like_set_event",
				 ARGS(arg_int(user), arg_int(item), arg_bool(want), arg_int(result->version)), result);
	}
	return true;
}

const ClientSteps event_apart_steps = {.prepare = event_apart_prepare, .set = event_apart_set};


/* --- M06: the decision in a transaction before --- */

static bool
decided_early_prepare(Session *session)
{
	return like_prepare(session) &&
		   session_prepare(
			   session, "like_read_fact",
			   "SELECT coalesce(bool_or(liked), false) FROM like_fact WHERE user_id = $1 AND item_id = $2") &&
		   session_prepare(session, "like_set_knowing",
						   "SELECT changed, liked, version, seq, xid FROM like_set_knowing($1, $2, $3, $4)");
}

static bool
decided_early_set(Session *session, int64_t user, int64_t item, bool want, LikeResult *result)
{
	SqlResult *rows = NULL;
	SqlStatus status;
	bool liked;

	if (session_is_lost(session))
	{
		report_error("like_read_fact on a session that was lost before");
		return false;
	}
	status = call(session, &rows, "like_read_fact", ARGS(arg_int(user), arg_int(item)));
	liked = status == SQL_OK && sql_bool(rows, 0, 0);
	sql_free(rows);
	if (status != SQL_OK)
	{
		*result = (LikeResult){.outcome = LIKE_REJECTED};
		memcpy(result->sqlstate, session_error(session)->sqlstate, sizeof(result->sqlstate));
		return true;
	}
	call_set(session, "like_set_knowing", ARGS(arg_int(user), arg_int(item), arg_bool(want), arg_bool(liked)), result);
	return true;
}

const ClientSteps decided_early_steps = {.prepare = decided_early_prepare, .set = decided_early_set};


/* --- F02: COMMIT is taken for what it says, the warning beside it is not read --- */

static bool
warning_unread_set(Session *session, int64_t user, int64_t item, bool want, LikeResult *result)
{
	if (!like_set(session, user, item, want, result))
	{
		return false;
	}
	if (result->outcome == LIKE_UNKNOWN && !session_is_lost(session))
	{
		result->outcome = result->changed ? LIKE_CHANGED : LIKE_NOOP;
		result->sqlstate[0] = '\0';
	}
	return true;
}

const ClientSteps warning_unread_steps = {.set = warning_unread_set};
