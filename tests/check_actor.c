#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "actor.h"
#include "suite.h"

#define WORKERS 16

typedef struct
{
	atomic_int began;
	atomic_int release; /* workers of hold() end when it is set */
	int slots[WORKERS];
	int failing; /* the worker that fails, -1 for none */
} Shared;

static bool
fill_slot(int worker, void *context)
{
	Shared *shared = context;

	atomic_fetch_add(&shared->began, 1);
	shared->slots[worker] = worker + 100; /* unsynchronised on purpose: the join must order it */
	return worker != shared->failing;
}

START_TEST(every_worker_runs_once)
{
	Shared shared = {.failing = -1};
	ActorGroup *group = actor_start("writer", WORKERS, fill_slot, &shared);

	ck_assert_ptr_nonnull(group);
	actor_open_gate(group);
	ck_assert(actor_join(group, deadline_in_ms(20000)));
	ck_assert_int_eq(atomic_load(&shared.began), WORKERS);
	for (int i = 0; i < WORKERS; i++)
	{
		ck_assert_int_eq(shared.slots[i], i + 100);
	}
}
END_TEST

START_TEST(a_failed_body_fails_the_join)
{
	Shared shared = {.failing = 5};
	ActorGroup *group = actor_start("writer", WORKERS, fill_slot, &shared);

	ck_assert_ptr_nonnull(group);
	actor_open_gate(group);
	ck_assert(!actor_join(group, deadline_in_ms(20000)));
	ck_assert_int_eq(atomic_load(&shared.began), WORKERS);
}
END_TEST

static bool
meet(int worker, void *context)
{
	(void) worker;
	pthread_barrier_wait(context);
	return true;
}

/* All must be past the gate at one time, or the barrier holds them until the test's timeout. */
START_TEST(the_gate_lets_all_go)
{
	pthread_barrier_t barrier;
	ActorGroup *group;

	ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, WORKERS), 0);
	group = actor_start("guest", WORKERS, meet, &barrier);
	ck_assert_ptr_nonnull(group);
	actor_open_gate(group);
	ck_assert(actor_join(group, deadline_in_ms(20000)));
	pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(nobody_passes_a_closed_gate)
{
	Shared shared = {.failing = -1};
	ActorGroup *group = actor_start("writer", 3, fill_slot, &shared);
	char last[512];

	ck_assert_ptr_nonnull(group);
	ck_assert(!actor_join(group, deadline_in_ms(50)));
	ck_assert_int_eq(atomic_load(&shared.began), 0);
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last,
					 "3 of 3 workers of writer had not ended at the deadline: 0 1 2; their gate was never opened");
	actor_open_gate(group);
	ck_assert(actor_join(group, deadline_in_ms(20000)));
	ck_assert_int_eq(atomic_load(&shared.began), 3);
}
END_TEST

static ProbeAnswer
probe_release(void *context, Text *seen)
{
	(void) seen;
	return atomic_load((atomic_int *) context) != 0 ? PROBE_DONE : PROBE_AGAIN;
}

static bool
hold(int worker, void *context)
{
	Shared *shared = context;

	return worker % 2 == 0 || wait_until("release", deadline_in_ms(30000), probe_release, &shared->release);
}

/* A join whose deadline has passed answers at once, and says who still runs. */
static ProbeAnswer
probe_two_run(void *context, Text *seen)
{
	char last[512];

	ck_assert(!actor_join(context, deadline_in_ms(0)));
	notice_last_error(last, sizeof(last));
	text_append(seen, "%s", last);
	return strcmp(last, "2 of 4 workers of consumer had not ended at the deadline: 1 3") == 0 ? PROBE_DONE
																							  : PROBE_AGAIN;
}

START_TEST(the_deadline_names_who_still_runs)
{
	Shared shared = {0};
	ActorGroup *group = actor_start("consumer", 4, hold, &shared);

	ck_assert_ptr_nonnull(group);
	actor_open_gate(group);
	ck_assert(wait_until("two to end", deadline_in_ms(20000), probe_two_run, group));
	atomic_store(&shared.release, 1);
	ck_assert(actor_join(group, deadline_in_ms(20000)));
}
END_TEST

static ProbeAnswer
probe_joined(void *context, Text *seen)
{
	text_append(seen, "not joined");
	return actor_join(context, deadline_in_ms(0)) ? PROBE_DONE : PROBE_AGAIN;
}

START_TEST(a_passed_deadline_does_not_matter_to_those_who_ended)
{
	Shared shared = {.failing = -1};
	ActorGroup *group = actor_start("writer", 2, fill_slot, &shared);

	ck_assert_ptr_nonnull(group);
	actor_open_gate(group);
	ck_assert(wait_until("a join past its deadline", deadline_in_ms(20000), probe_joined, group));
}
END_TEST

/* Stands before the library's: refuses one thread as a machine does that has no more to give. */
static int threads_to_give = -1; /* -1: no end of them */

int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *);

	if (threads_to_give == 0)
	{
		return EAGAIN;
	}
	threads_to_give -= threads_to_give > 0;
	*(void **) &real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attributes, start, argument);
}

START_TEST(a_thread_that_cannot_be_had_sends_all_home)
{
	Shared shared = {.failing = -1};
	char last[512];

	threads_to_give = 3;
	ck_assert_ptr_null(actor_start("writer", 5, fill_slot, &shared));
	threads_to_give = -1;
	ck_assert_int_eq(atomic_load(&shared.began), 0);
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "could not start worker 3 of 5 of writer: Resource temporarily unavailable");
}
END_TEST

START_TEST(no_workers_are_refused)
{
	ck_assert_ptr_null(actor_start("nobody", 0, fill_slot, NULL));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {every_worker_runs_once,
								  a_failed_body_fails_the_join,
								  the_gate_lets_all_go,
								  nobody_passes_a_closed_gate,
								  the_deadline_names_who_still_runs,
								  a_passed_deadline_does_not_matter_to_those_who_ended,
								  a_thread_that_cannot_be_had_sends_all_home,
								  no_workers_are_refused};
	Suite *suite = suite_create("actor");
	TCase *tcase = tcase_create("actor");

	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
	{
		tcase_add_test(tcase, tests[i]);
	}
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
