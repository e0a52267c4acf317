#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "point.h"
#include "suite.h"

typedef struct
{
	atomic_int calls;
	char name[64];
	char detail[300];
} Seen;

static void
see(void *context, const char *name, const char *detail)
{
	Seen *seen = context;

	atomic_fetch_add(&seen->calls, 1);
	snprintf(seen->name, sizeof(seen->name), "%s", name);
	snprintf(seen->detail, sizeof(seen->detail), "%s", detail);
}

START_TEST(nothing_is_armed_by_default)
{
	point_reach("consumer.before_commit", "batch=%d", 1);
}
END_TEST

START_TEST(the_nth_hit_fires_once)
{
	Seen seen = {0};

	point_arm_call("a", 3, see, &seen);
	for (int i = 1; i <= 5; i++)
	{
		point_reach("b", "batch=%d", i);
		point_reach("a", "batch=%d seq=%s", i, "1..9");
		ck_assert_int_eq(atomic_load(&seen.calls), i >= 3 ? 1 : 0);
	}
	ck_assert_str_eq(seen.name, "a");
	ck_assert_str_eq(seen.detail, "batch=3 seq=1..9");
}
END_TEST

START_TEST(a_name_may_be_armed_at_several_hits)
{
	Seen seen = {0};

	point_arm_call("a", 1, see, &seen);
	point_arm_call("a", 3, see, &seen);
	for (int i = 1; i <= 4; i++)
	{
		point_reach("a", "hit %d", i);
	}
	ck_assert_int_eq(atomic_load(&seen.calls), 2);
	ck_assert_str_eq(seen.detail, "hit 3");
}
END_TEST

START_TEST(disarming_forgets)
{
	Seen seen = {0};

	point_arm_call("a", 1, see, &seen);
	point_reach("a", "first");
	point_arm_call("a", 2, see, &seen);
	point_disarm_all();
	point_reach("a", "second");
	point_reach("a", "third");
	ck_assert_int_eq(atomic_load(&seen.calls), 1);
	point_arm_call("a", 2, see, &seen);
	point_reach("a", "fourth");
	ck_assert_int_eq(atomic_load(&seen.calls), 1);
	point_reach("a", "fifth");
	ck_assert_str_eq(seen.detail, "fifth");
}
END_TEST

START_TEST(a_long_detail_is_cut)
{
	Seen seen = {0};

	point_arm_call("a", 1, see, &seen);
	point_reach("a", "%0400d", 7);
	ck_assert_uint_eq(strlen(seen.detail), 255);
}
END_TEST

START_TEST(arming_without_a_hit_ends_the_program)
{
	point_arm_pause("a", 0);
}
END_TEST

#define THREADS 8
#define HITS 2000

static void *
reach_often(void *context)
{
	for (int i = 0; i < HITS; i++)
	{
		point_reach("hot", "hit %d", i);
		point_reach("cold", "hit %d", i);
	}
	return context;
}

/* Were a hit lost or counted twice, the last of them would not be the last. */
START_TEST(hits_are_counted_exactly_over_threads)
{
	Seen seen = {0};
	pthread_t threads[THREADS];

	point_arm_call("hot", THREADS * HITS + 1, see, &seen);
	for (int i = 0; i < THREADS; i++)
	{
		ck_assert_int_eq(pthread_create(&threads[i], NULL, reach_often, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++)
	{
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	}
	ck_assert_int_eq(atomic_load(&seen.calls), 0);
	point_reach("hot", "the last");
	ck_assert_int_eq(atomic_load(&seen.calls), 1);
	ck_assert_str_eq(seen.detail, "the last");
}
END_TEST


/* --- pausing: a child with pipes for stdin and stdout --- */

typedef struct
{
	pid_t pid;
	int to;
	FILE *from;
} Child;

static void
pause_twice(void)
{
	printf("before\n");
	point_arm_pause("stop", 2);
	point_arm_pause("stop", 3);
	point_reach("stop", "batch=%d", 1);
	point_reach("stop", "batch=%d", 2);
	printf("between\n");
	fflush(stdout);
	point_reach("stop", "%s", "");
	printf("after\n");
	fflush(stdout);
}

static Child
start_child(void)
{
	int in[2];
	int out[2];
	Child child;

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	fflush(stdout);
	child.pid = fork();
	ck_assert_int_ge(child.pid, 0);
	if (child.pid == 0)
	{
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		close(out[0]);
		pause_twice();
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	child.to = in[1];
	child.from = fdopen(out[0], "r");
	ck_assert_ptr_nonnull(child.from);
	return child;
}

static void
expect_line(Child *child, const char *expected)
{
	char line[128];

	ck_assert_ptr_nonnull(fgets(line, sizeof(line), child->from));
	ck_assert_str_eq(line, expected);
}

static void
expect_end(Child *child)
{
	int status;

	expect_line(child, "after\n");
	fclose(child->from);
	ck_assert_int_eq(waitpid(child->pid, &status, 0), child->pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(a_pause_waits_for_its_own_line)
{
	Child child = start_child();

	expect_line(&child, "before\n");
	expect_line(&child, "PAUSED stop batch=2\n");
	ck_assert_int_eq(waitpid(child.pid, NULL, WNOHANG), 0);
	/* both lines at once: the first pause must not swallow the second's */
	ck_assert_int_eq(write(child.to, "go\ngo\n", 6), 6);
	expect_line(&child, "between\n");
	expect_line(&child, "PAUSED stop\n");
	expect_end(&child);
	close(child.to);
}
END_TEST

START_TEST(end_of_file_releases)
{
	Child child = start_child();

	expect_line(&child, "before\n");
	expect_line(&child, "PAUSED stop batch=2\n");
	close(child.to);
	expect_line(&child, "between\n");
	expect_line(&child, "PAUSED stop\n");
	expect_end(&child);
}
END_TEST

START_TEST(a_pause_that_cannot_be_announced_is_reported)
{
	char reason[128];
	int full = open("/dev/full", O_WRONLY);
	int nothing = open("/dev/null", O_RDONLY);

	ck_assert_int_eq(dup2(full, STDOUT_FILENO), STDOUT_FILENO);
	ck_assert_int_eq(dup2(nothing, STDIN_FILENO), STDIN_FILENO);
	point_arm_pause("stop", 1);
	point_reach("stop", "batch=%d", 1);
	notice_last_error(reason, sizeof(reason));
	ck_assert_str_eq(reason, "cannot announce point stop on stdout: No space left on device");
}
END_TEST

START_TEST(options_are_parsed)
{
	static const char *const wrong[] = {"", ":2", "a:", "a:0", "a:-1", "a:2x", "a:99999999999", "a b", "a:1:2"};
	char name[32] = "old";
	int nth = 7;

	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
	{
		ck_assert_msg(!point_parse(wrong[i], name, sizeof(name), &nth), "taken: \"%s\"", wrong[i]);
	}
	ck_assert(!point_parse("much.too.long.a.name.for.this.buffer", name, sizeof(name), &nth));
	ck_assert_str_eq(name, "old");
	ck_assert_int_eq(nth, 7);
	ck_assert(point_parse("consumer.before_commit", name, sizeof(name), &nth));
	ck_assert_str_eq(name, "consumer.before_commit");
	ck_assert_int_eq(nth, 1);
	ck_assert(point_parse("x-1:25", name, sizeof(name), &nth));
	ck_assert_str_eq(name, "x-1");
	ck_assert_int_eq(nth, 25);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {nothing_is_armed_by_default,
								  the_nth_hit_fires_once,
								  a_name_may_be_armed_at_several_hits,
								  disarming_forgets,
								  a_long_detail_is_cut,
								  hits_are_counted_exactly_over_threads,
								  a_pause_waits_for_its_own_line,
								  end_of_file_releases,
								  a_pause_that_cannot_be_announced_is_reported,
								  options_are_parsed};
	Suite *suite = suite_create("point");
	TCase *tcase = tcase_create("point");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, NULL, point_disarm_all);
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
	{
		tcase_add_test(tcase, tests[i]);
	}
	tcase_add_test_raise_signal(tcase, arming_without_a_hit_ends_the_program, SIGABRT);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
