/*
 * The other programs of the systems as somebody starts them by hand: like-setup, like-writer, like-rebuild and
 * request-client; what they do, and what they refuse before anything is sent. The environment is that of check_consumer.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc.h"
#include "session.h"
#include "served_suite.h"

#define DATABASE "check_clients"
#define WAIT_MS 30000
#define SETUP "like-setup --sql \"$COUNTERPROOF_SQL/like\" "

static char *database;
static Session *lab;

static void
setup(void)
{
	server_execute("DROP DATABASE IF EXISTS " DATABASE " WITH (FORCE)");
	server_execute("CREATE DATABASE " DATABASE);
	lab = session_open(database, DATABASE);
	ck_assert_ptr_nonnull(lab);
}

static void
teardown(void)
{
	session_close(lab);
	server_execute("DROP DATABASE " DATABASE " WITH (FORCE)");
}

/* A command as the shell reads it, "$@" being --conninfo and its value; `said` is a part of what it prints. */
static void
expect_run(const char *command, int code, const char *said)
{
	char *script = string_format("PATH=\"$COUNTERPROOF_PROGRAMS:$PATH\"; set -- --conninfo \"%s\"; { %s; } 2>&1",
								 database, command);
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	Text output = {0};
	ProcessEnd end;

	ck_assert(process_run(&(ProcessSpec){.argv = argv}, deadline_in_ms(WAIT_MS), &output, &end));
	ck_assert_msg(end.how == ENDED_EXIT && end.code == code, "%s: %d, not %d: %s", command, end.code, code,
				  text_get(&output));
	ck_assert_msg(strstr(text_get(&output), said) != NULL, "%s: %s does not say: %s", command, text_get(&output), said);
	text_free(&output);
	free(script);
}

static void
expect_number(const char *sql, int64_t expected)
{
	int64_t value;

	ck_assert(session_query_int(lab, &value, sql, NO_ARGS));
	ck_assert_msg(value == expected, "%s: %lld, not %lld", sql, (long long) value, (long long) expected);
}

START_TEST(a_system_is_made_written_and_rebuilt)
{
	expect_run(SETUP "--items 2 --events 5 \"$@\"", EXIT_CODE_PASS, "");
	expect_number("SELECT last FROM like_seq", 5);
	expect_number("SELECT count(*) FROM like_outbox WHERE item_id = 1", 3);
	expect_run("like-writer \"$@\" 9:1:like 9:1:like 1:1:unlike", EXIT_CODE_PASS, "ACKED 3\n");
	expect_number("SELECT last FROM like_seq", 7);
	expect_run("like-rebuild \"$@\"", EXIT_CODE_PASS, "REBUILT changed=2\n");
	expect_number("SELECT n FROM like_count WHERE item_id = 1", 3);
	expect_number("SELECT exact_violations FROM like_audit_read_side()", 0);
	expect_run("like-rebuild \"$@\"", EXIT_CODE_PASS, "REBUILT changed=0\n");
}
END_TEST

START_TEST(files_are_loaded_over_a_system)
{
	expect_run(SETUP "\"$@\" --events 1 --over \"$COUNTERPROOF_SQL/like/mutants/M07\"", EXIT_CODE_PASS, "");
	expect_number("SELECT count(*) FROM like_consume('{1}') a", 1);
	expect_number("SELECT applied FROM like_consume('{1}')", 1); /* M07 applies it again */
}
END_TEST

/* A design that leaves numbers to a sequencer, which --over and COUNTERPROOF_DESIGN find as well. */
START_TEST(a_system_of_another_design)
{
	expect_run(SETUP "--design sequencer --events 5 \"$@\"", EXIT_CODE_PASS, "");
	expect_number("SELECT last FROM like_seq", 0);
	expect_number("SELECT lag FROM like_audit_read_side()", 5);
	expect_run("like-sequencer \"$@\" --batch 2", EXIT_CODE_PASS, "NUMBERED 5\n");
	expect_run("like-sequencer \"$@\"", EXIT_CODE_PASS, "NUMBERED 0\n");
	expect_number("SELECT last FROM like_seq", 5);
}
END_TEST

START_TEST(counts_in_a_second_database)
{
	expect_run(SETUP "\"$@\" --events 5 --over parts/second/facts "
					 "--over \"$COUNTERPROOF_SQL/../crashpoints/like-second\" --over parts/second/counts",
			   EXIT_CODE_PASS, "");
	expect_run("like-second --facts \"$2\" --counts \"$2 options='-c search_path=counts'\" --batch 2", EXIT_CODE_PASS,
			   "DRAINED applied=5 covered=0 dup=0 watermark=5\n");
	expect_number("SELECT sum(n) FROM counts.like_count", 5);
}
END_TEST

START_TEST(files_of_a_design_are_loaded_over_it)
{
	expect_run("COUNTERPROOF_DESIGN=sequencer; export COUNTERPROOF_DESIGN; " SETUP
			   "\"$@\" --events 1 --over mutants/M05",
			   EXIT_CODE_PASS, "");
	expect_number("SELECT count(*) FROM like_set(1, 1, true)", 1);
	expect_number("SELECT count(*) FROM like_unnumbered", 2); /* M05 writes an event for a repeat */
}
END_TEST

START_TEST(a_wish_is_fulfilled_once)
{
	char *path = string_format("%s/request/request.sql", getenv("COUNTERPROOF_SQL"));

	ck_assert(session_execute_file(lab, path));
	free(path);
	expect_run("request-client \"$@\" tea cake && request-client \"$@\" tea", EXIT_CODE_PASS, "");
	expect_number("SELECT n FROM tally", 2);
}
END_TEST

static const struct
{
	const char *command;
	int code;
	const char *said;
} refused[] = {
	{SETUP "", EXIT_CODE_USAGE, "usage: like-setup"},
	{SETUP "\"$@\" --items 0", EXIT_CODE_USAGE, "--items takes a number from 1 to 99, not \"0\""},
	{SETUP "\"$@\" --events x", EXIT_CODE_USAGE, "--events takes a number"},
	{SETUP "\"$@\" --evil", EXIT_CODE_USAGE, "unknown option or missing value: --evil"},
	{SETUP "\"$@\" --events 1 --over /nonexistent", EXIT_CODE_BROKEN, "there is no file *.sql in /nonexistent"},
	{SETUP "\"$@\" --events 1 --over mutants/M99", EXIT_CODE_BROKEN, "there is no file *.sql in mutants/M99"},
	{SETUP "\"$@\" --design sequence", EXIT_CODE_USAGE, "no design \"sequence\"; the nearest is \"sequencer\""},
	{SETUP "\"$@\" --design sequencer --over mutants/M30", EXIT_CODE_BROKEN,
	 "mutants/M30/write.sql is not for design sequencer, which has a write.sql of its own"},
	{"own=$(mktemp -d) && mkdir -p \"$own/sql/designs/row\" && cp \"$COUNTERPROOF_SQL\"/like/*.sql \"$own/sql\" && "
	 "touch \"$own/sql/designs/row/wriet.sql\" && "
	 "{ (cd \"$own\" && like-setup --sql sql \"$@\"); code=$?; rm -r \"$own\"; (exit $code); }",
	 EXIT_CODE_BROKEN, "0 of 1 files of sql/designs/row are named like a file of sql"},
	{"like-second --facts \"$2\"", EXIT_CODE_USAGE, "usage: like-second"},
	{"like-second --facts \"$2\" --counts \"$2\" --batch 0", EXIT_CODE_USAGE,
	 "--batch takes a number from 1 to 1000000, not \"0\""},
	{"like-second --facts \"$2\" --counts \"$2\"", EXIT_CODE_BROKEN, "like_watermark"},
	{"like-sequencer", EXIT_CODE_USAGE, "usage: like-sequencer"},
	{"like-sequencer \"$@\" --batch", EXIT_CODE_USAGE, "usage: like-sequencer"},
	{"like-sequencer \"$@\" --batch 0", EXIT_CODE_USAGE, "--batch takes a number from 1 to 1000000, not \"0\""},
	{"like-sequencer \"$@\"", EXIT_CODE_BROKEN, "like_number"},
	{"like-writer \"$@\"", EXIT_CODE_USAGE, "usage: like-writer"},
	{"like-writer 1:1:like", EXIT_CODE_USAGE, "usage: like-writer"},
	{"like-writer \"$@\" 1:1:like 1:1:love", EXIT_CODE_USAGE, "USER:ITEM:unlike, not \"1:1:love\""},
	{"like-writer \"$@\" 1:1", EXIT_CODE_USAGE, "not \"1:1\""},
	{"like-writer \"$@\" 1::like", EXIT_CODE_USAGE, "not \"1::like\""},
	{"like-rebuild", EXIT_CODE_USAGE, "usage: like-rebuild"},
	{"like-rebuild \"$@\"", EXIT_CODE_BROKEN, "like_snapshot() does not exist"},
	{"request-client \"$@\"", EXIT_CODE_USAGE, "usage: request-client"},
	{"request-client \"$@\" tea", EXIT_CODE_BROKEN, "tea was refused: 42883"},
};

START_TEST(what_is_wrong_is_refused)
{
	expect_run(refused[_i].command, refused[_i].code, refused[_i].said);
}
END_TEST

/* Words are read before the first is sent; an item that does not exist is refused for good. */
START_TEST(a_wrong_request_is_not_sent)
{
	expect_run(SETUP "\"$@\" --items 1 --events 1", EXIT_CODE_PASS, "");
	expect_run("like-writer \"$@\" 7:1:like 7:1:love", EXIT_CODE_USAGE, "7:1:love");
	expect_number("SELECT last FROM like_seq", 1);
	expect_run("like-writer \"$@\" 7:8:like", EXIT_CODE_BROKEN, "user 7, item 8: REJECTED(23503)");
}
END_TEST

static Suite *
clients_suite(void)
{
	Suite *suite = suite_create("clients");
	TCase *tcase = tcase_create("programs");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_system_is_made_written_and_rebuilt);
	tcase_add_test(tcase, files_are_loaded_over_a_system);
	tcase_add_test(tcase, a_system_of_another_design);
	tcase_add_test(tcase, counts_in_a_second_database);
	tcase_add_test(tcase, files_of_a_design_are_loaded_over_it);
	tcase_add_test(tcase, a_wish_is_fulfilled_once);
	tcase_add_loop_test(tcase, what_is_wrong_is_refused, 0, LENGTH_OF(refused));
	tcase_add_test(tcase, a_wrong_request_is_not_sent);
	suite_add_tcase(suite, tcase);
	return suite;
}

int
main(void)
{
	int failed;

	if (!suite_has_server((const char *const[]){WITH_SQL, WITH_PROGRAMS, NULL}))
	{
		return EXIT_FAILURE;
	}
	database = string_format("%s dbname=" DATABASE, server);
	failed = suite_run(clients_suite());
	free(database);
	return failed;
}
