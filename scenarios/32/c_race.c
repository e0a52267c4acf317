/*
 * 32-C  many clients on one pair: one change, one event
 *
 * Claim      However many clients ask for the same state at once, the pair changes once and one event is written; each
 *            answer is decided by the state that the requests before it left.
 * Method     First the fixed order: one like is open, a second request for the pair is seen waiting, the first
 *            commits; once with the first like already changed, once with its row lock alone. Then 16 threads like one
 *            pair from behind a gate, from no row and again from an existing row; then 8 threads send 320 random
 *            requests to one pair. A statement that waited for a row lock goes on with the row as it was committed, and
 *            the next statement sees all of it (Read Committed, manual 13.2.1).
 * Expect     CHANGED=1 NOOP=15 both times. CHANGED = events = version in the random storm; deltas sum to liked.
 * Not shown  Which thread wins, and other schedules than those that happened (L7).
 */
#include <stdlib.h>

#include "lab.h"

#define RACERS 16
#define STORM_WORKERS 8
#define STORM_REQUESTS_EACH 40

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
	return number_of(scene, lab, "SELECT count(*) FROM like_outbox WHERE user_id = $1", ARGS(arg_int(user)));
}

static int64_t
version_of(Scene *scene, Session *lab, int64_t user)
{
	return number_of(scene, lab, "SELECT version FROM like_fact WHERE user_id = $1", ARGS(arg_int(user)));
}

/* A second request for the pair waits for an open like; the first commits, and the second must see what it left. */
static void
second_waits(Scene *scene, Session *lab, Race *race, int64_t user, bool second_wants, const char *expected)
{
	Session *first = race->sessions[0], *second = race->sessions[1];
	LikeResult answer;

	require(scene, session_begin(first, READ_COMMITTED));
	answer = set_like_within(scene, first, user, race->item, true);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "the first like changes the pair, uncommitted");
	send_like(scene, second, user, race->item, second_wants);
	scene_await_blocked(scene, lab, session_backend_pid(second));
	CHECK(scene, session_commit(first) == SQL_OK, "it commits while the second request waits");
	answer = await_like(scene, second);
	check_answer(scene, &answer, expected, "the second request, by the new state");
	CHECK_EQ(scene, events_of(scene, lab, user), version_of(scene, lab, user),
			 "one event for each version of the pair");
}

/*
 * The second request comes between the first one's lock and its change. Behind an open change it already waits at its
 * placeholder; here nothing but the row lock keeps it from deciding by the state that is about to end.
 */
static void
second_waits_for_lock(Scene *scene, Session *lab, Race *race, int64_t user)
{
	Session *first = race->sessions[0], *second = race->sessions[1];
	LikeResult answer = set_like(scene, lab, user, race->item, false);

	check_answer(scene, &answer, "NOOP(unliked, v0, not liked)", "the row is made by an unlike");
	require(scene, session_begin(first, READ_COMMITTED));
	require(scene, session_query(first, NULL, "SELECT FROM like_fact WHERE user_id = $1 AND item_id = $2 FOR UPDATE",
								 ARGS(arg_int(user), arg_int(race->item))));
	send_like(scene, second, user, race->item, true);
	scene_await_blocked(scene, lab, session_backend_pid(second));
	answer = set_like_within(scene, first, user, race->item, true);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "the first like changes the pair while the second waits");
	CHECK(scene, session_commit(first) == SQL_OK, "it commits");
	answer = await_like(scene, second);
	check_answer(scene, &answer, "NOOP(liked, v1, already liked)", "the second request, by the new state");
	CHECK_EQ(scene, events_of(scene, lab, user), version_of(scene, lab, user),
			 "one event for each version of the pair");
}

static void
fixed_order(Scene *scene, Session *lab, Race *race)
{
	LikeResult answer;

	step(scene, "one like open, a second like waits: from no row");
	second_waits(scene, lab, race, 1, true, "NOOP(liked, v1, already liked)");

	step(scene, "the same from an existing unliked row");
	answer = set_like(scene, lab, 2, race->item, false);
	check_answer(scene, &answer, "NOOP(unliked, v0, not liked)", "the row is made by an unlike");
	second_waits(scene, lab, race, 2, true, "NOOP(liked, v1, already liked)");

	step(scene, "one like open, an unlike waits");
	answer = set_like(scene, lab, 3, race->item, false);
	check_answer(scene, &answer, "NOOP(unliked, v0, not liked)", "the row is made by an unlike");
	second_waits(scene, lab, race, 3, false, "CHANGED(unliked, v2, seq=4)");

	step(scene, "one like holds the row and has not changed it yet, a second like waits");
	second_waits_for_lock(scene, lab, race, 4);
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
	LikeResult answer;
	LikeTally sum;

	step(scene, "16 threads like one pair: from no row");
	sum = run_round(scene, race, 5, RACERS, like_once);
	check_one_change(scene, lab, &sum, 5);

	step(scene, "16 threads like one pair: from an existing unliked row");
	answer = set_like(scene, lab, 6, race->item, false);
	check_answer(scene, &answer, "NOOP(unliked, v0, not liked)", "the row is made by an unlike");
	sum = run_round(scene, race, 6, RACERS, like_once);
	check_one_change(scene, lab, &sum, 6);
}

static void
random_storm(Scene *scene, Session *lab, Race *race)
{
	LikeTally sum;
	int64_t user = 7;

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
