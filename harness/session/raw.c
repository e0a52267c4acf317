/*
 * What the server sends, as it comes.
 */
#include "session_private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define US_PER_S 1000000
#define NS_PER_US 1000
#define LOOK_UP_US 100000   /* so often an interrupt is looked for */
#define INTERRUPTED_MS 1000 /* for what is under way to end by itself */
#define HEED_MS 3000        /* for a cancelled statement to end */


/* --- life --- */

Session *
session_raw_open(const char *conninfo, char **why)
{
	PGconn *pg = PQconnectdb(conninfo);

	if (PQstatus(pg) != CONNECTION_OK)
	{
		*why = string_copy(PQerrorMessage(pg));
		PQfinish(pg);
		return NULL;
	}
	return session_make(pg);
}

/* A part of the handshake, once its turn has come. false: it has not within the time. */
static bool
advance(Session *session, int timeout_ms)
{
	struct pollfd socket = {.fd = PQsocket(session->pg),
							.events = session->handshake == PGRES_POLLING_READING ? POLLIN : POLLOUT};

	if (socket.fd >= 0 && poll(&socket, 1, timeout_ms) <= 0)
	{
		return false;
	}
	session->handshake = PQconnectPoll(session->pg);
	return true;
}

/* Up to where the server has to answer. */
Session *
session_raw_begin(const char *conninfo)
{
	Session *session = session_make(PQconnectStart(conninfo));

	session->handshake = PGRES_POLLING_WRITING;
	while (session->handshake == PGRES_POLLING_WRITING && advance(session, 0))
	{
	}
	return session;
}

bool
session_raw_finish(Session *session, char **why)
{
	while (session->handshake != PGRES_POLLING_OK && session->handshake != PGRES_POLLING_FAILED)
	{
		(void) advance(session, -1);
	}
	if (session->handshake == PGRES_POLLING_FAILED)
	{
		*why = string_copy(PQerrorMessage(session->pg));
	}
	return session->handshake == PGRES_POLLING_OK;
}

const char *
session_raw_message(const Session *session)
{
	return PQerrorMessage(session->pg);
}

void
session_raw_listen(Session *session, NoticeListener listener, void *context)
{
	session->listener = listener;
	session->listener_context = context;
}


/* --- statements --- */

SqlResult *
session_raw_execute(Session *session, const char *sql)
{
	return (SqlResult *) PQexec(session->pg, sql);
}

bool
session_raw_send(Session *session, const char *sql)
{
	return PQsendQuery(session->pg, sql) == 1;
}

bool
session_raw_busy(Session *session)
{
	return PQisBusy(session->pg) != 0;
}

Arrival
session_raw_await(Session *session, int64_t timeout_us)
{
	struct pollfd socket = {.fd = PQsocket(session->pg), .events = POLLIN};
	struct timespec timeout = {.tv_sec = timeout_us / US_PER_S, .tv_nsec = timeout_us % US_PER_S * NS_PER_US};
	int ready = socket.fd < 0 ? 1 : ppoll(&socket, 1, &timeout, NULL);

	if (ready == 0 || (ready < 0 && errno == EINTR))
	{
		return ARRIVAL_NONE;
	}
	if (ready < 0 || PQconsumeInput(session->pg) != 1)
	{
		return ARRIVAL_FAILED;
	}
	(void) PQisBusy(session->pg); /* takes apart what was read, and so tells of notices */
	return ARRIVAL_SOME;
}

SqlResult *
session_raw_next(Session *session)
{
	PGresult *pg;
	ExecStatusType kind;

	if (session->copying != PGRES_EMPTY_QUERY)
	{
		session_end_copy(session, session->copying);
	}
	pg = PQgetResult(session->pg);
	kind = PQresultStatus(pg);
	session->copying = pg != NULL && (kind == PGRES_COPY_IN || kind == PGRES_COPY_OUT) ? kind : PGRES_EMPTY_QUERY;
	return (SqlResult *) pg;
}

/* Until the next result can be had without a wait. */
static void
await_result(Session *session, Deadline deadline)
{
	bool pressed = false;
	bool cancelled = false;
	char why[256];

	while (PQisBusy(session->pg) != 0 && session_raw_await(session, LOOK_UP_US) != ARRIVAL_FAILED)
	{
		if (!pressed && interrupt_presses())
		{
			pressed = true;
			deadline = deadline_earlier(deadline, deadline_in_ms(INTERRUPTED_MS));
		}
		if (!deadline_passed(deadline))
		{
			continue;
		}
		if (cancelled || !session_raw_cancel(session, why, sizeof(why)))
		{
			(void) shutdown(PQsocket(session->pg), SHUT_RDWR);
		}
		cancelled = true;
		deadline = deadline_in_ms(HEED_MS);
	}
}

SqlResult *
session_raw_next_by(Session *session, Deadline deadline)
{
	await_result(session, deadline);
	return session_raw_next(session);
}

/* A COPY is ended as PQexec() ends it: by the next result that is asked for. */
SqlResult *
session_raw_execute_by(Session *session, const char *sql, Deadline deadline)
{
	SqlResult *last = NULL;
	SqlResult *next;

	if (!session_raw_send(session, sql))
	{
		return session_raw_execute(session, sql); /* says why, as a result */
	}
	while ((next = session_raw_next_by(session, deadline)) != NULL)
	{
		sql_free(last);
		last = next;
	}
	return last;
}

bool
session_raw_cancel(Session *session, char *why, size_t size)
{
	PGcancel *cancel = PQgetCancel(session->pg);
	bool sent = cancel != NULL && PQcancel(cancel, why, (int) size) == 1;

	if (cancel == NULL)
	{
		snprintf(why, size, "no connection");
	}
	PQfreeCancel(cancel);
	return sent;
}

BlockState
session_raw_block(const Session *session)
{
	switch (PQtransactionStatus(session->pg))
	{
		case PQTRANS_IDLE:
			return BLOCK_NONE;
		case PQTRANS_INTRANS:
			return BLOCK_OPEN;
		case PQTRANS_INERROR:
			return BLOCK_FAILED;
		default:
			return BLOCK_UNKNOWN;
	}
}

bool
session_raw_notification(Session *session, Notification *notification)
{
	PGnotify *notify = PQnotifies(session->pg);

	if (notify == NULL)
	{
		return false;
	}
	*notification = (Notification){
		.channel = string_copy(notify->relname), .payload = string_copy(notify->extra), .sender = notify->be_pid};
	PQfreemem(notify);
	return true;
}


/* --- results --- */

ResultKind
sql_kind(const SqlResult *result)
{
	switch (PQresultStatus(result_to_pg(result)))
	{
		case PGRES_COMMAND_OK:
			return RESULT_COMMAND;
		case PGRES_EMPTY_QUERY:
			return RESULT_EMPTY;
		case PGRES_TUPLES_OK:
			return RESULT_ROWS;
		case PGRES_FATAL_ERROR:
			return RESULT_ERROR;
		default:
			return RESULT_OTHER;
	}
}

const char *
sql_kind_name(const SqlResult *result)
{
	return PQresStatus(PQresultStatus(result_to_pg(result)));
}

const char *
sql_tag(const SqlResult *result)
{
	return PQcmdStatus((PGresult *) result);
}

SqlComplaint
sql_complaint(const SqlResult *result)
{
	const PGresult *pg = result_to_pg(result);

	return (SqlComplaint){.severity = PQresultErrorField(pg, PG_DIAG_SEVERITY),
						  .sqlstate = PQresultErrorField(pg, PG_DIAG_SQLSTATE),
						  .primary = PQresultErrorField(pg, PG_DIAG_MESSAGE_PRIMARY),
						  .whole = PQresultErrorMessage(pg)};
}

bool
sql_is_loss(const SqlResult *result)
{
	SqlComplaint complaint;

	if (sql_kind(result) != RESULT_ERROR)
	{
		return false;
	}
	complaint = sql_complaint(result);
	return complaint.sqlstate == NULL || complaint.severity == NULL || strcmp(complaint.severity, "FATAL") == 0 ||
		   strcmp(complaint.severity, "PANIC") == 0;
}

void
sql_print(const SqlResult *result, FILE *stream)
{
	char separator[] = "|";
	PQprintOpt options = {.header = 1, .align = 1, .fieldSep = separator};

	PQprint(stream, result_to_pg(result), &options);
}
