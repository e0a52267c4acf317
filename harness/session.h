/*
 * A connection to PostgreSQL: the only user of libpq.
 *
 * A session belongs to one thread at a time. It owns the classification of what went wrong. libpq has no SQLSTATE for
 * a lost connection, PQstatus may go on saying OK, and a second call loses the first message; therefore an error
 * result without SQLSTATE is a loss with sqlstate 08006, the SQLSTATE of the last WARNING beside it, and the first
 * loss is kept: no later error replaces it. A FATAL with its own SQLSTATE (57P01, a polite stop) is a loss kept as that.
 * A commit whose wait for a synchronous standby was cancelled is confirmed by the server with a WARNING (01000). It stands
 * there, and may be gone after a failover: SQL_UNKNOWN with that SQLSTATE, of a session that lives.
 * Calls on a lost session answer SQL_LOST and send nothing. A mistake in the order of calls (55000), in transaction
 * state (25001, 25P01) or too many parameters (54023) is SQL_ERROR before anything is sent.
 *
 * Only session_await() and connecting have a deadline; every other call waits until the server answers or is gone.
 */
#ifndef COUNTERPROOF_SESSION_H
#define COUNTERPROOF_SESSION_H

#include <stdio.h>

#include "base.h"

typedef struct Session Session;
typedef struct SqlResult SqlResult;

typedef enum
{
	SQL_UNSET = 0,
	SQL_OK,
	SQL_ERROR,   /* the server answered with an error; the session lives */
	SQL_LOST,    /* the session is gone and the statement's transaction certainly did not commit */
	SQL_UNKNOWN, /* the session is gone, or its standby; the transaction may or may not have committed for good */
	SQL_TIMEOUT  /* session_await() only: no answer within the deadline, still running */
} SqlStatus;

typedef struct
{
	char sqlstate[6];  /* "" after success, 08006 for a lost connection */
	char warning[6];   /* for a lost connection: SQLSTATE of the last WARNING before it, or "" */
	char message[256]; /* primary message, one line */
} SqlError;

typedef enum
{
	READ_COMMITTED = 1,
	REPEATABLE_READ,
	SERIALIZABLE
} Isolation;

/* A parameter: text form. Build with arg_*() and pass with ARGS(...), or NO_ARGS. */
typedef struct
{
	const char *text; /* NULL: `number` is meant, or SQL NULL when that is empty too */
	char number[24];  /* inside, because arguments are passed by value */
} SqlArg;

#define ARGS(...) (SqlArg[]){__VA_ARGS__}, (int) (sizeof((SqlArg[]){__VA_ARGS__}) / sizeof(SqlArg))
#define NO_ARGS NULL, 0

extern SqlArg arg_int(int64_t value);
extern SqlArg arg_bool(bool value);
extern SqlArg arg_text(const char *text); /* borrowed until the call returns */

/* Append a bigint[] literal, for arg_text(). */
extern void text_append_int64_array(Text *text, const int64_t *values, size_t count);


/* --- life --- */

/*
 * Connect (conninfo string or URI) and set application_name to `name`. NULL: reported. The quiet form reports nothing
 * and fills *error, with 08001 whatever the server's reason: libpq tells only the text.
 * Nothing is taken from PG* variables that is not in conninfo: the runner clears them at start.
 */
extern Session *session_open(const char *conninfo, const char *name) MUST_CHECK;
extern Session *session_open_quietly(const char *conninfo, const char *name, SqlError *error) MUST_CHECK;

/* The same again and again until a server accepts, as a client does whose server restarts. NULL: reported. */
extern Session *session_open_patiently(const char *conninfo, const char *name, Deadline deadline) MUST_CHECK;
extern void session_close(Session *session);   /* NULL allowed */
extern void session_abandon(Session *session); /* drop the socket without Terminate, as a killed client would */

extern int session_backend_pid(const Session *session);
extern const char *session_name(const Session *session); /* as it was opened with; "" for a raw one */
extern bool session_is_lost(const Session *session);
extern const SqlError *session_error(const Session *session); /* of the last statement, or the first loss */
extern const char *session_warning(const Session *session);   /* SQLSTATE of the last answer's WARNING, or "" */
extern int64_t session_retries_40001(void);                   /* retries in this process, all sessions */
extern int64_t session_retries_40p01(void);

/* The same conninfo (or URI) with another database; caller frees. NULL: reported. */
extern char *session_conninfo_for(const char *conninfo, const char *database) MUST_CHECK;

extern const char *session_library_version(void); /* of libpq, e.g. "15.20" */

/* By libpq's ping: true when a server accepts connections there. Reports nothing. */
extern bool server_accepts(const char *conninfo) MUST_CHECK;


/* --- statements --- */

/*
 * One statement with parameters. The status says all; nothing is reported. *result is NULL unless SQL_OK, and the
 * caller frees it; `result` may be NULL.
 * A loss is SQL_LOST inside a transaction block, where nothing can have committed (COMMIT itself goes through
 * session_commit()), and SQL_UNKNOWN outside one, because the statement committed by itself or not at all.
 * SQL_UNKNOWN of a session that is not lost: see above.
 */
extern SqlStatus session_try(Session *session, SqlResult **result, const char *sql, const SqlArg *args, int count);

/* The same for callers who expect success: false is reported with the SQL and the error. */
extern bool session_query(Session *session, SqlResult **result, const char *sql, const SqlArg *args,
						  int count) MUST_CHECK;

/* One or more statements without parameters (a file of sql/, say); results are dropped. false: reported. */
extern bool session_execute(Session *session, const char *sql) MUST_CHECK;

/* Run a file of sql/ that has no psql commands. false: reported. */
extern bool session_execute_file(Session *session, const char *path) MUST_CHECK;

/* The single value of a one-row, one-column query. false: reported. */
extern bool session_query_int(Session *session, int64_t *value, const char *sql, const SqlArg *args,
							  int count) MUST_CHECK;

/*
 * The same as session_try(), row by row as they arrive, in memory that does not grow with them. The row is row 0 of a result that
 * ends with the listener's return; the session is busy until then. A listener that answers false has the statement
 * cancelled, which is SQL_ERROR with 57014.
 */
typedef bool (*RowListener)(void *context, const SqlResult *row);
extern SqlStatus session_stream(Session *session, const char *sql, const SqlArg *args, int count, RowListener listener,
								void *context) MUST_CHECK;

/* From here on each statement is shown as it is sent, to those who see NOTICE_DEBUG. */
extern void session_show_sql(Session *session);

extern bool session_prepare(Session *session, const char *statement, const char *sql) MUST_CHECK;

/* Like session_try() for a prepared statement. */
extern SqlStatus session_try_prepared(Session *session, SqlResult **result, const char *statement, const SqlArg *args,
									  int count);

/*
 * A prepared statement as a transaction of its own, in one round trip: Execute, Flush, Sync in pipeline mode. The
 * Flush makes the server send the row before it reads the Sync that commits.
 * SQL_OK: *result, committed. SQL_ERROR: rolled back. SQL_UNKNOWN: *result is the row, the commit was not confirmed.
 * SQL_LOST: no row arrived, so (on a unix socket) the Sync was never obeyed: not committed.
 * Outside a transaction block only.
 */
extern SqlStatus session_call(Session *session, SqlResult **result, const char *statement, const SqlArg *args,
							  int count);

/* Send a statement and come back at once; one at a time, and no other call before its answer. false: reported. */
extern bool session_send(Session *session, const char *sql, const SqlArg *args, int count) MUST_CHECK;
/* The answer to session_send(), as session_try() gives it. SQL_TIMEOUT leaves it running: ask again. */
extern SqlStatus session_await(Session *session, SqlResult **result, Deadline deadline);


/* --- transactions --- */

extern bool session_begin(Session *session, Isolation isolation) MUST_CHECK; /* false: reported */

/* Also of a failed one; a lost session, or one outside a block, is left alone. session_error() stays as it was. */
extern void session_rollback(Session *session);

/*
 * COMMIT. SQL_OK only if a transaction was open and unfailed just before and the tag is COMMIT: a COMMIT in an aborted
 * transaction answers ROLLBACK without error, which is SQL_ERROR 25P02 here, and one without a transaction answers
 * COMMIT with a warning, which is SQL_ERROR 25P01. SQL_UNKNOWN: lost while committing.
 */
extern SqlStatus session_commit(Session *session);

/*
 * What a transaction does: everything is read again each time it is called. Answer the status of the statement that
 * ended it (SQL_OK to commit). `context` must not carry decisions from one attempt to the next.
 */
typedef SqlStatus (*TransactionBody)(Session *session, void *context);

/*
 * BEGIN, body, COMMIT; the whole again after 40001 or 40P01, with jitter, RETRY_ATTEMPTS_MAX attempts at most, retries
 * counted. Answers the last status; session_error() has the rest.
 */
#define RETRY_ATTEMPTS_MAX 10
extern SqlStatus session_transaction(Session *session, Isolation isolation, TransactionBody body, void *context);

/*
 * The same with limits of the caller's: `attempts` at most, and none but the first begins past the deadline. Given up is
 * SQL_ERROR with the last attempt's 40001 or 40P01: not done, nothing is stored. A statement that waits is not cut short
 * at the deadline: lock_timeout and statement_timeout of the server are for that.
 */
extern SqlStatus session_transaction_within(Session *session, Isolation isolation, TransactionBody body, void *context,
											int attempts, Deadline deadline);

/*
 * After SQL_ERROR of a whole transaction, for one that is a single session_call(): true when it is to be tried again,
 * counted and backed off. `attempt` counts from 1.
 */
extern bool session_retry_due(Session *session, int attempt) MUST_CHECK;


/* --- results: a row or column that is not there, or sql_int() of a text, ends the program --- */

extern int sql_rows(const SqlResult *result);
extern int sql_columns(const SqlResult *result);
extern const char *sql_column_name(const SqlResult *result, int column);
extern const char *sql_text(const SqlResult *result, int row, int column); /* "" for NULL */
extern int64_t sql_int(const SqlResult *result, int row, int column);      /* 0 for NULL */
extern bool sql_bool(const SqlResult *result, int row, int column);
extern bool sql_is_null(const SqlResult *result, int row, int column);
extern void sql_free(SqlResult *result); /* NULL allowed */

extern const char *sql_status_name(SqlStatus status);


/*
 * --- raw: for the scenario language, which shows what the server sends as it comes ---
 *
 * Nothing here is classified or reported: an error is a result, a loss is an error result without SQLSTATE. While a
 * statement that was sent raw is under way, only the functions of this section may be called.
 */

/* Connect as libpq does by itself: conninfo and the PG* variables, nothing added. NULL: *why is libpq's text, caller frees. */
extern Session *session_raw_open(const char *conninfo, char **why) MUST_CHECK;

/*
 * The same in two parts, so that several of the server's processes can begin at once. false: *why, as above, and the session
 * is still to be closed. Whoever connects in parts has connected as a whole before: connect_timeout is not kept here.
 */
extern Session *session_raw_begin(const char *conninfo) MUST_CHECK; /* never NULL */
extern bool session_raw_finish(Session *session, char **why) MUST_CHECK;

extern const char *session_raw_message(const Session *session); /* libpq's last error, whole, with its newline */

/* Each notice, in libpq's words with their newline, at the moment in which it is read. */
typedef void (*NoticeListener)(void *context, const char *message);
extern void session_raw_listen(Session *session, NoticeListener listener, void *context);

/* Run statements and wait; the last result, or the first error. The caller frees. */
extern SqlResult *session_raw_execute(Session *session, const char *sql) MUST_CHECK;

/* The same, but what has not ended by then is ended, as by session_raw_next_by(). */
extern SqlResult *session_raw_execute_by(Session *session, const char *sql, Deadline deadline) MUST_CHECK;

extern bool session_raw_send(Session *session, const char *sql) MUST_CHECK; /* one message, and back at once */
extern bool session_raw_busy(Session *session);                             /* session_raw_next() would wait */
extern SqlResult *session_raw_next(Session *session) MUST_CHECK; /* caller frees; NULL after the last; ends a COPY */
/*
 * The next result, by then: what takes longer, or a second longer than an interrupt, is cancelled; what does not heed that
 * is cut off, and the connection with it. Either comes as an error result.
 */
extern SqlResult *session_raw_next_by(Session *session, Deadline deadline) MUST_CHECK;
extern bool session_raw_cancel(Session *session, char *why, size_t size) MUST_CHECK;

typedef enum
{
	ARRIVAL_NONE = 1,
	ARRIVAL_SOME, /* read, and notices told of */
	ARRIVAL_FAILED
} Arrival;

/* Wait until something arrives, and read it; with 0 read what is there. */
extern Arrival session_raw_await(Session *session, int64_t timeout_us);

typedef enum
{
	BLOCK_NONE = 1,
	BLOCK_OPEN,
	BLOCK_FAILED,
	BLOCK_UNKNOWN /* the connection is bad, or a statement is under way */
} BlockState;

extern BlockState session_raw_block(const Session *session); /* whether in a transaction, as of the last answer */

typedef struct
{
	char *channel, *payload; /* caller frees */
	int sender;              /* backend */
} Notification;

/* Takes the next one read; false: there is none. */
extern bool session_raw_notification(Session *session, Notification *notification) MUST_CHECK;

typedef enum
{
	RESULT_COMMAND = 1,
	RESULT_EMPTY, /* of an empty query */
	RESULT_ROWS,
	RESULT_ERROR, /* also no result at all */
	RESULT_OTHER
} ResultKind;

extern ResultKind sql_kind(const SqlResult *result);
extern const char *sql_kind_name(const SqlResult *result); /* libpq's */
extern const char *sql_tag(const SqlResult *result);       /* "UPDATE 1"; "" for none */

/* Of an error; severity, sqlstate and primary are NULL where libpq made it up itself. Valid as long as the result. */
typedef struct
{
	const char *severity, *sqlstate, *primary;
	const char *whole; /* with newlines */
} SqlComplaint;

extern SqlComplaint sql_complaint(const SqlResult *result);

/* An error that ends the session: FATAL, or libpq's own, which has found the connection closed. */
extern bool sql_is_loss(const SqlResult *result);

/* The table that libpq's PQprint makes with header, alignment and `|`: widths in bytes, an empty line at the end. */
extern void sql_print(const SqlResult *result, FILE *stream);

#endif
