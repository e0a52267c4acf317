/*
 * The raw section of the session against a real server, which the environment names: COUNTERPROOF_TEST_CONNINFO, a
 * superuser of a private server.
 */
#include "session.h"
#include "served_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 10000
#define WAIT_US (WAIT_MS * (int64_t) 1000)

static Session *subject;
static Text heard; /* notices */

static void
hear(void *context, const char *message)
{
	ck_assert_ptr_eq(context, &heard);
	text_append(&heard, "%s", message);
}

static Session *
open_raw(void)
{
	char *why = NULL;
	Session *session = session_raw_open(server, &why);

	ck_assert_msg(session != NULL, "%s", why != NULL ? why : "");
	return session;
}

static void
setup(void)
{
	subject = open_raw();
	text_clear(&heard);
}

static void
teardown(void)
{
	session_close(subject);
}

/* What the server answers, however many results it sends; as PQgetResult the next one is NULL. */
static SqlResult *
must_get(Session *session)
{
	Deadline deadline = deadline_in_ms(WAIT_MS);

	while (session_raw_busy(session))
	{
		ck_assert(!deadline_passed(deadline));
		ck_assert_int_ne(session_raw_await(session, WAIT_US), ARRIVAL_FAILED);
	}
	return session_raw_next(session);
}

static void
must_get_kind(Session *session, ResultKind kind)
{
	SqlResult *result = must_get(session);

	ck_assert_int_eq(sql_kind(result), kind);
	sql_free(result);
}

static void
must_end(Session *session)
{
	ck_assert_ptr_null(must_get(session));
	ck_assert(!session_raw_busy(session));
}


/* --- connecting --- */

START_TEST(a_connection_refused_is_libpq_s_text)
{
	char *why = NULL;
	Session *session = session_raw_open("host=/nowhere dbname=x", &why);

	ck_assert_ptr_null(session);
	ck_assert_ptr_nonnull(strstr(why, "/nowhere/.s.PGSQL"));
	free(why);
}
END_TEST

START_TEST(several_connect_at_once)
{
	Session *sessions[3];
	char *why = NULL;

	for (size_t i = 0; i < LENGTH_OF(sessions); i++)
	{
		sessions[i] = session_raw_begin(server);
	}
	for (size_t i = 0; i < LENGTH_OF(sessions); i++)
	{
		int64_t pid;

		ck_assert(session_raw_finish(sessions[i], &why));
		ck_assert(session_query_int(sessions[i], &pid, "SELECT pg_backend_pid()", NO_ARGS));
		ck_assert_int_eq(pid, session_backend_pid(sessions[i]));
		ck_assert(i == 0 || pid != session_backend_pid(sessions[0]));
	}
	for (size_t i = 0; i < LENGTH_OF(sessions); i++)
	{
		session_close(sessions[i]);
	}
}
END_TEST

START_TEST(what_was_begun_in_vain_says_why_and_is_closed)
{
	static const char *const wrong[] = {"host=/nowhere dbname=x", "no server"};
	char *unknown = session_conninfo_for(server, "no_such_database");

	for (size_t i = 0; i <= LENGTH_OF(wrong); i++)
	{
		Session *session = session_raw_begin(i < LENGTH_OF(wrong) ? wrong[i] : unknown);
		char *why = NULL;

		ck_assert(!session_raw_finish(session, &why));
		ck_assert_str_ne(why, "");
		ck_assert(i < LENGTH_OF(wrong) || strstr(why, "database \"no_such_database\" does not exist") != NULL);
		free(why);
		session_close(session);
	}
	free(unknown);
	session_close(session_raw_begin(server)); /* nobody waits for it */
}
END_TEST


/* --- statements --- */

START_TEST(results_come_one_by_one)
{
	SqlResult *result;

	ck_assert(session_raw_send(subject, "CREATE TEMP TABLE t (n int); INSERT INTO t VALUES (1), (2); SELECT n FROM t"));
	result = must_get(subject);
	ck_assert_str_eq(sql_tag(result), "CREATE TABLE");
	sql_free(result);
	result = must_get(subject);
	ck_assert_str_eq(sql_tag(result), "INSERT 0 2");
	ck_assert_int_eq(sql_kind(result), RESULT_COMMAND);
	sql_free(result);
	result = must_get(subject);
	ck_assert_int_eq(sql_kind(result), RESULT_ROWS);
	ck_assert_int_eq(sql_rows(result), 2);
	sql_free(result);
	must_end(subject);
	ck_assert(session_raw_send(subject, ""));
	must_get_kind(subject, RESULT_EMPTY);
	must_end(subject);
}
END_TEST

START_TEST(an_error_ends_what_was_sent_and_the_session_goes_on)
{
	SqlResult *result;
	SqlComplaint complaint;

	ck_assert(session_raw_send(subject, "SELECT 1; SELECT 1/0; SELECT 2"));
	must_get_kind(subject, RESULT_ROWS);
	result = must_get(subject);
	complaint = sql_complaint(result);
	ck_assert_str_eq(complaint.severity, "ERROR");
	ck_assert_str_eq(complaint.sqlstate, "22012");
	ck_assert_str_eq(complaint.primary, "division by zero");
	ck_assert_str_eq(complaint.whole, "ERROR:  division by zero\n");
	ck_assert_str_eq(session_raw_message(subject), "ERROR:  division by zero\n");
	ck_assert(!sql_is_loss(result));
	sql_free(result);
	must_end(subject);
	result = session_raw_execute(subject, "SELECT 1; SELECT 2 AS two");
	ck_assert_str_eq(sql_column_name(result, 0), "two");
	ck_assert(!sql_is_loss(result));
	sql_free(result);
	result = session_raw_execute(subject, "SELECT 1; SELECT 1/0; SELECT 2");
	ck_assert_int_eq(sql_kind(result), RESULT_ERROR);
	sql_free(result);
}
END_TEST

START_TEST(a_wait_ends_with_its_time_or_with_what_arrives)
{
	int64_t begun_ns;

	ck_assert_int_eq(session_raw_await(subject, 0), ARRIVAL_NONE);
	ck_assert(session_raw_send(subject, "SELECT pg_sleep(0.3)"));
	begun_ns = time_now_ns();
	ck_assert_int_eq(session_raw_await(subject, 20000), ARRIVAL_NONE);
	ck_assert_int_ge(time_now_ns() - begun_ns, 20000000);
	ck_assert(session_raw_busy(subject));
	ck_assert_int_eq(session_raw_await(subject, WAIT_US), ARRIVAL_SOME);
	ck_assert_int_lt(time_now_ns() - begun_ns, WAIT_US * 1000);
	must_get_kind(subject, RESULT_ROWS);
	must_end(subject);
}
END_TEST

START_TEST(a_statement_is_cancelled)
{
	char why[256];
	SqlResult *result;

	/* it tells that it has begun: before, there would be nothing to cancel */
	session_raw_listen(subject, hear, &heard);
	ck_assert(session_raw_send(subject, "DO $$ BEGIN RAISE NOTICE 'begun'; PERFORM pg_sleep(60); END $$"));
	ck_assert_int_eq(session_raw_await(subject, WAIT_US), ARRIVAL_SOME);
	ck_assert_str_eq(text_get(&heard), "NOTICE:  begun\n");
	ck_assert(session_raw_cancel(subject, why, sizeof(why)));
	result = must_get(subject);
	ck_assert_str_eq(sql_complaint(result).sqlstate, "57014");
	sql_free(result);
	must_end(subject);
}
END_TEST

/* Said once and ended: libpq says the result of a COPY for ever, until it is. */
START_TEST(a_copy_is_ended)
{
	ck_assert(session_raw_send(subject, "CREATE TEMP TABLE t (n int); INSERT INTO t VALUES (1); COPY t TO STDOUT"));
	must_get_kind(subject, RESULT_COMMAND);
	must_get_kind(subject, RESULT_COMMAND);
	must_get_kind(subject, RESULT_OTHER);
	must_get_kind(subject, RESULT_COMMAND);
	must_end(subject);
	ck_assert(session_raw_send(subject, "COPY t FROM STDIN"));
	must_get_kind(subject, RESULT_OTHER);
	must_get_kind(subject, RESULT_ERROR);
	must_end(subject);
	ck_assert_int_eq(session_raw_block(subject), BLOCK_NONE);
}
END_TEST


/* --- state, and what comes unasked --- */

START_TEST(a_block_is_none_open_failed_or_unknown)
{
	ck_assert_int_eq(session_raw_block(subject), BLOCK_NONE);
	sql_free(session_raw_execute(subject, "BEGIN"));
	ck_assert_int_eq(session_raw_block(subject), BLOCK_OPEN);
	sql_free(session_raw_execute(subject, "SELECT 1/0"));
	ck_assert_int_eq(session_raw_block(subject), BLOCK_FAILED);
	ck_assert(session_raw_send(subject, "ROLLBACK"));
	ck_assert_int_eq(session_raw_block(subject), BLOCK_UNKNOWN);
	must_get_kind(subject, RESULT_COMMAND);
	must_end(subject);
	ck_assert_int_eq(session_raw_block(subject), BLOCK_NONE);
}
END_TEST

START_TEST(a_notice_is_heard_before_its_result)
{
	session_raw_listen(subject, hear, &heard);
	ck_assert(session_raw_send(subject, "DO $$ BEGIN RAISE NOTICE 'first'; PERFORM pg_sleep(0.2); END $$"));
	ck_assert_int_eq(session_raw_await(subject, WAIT_US), ARRIVAL_SOME);
	ck_assert(session_raw_busy(subject));
	ck_assert_str_eq(text_get(&heard), "NOTICE:  first\n");
	must_get_kind(subject, RESULT_COMMAND);
	must_end(subject);
	session_raw_listen(subject, NULL, NULL);
	sql_free(session_raw_execute(subject, "DO $$ BEGIN RAISE NOTICE 'second'; END $$"));
	ck_assert_str_eq(text_get(&heard), "NOTICE:  first\n");
}
END_TEST

START_TEST(notifications_come_in_their_order)
{
	Session *other = open_raw();
	Notification notification;

	ck_assert(!session_raw_notification(subject, &notification));
	sql_free(session_raw_execute(subject, "LISTEN c"));
	sql_free(session_raw_execute(other, "NOTIFY c, 'one'; NOTIFY c, 'two'"));
	for (int i = 0; i < 2; i++)
	{
		Deadline deadline = deadline_in_ms(WAIT_MS);

		while (!session_raw_notification(subject, &notification))
		{
			ck_assert(!deadline_passed(deadline));
			ck_assert_int_ne(session_raw_await(subject, WAIT_US), ARRIVAL_FAILED);
		}
		ck_assert_str_eq(notification.channel, "c");
		ck_assert_str_eq(notification.payload, i == 0 ? "one" : "two");
		ck_assert_int_eq(notification.sender, session_backend_pid(other));
		free(notification.channel);
		free(notification.payload);
	}
	session_close(other);
}
END_TEST


/* --- loss --- */

START_TEST(a_terminated_session_is_lost)
{
	Session *other = open_raw();
	SqlResult *result;

	ck_assert(session_query(other, NULL, "SELECT pg_terminate_backend($1, 10000)",
							ARGS(arg_int(session_backend_pid(subject)))));
	result = session_raw_execute(subject, "SELECT 1");
	ck_assert(sql_is_loss(result));
	sql_free(result);
	ck_assert_int_eq(session_raw_await(subject, 0), ARRIVAL_FAILED);
	ck_assert_int_eq(session_raw_block(subject), BLOCK_UNKNOWN);
	ck_assert(!session_raw_send(subject, "SELECT 1"));
	ck_assert_str_ne(session_raw_message(subject), "");
	session_close(other);
}
END_TEST

START_TEST(the_server_s_last_words_are_a_loss)
{
	SqlResult *result;

	ck_assert(session_raw_send(subject, "SELECT pg_terminate_backend(pg_backend_pid())"));
	result = must_get(subject);
	ck_assert_str_eq(sql_complaint(result).severity, "FATAL");
	ck_assert_str_eq(sql_complaint(result).sqlstate, "57P01");
	ck_assert(sql_is_loss(result));
	sql_free(result);
}
END_TEST


/* --- the table --- */

START_TEST(a_table_is_printed_as_libpq_does)
{
	char *printed = NULL;
	size_t length;
	FILE *stream = open_memstream(&printed, &length);
	SqlResult *result = session_raw_execute(subject, "SELECT 1 AS n, 'ab' AS words UNION ALL SELECT 20, NULL");

	ck_assert_ptr_nonnull(stream);
	sql_print(result, stream);
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_str_eq(printed, " n|words\n--+-----\n 1|ab   \n20|     \n(2 rows)\n\n");
	sql_free(result);
	free(printed);
}
END_TEST

static void
add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_connection_refused_is_libpq_s_text);
	tcase_add_test(tcase, several_connect_at_once);
	tcase_add_test(tcase, what_was_begun_in_vain_says_why_and_is_closed);
	tcase_add_test(tcase, results_come_one_by_one);
	tcase_add_test(tcase, an_error_ends_what_was_sent_and_the_session_goes_on);
	tcase_add_test(tcase, a_wait_ends_with_its_time_or_with_what_arrives);
	tcase_add_test(tcase, a_statement_is_cancelled);
	tcase_add_test(tcase, a_copy_is_ended);
	tcase_add_test(tcase, a_block_is_none_open_failed_or_unknown);
	tcase_add_test(tcase, a_notice_is_heard_before_its_result);
	tcase_add_test(tcase, notifications_come_in_their_order);
	tcase_add_test(tcase, a_terminated_session_is_lost);
	tcase_add_test(tcase, the_server_s_last_words_are_a_loss);
	tcase_add_test(tcase, a_table_is_printed_as_libpq_does);
}

int
main(void)
{
	Suite *suite = suite_create("raw");
	TCase *tcase = tcase_create("raw");

	if (!suite_has_server((const char *const[]){NULL}))
	{
		return EXIT_FAILURE;
	}
	add_tests(tcase);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
