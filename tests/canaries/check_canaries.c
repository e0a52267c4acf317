/*
 * The table of what the runner must answer to each canary: the exit code, and the words of the result line. The judge
 * is itself on trial: turn any of these into a PASS, and a suite that is green proves nothing.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster.h"
#include "reaper.h"
#include "session.h"
#include "../suite.h"

#define RUN_MS 60000

typedef struct
{
	const char *name;
	ExitCode code;
	const char *result; /* what the result line begins with */
	const char *reason; /* what it contains */
} Expectation;

static const Expectation expectations[] = {
	{"passes", EXIT_CODE_PASS, "result   PASS passed=1 failed=0", ""},
	{"counts-files", EXIT_CODE_PASS, "result   PASS passed=1 failed=0", ""},
	{"fails", EXIT_CODE_FAIL, "result   FAIL passed=1 failed=1", ""},
	{"hangs", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0",
	 "past its deadline of 800 ms (in step: waiting for what never comes)"},
	{"crashes", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "its process ended by signal 11"},
	{"exits", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "its process ended before the case did"},
	{"checks-nothing", EXIT_CODE_INCONCLUSIVE, "result   UNKNOWN passed=0 failed=0", "nothing was checked"},
	{"gives-up", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "the lab could not do it"},
	{"skips", EXIT_CODE_INCONCLUSIVE, "result   SKIP passed=0 failed=0", "reason: no such thing on this machine\n"},
	{"skips-too-late", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0",
	 "too late to skip, something was checked"},
	{"fails-and-skips", EXIT_CODE_FAIL, "result   FAIL passed=0 failed=1", "too late to skip, something was checked"},
	{"fails-and-gives-up", EXIT_CODE_FAIL, "result   FAIL passed=0 failed=1", "the lab could not go on"},
	{"wait-expires", EXIT_CODE_BROKEN, "result   BROKEN passed=0 failed=0", "1, not 2"},
	{"never-fires", EXIT_CODE_INCONCLUSIVE, "result   UNKNOWN passed=1 failed=0",
	 "a fault never fired: kill -9 nobody"},
	{"kills-too-late", EXIT_CODE_INCONCLUSIVE, "result   UNKNOWN passed=1 failed=0",
	 "a fault never fired: kill -9 true when it has ended"},
	{"does-not-know", EXIT_CODE_INCONCLUSIVE, "result   UNKNOWN passed=1 failed=0", "nobody can tell"},
	{"leaks-child", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "left running: pid "},
	{"leaks-daemon", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "left running: pid "},
	{"leaks-family", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "left running: pid "},
	{"kills-host", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "its host was killed"},
	{"leaks-postmaster", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "left running: pid "},
	{"fails-in-teardown", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", ""},
	{"kills-server", EXIT_CODE_BROKEN, "result   BROKEN passed=1 failed=0", "the run's server had died"},
};

static char *folder; /* evidence of one test */

static void
make_folder(void)
{
	char path[] = "/tmp/canary-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(path));
	folder = string_copy(path);
}

static void
remove_folder(void)
{
	const char *argv[] = {"/bin/rm", "-rf", folder, NULL};
	ProcessEnd end;

	ck_assert(process_run(&(ProcessSpec){.argv = argv}, deadline_in_ms(RUN_MS), NULL, &end));
	free(folder);
}

/* Run canaries; words end with NULL. Answers the exit code; what the terminal saw is appended to `seen`. */
static int
run_canaries(const char *const *words, Text *seen)
{
	const char *argv[16] = {CANARY_PROGRAM, folder};
	ProcessEnd end;

	for (int i = 0; words[i] != NULL; i++)
	{
		argv[2 + i] = words[i];
	}
	ck_assert(process_run(&(ProcessSpec){.argv = argv}, deadline_in_ms(RUN_MS), seen, &end));
	ck_assert_int_eq(end.how, ENDED_EXIT);
	return end.code;
}

static void
read_output(Text *output)
{
	char *path = string_format("%s/output.txt", folder);

	ck_assert(file_read(path, output));
	free(path);
}

/* Every pid that the case or its result names must be gone. */
static void
assert_named_pids_gone(const char *text)
{
	while ((text = strstr(text, "pid ")) != NULL)
	{
		int pid = atoi(text + strlen("pid "));
		ProcessStatus status;

		ck_assert_int_gt(pid, 1);
		ck_assert_msg(!process_status(pid, &status) || status.state == 'Z', "pid %d is still running", pid);
		text += strlen("pid ");
	}
}

START_TEST(each_canary_gets_its_result)
{
	const Expectation *expected = &expectations[_i];
	const char *words[] = {expected->name, NULL};
	Text seen = {0};
	Text output = {0};
	int code = run_canaries(words, &seen);
	const char *result;

	read_output(&output);
	result = strstr(text_get(&output), "\nresult   ");
	ck_assert_msg(result != NULL, "no result line in: %s", text_get(&output));
	ck_assert_msg(strncmp(result + 1, expected->result, strlen(expected->result)) == 0, "%s", result);
	ck_assert_msg(strstr(result, expected->reason) != NULL, "%s does not say: %s", result, expected->reason);
	ck_assert_msg(code == (int) expected->code, "exit %d, not %d: %s", code, (int) expected->code, text_get(&seen));
	assert_named_pids_gone(text_get(&output));
	text_free(&seen);
	text_free(&output);
}
END_TEST

/* 1 before 3 before 4 before 0, whatever the order of the cases. */
START_TEST(exit_codes_have_an_order)
{
	const char *broken_and_unknown[] = {"does-not-know", "gives-up", "passes", NULL};
	const char *all[] = {"--jobs=3", "passes", "does-not-know", "gives-up", "fails", NULL};
	const char *unknown[] = {"passes", "does-not-know", NULL};

	ck_assert_int_eq(run_canaries(broken_and_unknown, NULL), EXIT_CODE_BROKEN);
	ck_assert_int_eq(run_canaries(all, NULL), EXIT_CODE_FAIL);
	ck_assert_int_eq(run_canaries(unknown, NULL), EXIT_CODE_INCONCLUSIVE);
}
END_TEST

/* A case that took the run's server with it spoils the one beside it, and none that comes after. */
START_TEST(next_case_gets_a_new_server)
{
	const char *words[] = {"--jobs=2", "kills-server", "wait-expires", "wait-expires", "wait-expires", NULL};
	char *log = string_format("%s/canary/canary-kills-server/server.log", folder);
	Text output = {0};
	const char *found;

	ck_assert_int_eq(run_canaries(words, NULL), EXIT_CODE_BROKEN);
	read_output(&output);
	found = strstr(text_get(&output), "1, not 2");
	ck_assert(found != NULL && strstr(found + 1, "1, not 2") != NULL);
	ck_assert_int_eq(access(log, R_OK), 0);
	text_free(&output);
	free(log);
}
END_TEST

/* However many have run before, there is room for one more. */
START_TEST(many_repetitions)
{
	const char *words[] = {"--repeat=200", "passes", NULL};

	ck_assert_int_eq(run_canaries(words, NULL), EXIT_CODE_PASS);
}
END_TEST

/* A server that is not the lab's: nothing is left in it, and nothing breaks it. */
START_TEST(an_existing_server_is_left_as_it_was)
{
	const char *words[] = {NULL, "wait-expires", "fails-in-teardown", NULL};
	ServerKit kit;
	Cluster *cluster;
	Session *session;
	Text output = {0};
	char *server;
	int64_t databases = -1;

	ck_assert(reaper_start()); /* a check that fails ends this process, not the server */
	ck_assert(server_kit_find(&kit, getenv("COUNTERPROOF_PG_BIN"), 16));
	cluster = cluster_create(&kit, "existing");
	ck_assert(cluster_start(cluster, deadline_in_ms(RUN_MS)));
	server = string_format("--server=%s", cluster_conninfo(cluster, "postgres"));
	words[0] = server;
	ck_assert_int_eq(run_canaries(words, NULL), EXIT_CODE_BROKEN);
	read_output(&output);
	ck_assert_ptr_nonnull(strstr(text_get(&output), "result   BROKEN passed=0 failed=0 reason: waited "));
	ck_assert_ptr_nonnull(strstr(text_get(&output), "result   SKIP passed=0 failed=0 reason: it breaks its server"));
	ck_assert(cluster_verify_running(cluster));
	session = session_open(cluster_conninfo(cluster, "postgres"), "test");
	ck_assert(
		session_query_int(session, &databases, "SELECT count(*) FROM pg_database WHERE datname LIKE 'cp%'", NO_ARGS));
	ck_assert_int_eq(databases, 0);
	session_close(session);
	ck_assert(cluster_free(cluster));
	reaper_dismiss();
	text_free(&output);
	free(server);
}
END_TEST

/* Cases that end in another order are told in theirs. */
START_TEST(jobs_keep_the_order)
{
	const char *words[] = {"--jobs=4", "hangs", "passes", "fails", "passes", NULL};
	Text output = {0};
	const char *first;
	const char *second;
	const char *third;

	ck_assert_int_eq(run_canaries(words, NULL), EXIT_CODE_FAIL);
	read_output(&output);
	first = strstr(text_get(&output), "== canary-hangs");
	second = strstr(text_get(&output), "== canary-passes");
	third = strstr(text_get(&output), "== canary-fails");
	ck_assert(first != NULL && second != NULL && third != NULL);
	ck_assert(first < second && second < third);
	text_free(&output);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("canaries");
	TCase *tcase = tcase_create("results");

	tcase_add_checked_fixture(tcase, make_folder, remove_folder);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, each_canary_gets_its_result, 0, (int) LENGTH_OF(expectations));
	tcase_add_test(tcase, exit_codes_have_an_order);
	tcase_add_test(tcase, next_case_gets_a_new_server);
	tcase_add_test(tcase, many_repetitions);
	tcase_add_test(tcase, an_existing_server_is_left_as_it_was);
	tcase_add_test(tcase, jobs_keep_the_order);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
