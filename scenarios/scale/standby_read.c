/*
 * scale/standby-read  a count that is read on the standby, and the bound that it is answered with
 *
 * Claim      A standby shows one moment of the primary: identity and bound hold there as they do on the primary. How far a count
 *            is off from the primary's facts is bounded by what the primary has beyond, if it answers. If it does not, no such
 *            bound is known, and none is printed.
 * Method     Fixed order. Replay is paused on the standby while the primary takes 7 likes and 2 unlikes, and counts them. The
 *            count is read on the standby before, during and after, and once more when the primary is stopped. Besides, a writer
 *            and a consumer run on the primary while the standby's read side is audited 20 times.
 * Expect     Paused: n = 4, bound of the primary 9, and its facts are 9. Resumed: bound 0. Primary gone: n and its bound of what
 *            is replayed, the other one unknown. All 20 audits hold.
 * Not shown  How long a standby is behind: the time since the last commit that it replayed is by two clocks, and grows on an
 *            idle primary, too. A standby that cancels a query for the sake of replay (L43).
 */
#include "pair.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum
{
	ITEMS = 2,
	LIKES = 4,
	MORE = 7, /* while replay is paused */
	FEWER = 2,
	SAMPLES = 20,
	RUNNING_USERS = 1000, /* from this one on */
	BATCH = 20,
	RUN_MS = 30000
};

static LikeStandbyCount
read_on_standby(Scene *scene, const Pair *pair, Session *primary)
{
	LikeStandbyCount count = {0};
	bool found = false;
	Text text = {0};

	require(scene, like_read_count_on_standby(pair->standby_lab, primary, 1, 0, &found, &count));
	CHECK(scene, found, "the item has a count on the standby");
	like_standby_count_describe(&count, &text);
	note(scene, "read on the standby: %s", text_get(&text));
	text_free(&text);
	return count;
}

static void
check_read(Scene *scene, const LikeStandbyCount *count, int64_t n, int64_t beyond, int64_t primary_facts,
		   const char *when)
{
	CHECK_EQ(scene, count->count.n, n, "%s: n on the standby", when);
	CHECK(scene, count->primary_known, "%s: the primary answers", when);
	CHECK_EQ(scene, count->beyond, beyond, "%s: events of the item beyond what is replayed", when);
	CHECK(scene, llabs(count->count.n - primary_facts) <= count->count.pending + count->beyond,
		  "%s: n is off from the primary's %lld facts by no more than the bound", when, (long long) primary_facts);
}

static void
set_in_order(Scene *scene, Session *session, int64_t first, int64_t last, bool want)
{
	for (int64_t user = first; user <= last; user++)
	{
		LikeResult result = set_like(scene, session, user, 1, want);

		expect_changed(scene, &result, user);
	}
}

static void
behind_by_nine(Scene *scene, const Pair *pair)
{
	LikeStandbyCount count;

	step(scene, "%d likes, replayed", LIKES);
	set_in_order(scene, pair->lab, 1, LIKES, true);
	(void) drain(scene, pair->lab);
	pair_await_replayed(scene, pair);
	count = read_on_standby(scene, pair, pair->lab);
	check_read(scene, &count, LIKES, 0, facts_of(scene, pair->lab, 1), "all replayed");

	step(scene, "replay is paused; the primary takes %d likes and %d unlikes, and counts them", MORE, FEWER);
	require(scene, session_execute(pair->standby_lab, "SELECT pg_wal_replay_pause()"));
	scene_await_int(scene, pair->standby_lab, 1, "SELECT count(*) WHERE pg_get_wal_replay_pause_state() = 'paused'",
					NO_ARGS);
	set_in_order(scene, pair->lab, LIKES + 1, LIKES + MORE, true);
	set_in_order(scene, pair->lab, 1, FEWER, false);
	(void) drain(scene, pair->lab);
	CHECK_EQ(scene, facts_of(scene, pair->lab, 1), LIKES + MORE - FEWER, "facts on the primary");
	count = read_on_standby(scene, pair, pair->lab);
	check_read(scene, &count, LIKES, MORE + FEWER, LIKES + MORE - FEWER, "replay paused");
	CHECK_EQ(scene, count.last, LIKES, "replay paused: the last event that is replayed");
	CHECK(scene, count.count.lag == 0 && !count.count.stale, "replay paused: by its own lag it is not behind at all");

	step(scene, "replay goes on");
	require(scene, session_execute(pair->standby_lab, "SELECT pg_wal_replay_resume()"));
	pair_await_replayed(scene, pair);
	count = read_on_standby(scene, pair, pair->lab);
	check_read(scene, &count, LIKES + MORE - FEWER, 0, LIKES + MORE - FEWER, "replayed again");
}


/* --- audits while it replays --- */

typedef struct
{
	Session *writer, *consumer;
	atomic_bool stop;
	atomic_llong written, consumed;
} Load;

static bool
load_run(int worker, void *context)
{
	Load *load = context;
	bool ok = true;

	for (int64_t i = 0; ok && !atomic_load(&load->stop); i++)
	{
		LikeResult result = {0};
		LikeTotals totals = {0};

		if (worker == 0)
		{
			ok = like_set(load->writer, RUNNING_USERS + i, 1 + i % ITEMS, true, &result);
			atomic_fetch_add(&load->written, result.outcome == LIKE_CHANGED);
		}
		else
		{
			ok = like_drain(load->consumer, BATCH, &totals);
			atomic_fetch_add(&load->consumed, totals.applied);
		}
	}
	return ok;
}

static void
audit_while_replaying(Scene *scene, const Pair *pair)
{
	static Load load; /* outlives a case that ends early while they run */
	int64_t numbers[SAMPLES], held = 0, moved = 0;
	ActorGroup *group;

	step(scene, "%d audits on the standby, beside a writer and a consumer on the primary", SAMPLES);
	load.writer = like_client(scene, "writer");
	load.consumer = like_client(scene, "consumer");
	group = actor_start("load", 2, load_run, &load);
	require(scene, group != NULL);
	actor_open_gate(group);
	for (int i = 0; i < SAMPLES; i++)
	{
		LikeReadAudit seen = {0};

		/* Something new is replayed from one to the next. */
		scene_await_int(scene, pair->standby_lab, 1, "SELECT count(*) FROM like_seq WHERE last > $1",
						ARGS(arg_int(i == 0 ? 0 : numbers[i - 1])));
		require(scene, like_audit_read_side(pair->standby_lab, &seen));
		numbers[i] = seen.last_seq;
		held += like_read_side_holds(&seen);
		moved += i > 0 && seen.last_seq > numbers[i - 1];
	}
	atomic_store(&load.stop, true);
	require(scene, actor_join(group, scene_deadline(scene, RUN_MS)));
	note(scene, "written=%lld consumed=%lld; the standby was audited at events %lld to %lld",
		 (long long) atomic_load(&load.written), (long long) atomic_load(&load.consumed), (long long) numbers[0],
		 (long long) numbers[SAMPLES - 1]);
	CHECK_EQ(scene, held, SAMPLES, "audits on the standby that hold");
	CHECK_EQ(scene, moved, SAMPLES - 1, "audits that have seen something new");
	check_at_least(scene, atomic_load(&load.consumed), 1, "events consumed meanwhile");
	series(scene, "events replayed", "last", numbers, SAMPLES);
	scene_close_session(scene, load.writer);
	scene_close_session(scene, load.consumer);
}

static void
primary_gone(Scene *scene, const Pair *pair)
{
	Fault *death = scene_fault(scene, "immediate stop of the primary while its standby is read");
	LikeStandbyCount before, count;
	Text text = {0};

	step(scene, "the primary is gone");
	(void) drain(scene, pair->lab);
	pair_await_replayed(scene, pair);
	before = read_on_standby(scene, pair, pair->lab);
	require(scene, fault_stop_immediate(death, scene_history(scene), pair->primary));
	count = read_on_standby(scene, pair, pair->lab);
	like_standby_count_describe(&count, &text);
	CHECK_EQ(scene, count.count.n, before.count.n, "n on the standby");
	CHECK(scene, !count.primary_known, "the primary does not answer");
	CHECK(scene, strstr(text_get(&text), "bound of the primary=unknown") != NULL, "no bound of the primary is printed");
	CHECK(scene, count.since_ms >= before.since_ms, "the time since the last commit grows");
	CHECK_EQ(scene, facts_of(scene, pair->standby_lab, 1), count.count.n, "facts that the standby shows");
	text_free(&text);
}

static void
run(Scene *scene)
{
	Pair pair = pair_make(scene, like_design_find(NULL), ITEMS);

	load_part(scene, pair.lab, "standby");
	behind_by_nine(scene, &pair);
	audit_while_replaying(scene, &pair);
	primary_gone(scene, &pair);
}

const Scenario scenario_scale_standby_read = {
	.suite = "scale",
	.id = "scale/standby-read",
	.title = "a count that is read on the standby, and the bound that it is answered with",
	.claim = "identity and bound hold on a standby; its distance from the primary is bounded, or printed as unknown",
	.kind = "two servers, fixed interleaving, real threads, immediate stop",
	.guarantee = "|n - facts of the primary| <= the bound that is printed; none is printed when the primary is gone",
	.observed = "readCount on the standby beside the primary's facts, audits on the standby",
	.needs = NEEDS_CLUSTER,
	.server_setting = "autovacuum = off\n",
	.deadline_ms = 60000,
	.run = run,
};
