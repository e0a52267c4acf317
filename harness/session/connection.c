/*
 * The life of a session, and what counts as losing it.
 */
#include "session_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS 10000
#define CONNECT_TIMEOUT_LEAST_S 2 /* what libpq takes for a smaller number */


/* --- errors --- */

static void
copy_sqlstate(char target[6], const char *sqlstate)
{
	snprintf(target, 6, "%s", sqlstate);
}

void
session_set_error(SqlError *error, const char *sqlstate, const char *message)
{
	size_t length = strcspn(message, "\r\n");

	if (length >= sizeof(error->message))
	{
		length = sizeof(error->message) - 1;
		/* back to the first byte of the character that does not fit: evidence files must stay UTF-8 */
		while (length > 0 && ((unsigned char) message[length] & 0xc0) == 0x80)
		{
			length--;
		}
	}
	memcpy(error->message, message, length);
	error->message[length] = '\0';
	error->warning[0] = '\0';
	copy_sqlstate(error->sqlstate, sqlstate);
}

void
session_lose(Session *session, const char *sqlstate, const char *message)
{
	if (!session->lost)
	{
		session->lost = true;
		session_set_error(&session->error, sqlstate, message);
		copy_sqlstate(session->error.warning, session->warning);
	}
}

SqlStatus
session_refuse(Session *session, const char *sqlstate, const char *message)
{
	session_set_error(&session->error, sqlstate, message);
	return SQL_ERROR;
}

void
session_report(const Session *session, const char *what)
{
	const SqlError *error = &session->error;

	report_error("%.*s: %s%s (%s%s%s)", 400, what, session->lost ? "session lost: " : "", error->message,
				 error->sqlstate, error->warning[0] != '\0' ? ", after warning " : "", error->warning);
}

/*
 * A wait for a synchronous standby that was cancelled is confirmed as a commit, with a WARNING. Its SQLSTATE is that of any
 * warning, and its text is translated: it is known by the function of the server that says it.
 */
static void
hear_cancelled_wait(Session *session, const PGresult *pg)
{
	const char *where = PQresultErrorField(pg, PG_DIAG_SOURCE_FUNCTION);
	const char *message = PQresultErrorField(pg, PG_DIAG_MESSAGE_PRIMARY);

	if (where != NULL && strcmp(where, "SyncRepWaitForLSN") == 0)
	{
		session->unreplicated = true;
		session_set_error(&session->error, session->warning, message != NULL ? message : "");
	}
}

/* An immediate shutdown announces itself as a WARNING only; the loss that follows has no SQLSTATE of its own. */
static void
hear_notice(void *arg, const PGresult *pg)
{
	Session *session = arg;
	const char *severity = PQresultErrorField(pg, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *sqlstate = PQresultErrorField(pg, PG_DIAG_SQLSTATE);

	if (severity != NULL && sqlstate != NULL && strcmp(severity, "WARNING") == 0)
	{
		copy_sqlstate(session->warning, sqlstate);
		hear_cancelled_wait(session, pg);
	}
	if (session->listener != NULL)
	{
		session->listener(session->listener_context, PQresultErrorMessage(pg));
	}
}


/* --- connecting --- */

typedef struct
{
	const char *keywords[5];
	const char *values[5];
	char timeout[24];
} ConnectOptions;

/* Strings are borrowed. What stands after dbname overrides conninfo, what stands before it is a default. */
static void
fill_connect_options(ConnectOptions *options, const char *conninfo, const char *name)
{
	int timeout_s = deadline_left_ms(deadline_in_ms(CONNECT_TIMEOUT_MS)) / 1000;

	*options = (ConnectOptions){
		.keywords = {"connect_timeout", "dbname", "client_encoding", "application_name", NULL},
		.values = {options->timeout, conninfo, "UTF8", name, NULL},
	};
	snprintf(options->timeout, sizeof(options->timeout), "%d",
			 timeout_s > CONNECT_TIMEOUT_LEAST_S ? timeout_s : CONNECT_TIMEOUT_LEAST_S);
}

Session *
session_make(PGconn *pg)
{
	Session *session = memory_get(sizeof(Session));

	session->pg = pg;
	session->jitter = rng_stream((uint64_t) time_now_ns(), (uint64_t) PQbackendPID(pg));
	PQsetNoticeReceiver(pg, hear_notice, session);
	return session;
}

Session *
session_open_quietly(const char *conninfo, const char *name, SqlError *error)
{
	ConnectOptions options;
	PGconn *pg;
	Session *session;

	fill_connect_options(&options, conninfo, name);
	pg = PQconnectdbParams(options.keywords, options.values, true);
	if (PQstatus(pg) != CONNECTION_OK)
	{
		session_set_error(error, SQLSTATE_CANNOT_CONNECT, pg != NULL ? PQerrorMessage(pg) : "out of memory");
		PQfinish(pg);
		return NULL;
	}
	*error = (SqlError){0};
	session = session_make(pg);
	session->name = string_copy(name);
	return session;
}

Session *
session_open(const char *conninfo, const char *name)
{
	SqlError error;
	Session *session = session_open_quietly(conninfo, name, &error);

	if (session == NULL)
	{
		report_error("cannot connect %s: %s", name, error.message);
	}
	return session;
}

typedef struct
{
	const char *conninfo, *name;
	Session *session;
} Knock;

static ProbeAnswer
probe_open(void *context, Text *seen)
{
	Knock *knock = context;
	SqlError error;

	knock->session = session_open_quietly(knock->conninfo, knock->name, &error);
	text_append(seen, "%s", error.message);
	return knock->session != NULL ? PROBE_DONE : PROBE_AGAIN;
}

Session *
session_open_patiently(const char *conninfo, const char *name, Deadline deadline)
{
	Knock knock = {.conninfo = conninfo, .name = name};

	return wait_until("a server that accepts connections", deadline, probe_open, &knock) ? knock.session : NULL;
}

void
session_close(Session *session)
{
	if (session != NULL)
	{
		PQclear(session->gathered);
		PQfinish(session->pg);
		free(session->name);
		free(session);
	}
}

/* After the shutdown the Terminate that PQfinish wants to send has nowhere to go. */
void
session_abandon(Session *session)
{
	if (session != NULL && PQsocket(session->pg) >= 0)
	{
		(void) shutdown(PQsocket(session->pg), SHUT_RDWR);
	}
	session_close(session);
}

bool
server_accepts(const char *conninfo)
{
	ConnectOptions options;

	fill_connect_options(&options, conninfo, "server_accepts");
	return PQpingParams(options.keywords, options.values, true) == PQPING_OK;
}

int
session_backend_pid(const Session *session)
{
	return PQbackendPID(session->pg);
}

const char *
session_name(const Session *session)
{
	return session->name == NULL ? "" : session->name;
}

bool
session_is_lost(const Session *session)
{
	return session->lost;
}

const SqlError *
session_error(const Session *session)
{
	return &session->error;
}

const char *
session_warning(const Session *session)
{
	return session->warning;
}
