/*
 * repair/outbox  a repair under eight writers and a consumer of their events
 *
 * Claim      A counter that events are added to is repaired with a baseline and the number of its last event: events
 *            that the baseline holds are not added again, later ones are, and neither writers nor consumer rest
 *            meanwhile.
 * Method     The like counter, six items. Eight threads like and unlike by the write path, one delivers; check runs
 *            beside them, then all counts are made wrong, and the repair runs. Then all stop, and what is left is
 *            delivered. First both pairings in a fixed order, with events still to be delivered: repaired as if writers
 *            counted up themselves, and as what they are.
 * Expect     Wrong pairing: the events are counted twice. The right one: exit 0, and when drained no violation of the
 *            read side's identity, lag 0, every count equal to its facts.
 * Not shown  Two consumers and redeliveries: 32-J (L8). Baselines at each place of a batch: 32-H and 32-I.
 */
#include "lab.h"

#include <stdatomic.h>
#include <stdlib.h>

enum
{
	ITEMS = 6,
	WRITERS = 8,
	USERS = 40, /* of each writer its own */
	WARM_REQUESTS = 200,
	BATCH = 20,
	PENDING = 4,
	CHECKS = 4,
	IDLE_US = 500,
	WAIT_MS = 30000
};

typedef struct
{
	Session *writers[WRITERS], *consumer;
	LikeTally tallies[WRITERS];
	int64_t longest_ns[WRITERS];
	uint64_t seed;
	atomic_llong requests;
	atomic_bool stop;
	atomic_bool failed; /* the consumer was refused, and has reported it */
} Storm;

static bool
write_likes(Storm *storm, int worker)
{
	Rng rng = rng_stream(storm->seed, (uint64_t) worker);

	while (!atomic_load(&storm->stop))
	{
		int64_t user = 1 + worker * USERS + (int64_t) rng_below(&rng, USERS), began = time_now_ns(), took;
		LikeResult result = {0};

		if (!steps()->set(storm->writers[worker], user, 1 + (int64_t) rng_below(&rng, ITEMS), rng_below(&rng, 2) == 1,
						  &result))
		{
			return false;
		}
		took = time_now_ns() - began;
		storm->longest_ns[worker] = took > storm->longest_ns[worker] ? took : storm->longest_ns[worker];
		tally_add(&storm->tallies[worker], &result);
		atomic_fetch_add(&storm->requests, 1);
	}
	return true;
}

static bool
consume(Storm *storm)
{
	while (!atomic_load(&storm->stop))
	{
		LikeTotals totals = {0};

		if (!like_drain(storm->consumer, BATCH, &totals))
		{
			atomic_store(&storm->failed, true);
			return true;
		}
		backoff_us(IDLE_US);
	}
	return true;
}

static bool
work(int worker, void *context)
{
	return worker < WRITERS ? write_likes(context, worker) : consume(context);
}

static ProbeAnswer
probe_requests(void *context, Text *seen)
{
	Storm *storm = context;
	long long requests = atomic_load(&storm->requests);

	text_append(seen, "%lld requests", requests);
	return requests >= WARM_REQUESTS ? PROBE_DONE : PROBE_AGAIN;
}

/* Events of item 1 that nobody has delivered. */
static void
leave_events(Scene *scene, Session *lab, int64_t first_user)
{
	for (int i = 0; i < PENDING; i++)
	{
		(void) set_like(scene, lab, first_user + i, 1, true);
	}
}

static void
pairings(Scene *scene, Session *lab)
{
	step(scene, "repaired as if its writers counted up themselves, with events to be delivered");
	leave_events(scene, lab, 1001);
	tool_does(scene, "repair", "like_same.yaml", WORDS("--mode", "lock"), EXIT_CODE_PASS, "it does what it was told");
	(void) drain(scene, lab);
	check_query(scene, lab,
				"SELECT format('%s/%s', n, (SELECT count(*) FROM like_fact WHERE item_id = 1 AND liked)) "
				"FROM like_count WHERE item_id = 1",
				NO_ARGS, "8/4", "required: the events are counted twice");
	tool_does(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds it");

	step(scene, "repaired as what it is, with events to be delivered");
	leave_events(scene, lab, 2001);
	tool_does(scene, "repair", "like.yaml", NO_WORDS, EXIT_CODE_PASS, "right pairing");
	check_audits_clean(scene, lab, "right pairing");
	(void) drain(scene, lab);
	check_drained(scene, lab, "right pairing");
}

static void
stop(Scene *scene, Storm *storm, ActorGroup *group, int64_t before)
{
	LikeTally sum = {0};
	int64_t longest = 0;

	check_at_least(scene, atomic_load(&storm->requests) - before, WRITERS, "requests beside the repair");
	atomic_store(&storm->stop, true);
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	for (int i = 0; i < WRITERS; i++)
	{
		tally_merge(&sum, &storm->tallies[i]);
		longest = storm->longest_ns[i] > longest ? storm->longest_ns[i] : longest;
	}
	note(scene, "%lld requests; longest wait of a writer %.1f ms", (long long) sum.requests, (double) longest / 1e6);
	check_tally(scene, &sum, sum.requests);
	CHECK(scene, !atomic_load(&storm->failed), "no batch was refused");
}

/* In the order of the items, in which the consumer locks them, too. */
static void
damage(Scene *scene, Session *lab)
{
	for (int item = 1; item <= ITEMS; item++)
	{
		require(scene,
				session_query(lab, NULL, "UPDATE like_count SET n = n + 7 WHERE item_id = $1", ARGS(arg_int(item))));
	}
}

static void
beside_writers(Scene *scene, Session *lab)
{
	Storm *storm = memory_get(sizeof(*storm)); /* outlives a case that ends early: its threads still use it */
	ActorGroup *group;
	int64_t before;
	Told told;

	step(scene, "check and repair beside writers and consumer");
	storm->seed = scene_seed(scene);
	storm->consumer = like_client(scene, "consumer");
	for (int i = 0; i < WRITERS; i++)
	{
		storm->writers[i] = like_client(scene, "writer");
	}
	group = actor_start("likes", WRITERS + 1, work, storm);
	require(scene, group != NULL);
	actor_open_gate(group);
	require(scene, wait_until("writers write", scene_deadline(scene, WAIT_MS), probe_requests, storm));
	before = atomic_load(&storm->requests);
	for (int i = 0; i < CHECKS; i++)
	{
		tool_does(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_PASS, "lag is not called drift");
	}
	damage(scene, lab);
	told = tool_end(scene, tool_start(scene, "repair", "like.yaml", NO_WORDS));
	stop(scene, storm, group, before);
	check_exit(scene, &told, EXIT_CODE_PASS, "the repair");
	CHECK_EQ(scene, told_number(&told, "Updated"), ITEMS, "Updated");
	told_free(&told);
	check_audits_clean(scene, lab, "when the writers have stopped");
	(void) drain(scene, lab);
	check_drained(scene, lab, "drained");
	free(storm);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_of(scene, like_design_find(NULL), ITEMS);

	pairings(scene, lab);
	beside_writers(scene, lab);
}

const Scenario scenario_repair_outbox = {
	.suite = "repair",
	.id = "repair/outbox",
	.title = "a repair under eight writers and a consumer of their events",
	.claim = "a repair by baseline and event number neither repeats nor misses an event beside writers and consumer",
	.kind = "real threads, negative control",
	.guarantee = "the read side's identity holds, drained counts equal facts",
	.observed = "both audits of the like system, waits of the writers",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 90000,
	.run = run,
};
