/*
 * What the files of the session module share. How a statement goes: session_ready() clears what the last one left, one
 * PQsend call, then every result goes through session_gather(), and session_conclude() makes one status of them.
 */
#ifndef COUNTERPROOF_SESSION_PRIVATE_H
#define COUNTERPROOF_SESSION_PRIVATE_H

#include <libpq-fe.h>

#include "../rng.h"
#include "../session.h"

#define SQLSTATE_LOST "08006"
#define SQLSTATE_CANNOT_CONNECT "08001"
#define SQLSTATE_BLOCK_OPEN "25001"
#define SQLSTATE_NO_BLOCK "25P01"
#define SQLSTATE_BLOCK_FAILED "25P02"
#define SQLSTATE_TOO_MANY_ARGS "54023"
#define SQLSTATE_OUT_OF_TURN "55000"
#define SQLSTATE_CANCELLED "57014"

struct Session
{
	PGconn *pg;
	char *name; /* as it was given when it was opened, NULL for a raw one */
	bool lost;
	bool awaiting;      /* session_send() without the whole answer yet */
	bool in_block;      /* when the statement was sent */
	bool failed;        /* the statement got an error that the session survives */
	PGresult *gathered; /* the statement's last good result */
	char warning[6];    /* SQLSTATE of the last WARNING that can belong to a loss */
	bool unreplicated;  /* the statement's commit no longer waited for the standby */
	SqlError error;
	Rng jitter;
	bool shown;              /* each statement, to those who see debug notices */
	NoticeListener listener; /* NULL: nobody wants notices */
	void *listener_context;
	PostgresPollingStatusType handshake; /* of a connection that is being made: what comes next */
	ExecStatusType copying;              /* the last raw result, when it began a COPY */
};

/* A SqlResult is a PGresult under a name that needs no libpq header; nothing is allocated beside it. */
static inline const PGresult *
result_to_pg(const SqlResult *result)
{
	return (const PGresult *) result;
}

/* As of the last answer from the server. */
static inline bool
session_block_is(const Session *session, PGTransactionStatusType state)
{
	return PQtransactionStatus(session->pg) == state;
}

/* Fill an error; only the first line of the message is kept, as UTF-8 even when it is cut. */
extern void session_set_error(SqlError *error, const char *sqlstate, const char *message);

/* The session is gone. The first loss stays. */
extern void session_lose(Session *session, const char *sqlstate, const char *message);

/* A mistake of the caller that must not reach the server: an error with a SQLSTATE that fits. Answers SQL_ERROR. */
extern SqlStatus session_refuse(Session *session, const char *sqlstate, const char *message);

/* Before a statement: false when it cannot be sent, *status says why. */
extern bool session_ready(Session *session, SqlStatus *status) MUST_CHECK;

/* Take over one result of the statement. */
extern void session_gather(Session *session, PGresult *pg);
extern SqlStatus session_conclude(Session *session, SqlResult **result);

/* Statements without parameters, quietly; *result (may be NULL) is the last one's. */
extern SqlStatus session_run(Session *session, SqlResult **result, const char *sql);

/* libpq says the same COPY result for ever until the COPY is over. */
extern void session_end_copy(Session *session, ExecStatusType kind);

/* A session around an open connection, which it takes over. */
extern Session *session_make(PGconn *pg);

extern void session_report(const Session *session, const char *what);

#endif
