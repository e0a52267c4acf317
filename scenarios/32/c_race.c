/*
 * 32-C  many clients on one pair: one change, one event
 *
 * Claim      However many clients ask for the same state at once, the pair changes once and one event is written; each
 *            answer is decided by the state that the requests before it left.
 * Method     First the fixed orders: one request is open, a second one for the pair is seen waiting, the first
 *            commits; with the first one's change made, with its row lock alone, with its placeholder alone. Then 16 threads like one
 *            pair from behind a gate, from no row and again from an existing row; then 8 threads send 320 random
 *            requests to one pair. A statement that waited for a row lock goes on with the row as it was committed, and
 *            the next statement sees all of it (Read Committed, manual 13.2.1).
 * Expect     No lost request and no deadlock (13.3.4). CHANGED=1 NOOP=15 both times. CHANGED = events = version in the random storm; deltas sum to liked.
 * Not shown  Which thread wins, and other schedules than those that happened (L7).
 */
#include <stdlib.h>
#include <string.h>

#include "lab.h"

#define RACERS 16
#define STORM_WORKERS 8
#define STORM_REQUESTS_EACH 40
#define DEADLOCK_SQLSTATE "40P01"

/* One round of threads on one pair. */
typedef struct
{
	Session *sessions[RACERS];
	History *history;
	int64_t user, item;
	uint64_t seed;
	LikeTally tallies[RACERS]; /* one a worker */
} Race;

static bool
like_once(int worker, void *context)
{
	Race *race = context;
	LikeResult result;

	if (!recorded_set(race->history, worker, race->sessions[worker], race->user, race->item, true, &result))
	{
		return false;
	}
	tally_add(&race->tallies[worker], &result);
	return true;
}

static bool
storm(int worker, void *context)
{
	Race *race = context;
	Rng rng = rng_stream(race->seed, (uint64_t) worker);
	LikeResult result;

	for (int i = 0; i < STORM_REQUESTS_EACH; i++)
	{
		bool want = rng_below(&rng, 2) == 1;

		if (!recorded_set(race->history, worker, race->sessions[worker], race->user, race->item, want, &result))
		{
			return false;
		}
		tally_add(&race->tallies[worker], &result);
	}
	return true;
}

/* Runs one round on a pair and answers what became of its requests. */
static LikeTally
run_round(Scene *scene, Race *race, int64_t user, int workers, ActorBody body)
{
	LikeTally sum = {0};

	race->user = user;
	for (int i = 0; i < workers; i++)
	{
		race->tallies[i] = (LikeTally){0};
	}
	run_workers(scene, "racers", workers, body, race);
	for (int i = 0; i < workers; i++)
	{
		tally_merge(&sum, &race->tallies[i]);
	}
	note(scene, "CHANGED=%lld NOOP=%lld of %lld requests", (long long) sum.changed, (long long) sum.noop,
		 (long long) sum.requests);
	return sum;
}

static int64_t
events_of(Scene *scene, Session *lab, int64_t user)
{
	number_events(scene, lab);
	return number_of(scene, lab, "SELECT count(*) FROM like_outbox WHERE user_id = $1", ARGS(arg_int(user)));
}

static int64_t
version_of(Scene *scene, Session *lab, int64_t user)
{
	return number_of(scene, lab, "SELECT version FROM like_fact WHERE user_id = $1", ARGS(arg_int(user)));
}

/* The row that a first request leaves behind. */
static void
make_row(Scene *scene, Session *lab, const Race *race, int64_t user)
{
	LikeResult answer = set_like(scene, lab, user, race->item, false);

	check_answer(scene, &answer, "NOOP(unliked, v0, not liked)", "the row is made by an unlike");
}

/* The second request for a pair, which has been waiting: it need not wait any longer. */
static LikeResult
second_answers(Scene *scene, Session *lab, Race *race, int64_t user, const char *expected, const char *what)
{
	LikeResult answer = await_like(scene, race->sessions[1]);

	check_answer(scene, &answer, expected, "%s: by the new state", what);
	CHECK_EQ(scene, events_of(scene, lab, user), version_of(scene, lab, user),
			 "%s: one event for each version of the pair", what);
	return answer;
}

/* A second request for the pair waits for an open one; the first commits, and the second must see what it left. */
static void
second_waits(Scene *scene, Session *lab, Race *race, int64_t user, bool first_wants, bool second_wants,
			 const char *expected, const char *what)
{
	Session *first = race->sessions[0], *second = race->sessions[1];
	LikeResult answer;

	require(scene, session_begin(first, READ_COMMITTED));
	answer = set_like_within(scene, first, user, race->item, first_wants);
	CHECK(scene, answer.outcome == (first_wants ? LIKE_CHANGED : LIKE_NOOP), "the first request is open, uncommitted");
	send_like(scene, second, user, race->item, second_wants);
	check_waits(scene, lab, second, "%s: waits", what);
	CHECK(scene, session_commit(first) == SQL_OK, "the first commits");
	(void) second_answers(scene, lab, race, user, expected, what);
}

static int64_t
ended_by_deadlock(const LikeResult *answer)
{
	return strcmp(answer->sqlstate, DEADLOCK_SQLSTATE) == 0;
}

/*
 * The second request comes between the first one's lock and its change. Behind an open change it already waits at its
 * placeholder; here nothing but the row lock keeps it from deciding by the state that is about to end. And it waits with
 * nothing in its hands that the first one needs: else the two would wait for each other.
 */
static void
second_waits_for_lock(Scene *scene, Session *lab, Race *race, int64_t user, bool second_wants, const char *expected,
					  const char *what)
{
	Session *first = race->sessions[0], *second = race->sessions[1];
	LikeResult answer, second_answer;

	make_row(scene, lab, race, user);
	require(scene, session_begin(first, READ_COMMITTED));
	require(scene, session_query(first, NULL, "SELECT FROM like_fact WHERE user_id = $1 AND item_id = $2 FOR UPDATE",
								 ARGS(arg_int(user), arg_int(race->item))));
	send_like(scene, second, user, race->item, second_wants);
	check_waits(scene, lab, second, "%s: waits", what);
	answer = set_like_within(scene, first, user, race->item, true);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "the first like changes the pair while the second waits");
	CHECK(scene, session_commit(first) == SQL_OK, "it commits");
	session_rollback(first);
	second_answer = second_answers(scene, lab, race, user, expected, what);
	CHECK_EQ(scene, ended_by_deadlock(&answer) + ended_by_deadlock(&second_answer), 0,
			 "%s: requests that a deadlock ended (40P01)", what);
}

static void
fixed_order(Scene *scene, Session *lab, Race *race)
{
	step(scene, "one like open, a second like waits: from no row");
	second_waits(scene, lab, race, 1, true, true, "NOOP(liked, v1, already liked)", "a like behind a first like");

	step(scene, "the same from an existing unliked row");
	make_row(scene, lab, race, 2);
	second_waits(scene, lab, race, 2, true, true, "NOOP(liked, v1, already liked)", "a like behind a like");

	step(scene, "one like open, an unlike waits");
	make_row(scene, lab, race, 3);
	second_waits(scene, lab, race, 3, true, false, "CHANGED(unliked, v2, seq=4)", "an unlike behind a like");

	step(scene, "one like holds the row and has not changed it yet, a second like waits");
	second_waits_for_lock(scene, lab, race, 4, true, "NOOP(liked, v1, already liked)", "a like behind a lock");

	step(scene, "the same with an unlike that waits");
	second_waits_for_lock(scene, lab, race, 5, false, "CHANGED(unliked, v2, seq=7)", "an unlike behind a lock");

	step(scene, "an unlike open that makes the row, a like waits");
	second_waits(scene, lab, race, 6, false, true, "CHANGED(liked, v1, seq=8)", "a like behind a placeholder");
}

static void
check_one_change(Scene *scene, Session *lab, const LikeTally *sum, int64_t user)
{
	check_tally(scene, sum, RACERS);
	CHECK_EQ(scene, sum->changed, 1, "CHANGED");
	CHECK_EQ(scene, sum->noop, RACERS - 1, "NOOP");
	CHECK_EQ(scene, version_of(scene, lab, user), 1, "version of the pair");
	CHECK_EQ(scene, events_of(scene, lab, user), 1, "events of the pair");
}

static void
all_at_once(Scene *scene, Session *lab, Race *race)
{
	LikeTally sum;

	step(scene, "16 threads like one pair: from no row");
	sum = run_round(scene, race, 7, RACERS, like_once);
	check_one_change(scene, lab, &sum, 7);

	step(scene, "16 threads like one pair: from an existing unliked row");
	make_row(scene, lab, race, 8);
	sum = run_round(scene, race, 8, RACERS, like_once);
	check_one_change(scene, lab, &sum, 8);
}

static void
random_storm(Scene *scene, Session *lab, Race *race)
{
	LikeTally sum;
	int64_t user = 9;

	step(scene, "8 threads send 320 random likes and unlikes to one pair");
	sum = run_round(scene, race, user, STORM_WORKERS, storm);
	check_tally(scene, &sum, (int64_t) STORM_WORKERS * STORM_REQUESTS_EACH);
	check_at_least(scene, sum.changed, 2, "CHANGED, or nothing was exercised");
	CHECK_EQ(scene, events_of(scene, lab, user), sum.changed, "events = CHANGED");
	CHECK_EQ(scene, version_of(scene, lab, user), sum.changed, "version = CHANGED");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT sum(delta) FROM like_outbox WHERE user_id = $1", ARGS(arg_int(user))),
			 number_of(scene, lab, "SELECT liked::int FROM like_fact WHERE user_id = $1", ARGS(arg_int(user))),
			 "the deltas sum to liked");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, 1);
	Race *race = memory_get(sizeof(*race)); /* not on the stack: workers may outlive a case that ends early */

	race->history = scene_history(scene);
	race->item = 1;
	race->seed = scene_seed(scene);
	for (int i = 0; i < RACERS; i++)
	{
		race->sessions[i] = like_client(scene, "racer");
		/* What should never be is found at once; a role that may not set it waits a second for that. */
		(void) session_try(race->sessions[i], NULL, "SET deadlock_timeout = '10ms'", NO_ARGS);
	}
	fixed_order(scene, lab, race);
	all_at_once(scene, lab, race);
	random_storm(scene, lab, race);
	free(race);
	judge_history(scene, "the recorded requests");
	check_audits_clean(scene, lab, "before consuming");
	(void) drain(scene, lab);
	check_drained(scene, lab, "drained");
}

const Scenario scenario_32_c = {
	.suite = "32",
	.id = "32-C",
	.title = "many clients on one pair: one change, one event",
	.claim = "concurrent requests for one pair change it once; each is decided by the state the ones before it left",
	.kind = "real component, real threads, fixed interleaving",
	.guarantee = "one event per change of a pair; version = events",
	.observed = "the clients' answers, like_fact, like_outbox, the judged history",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
