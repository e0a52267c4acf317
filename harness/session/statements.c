/*
 * Statements: sent with one PQsend call and gathered result by result, never through PQexec, which keeps the last
 * error where the first is the one that tells. Outside session_await() every wait lasts until the server answers or
 * the connection ends.
 */
#include "session_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 32
#define NO_COPY "a session has no COPY"


/* --- one statement's way from answer to status --- */

bool
session_ready(Session *session, SqlStatus *status)
{
	if (session->lost)
	{
		*status = SQL_LOST;
		return false;
	}
	if (session->awaiting)
	{
		*status = session_refuse(session, SQLSTATE_OUT_OF_TURN, "the answer to session_send() was not taken");
		return false;
	}
	session->failed = false;
	session->unreplicated = false;
	session->in_block = session_block_is(session, PQTRANS_INTRANS) || session_block_is(session, PQTRANS_INERROR);
	session->error.sqlstate[0] = '\0';
	session->error.message[0] = '\0';
	/* A shutdown's warning may have been read with the answer to the statement before; any other is over with it. */
	if (strncmp(session->warning, "57P", 3) != 0)
	{
		session->warning[0] = '\0';
	}
	return true;
}

/* Of several errors the first is the one that tells. */
static void
note_error(Session *session, const char *sqlstate, const char *message)
{
	if (!session->failed)
	{
		session_set_error(&session->error, sqlstate, message);
	}
	session->failed = true;
}

static void
note_bad_result(Session *session, const PGresult *pg)
{
	const char *sqlstate = PQresultErrorField(pg, PG_DIAG_SQLSTATE);
	const char *severity = PQresultErrorField(pg, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *message = PQresultErrorField(pg, PG_DIAG_MESSAGE_PRIMARY);

	if (sqlstate == NULL)
	{
		session_lose(session, SQLSTATE_LOST, PQresultErrorMessage(pg));
	}
	else if (severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0))
	{
		session_lose(session, sqlstate, message != NULL ? message : "");
	}
	else
	{
		note_error(session, sqlstate, message != NULL ? message : "");
	}
}

void
session_end_copy(Session *session, ExecStatusType kind)
{
	char *row;

	if (kind == PGRES_COPY_IN)
	{
		(void) PQputCopyEnd(session->pg, NO_COPY);
		return;
	}
	while (PQgetCopyData(session->pg, &row, 0) > 0)
	{
		PQfreemem(row);
	}
}

void
session_gather(Session *session, PGresult *pg)
{
	ExecStatusType kind = PQresultStatus(pg);

	switch (kind)
	{
		case PGRES_TUPLES_OK:
		case PGRES_COMMAND_OK:
		case PGRES_EMPTY_QUERY:
			PQclear(session->gathered);
			session->gathered = pg;
			return;
		case PGRES_COPY_IN:
		case PGRES_COPY_OUT:
			session_end_copy(session, kind);
			if (kind == PGRES_COPY_OUT)
			{
				note_error(session, SQLSTATE_OUT_OF_TURN, NO_COPY);
			}
			break;
		case PGRES_PIPELINE_ABORTED:
			break;
		default:
			note_bad_result(session, pg);
			break;
	}
	PQclear(pg);
}

SqlStatus
session_conclude(Session *session, SqlResult **result)
{
	PGresult *pg = session->gathered;

	session->gathered = NULL;
	/* libpq answers a statement on a connection it has given up with no result at all */
	if (pg == NULL && !session->failed)
	{
		session_lose(session, SQLSTATE_LOST, PQerrorMessage(session->pg));
	}
	if (session->lost || session->failed || session->unreplicated || result == NULL)
	{
		PQclear(pg);
		pg = NULL;
	}
	if (result != NULL)
	{
		*result = (SqlResult *) pg;
	}
	if (session->lost)
	{
		/* an error that came before the loss had rolled back by then */
		return session->in_block || session->failed ? SQL_LOST : SQL_UNKNOWN;
	}
	if (session->unreplicated && !session->failed)
	{
		return SQL_UNKNOWN;
	}
	return session->failed ? SQL_ERROR : SQL_OK;
}

static SqlStatus
take_answer(Session *session, SqlResult **result, int sent)
{
	PGresult *pg;

	if (sent != 1)
	{
		session_lose(session, SQLSTATE_LOST, PQerrorMessage(session->pg));
	}
	while (!session->lost && (pg = PQgetResult(session->pg)) != NULL)
	{
		session_gather(session, pg);
	}
	return session_conclude(session, result);
}

/* In the form libpq wants; the numbers are those in `args`, which outlive the call. */
static bool
resolve_args(Session *session, const char *values[ARGS_MAX], const SqlArg *args, int count)
{
	if (count > ARGS_MAX)
	{
		(void) session_refuse(session, SQLSTATE_TOO_MANY_ARGS, "too many parameters");
		return false;
	}
	for (int i = 0; i < count; i++)
	{
		values[i] = args[i].text == NULL && args[i].number[0] != '\0' ? args[i].number : args[i].text;
	}
	return true;
}

static void
no_result(SqlResult **result)
{
	if (result != NULL)
	{
		*result = NULL;
	}
}


/* --- statements --- */

static void
show(const Session *session, const char *sql)
{
	if (session->shown)
	{
		report_debug("%s", sql);
	}
}

void
session_show_sql(Session *session)
{
	session->shown = true;
}

/* Either `sql` or the name of a prepared statement. */
static SqlStatus
try_either(Session *session, SqlResult **result, const char *sql, const char *prepared, const SqlArg *args, int count)
{
	const char *values[ARGS_MAX];
	SqlStatus status = SQL_ERROR;
	int sent;

	no_result(result);
	if (!session_ready(session, &status) || !resolve_args(session, values, args, count))
	{
		return status;
	}
	show(session, prepared != NULL ? prepared : sql);
	sent = prepared != NULL ? PQsendQueryPrepared(session->pg, prepared, count, values, NULL, NULL, 0)
							: PQsendQueryParams(session->pg, sql, count, NULL, values, NULL, NULL, 0);
	return take_answer(session, result, sent);
}

SqlStatus
session_try(Session *session, SqlResult **result, const char *sql, const SqlArg *args, int count)
{
	return try_either(session, result, sql, NULL, args, count);
}

SqlStatus
session_try_prepared(Session *session, SqlResult **result, const char *statement, const SqlArg *args, int count)
{
	return try_either(session, result, NULL, statement, args, count);
}

bool
session_query(Session *session, SqlResult **result, const char *sql, const SqlArg *args, int count)
{
	if (session_try(session, result, sql, args, count) != SQL_OK)
	{
		session_report(session, sql);
		return false;
	}
	return true;
}

bool
session_query_int(Session *session, int64_t *value, const char *sql, const SqlArg *args, int count)
{
	SqlResult *result;
	bool ok;

	if (!session_query(session, &result, sql, args, count))
	{
		return false;
	}
	ok = sql_rows(result) == 1 && sql_columns(result) == 1 &&
		 string_to_int64(sql_text(result, 0, 0), INT64_MIN, INT64_MAX, value);
	if (!ok)
	{
		report_error("%s: expected one integer, got %d rows of %d columns%s%s", sql, sql_rows(result),
					 sql_columns(result), sql_rows(result) == 1 && sql_columns(result) == 1 ? ": " : "",
					 sql_rows(result) == 1 && sql_columns(result) == 1 ? sql_text(result, 0, 0) : "");
	}
	sql_free(result);
	return ok;
}

SqlStatus
session_run(Session *session, SqlResult **result, const char *sql)
{
	SqlStatus status;

	no_result(result);
	if (!session_ready(session, &status))
	{
		return status;
	}
	show(session, sql);
	return take_answer(session, result, PQsendQuery(session->pg, sql));
}

bool
session_execute(Session *session, const char *sql)
{
	if (session_run(session, NULL, sql) != SQL_OK)
	{
		session_report(session, sql);
		return false;
	}
	return true;
}

bool
session_execute_file(Session *session, const char *path)
{
	Text sql = {0};
	bool ok = file_read(path, &sql);

	if (ok && session_run(session, NULL, text_get(&sql)) != SQL_OK)
	{
		session_report(session, path);
		ok = false;
	}
	text_free(&sql);
	return ok;
}

bool
session_prepare(Session *session, const char *statement, const char *sql)
{
	SqlStatus status;

	if (session_ready(session, &status))
	{
		status = take_answer(session, NULL, PQsendPrepare(session->pg, statement, sql, 0, NULL));
	}
	if (status != SQL_OK)
	{
		session_report(session, sql);
	}
	return status == SQL_OK;
}


/* --- row by row --- */

/* What is still to come is thrown away; the error that the server makes of it is the statement's. */
static void
give_up(Session *session)
{
	char why[256];
	PGcancel *cancel = PQgetCancel(session->pg);

	(void) PQcancel(cancel, why, (int) sizeof(why));
	PQfreeCancel(cancel);
	note_error(session, SQLSTATE_CANCELLED, "the listener wants no more");
}

SqlStatus
session_stream(Session *session, const char *sql, const SqlArg *args, int count, RowListener listener, void *context)
{
	const char *values[ARGS_MAX];
	SqlStatus status = SQL_ERROR;
	PGresult *pg;

	if (!session_ready(session, &status) || !resolve_args(session, values, args, count))
	{
		return status;
	}
	show(session, sql);
	if (PQsendQueryParams(session->pg, sql, count, NULL, values, NULL, NULL, 0) != 1 ||
		PQsetSingleRowMode(session->pg) != 1)
	{
		session_lose(session, SQLSTATE_LOST, PQerrorMessage(session->pg));
	}
	while (!session->lost && (pg = PQgetResult(session->pg)) != NULL)
	{
		if (PQresultStatus(pg) != PGRES_SINGLE_TUPLE)
		{
			session_gather(session, pg);
			continue;
		}
		if (!session->failed && !listener(context, (const SqlResult *) pg))
		{
			give_up(session);
		}
		PQclear(pg);
	}
	return session_conclude(session, NULL);
}


/* --- one round trip, the row before the commit --- */

/* Nothing leaves before PQpipelineSync: one send(2) for all of it. */
static bool
send_call(PGconn *pg, const char *statement, const char *const *values, int count)
{
	return PQenterPipelineMode(pg) == 1 && PQsendQueryPrepared(pg, statement, count, values, NULL, NULL, 0) == 1 &&
		   PQsendFlushRequest(pg) == 1 && PQpipelineSync(pg) == 1;
}

/* Until the ReadyForQuery that answers Sync. libpq puts one NULL between results; two mean it has given up. */
static void
gather_until_sync(Session *session)
{
	bool after_null = false;

	while (!session->lost)
	{
		PGresult *pg = PQgetResult(session->pg);

		if (pg == NULL && after_null)
		{
			session_lose(session, SQLSTATE_LOST, PQerrorMessage(session->pg));
		}
		else if (pg != NULL && PQresultStatus(pg) == PGRES_PIPELINE_SYNC)
		{
			PQclear(pg);
			return;
		}
		else if (pg != NULL)
		{
			session_gather(session, pg);
		}
		after_null = pg == NULL;
	}
}

/*
 * The answer without the ReadyForQuery, or without the standby; an error that came before the loss, or instead of an answer,
 * rolled back.
 */
static SqlStatus
conclude_unconfirmed_call(Session *session, SqlResult **result)
{
	PGresult *row = session->gathered;

	session->gathered = NULL;
	if (row == NULL || session->failed)
	{
		PQclear(row);
		return SQL_LOST;
	}
	if (result == NULL)
	{
		PQclear(row);
		return SQL_UNKNOWN;
	}
	*result = (SqlResult *) row;
	return SQL_UNKNOWN;
}

SqlStatus
session_call(Session *session, SqlResult **result, const char *statement, const SqlArg *args, int count)
{
	const char *values[ARGS_MAX];
	SqlStatus status = SQL_ERROR;

	no_result(result);
	if (!session_ready(session, &status) || !resolve_args(session, values, args, count))
	{
		return status;
	}
	if (session->in_block)
	{
		return session_refuse(session, SQLSTATE_BLOCK_OPEN, "session_call() inside a transaction block");
	}
	if (!send_call(session->pg, statement, values, count))
	{
		session_lose(session, SQLSTATE_LOST, PQerrorMessage(session->pg));
	}
	gather_until_sync(session);
	/* Nothing is sent or read here. */
	if (!session->lost && PQexitPipelineMode(session->pg) != 1)
	{
		session_lose(session, SQLSTATE_LOST, PQerrorMessage(session->pg));
	}
	if (session->lost || session->unreplicated)
	{
		return conclude_unconfirmed_call(session, result);
	}
	return session_conclude(session, result);
}


/* --- send now, await later --- */

bool
session_send(Session *session, const char *sql, const SqlArg *args, int count)
{
	const char *values[ARGS_MAX];
	SqlStatus status;

	if (!session_ready(session, &status) || !resolve_args(session, values, args, count))
	{
		session_report(session, sql);
		return false;
	}
	if (PQsendQueryParams(session->pg, sql, count, NULL, values, NULL, NULL, 0) != 1)
	{
		session_lose(session, SQLSTATE_LOST, PQerrorMessage(session->pg));
		session_report(session, sql);
		return false;
	}
	session->awaiting = true;
	return true;
}

/* true when PQgetResult() will not block: an answer is there, or the connection failed, which is an answer too. */
static bool
wait_for_input(Session *session, Deadline deadline)
{
	while (PQconsumeInput(session->pg) == 1 && PQisBusy(session->pg) != 0)
	{
		struct pollfd input = {.fd = PQsocket(session->pg), .events = POLLIN};
		int left_ms = deadline_left_ms(deadline);

		if (left_ms == 0)
		{
			return false;
		}
		(void) poll(&input, 1, left_ms); /* a signal only makes the round shorter */
	}
	return true;
}

SqlStatus
session_await(Session *session, SqlResult **result, Deadline deadline)
{
	PGresult *pg;

	no_result(result);
	if (!session->awaiting)
	{
		return session->lost ? SQL_LOST
							 : session_refuse(session, SQLSTATE_OUT_OF_TURN, "session_await() before session_send()");
	}
	do
	{
		if (!wait_for_input(session, deadline))
		{
			return SQL_TIMEOUT;
		}
		pg = PQgetResult(session->pg);
		if (pg != NULL)
		{
			session_gather(session, pg);
		}
	} while (pg != NULL && !session->lost);
	session->awaiting = false;
	return session_conclude(session, result);
}
