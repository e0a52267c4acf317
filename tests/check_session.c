/*
 * The session against a real server, which the environment names: COUNTERPROOF_TEST_CONNINFO, a superuser of a private
 * server. Backends are terminated here, the server never is. Each test works in a schema of its own.
 */
#include "session.h"
#include "served_suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define WAIT_MS 10000
#define LOCK_KEY "4711"

static Session *lab;     /* watches and terminates */
static Session *subject; /* under test */
static int subject_socket;

/* The socket of a session opened between two calls: the descriptor that was none before. */
static int
newest_socket(bool before[64])
{
	int found = -1;

	for (int fd = 0; fd < 64; fd++)
	{
		struct stat status;
		bool is_socket = fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);

		found = is_socket && !before[fd] ? fd : found;
		before[fd] = is_socket;
	}
	return found;
}

static Session *
open_subject(const char *name)
{
	Session *session = session_open(server, name);

	ck_assert_ptr_nonnull(session);
	ck_assert(session_execute(session, "SET search_path = session_test; SET client_min_messages = warning"));
	return session;
}

static void
setup(void)
{
	bool sockets[64] = {false};

	lab = session_open(server, "lab");
	ck_assert_ptr_nonnull(lab);
	ck_assert(session_execute(lab, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS session_test CASCADE;"
								   "CREATE SCHEMA session_test; SET search_path = session_test;"
								   "CREATE TABLE t (id bigint PRIMARY KEY, v bigint NOT NULL DEFAULT 0);"
								   "INSERT INTO t VALUES (1, 10), (2, 20)"));
	(void) newest_socket(sockets);
	subject = open_subject("subject");
	subject_socket = newest_socket(sockets);
	ck_assert_int_ge(subject_socket, 0);
}

static void
teardown(void)
{
	session_close(subject);
	session_close(lab);
}

static int64_t
value_of(int64_t id)
{
	int64_t value;

	ck_assert(
		session_query_int(lab, &value, "SELECT coalesce((SELECT v FROM t WHERE id = $1), -1)", ARGS(arg_int(id))));
	return value;
}

typedef struct
{
	const char *condition; /* about the backend $1 in pg_stat_activity */
	int pid;
	int64_t wanted;
} BackendProbe;

static ProbeAnswer
probe_backend(void *context, Text *seen)
{
	const BackendProbe *probe = context;
	char *sql = string_format("SELECT count(*) FROM pg_stat_activity WHERE pid = $1::int AND (%s)", probe->condition);
	int64_t count;
	bool ok = session_query_int(lab, &count, sql, ARGS(arg_int(probe->pid)));

	free(sql);
	if (!ok)
	{
		return PROBE_FAILED;
	}
	text_append(seen, "%d backends", (int) count);
	return count == probe->wanted ? PROBE_DONE : PROBE_AGAIN;
}

static void
wait_for_backend(int pid, const char *condition, int64_t wanted)
{
	BackendProbe probe = {.condition = condition, .pid = pid, .wanted = wanted};

	ck_assert(wait_until(condition, deadline_in_ms(WAIT_MS), probe_backend, &probe));
}

static void
terminate(int pid)
{
	ck_assert(session_query(lab, NULL, "SELECT pg_terminate_backend($1::int)", ARGS(arg_int(pid))));
	wait_for_backend(pid, "true", 0);
}


/* --- connecting --- */

START_TEST(connects_by_string_and_by_uri)
{
	SqlResult *result;
	SqlError error;
	Session *session;
	char *uri;

	ck_assert(session_query(lab, &result,
							"SELECT format('postgresql:///%s?host=%s&port=%s&user=%s', current_database(),"
							" trim('\"' FROM current_setting('unix_socket_directories')), current_setting('port'),"
							" current_user)",
							NO_ARGS));
	uri = string_copy(sql_text(result, 0, 0));
	sql_free(result);
	session = session_open_quietly(uri, "by uri", &error);
	ck_assert_msg(session != NULL, "%s: %s", uri, error.message);
	ck_assert(server_accepts(uri));
	ck_assert(server_accepts(server));
	ck_assert(session_query(session, &result,
							"SELECT current_setting('application_name'), current_setting('client_encoding'),"
							" pg_backend_pid()",
							NO_ARGS));
	ck_assert_str_eq(sql_text(result, 0, 0), "by uri");
	ck_assert_str_eq(sql_text(result, 0, 1), "UTF8");
	ck_assert_int_eq(sql_int(result, 0, 2), session_backend_pid(session));
	sql_free(result);
	session_close(session);
	free(uri);
}
END_TEST

START_TEST(a_connection_refused_is_one_line)
{
	SqlError error = {0};

	ck_assert_ptr_null(session_open_quietly("host=/nonexistent dbname=x user=x", "nobody", &error));
	ck_assert_str_eq(error.sqlstate, "08001");
	ck_assert_ptr_nonnull(strstr(error.message, "/nonexistent"));
	ck_assert_ptr_null(strchr(error.message, '\n'));
	ck_assert(!server_accepts("host=/nonexistent dbname=x user=x"));
	session_close(NULL);
	session_abandon(NULL);
}
END_TEST

START_TEST(patience_ends)
{
	char last[512];

	ck_assert_ptr_null(session_open_patiently("host=/nonexistent dbname=x user=x", "nobody", deadline_in_ms(50)));
	notice_last_error(last, sizeof(last));
	ck_assert_ptr_nonnull(strstr(last, "a server that accepts connections"));
	ck_assert_ptr_nonnull(strstr(last, "/nonexistent"));
}
END_TEST

/* The server tells a client that said goodbye from one that vanished. */
static int64_t
abandoned_sessions(void)
{
	int64_t count;

	ck_assert(session_query_int(
		lab, &count, "SELECT sessions_abandoned FROM pg_stat_database WHERE datname = current_database()", NO_ARGS));
	return count;
}

START_TEST(an_abandoned_backend_goes_and_rolls_back)
{
	int pid = session_backend_pid(subject);
	int64_t abandoned = abandoned_sessions();

	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(session_query(subject, NULL, "UPDATE t SET v = 99 WHERE id = 1", NO_ARGS));
	wait_for_backend(pid, "state = 'idle in transaction'", 1);
	session_abandon(subject);
	subject = open_subject("next");
	wait_for_backend(pid, "true", 0);
	ck_assert_int_eq(value_of(1), 10);
	ck_assert_int_eq(abandoned_sessions(), abandoned + 1);
	pid = session_backend_pid(subject);
	session_close(subject);
	subject = NULL;
	wait_for_backend(pid, "true", 0);
	ck_assert_int_eq(abandoned_sessions(), abandoned + 1);
}
END_TEST


/* --- values --- */

START_TEST(values_go_in_and_come_out)
{
	SqlResult *result;

	ck_assert_int_eq(
		session_try(subject, &result,
					"SELECT $1::bigint AS least, $2::bool, $3::text, $4::text, $5::bigint, ''::text,"
					" NOT $2::bool",
					ARGS(arg_int(INT64_MIN), arg_bool(true), arg_text("it's"), arg_text(NULL), (SqlArg){.text = NULL})),
		SQL_OK);
	ck_assert_str_eq(session_error(subject)->sqlstate, "");
	ck_assert_int_eq(sql_rows(result), 1);
	ck_assert_int_eq(sql_columns(result), 7);
	ck_assert_str_eq(sql_column_name(result, 0), "least");
	ck_assert_int_eq(sql_int(result, 0, 0), INT64_MIN);
	ck_assert(sql_bool(result, 0, 1));
	ck_assert_str_eq(sql_text(result, 0, 2), "it's");
	ck_assert(sql_is_null(result, 0, 3));
	ck_assert_str_eq(sql_text(result, 0, 3), "");
	ck_assert(sql_is_null(result, 0, 4));
	ck_assert_int_eq(sql_int(result, 0, 4), 0);
	ck_assert(!sql_is_null(result, 0, 5));
	ck_assert(!sql_bool(result, 0, 6));
	sql_free(result);

	sql_free(NULL);
}
END_TEST

START_TEST(arrays_go_in)
{
	static const int64_t values[] = {3, -4, INT64_MAX};
	SqlResult *result;
	Text list = {0};
	Text empty = {0};

	text_append_int64_array(&list, values, LENGTH_OF(values));
	text_append_int64_array(&empty, NULL, 0);
	ck_assert_str_eq(text_get(&list), "{3,-4,9223372036854775807}");
	ck_assert_str_eq(text_get(&empty), "{}");
	ck_assert(session_query(subject, &result,
							"SELECT ($1::bigint[])[2], cardinality($1::bigint[]), cardinality($2::bigint[])",
							ARGS(arg_text(text_get(&list)), arg_text(text_get(&empty)))));
	ck_assert_int_eq(sql_int(result, 0, 0), -4);
	ck_assert_int_eq(sql_int(result, 0, 1), 3);
	ck_assert_int_eq(sql_int(result, 0, 2), 0);
	sql_free(result);
	text_free(&list);
	text_free(&empty);
}
END_TEST


/* --- errors that the session survives --- */

START_TEST(an_error_keeps_its_sqlstate_and_the_session)
{
	SqlResult *result = (SqlResult *) &server; /* must be overwritten */

	ck_assert_int_eq(session_try(subject, &result, "INSERT INTO t VALUES ($1)", ARGS(arg_int(1))), SQL_ERROR);
	ck_assert_ptr_null(result);
	ck_assert_str_eq(session_error(subject)->sqlstate, "23505");
	ck_assert_str_eq(session_error(subject)->message, "duplicate key value violates unique constraint \"t_pkey\"");
	ck_assert(!session_is_lost(subject));
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_OK);
	ck_assert_str_eq(session_error(subject)->sqlstate, "");
}
END_TEST

START_TEST(a_long_message_is_cut_between_characters)
{
	char euros[256];

	ck_assert_int_eq(
		session_try(subject, NULL, "DO $$ BEGIN RAISE '%', 'x' || repeat(E'\\u20ac', 200); END $$", NO_ARGS),
		SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "P0001");
	snprintf(euros, sizeof(euros), "%s", session_error(subject)->message);
	ck_assert_uint_eq(strlen(euros), 1 + 84 * 3); /* 255 would end inside the 85th */
	ck_assert_str_eq(euros + 1 + 83 * 3, "\xe2\x82\xac");
}
END_TEST

START_TEST(queries_for_one_integer_want_one_integer)
{
	int64_t value = 7;
	char last[256];

	ck_assert(session_query_int(subject, &value, "SELECT -3", NO_ARGS));
	ck_assert_int_eq(value, -3);
	ck_assert(!session_query_int(subject, &value, "SELECT v FROM t", NO_ARGS));
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "SELECT v FROM t: expected one integer, got 2 rows of 1 columns");
	ck_assert(!session_query_int(subject, &value, "SELECT NULL::bigint", NO_ARGS));
	ck_assert(!session_query_int(subject, &value, "SELECT 'x'", NO_ARGS));
	ck_assert_int_eq(value, -3);
	ck_assert(!session_query(subject, NULL, "SELECT nothing", NO_ARGS));
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "SELECT nothing: column \"nothing\" does not exist (42703)");
}
END_TEST

START_TEST(several_statements_and_files_run)
{
	char path[] = "/tmp/check_session_XXXXXX";
	int64_t value;

	ck_assert(session_execute(subject, "INSERT INTO t VALUES (3, 30); UPDATE t SET v = v + 1 WHERE id = 3"));
	ck_assert_int_eq(value_of(3), 31);
	ck_assert(!session_execute(subject, "UPDATE t SET v = 0; SELECT 1/0"));
	ck_assert_str_eq(session_error(subject)->sqlstate, "22012");
	ck_assert_int_eq(value_of(3), 31);

	ck_assert_int_ge(mkstemp(path), 0);
	ck_assert(file_replace(path, "INSERT INTO t VALUES (4, 40);\n-- a comment\nINSERT INTO t VALUES (5, 50);\n"));
	ck_assert(session_execute_file(subject, path));
	ck_assert(session_query_int(subject, &value, "SELECT sum(v) FROM t WHERE id > 3", NO_ARGS));
	ck_assert_int_eq(value, 90);
	ck_assert(!session_execute_file(subject, path)); /* the same keys again */
	ck_assert_int_eq(remove(path), 0);
	ck_assert(!session_execute_file(subject, path));
}
END_TEST

START_TEST(copy_is_refused_and_the_session_goes_on)
{
	ck_assert_int_eq(session_try(subject, NULL, "COPY t FROM STDIN", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "57014");
	ck_assert_int_eq(session_try(subject, NULL, "COPY t TO STDOUT", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "55000");
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_OK);
}
END_TEST

START_TEST(mistakes_of_the_caller_never_reach_the_server)
{
	SqlArg many[40] = {{0}};

	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", many, 40), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "54023");
	ck_assert_int_eq(session_await(subject, NULL, deadline_in_ms(1)), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "55000");
	ck_assert(session_send(subject, "SELECT 1", NO_ARGS));
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "55000");
	ck_assert(!session_send(subject, "SELECT 1", NO_ARGS));
	ck_assert_int_eq(session_await(subject, NULL, deadline_in_ms(WAIT_MS)), SQL_OK);
	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(!session_begin(subject, READ_COMMITTED));
	ck_assert_str_eq(session_error(subject)->sqlstate, "25001");
	ck_assert_int_eq(session_commit(subject), SQL_OK);
}
END_TEST


/* --- losing the connection --- */

START_TEST(a_loss_outside_a_block_is_unknown)
{
	SqlResult *result;

	terminate(session_backend_pid(subject));
	ck_assert_int_eq(session_try(subject, &result, "SELECT 1", NO_ARGS), SQL_UNKNOWN);
	ck_assert_ptr_null(result);
	ck_assert(session_is_lost(subject));
	ck_assert_str_eq(session_error(subject)->sqlstate, "57P01");
	ck_assert_str_eq(session_error(subject)->message, "terminating connection due to administrator command");

	/* the first loss stays, and nothing more is sent */
	ck_assert_int_eq(session_try(subject, &result, "SELECT 1", NO_ARGS), SQL_LOST);
	ck_assert_int_eq(session_call(subject, &result, "nothing", NO_ARGS), SQL_LOST);
	ck_assert_int_eq(session_commit(subject), SQL_LOST);
	ck_assert(!session_begin(subject, READ_COMMITTED));
	ck_assert(!session_send(subject, "SELECT 1", NO_ARGS));
	ck_assert_int_eq(session_await(subject, &result, deadline_in_ms(1)), SQL_LOST);
	session_rollback(subject);
	ck_assert_str_eq(session_error(subject)->sqlstate, "57P01");
	ck_assert_str_eq(session_error(subject)->message, "terminating connection due to administrator command");
}
END_TEST

START_TEST(a_loss_inside_a_block_is_certain)
{
	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(session_query(subject, NULL, "UPDATE t SET v = 99 WHERE id = 1", NO_ARGS));
	terminate(session_backend_pid(subject));
	ck_assert_int_eq(session_try(subject, NULL, "UPDATE t SET v = 98 WHERE id = 1", NO_ARGS), SQL_LOST);
	ck_assert_str_eq(session_error(subject)->sqlstate, "57P01");
	ck_assert_int_eq(session_commit(subject), SQL_LOST);
	ck_assert_int_eq(value_of(1), 10);
}
END_TEST

/* The connection ends without a word, as when the server's process is killed: libpq has no SQLSTATE then. */
START_TEST(a_silent_loss_is_08006)
{
	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(session_execute(subject, "DO $$ BEGIN RAISE WARNING 'w' USING ERRCODE = '01234'; END $$"));
	ck_assert_int_eq(shutdown(subject_socket, SHUT_RDWR), 0);
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_LOST);
	ck_assert_str_eq(session_error(subject)->sqlstate, "08006");
	ck_assert_str_eq(session_error(subject)->warning, ""); /* of an earlier statement: not about this */
	ck_assert_uint_gt(strlen(session_error(subject)->message), 0);
}
END_TEST

/* An immediate shutdown says so in a WARNING, before or during the statement that then fails. */
START_TEST(a_loss_tells_the_warning_before_it)
{
	ck_assert(session_execute(subject, "DO $$ BEGIN RAISE WARNING 'w' USING ERRCODE = '57P01'; END $$"));
	ck_assert_int_eq(shutdown(subject_socket, SHUT_RDWR), 0);
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_UNKNOWN);
	ck_assert_str_eq(session_error(subject)->sqlstate, "08006");
	ck_assert_str_eq(session_error(subject)->warning, "57P01");
}
END_TEST

START_TEST(a_loss_tells_the_warning_within_its_statement)
{
	ck_assert(session_execute(lab, "SELECT pg_advisory_lock(" LOCK_KEY ")"));
	ck_assert(session_send(subject,
						   "DO $$ BEGIN RAISE WARNING 'w' USING ERRCODE = '01234';"
						   " PERFORM pg_advisory_xact_lock(" LOCK_KEY "); END $$",
						   NO_ARGS));
	wait_for_backend(session_backend_pid(subject), "wait_event = 'advisory'", 1);
	ck_assert_int_eq(session_await(subject, NULL, deadline_in_ms(1)), SQL_TIMEOUT);
	ck_assert_int_eq(shutdown(subject_socket, SHUT_RDWR), 0);
	ck_assert_int_eq(session_await(subject, NULL, deadline_in_ms(WAIT_MS)), SQL_UNKNOWN);
	ck_assert_str_eq(session_error(subject)->sqlstate, "08006");
	ck_assert_str_eq(session_error(subject)->warning, "01234");
}
END_TEST

/* A commit that can be held open from outside: the trigger waits for a lock that the lab holds. */
static void
hold_commits(void)
{
	ck_assert(session_execute(lab, "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
								   " $$ BEGIN PERFORM pg_advisory_xact_lock(" LOCK_KEY "); RETURN NULL; END $$;"
								   "CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED"
								   " FOR EACH ROW EXECUTE FUNCTION wait();"
								   "SELECT pg_advisory_lock(" LOCK_KEY ")"));
}

/* A blocking call of the subject in a thread of its own. */
typedef struct
{
	bool commits; /* else it calls `bump` */
	SqlStatus status;
	SqlResult *result;
} Blocked;

typedef SqlStatus (*Commits)(void);

static SqlStatus
commit_statement(void)
{
	return session_try(subject, NULL, "UPDATE t SET v = v + 1 WHERE id = 1", NO_ARGS);
}

static SqlStatus
commit_block(void)
{
	return session_begin(subject, READ_COMMITTED) && commit_statement() == SQL_OK ? session_commit(subject) : SQL_ERROR;
}

static SqlStatus
bump_in_transaction(Session *session, void *context)
{
	(*(int *) context)++;
	return session_try(session, NULL, "UPDATE t SET v = v + 1 WHERE id = 1", NO_ARGS);
}

static SqlStatus
commit_transaction(void)
{
	int attempts = 0;
	SqlStatus status = session_transaction(subject, READ_COMMITTED, bump_in_transaction, &attempts);

	return attempts == 1 ? status : SQL_ERROR;
}

/* Commits that the server answers before it has learned of its standby are not the one. */
static void *
run_until_cancelled(void *context)
{
	SqlStatus status;

	do
	{
		status = ((Commits) context)();
	} while (status == SQL_OK);
	return status == SQL_UNKNOWN ? context : NULL;
}

static void
assert_cancelled_wait_is_unknown(Commits commits)
{
	SqlArg pid = arg_int(session_backend_pid(subject));
	pthread_t thread;
	void *unknown;

	ck_assert_int_eq(pthread_create(&thread, NULL, run_until_cancelled, (void *) commits), 0);
	wait_for_backend(session_backend_pid(subject), "wait_event = 'SyncRep'", 1);
	ck_assert(session_query(lab, NULL, "SELECT pg_cancel_backend($1)", &pid, 1));
	ck_assert_int_eq(pthread_join(thread, &unknown), 0);
	ck_assert_ptr_nonnull(unknown);
	ck_assert_str_eq(session_error(subject)->sqlstate, "01000");
	ck_assert_ptr_nonnull(strstr(session_error(subject)->message, "synchronous replication"));
	ck_assert(!session_is_lost(subject));
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_OK);
	ck_assert_str_eq(session_error(subject)->sqlstate, "");
}

START_TEST(a_commit_that_no_longer_waits_for_its_standby_is_unknown)
{
	ck_assert(session_execute(lab, "SET synchronous_commit = local"));
	standby_is_missing(true);
	assert_cancelled_wait_is_unknown(commit_statement);
	assert_cancelled_wait_is_unknown(commit_block);
	assert_cancelled_wait_is_unknown(commit_transaction);
	standby_is_missing(false);
	ck_assert_int_ge(value_of(1), 13);
}
END_TEST

static void *
run_blocked(void *context)
{
	Blocked *blocked = context;

	if (blocked->commits)
	{
		blocked->status = session_commit(subject);
	}
	else
	{
		blocked->status = session_call(subject, &blocked->result, "bump", ARGS(arg_int(1)));
	}
	return NULL;
}

static void
terminate_while_blocked(Blocked *blocked, const char *condition)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run_blocked, blocked), 0);
	wait_for_backend(session_backend_pid(subject), condition, 1);
	terminate(session_backend_pid(subject));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(session_is_lost(subject));
	ck_assert_str_eq(session_error(subject)->sqlstate, "57P01");
}

START_TEST(a_loss_during_commit_is_unknown)
{
	Blocked blocked = {.commits = true};

	hold_commits();
	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(session_query(subject, NULL, "UPDATE t SET v = 99 WHERE id = 1", NO_ARGS));
	terminate_while_blocked(&blocked, "wait_event = 'advisory'");
	ck_assert_int_eq(blocked.status, SQL_UNKNOWN);
	ck_assert_int_eq(session_commit(subject), SQL_LOST);
	ck_assert_int_eq(value_of(1), 10);
}
END_TEST


/* --- one round trip --- */

static void
prepare_bump(void)
{
	ck_assert(session_prepare(subject, "bump", "UPDATE t SET v = v + 1 WHERE id = $1 RETURNING v"));
}

START_TEST(a_call_commits_and_answers)
{
	SqlResult *result;

	prepare_bump();
	for (int i = 1; i <= 3; i++)
	{
		ck_assert_int_eq(session_call(subject, &result, "bump", ARGS(arg_int(1))), SQL_OK);
		ck_assert_int_eq(sql_int(result, 0, 0), 10 + i);
		sql_free(result);
		ck_assert_int_eq(value_of(1), 10 + i);
		ck_assert_int_eq(session_try_prepared(subject, &result, "bump", ARGS(arg_int(2))), SQL_OK);
		ck_assert_int_eq(sql_int(result, 0, 0), 20 + i);
		sql_free(result);
	}
	ck_assert_int_eq(session_call(subject, NULL, "bump", ARGS(arg_int(1))), SQL_OK);
	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert_int_eq(session_call(subject, &result, "bump", ARGS(arg_int(1))), SQL_ERROR);
	ck_assert_ptr_null(result);
	ck_assert_str_eq(session_error(subject)->sqlstate, "25001");
	ck_assert_int_eq(session_commit(subject), SQL_OK);
	ck_assert_int_eq(value_of(1), 14);
	ck_assert(!session_prepare(subject, "bump", "SELECT 1"));
	ck_assert_str_eq(session_error(subject)->sqlstate, "42P05");
}
END_TEST

START_TEST(a_call_that_fails_rolls_back)
{
	SqlResult *result;

	ck_assert(session_execute(lab, "CREATE TABLE late (v bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)"));
	ck_assert(session_prepare(subject, "now", "INSERT INTO t VALUES ($1) RETURNING id"));
	ck_assert(session_prepare(subject, "late", "INSERT INTO late VALUES ($1) RETURNING v"));
	prepare_bump();

	ck_assert_int_eq(session_call(subject, &result, "now", ARGS(arg_int(1))), SQL_ERROR);
	ck_assert_ptr_null(result);
	ck_assert_str_eq(session_error(subject)->sqlstate, "23505");
	ck_assert_int_eq(session_call(subject, &result, "unheard_of", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "26000");
	ck_assert_int_eq(session_call(subject, NULL, "late", ARGS(arg_int(5))), SQL_OK);
	/* the row arrives, then the commit fails: the row is not an answer */
	ck_assert_int_eq(session_call(subject, &result, "late", ARGS(arg_int(5))), SQL_ERROR);
	ck_assert_ptr_null(result);
	ck_assert_str_eq(session_error(subject)->sqlstate, "23505");
	ck_assert_int_eq(session_call(subject, NULL, "bump", ARGS(arg_int(1))), SQL_OK);
	ck_assert_int_eq(value_of(1), 11);
	ck_assert(!session_is_lost(subject));
}
END_TEST

START_TEST(a_call_lost_in_its_commit_is_unknown_and_has_the_row)
{
	Blocked blocked = {.commits = false};

	hold_commits();
	prepare_bump();
	terminate_while_blocked(&blocked, "wait_event = 'advisory'");
	ck_assert_int_eq(blocked.status, SQL_UNKNOWN);
	ck_assert_ptr_nonnull(blocked.result);
	ck_assert_int_eq(sql_int(blocked.result, 0, 0), 11);
	sql_free(blocked.result);
	ck_assert_int_eq(value_of(1), 10);
}
END_TEST

/*
 * The same without a last word from the server, which would bring the row along: the row came while the commit still
 * waited. The backend goes on without its client, and this unknown one is committed.
 */
START_TEST(the_row_of_a_call_comes_before_its_commit)
{
	Blocked blocked = {.commits = false};
	int pid = session_backend_pid(subject);
	pthread_t thread;

	hold_commits();
	prepare_bump();
	ck_assert_int_eq(pthread_create(&thread, NULL, run_blocked, &blocked), 0);
	wait_for_backend(pid, "wait_event = 'advisory'", 1);
	ck_assert_int_eq(shutdown(subject_socket, SHUT_RDWR), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(blocked.status, SQL_UNKNOWN);
	ck_assert_str_eq(session_error(subject)->sqlstate, "08006");
	ck_assert_ptr_nonnull(blocked.result);
	ck_assert_int_eq(sql_int(blocked.result, 0, 0), 11);
	sql_free(blocked.result);
	ck_assert_int_eq(value_of(1), 10);
	ck_assert(session_execute(lab, "SELECT pg_advisory_unlock(" LOCK_KEY ")"));
	wait_for_backend(pid, "true", 0);
	ck_assert_int_eq(value_of(1), 11);
}
END_TEST

START_TEST(a_call_lost_before_its_row_is_not_committed)
{
	Blocked blocked = {.commits = false};
	Session *holder = open_subject("holder"); /* not the lab: in a block pg_stat_activity stands still */

	prepare_bump();
	ck_assert(session_begin(holder, READ_COMMITTED));
	ck_assert(session_query(holder, NULL, "UPDATE t SET v = v WHERE id = 1", NO_ARGS));
	terminate_while_blocked(&blocked, "wait_event = 'transactionid'");
	session_rollback(holder);
	session_close(holder);
	ck_assert_int_eq(blocked.status, SQL_LOST);
	ck_assert_ptr_null(blocked.result);
	ck_assert_int_eq(value_of(1), 10);
}
END_TEST


/* --- send and await --- */

START_TEST(an_awaited_answer_can_take_longer_than_the_deadline)
{
	SqlResult *result;

	ck_assert(session_execute(lab, "SELECT pg_advisory_lock(" LOCK_KEY ")"));
	ck_assert(session_send(subject, "SELECT 5, pg_advisory_lock($1)", ARGS(arg_int(4711))));
	wait_for_backend(session_backend_pid(subject), "wait_event = 'advisory'", 1);
	ck_assert_int_eq(session_await(subject, &result, deadline_in_ms(20)), SQL_TIMEOUT);
	ck_assert_ptr_null(result);
	ck_assert_int_eq(session_await(subject, NULL, deadline_in_ms(0)), SQL_TIMEOUT);
	ck_assert(session_execute(lab, "SELECT pg_advisory_unlock(" LOCK_KEY ")"));
	ck_assert_int_eq(session_await(subject, &result, deadline_in_ms(WAIT_MS)), SQL_OK);
	ck_assert_int_eq(sql_int(result, 0, 0), 5);
	sql_free(result);
	ck_assert(session_send(subject, "SELECT 1/0", NO_ARGS));
	ck_assert_int_eq(session_await(subject, &result, deadline_in_ms(WAIT_MS)), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "22012");
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_OK);
}
END_TEST

START_TEST(an_awaited_statement_can_be_lost)
{
	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(session_execute(lab, "SELECT pg_advisory_lock(" LOCK_KEY ")"));
	ck_assert(session_send(subject, "SELECT pg_advisory_lock(" LOCK_KEY ")", NO_ARGS));
	terminate(session_backend_pid(subject));
	ck_assert_int_eq(session_await(subject, NULL, deadline_in_ms(WAIT_MS)), SQL_LOST);
	ck_assert_str_eq(session_error(subject)->sqlstate, "57P01");
}
END_TEST


/* --- transactions --- */

START_TEST(only_an_open_unfailed_transaction_commits)
{
	ck_assert_int_eq(session_commit(subject), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "25P01");

	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(session_query(subject, NULL, "UPDATE t SET v = 11 WHERE id = 1", NO_ARGS));
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1/0", NO_ARGS), SQL_ERROR);
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "25P02");
	ck_assert_int_eq(session_commit(subject), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "25P02");
	ck_assert_int_eq(session_commit(subject), SQL_ERROR); /* the server would answer COMMIT */
	ck_assert_str_eq(session_error(subject)->sqlstate, "25P01");
	ck_assert_int_eq(value_of(1), 10);

	ck_assert(session_begin(subject, READ_COMMITTED));
	ck_assert(session_query(subject, NULL, "UPDATE t SET v = 12 WHERE id = 1", NO_ARGS));
	ck_assert_int_eq(session_commit(subject), SQL_OK);
	ck_assert_int_eq(value_of(1), 12);
}
END_TEST

START_TEST(a_rollback_keeps_the_error_that_led_to_it)
{
	ck_assert(session_begin(subject, SERIALIZABLE));
	ck_assert(session_query(subject, NULL, "UPDATE t SET v = 11 WHERE id = 1", NO_ARGS));
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1/0", NO_ARGS), SQL_ERROR);
	session_rollback(subject);
	ck_assert_str_eq(session_error(subject)->sqlstate, "22012");
	session_rollback(subject); /* nothing is open */
	ck_assert(session_begin(subject, REPEATABLE_READ));
	ck_assert_int_eq(session_commit(subject), SQL_OK);
	ck_assert_int_eq(value_of(1), 10);
}
END_TEST

typedef struct
{
	int attempts;
	const char *raise; /* SQLSTATE to fail with, every time */
} Attempts;

/* Adds 1 to what it read; somebody else changes the row in between the first time. */
static SqlStatus
add_one(Session *session, void *context)
{
	Attempts *attempts = context;
	SqlResult *result;
	int64_t seen;
	SqlStatus status = session_try(session, &result, "SELECT v FROM t WHERE id = 1", NO_ARGS);

	if (status != SQL_OK)
	{
		return status;
	}
	seen = sql_int(result, 0, 0);
	sql_free(result);
	if (++attempts->attempts == 1)
	{
		ck_assert(session_execute(lab, "UPDATE t SET v = v + 100 WHERE id = 1"));
	}
	return session_try(session, NULL, "UPDATE t SET v = $1 WHERE id = 1", ARGS(arg_int(seen + 1)));
}

static SqlStatus
fail_always(Session *session, void *context)
{
	Attempts *attempts = context;
	char *sql = string_format("DO $$ BEGIN RAISE 'no' USING ERRCODE = '%s'; END $$", attempts->raise);
	SqlStatus status;

	attempts->attempts++;
	status = session_try(session, NULL, sql, NO_ARGS);
	free(sql);
	return status;
}

/* The first COMMIT fails with 40001, the second does not. */
static SqlStatus
fail_in_first_commit(Session *session, void *context)
{
	Attempts *attempts = context;

	return session_try(session, NULL, "UPDATE t SET v = v + $1 WHERE id = 2", ARGS(arg_int(++attempts->attempts)));
}

static SqlStatus
ignore_an_error(Session *session, void *context)
{
	(void) fail_always(session, context);
	return SQL_OK;
}

START_TEST(a_retry_reads_again)
{
	Attempts attempts = {0};

	ck_assert_int_eq(session_transaction(subject, REPEATABLE_READ, add_one, &attempts), SQL_OK);
	ck_assert_int_eq(attempts.attempts, 2);
	ck_assert_int_eq(value_of(1), 111);
	ck_assert_int_eq(session_retries_40001(), 1);
	ck_assert_int_eq(session_retries_40p01(), 0);
}
END_TEST

START_TEST(a_commit_that_fails_is_retried)
{
	Attempts attempts = {0};

	ck_assert(session_execute(lab, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
								   " IF new.v = 21 THEN RAISE 'no' USING ERRCODE = '40001'; END IF;"
								   " RETURN NULL; END $$;"
								   "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED"
								   " FOR EACH ROW EXECUTE FUNCTION refuse()"));
	ck_assert_int_eq(session_transaction(subject, SERIALIZABLE, fail_in_first_commit, &attempts), SQL_OK);
	ck_assert_int_eq(attempts.attempts, 2);
	ck_assert_int_eq(value_of(2), 22);
	ck_assert_int_eq(session_retries_40001(), 1);
}
END_TEST

START_TEST(retries_are_bounded_and_only_for_two_sqlstates)
{
	Attempts deadlock = {.raise = "40P01"};
	Attempts duplicate = {.raise = "23505"};
	Attempts ignored = {.raise = "22012"};

	ck_assert_int_eq(session_transaction(subject, READ_COMMITTED, fail_always, &deadlock), SQL_ERROR);
	ck_assert_int_eq(deadlock.attempts, RETRY_ATTEMPTS_MAX);
	ck_assert_int_eq(session_retries_40p01(), RETRY_ATTEMPTS_MAX - 1);
	ck_assert_str_eq(session_error(subject)->sqlstate, "40P01");
	ck_assert_int_eq(session_transaction(subject, READ_COMMITTED, fail_always, &duplicate), SQL_ERROR);
	ck_assert_int_eq(duplicate.attempts, 1);
	ck_assert_int_eq(session_transaction(subject, READ_COMMITTED, ignore_an_error, &ignored), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "25P02");
	ck_assert_int_eq(session_retries_40001(), 0);
	ck_assert(session_begin(subject, READ_COMMITTED)); /* no block was left open */
	ck_assert_int_eq(session_transaction(subject, READ_COMMITTED, fail_always, &duplicate), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "25001");
	session_rollback(subject);
}
END_TEST

/* Fails once the deadline has passed. */
static SqlStatus
fail_past_a_deadline(Session *session, void *context)
{
	const Deadline *deadline = context;

	while (!deadline_passed(*deadline))
	{
		backoff_us(1000);
	}
	return session_try(session, NULL, "DO $$ BEGIN RAISE 'no' USING ERRCODE = '40001'; END $$", NO_ARGS);
}

START_TEST(limits_of_the_callers_own)
{
	Attempts attempts = {.raise = "40001"};
	Attempts late = {.raise = "40001"};
	Deadline soon = deadline_in_ms(50);

	ck_assert_int_eq(
		session_transaction_within(subject, READ_COMMITTED, fail_always, &attempts, 3, deadline_in_ms(60000)),
		SQL_ERROR);
	ck_assert_int_eq(attempts.attempts, 3);
	ck_assert_int_eq(session_retries_40001(), 2);
	ck_assert_int_eq(session_transaction_within(subject, READ_COMMITTED, fail_always, &late, 3, deadline_in_ms(0)),
					 SQL_ERROR);
	ck_assert_int_eq(late.attempts, 1);
	ck_assert_int_eq(session_transaction_within(subject, READ_COMMITTED, fail_past_a_deadline, &soon, 3, soon),
					 SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "40001");
	ck_assert_int_eq(session_retries_40001(), 2);
}
END_TEST

START_TEST(a_warning_is_kept_until_the_next_answer)
{
	SqlResult *result;

	ck_assert_int_eq(session_try(subject, &result, "COMMIT", NO_ARGS), SQL_OK);
	ck_assert_str_eq(sql_tag(result), "COMMIT");
	ck_assert_str_eq(session_warning(subject), "25P01");
	sql_free(result);
	ck_assert_int_eq(session_try(subject, NULL, "SELECT 1", NO_ARGS), SQL_OK);
	ck_assert_str_eq(session_warning(subject), "");
}
END_TEST

START_TEST(a_transaction_whose_session_is_lost_is_not_tried_again)
{
	Attempts attempts = {.raise = "40001"};

	terminate(session_backend_pid(subject));
	ck_assert_int_eq(session_transaction(subject, READ_COMMITTED, fail_always, &attempts), SQL_LOST);
	ck_assert_int_eq(attempts.attempts, 0);
	ck_assert_str_eq(session_error(subject)->sqlstate, "57P01");
	ck_assert(!session_retry_due(subject, 1));
}
END_TEST

/* Numbers as they arrive, until one that is too large. */
typedef struct
{
	int64_t sum, rows, most;
} Arrivals;

static bool
take_arrival(void *context, const SqlResult *row)
{
	Arrivals *arrivals = context;

	ck_assert_int_eq(sql_rows(row), 1);
	arrivals->rows++;
	arrivals->sum += sql_int(row, 0, 0);
	return sql_int(row, 0, 0) < arrivals->most;
}

START_TEST(rows_arrive_one_by_one)
{
	Arrivals arrivals = {.most = INT64_MAX};

	ck_assert_int_eq(session_stream(subject, "SELECT g FROM generate_series(1, $1::int) g", ARGS(arg_int(1000)),
									take_arrival, &arrivals),
					 SQL_OK);
	ck_assert_int_eq(arrivals.rows, 1000);
	ck_assert_int_eq(arrivals.sum, 500500);
	ck_assert_int_eq(session_stream(subject, "SELECT 1 WHERE false", NO_ARGS, take_arrival, &arrivals), SQL_OK);
	ck_assert_int_eq(arrivals.rows, 1000);
	ck_assert_int_eq(session_stream(subject, "nonsense", NO_ARGS, take_arrival, &arrivals), SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "42601");
}
END_TEST

START_TEST(an_error_after_rows_is_the_statements)
{
	Arrivals arrivals = {.most = INT64_MAX};

	ck_assert_int_eq(
		session_stream(subject, "SELECT 6 / (4 - g) FROM generate_series(1, 5) g", NO_ARGS, take_arrival, &arrivals),
		SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "22012");
	ck_assert_int_eq(value_of(1), 10); /* the session lives */
}
END_TEST

START_TEST(a_listener_ends_a_statement)
{
	Arrivals arrivals = {.most = 3};

	ck_assert_int_eq(
		session_stream(subject, "SELECT g FROM generate_series(1, 100000000) g", NO_ARGS, take_arrival, &arrivals),
		SQL_ERROR);
	ck_assert_str_eq(session_error(subject)->sqlstate, "57014");
	ck_assert_int_eq(arrivals.rows, 3);
	ck_assert_int_eq(value_of(2), 20);
}
END_TEST

START_TEST(rows_of_a_session_that_is_lost)
{
	Arrivals arrivals = {.most = INT64_MAX};

	ck_assert_int_eq(
		session_stream(subject, "SELECT pg_terminate_backend(pg_backend_pid())::int", NO_ARGS, take_arrival, &arrivals),
		SQL_UNKNOWN);
	ck_assert(session_is_lost(subject));
	ck_assert_int_eq(session_stream(subject, "SELECT 1", NO_ARGS, take_arrival, &arrivals), SQL_LOST);
}
END_TEST

START_TEST(statuses_have_names)
{
	ck_assert_str_eq(sql_status_name(SQL_UNSET), "UNSET");
	ck_assert_str_eq(sql_status_name(SQL_UNKNOWN), "UNKNOWN");
	ck_assert_str_eq(sql_status_name(SQL_TIMEOUT), "TIMEOUT");
}
END_TEST

/* A value that is not there must not be taken for data; the test process ends with SIGABRT. */
START_TEST(a_value_that_is_not_there_ends_the_program)
{
	SqlResult *result;

	ck_assert(session_query(subject, &result, "SELECT 1 WHERE false", NO_ARGS));
	(void) sql_int(result, 0, 0);
}
END_TEST

static void
add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, connects_by_string_and_by_uri);
	tcase_add_test(tcase, a_connection_refused_is_one_line);
	tcase_add_test(tcase, patience_ends);
	tcase_add_test(tcase, an_abandoned_backend_goes_and_rolls_back);
	tcase_add_test(tcase, values_go_in_and_come_out);
	tcase_add_test(tcase, arrays_go_in);
	tcase_add_test(tcase, an_error_keeps_its_sqlstate_and_the_session);
	tcase_add_test(tcase, a_long_message_is_cut_between_characters);
	tcase_add_test(tcase, queries_for_one_integer_want_one_integer);
	tcase_add_test(tcase, several_statements_and_files_run);
	tcase_add_test(tcase, copy_is_refused_and_the_session_goes_on);
	tcase_add_test(tcase, mistakes_of_the_caller_never_reach_the_server);
	tcase_add_test(tcase, a_loss_outside_a_block_is_unknown);
	tcase_add_test(tcase, a_loss_inside_a_block_is_certain);
	tcase_add_test(tcase, a_silent_loss_is_08006);
	tcase_add_test(tcase, a_loss_tells_the_warning_before_it);
	tcase_add_test(tcase, a_loss_tells_the_warning_within_its_statement);
	tcase_add_test(tcase, a_loss_during_commit_is_unknown);
	tcase_add_test(tcase, a_commit_that_no_longer_waits_for_its_standby_is_unknown);
	tcase_add_test(tcase, a_call_commits_and_answers);
	tcase_add_test(tcase, a_call_that_fails_rolls_back);
	tcase_add_test(tcase, a_call_lost_in_its_commit_is_unknown_and_has_the_row);
	tcase_add_test(tcase, the_row_of_a_call_comes_before_its_commit);
	tcase_add_test(tcase, a_call_lost_before_its_row_is_not_committed);
	tcase_add_test(tcase, an_awaited_answer_can_take_longer_than_the_deadline);
	tcase_add_test(tcase, an_awaited_statement_can_be_lost);
	tcase_add_test(tcase, only_an_open_unfailed_transaction_commits);
	tcase_add_test(tcase, a_rollback_keeps_the_error_that_led_to_it);
	tcase_add_test(tcase, a_retry_reads_again);
	tcase_add_test(tcase, a_commit_that_fails_is_retried);
	tcase_add_test(tcase, retries_are_bounded_and_only_for_two_sqlstates);
	tcase_add_test(tcase, limits_of_the_callers_own);
	tcase_add_test(tcase, a_warning_is_kept_until_the_next_answer);
	tcase_add_test(tcase, a_transaction_whose_session_is_lost_is_not_tried_again);
	tcase_add_test(tcase, rows_arrive_one_by_one);
	tcase_add_test(tcase, an_error_after_rows_is_the_statements);
	tcase_add_test(tcase, a_listener_ends_a_statement);
	tcase_add_test(tcase, rows_of_a_session_that_is_lost);
	tcase_add_test(tcase, statuses_have_names);
	tcase_add_test_raise_signal(tcase, a_value_that_is_not_there_ends_the_program, SIGABRT);
}

int
main(void)
{
	Suite *suite = suite_create("session");
	TCase *tcase = tcase_create("session");

	if (!suite_has_server((const char *const[]){NULL}))
	{
		return EXIT_FAILURE;
	}
	add_tests(tcase);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
