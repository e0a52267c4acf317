#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "reaper.h"
#include "suite.h"

/* Each test has a history of its own and, where it wants one, a server of its own: a child of Check cannot share one. */

#define DEADLINE_MS 30000

static char history_path[64];
static History *history;
static Cluster *cluster;

static void
open_history(void)
{
	strcpy(history_path, "/tmp/check-fault-XXXXXX");
	temporary_file(history_path);
	history = history_open(history_path);
	ck_assert_ptr_nonnull(history);
}

static void
close_history(void)
{
	history_close(history);
	unlink(history_path);
}

static void
start_server(void)
{
	static ServerKit kit;

	open_history();
	ck_assert(server_kit_find(&kit, getenv("COUNTERPROOF_PG_BIN"), 16));
	cluster = cluster_create(&kit, "check_fault");
	ck_assert_ptr_nonnull(cluster);
	ck_assert(cluster_start(cluster, deadline_in_ms(DEADLINE_MS)));
}

static void
stop_server(void)
{
	ck_assert(cluster_free(cluster));
	close_history();
}

static Session *
connect_as(const char *name)
{
	Session *session = session_open(cluster_conninfo(cluster, "postgres"), name);

	ck_assert_ptr_nonnull(session);
	return session;
}

/* The history's fault lines, without their times, each ended by a newline. */
static void
read_faults(Text *faults)
{
	Text all = {0};

	ck_assert(file_read(history_path, &all));
	for (const char *line = text_get(&all); *line != '\0';)
	{
		size_t length = strcspn(line, "\n");
		const char *what = line[0] == 'F' ? strchr(line + 2, '\t') : NULL;

		if (what != NULL)
		{
			text_append(faults, "%.*s\n", (int) (length - (size_t) (what + 1 - line)), what + 1);
		}
		line += length + 1;
	}
	text_free(&all);
}

static void
expect_fired(const Fault *fault, const char *effect, const char *recorded)
{
	Text faults = {0};

	ck_assert_int_eq(fault->fired, 1);
	ck_assert_str_eq(fault->effect, effect);
	read_faults(&faults);
	ck_assert_str_eq(text_get(&faults), recorded);
	text_free(&faults);
}

static void
expect_not_fired(const Fault *fault, const char *reported)
{
	Text faults = {0};
	char last[512];

	ck_assert_int_eq(fault->fired, 0);
	ck_assert_str_eq(fault->effect, "");
	read_faults(&faults);
	ck_assert_str_eq(text_get(&faults), "");
	notice_last_error(last, sizeof(last));
	ck_assert_msg(strstr(last, reported) != NULL, "expected \"%s\" in \"%s\"", reported, last);
	text_free(&faults);
}


/* --- killing a program --- */

static Process *
start_program(const char *path)
{
	const char *const argv[] = {path, NULL};
	Process *process = process_start(&(ProcessSpec){.argv = argv});

	ck_assert_ptr_nonnull(process);
	return process;
}

START_TEST(a_killed_program_is_a_firing)
{
	Fault fault = {.name = "kill -9 cat"};
	Process *process = start_program("/bin/cat");
	ProcessEnd end;

	ck_assert(fault_kill(&fault, history, process, deadline_in_ms(DEADLINE_MS)));
	expect_fired(&fault, "exit by signal 9", "kill -9 cat: exit by signal 9\n");
	ck_assert(process_wait(process, deadline_in_ms(0), &end));
	ck_assert_int_eq(end.how, ENDED_SIGNAL);
	ck_assert_int_eq(end.code, SIGKILL);
	process_free(process);
}
END_TEST

START_TEST(a_program_that_had_ended_is_not_killed)
{
	Fault fault = {.name = "kill -9 true"};
	Process *process = start_program("/bin/true");
	ProcessEnd end;

	ck_assert(process_wait(process, deadline_in_ms(DEADLINE_MS), &end));
	ck_assert(!fault_kill(&fault, history, process, deadline_in_ms(DEADLINE_MS)));
	expect_not_fired(&fault, "");
	process_free(process);
}
END_TEST

START_TEST(a_history_is_not_required)
{
	Fault fault = {.name = "kill -9 cat"};
	Process *process = start_program("/bin/cat");

	ck_assert(fault_kill(&fault, NULL, process, deadline_in_ms(DEADLINE_MS)));
	expect_fired(&fault, "exit by signal 9", "");
	process_free(process);
}
END_TEST


/* --- restarting a server --- */

START_TEST(a_restart_leaves_another_postmaster)
{
	Fault fault = {.name = "restart -m immediate"};
	Session *session = connect_as("before");
	pid_t before = cluster_postmaster(cluster);
	int64_t one;

	ck_assert(fault_restart_immediate(&fault, history, cluster, deadline_in_ms(DEADLINE_MS)));
	expect_fired(&fault, "another postmaster runs", "restart -m immediate: another postmaster runs\n");
	ck_assert_int_ne(cluster_postmaster(cluster), before);
	ck_assert_int_ne(session_try(session, NULL, "SELECT 1", NO_ARGS), SQL_OK);
	ck_assert(session_is_lost(session));
	session_close(session);
	session = connect_as("after");
	ck_assert(session_query_int(session, &one, "SELECT 1", NO_ARGS));
	ck_assert_int_eq(one, 1);
	session_close(session);
}
END_TEST

static ProbeAnswer
probe_dead(void *context, Text *seen)
{
	(void) context;
	text_append(seen, "its postmaster runs");
	return cluster_verify_running(cluster) ? PROBE_AGAIN : PROBE_DONE;
}

START_TEST(a_server_that_was_dead_already_is_not_restarted)
{
	Fault fault = {.name = "restart -m immediate"};

	ck_assert_int_eq(kill(cluster_postmaster(cluster), SIGQUIT), 0);
	ck_assert(wait_until("the server's end", deadline_in_ms(DEADLINE_MS), probe_dead, NULL));
	ck_assert(!fault_restart_immediate(&fault, history, cluster, deadline_in_ms(DEADLINE_MS)));
	expect_not_fired(&fault, "");
	ck_assert_int_eq(cluster_state(cluster), CLUSTER_CRASHED);
}
END_TEST


/* --- abandoning a client --- */

START_TEST(an_abandoned_transaction_is_gone)
{
	Fault fault = {.name = "abandon victim"};
	Session *control = connect_as("control");
	Session *victim = connect_as("victim");
	int64_t count;

	ck_assert(session_execute(control, "CREATE TABLE t (i int)"));
	ck_assert(session_begin(victim, READ_COMMITTED));
	ck_assert(session_execute(victim, "INSERT INTO t VALUES (1); LOCK TABLE t IN ACCESS EXCLUSIVE MODE"));
	ck_assert(fault_abandon(&fault, history, control, victim, deadline_in_ms(DEADLINE_MS)));
	expect_fired(&fault, "its backend is gone", "abandon victim: its backend is gone\n");
	ck_assert(session_begin(control, READ_COMMITTED));
	ck_assert(session_execute(control, "LOCK TABLE t IN ACCESS EXCLUSIVE MODE NOWAIT"));
	ck_assert(session_query_int(control, &count, "SELECT count(*) FROM t", NO_ARGS));
	ck_assert_int_eq(count, 0);
	session_close(control);
}
END_TEST

START_TEST(a_backend_that_had_gone_is_no_firing)
{
	Fault fault = {.name = "abandon victim"};
	Session *control = connect_as("control");
	Session *victim = connect_as("victim");
	int64_t gone;

	/* the timeout makes it wait until the backend has gone */
	ck_assert(session_query_int(control, &gone, "SELECT pg_terminate_backend($1, 20000)::int",
								ARGS(arg_int(session_backend_pid(victim)))));
	ck_assert_int_eq(gone, 1);
	ck_assert(!fault_abandon(&fault, history, control, victim, deadline_in_ms(DEADLINE_MS)));
	expect_not_fired(&fault, "was gone before its client was");
	session_close(control);
}
END_TEST

/* A backend busy in a statement notices the lost client only when it answers. */
START_TEST(a_backend_that_lives_on_is_no_firing)
{
	Fault fault = {.name = "abandon victim"};
	Session *control = connect_as("control");
	Session *victim = connect_as("victim");

	ck_assert(session_send(victim, "SELECT pg_sleep(60)", NO_ARGS));
	ck_assert(!fault_abandon(&fault, history, control, victim, deadline_in_ms(300)));
	expect_not_fired(&fault, "1 backend with pid");
	session_close(control);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("fault");
	TCase *programs = tcase_create("programs");
	TCase *servers = tcase_create("servers");
	int failed;

	if (getenv("COUNTERPROOF_PG_BIN") == NULL)
	{
		report_error("COUNTERPROOF_PG_BIN is not set: this test needs PostgreSQL 16 binaries");
		return EXIT_FAILURE;
	}
	if (!reaper_start())
	{
		return EXIT_FAILURE;
	}
	tcase_set_timeout(programs, 60);
	tcase_add_checked_fixture(programs, open_history, close_history);
	tcase_add_test(programs, a_killed_program_is_a_firing);
	tcase_add_test(programs, a_program_that_had_ended_is_not_killed);
	tcase_add_test(programs, a_history_is_not_required);
	suite_add_tcase(suite, programs);

	tcase_set_timeout(servers, 120);
	tcase_add_checked_fixture(servers, start_server, stop_server);
	tcase_add_test(servers, a_restart_leaves_another_postmaster);
	tcase_add_test(servers, a_server_that_was_dead_already_is_not_restarted);
	tcase_add_test(servers, an_abandoned_transaction_is_gone);
	tcase_add_test(servers, a_backend_that_had_gone_is_no_firing);
	tcase_add_test(servers, a_backend_that_lives_on_is_no_firing);
	suite_add_tcase(suite, servers);

	failed = suite_run(suite);
	/* A failed test leaves its server behind: then the reaper, undismissed, ends it. */
	if (failed == EXIT_SUCCESS)
	{
		reaper_dismiss();
	}
	return failed;
}
