/*
 * 32-G  competing consumers pull the same events; without dedup the counts drift, and recovery mends them
 *
 * Claim      Events that three consumers pull from the same watermark, and old events sent again, take effect once each.
 *            Without the dedup key every delivery counts, and neither watermark nor lag shows it; the rebuild mends it.
 * Method     First the fixed order: one consumer holds a batch uncommitted, another is seen waiting for it, with other
 *            events and with the same. Then some 240 events on four items. Each of three consumers pulls the whole range
 *            before any of them locks, then all deliver at once; 29 old events drawn by the seed follow. The derived side
 *            is cleared and the same is delivered to a consumer without dedup. Three more kinds of damage are planted: a 5
 *            on an item never liked, a 5 on one liked and unliked, a count row deleted. Recovery, 50 more requests,
 *            drained. A fact is changed past the write path, which no rebuild can mend. Last, batches that name two items in
 *            opposite order meet: in a fixed order, 50 of each at once, and locked as the lists have them.
 * Expect     E events: applied=E dup=2E+29; without dedup 3E+29 applications, 4 items off, exact_violations=4 while
 *            watermark=last and lag=0; after recovery each of the seven counts equals its facts, and stays so. Over
 *            damaged facts recovery says so and stops. Opposite batches never deadlock; locked as listed, one of the
 *            two ends with 40P01, runs again whole, and the counts are right.
 * Not shown  A transport's acknowledgements: deliveries and redeliveries are played by the lab (L6). Dedup past a
 *            retention: dedup rows are kept for ever (L5). How many deliveries each consumer makes its own varies (L7).
 */
#include "recovery_lab.h"
#include "trace_lab.h"

#include <stdlib.h>

enum
{
	TRAFFIC_ITEMS = 4,
	NEVER_LIKED = 5,
	LIKED_AND_UNLIKED = 6,
	WITHOUT_COUNT_ROW = 7,
	ITEMS = 7,
	USERS = 60,
	REQUESTS = 500,
	MORE_REQUESTS = 50,
	CONSUMERS = 3,
	BATCH = 40,
	REDELIVERED = 29,
	CROSSED_PAIRS = 50, /* of batches */
	WAIT_MS = 10000,
	PLANTED = 5,
	PULL_MAX = 100000
};

typedef struct
{
	Session *session;
	int64_t *seqs; /* what it pulled; freed by compete() */
	size_t count;
	LikeTotals totals;
	int64_t refused; /* batches */
} Consumer;

typedef struct
{
	bool found;
	int64_t n;
} ItemCount;

/* The first consumer holds its batch uncommitted, the second waits and must then see what it left. Item 2 is its alone. */
static void
second_consumer_waits(Scene *scene, Session *lab, Session *first, const char *first_list, Session *second,
					  const char *second_list, const char *expected)
{
	LikeTotals totals;
	char *what;

	step(scene, "one consumer has delivered %s, uncommitted; another delivers %s", first_list, second_list);
	clear_derived(scene, lab);
	require(scene, session_begin(first, READ_COMMITTED));
	totals = deliver_within(scene, first, first_list);
	check_totals(scene, &totals, "applied=3 covered=0 dup=0 watermark=3", "the first consumer");
	send_batch(scene, second, second_list);
	check_waits(scene, lab, second, "the second consumer waits, with %s", second_list);
	what = string_format("for the watermark row, with %s: it has no count row yet", second_list);
	check_count_row_free(scene, lab, 2, what);
	free(what);
	commit(scene, first);
	totals = await_batch(scene, second);
	check_totals(scene, &totals, expected, "the second consumer, after the commit");
	check_drained(scene, lab, "both have ended");
}

static void
fixed_orders(Scene *scene, Session *lab, Consumer consumers[CONSUMERS])
{
	like_in_order(scene, lab, 1, 1, 3);
	like_in_order(scene, lab, 2, 4, 6);
	second_consumer_waits(scene, lab, consumers[0].session, "{1,2,3}", consumers[1].session, "{4,5,6}",
						  "applied=3 covered=0 dup=0 watermark=6");
	second_consumer_waits(scene, lab, consumers[0].session, "{1,2,3}", consumers[1].session, "{1,2,3,4,5,6}",
						  "applied=3 covered=0 dup=3 watermark=6");
	clear_all(scene, lab);
}

/*
 * The two events of the liked and unliked item come first, so that old events of the others can be drawn above them. One
 * client and nobody beside it: a single transaction is the same requests with one commit. 0: too few to go on with.
 */
static int64_t
write_events(Scene *scene, Session *lab)
{
	Rng rng = rng_stream(scene_seed(scene), 1);
	int64_t events;

	require(scene, session_begin(lab, READ_COMMITTED));
	set_like_within(scene, lab, 1, LIKED_AND_UNLIKED, true);
	set_like_within(scene, lab, 1, LIKED_AND_UNLIKED, false);
	for (int i = 0; i < REQUESTS; i++)
	{
		int64_t user = 1 + (int64_t) rng_below(&rng, USERS);
		int64_t item = 1 + (int64_t) rng_below(&rng, TRAFFIC_ITEMS);

		set_like_within(scene, lab, user, item, rng_below(&rng, 2) == 1);
	}
	commit(scene, lab);
	events = last_number(scene, lab);
	return check_at_least(scene, events, REDELIVERED + 2, "events written") ? events : 0;
}

static void
draw_old_events(Scene *scene, int64_t events, int64_t old[REDELIVERED])
{
	Rng rng = rng_stream(scene_seed(scene), 2);
	size_t count = (size_t) (events - 2);
	int64_t *candidates = memory_get(count * sizeof(*candidates));

	for (size_t i = 0; i < count; i++)
	{
		candidates[i] = (int64_t) i + 3;
	}
	rng_shuffle(&rng, candidates, count);
	for (size_t i = 0; i < REDELIVERED; i++)
	{
		old[i] = candidates[i];
	}
	free(candidates);
}

static bool
deliver_pulled(int worker, void *context)
{
	Consumer *consumer = (Consumer *) context + worker;

	return deliver_in_batches(consumer->session, consumer->seqs, consumer->count, BATCH, &consumer->totals,
							  &consumer->refused);
}

/* All pull before the gate opens, so that none of them has locked anything when the last one reads the watermark. */
static LikeTotals
compete(Scene *scene, Consumer consumers[CONSUMERS], int64_t events)
{
	LikeTotals sum = {0};
	size_t pulled = 0;
	int64_t refused = 0;

	for (int i = 0; i < CONSUMERS; i++)
	{
		int64_t watermark;

		consumers[i].totals = (LikeTotals){0};
		consumers[i].refused = 0;
		require(scene, like_watermark(consumers[i].session, &watermark));
		require(scene, like_pull(consumers[i].session, watermark, PULL_MAX, &consumers[i].seqs, &consumers[i].count));
		pulled += consumers[i].count;
	}
	CHECK_EQ(scene, pulled, CONSUMERS * events, "each of %d consumers pulled the whole range from the same watermark",
			 CONSUMERS);
	run_workers(scene, "consumer", CONSUMERS, deliver_pulled, consumers);
	for (int i = 0; i < CONSUMERS; i++)
	{
		like_totals_add(&sum, &consumers[i].totals);
		refused += consumers[i].refused;
		free(consumers[i].seqs);
	}
	CHECK_EQ(scene, refused, 0, "batches that the server refused");
	return sum;
}

static LikeTotals
compete_and_redeliver(Scene *scene, Session *lab, Consumer consumers[CONSUMERS], int64_t events)
{
	int64_t old[REDELIVERED];
	LikeTotals sum = compete(scene, consumers, events);
	LikeTotals again;

	draw_old_events(scene, events, old);
	again = deliver(scene, lab, old, REDELIVERED);
	like_totals_add(&sum, &again);
	return sum;
}

static void
with_dedup(Scene *scene, Session *lab, Consumer consumers[CONSUMERS], int64_t events)
{
	LikeTotals sum;
	Text line = {0};

	step(scene, "%d consumers compete, then %d old events again: dedup on", CONSUMERS, REDELIVERED);
	sum = compete_and_redeliver(scene, lab, consumers, events);
	like_totals_describe(&sum, &line);
	note(scene, "dedup consumers: %s", text_get(&line));
	text_free(&line);
	CHECK_EQ(scene, sum.applied, events, "every event applied once");
	CHECK_EQ(scene, sum.covered, 0, "no rebuild, nothing covered");
	CHECK_EQ(scene, sum.dup, (CONSUMERS - 1) * events + REDELIVERED, "every other delivery is a dup");
	check_write_side(scene, lab, "after the competing consumers");
	check_drained(scene, lab, "after the competing consumers");
}

static void
without_dedup(Scene *scene, Session *lab, Consumer consumers[CONSUMERS], int64_t events)
{
	LikeTotals sum;
	LikeReadAudit counts;
	int64_t expected = CONSUMERS * events + REDELIVERED;
	int64_t inflated = 0;

	step(scene, "derived side cleared, the same deliveries without dedup");
	clear_derived(scene, lab);
	load_variant(scene, lab, "like/mutants/M07/consume.sql");
	sum = compete_and_redeliver(scene, lab, consumers, events);
	load_variant(scene, lab, "like/consume.sql");
	note(scene,
		 "no-dedup consumers: applied=%lld covered=%lld dup=%lld watermark=%lld (applications=%lld for %lld events)",
		 (long long) sum.applied, (long long) sum.covered, (long long) sum.dup, (long long) sum.watermark,
		 (long long) sum.applied, (long long) events);
	for (int64_t item = 1; item <= TRAFFIC_ITEMS; item++)
	{
		char label[LABEL_SIZE];
		int64_t n = count_of(scene, lab, item);
		int64_t facts = facts_of(scene, lab, item);

		item_label(item, label);
		note(scene, "  %s count=%lld facts=%lld", label, (long long) n, (long long) facts);
		inflated += n != facts;
	}
	CHECK_EQ(scene, sum.applied, expected, "every delivery was applied: 3E + %d", REDELIVERED);
	CHECK_EQ(scene, inflated, TRAFFIC_ITEMS, "all items with traffic are off");
	counts = audit_read_side(scene, lab);
	CHECK_EQ(scene, counts.exact_violations, TRAFFIC_ITEMS, "the identity is violated for each of them");
	CHECK_EQ(scene, counts.count_mismatch_items, TRAFFIC_ITEMS, "items whose count is not their facts");
	CHECK_EQ(scene, counts.watermark, events, "and yet the watermark stands at the last event");
	CHECK_EQ(scene, counts.lag, 0, "and lag is 0: an alarm on lag alone would see nothing");
}

static void
plant_damage(Scene *scene, Session *lab)
{
	LikeReadAudit counts;

	step(scene, "more damage: a planted %d where no fact is true, and a count row deleted", PLANTED);
	require(scene, session_query(lab, NULL, "UPDATE like_count SET n = $1 WHERE item_id IN ($2, $3)",
								 ARGS(arg_int(PLANTED), arg_int(NEVER_LIKED), arg_int(LIKED_AND_UNLIKED))));
	require(scene,
			session_query(lab, NULL, "DELETE FROM like_count WHERE item_id = $1", ARGS(arg_int(WITHOUT_COUNT_ROW))));
	CHECK_EQ(scene,
			 number_of(scene, lab, "SELECT count(*) FROM like_fact WHERE item_id = $1", ARGS(arg_int(NEVER_LIKED))), 0,
			 "an item without any fact row");
	CHECK_EQ(scene, facts_of(scene, lab, LIKED_AND_UNLIKED), 0, "an item with a fact row, not liked");
	counts = audit_read_side(scene, lab);
	CHECK_EQ(scene, counts.exact_violations, ITEMS, "the identity is violated for all of them now");
}

static void
read_counts(Scene *scene, Session *lab, ItemCount counts[ITEMS])
{
	for (int64_t item = 1; item <= ITEMS; item++)
	{
		LikeCount count = {0};

		require(scene, like_read_count(lab, item, 0, &counts[item - 1].found, &count));
		counts[item - 1].n = count.n;
	}
}

static void
recover_and_compare(Scene *scene, Session *lab)
{
	ItemCount old[ITEMS], new[ITEMS];
	int64_t wrong = 0, right = 0;

	step(scene, "recovery rebuilds every item, those without facts included");
	read_counts(scene, lab, old);
	recover(scene, lab, true);
	read_counts(scene, lab, new);
	for (int i = 0; i < ITEMS; i++)
	{
		wrong += !old[i].found || old[i].n != facts_of(scene, lab, i + 1);
		right += new[i].found &&new[i].n == facts_of(scene, lab, i + 1);
	}
	CHECK_EQ(scene, wrong, ITEMS, "items that were wrong or had no count row");
	CHECK_EQ(scene, old[WITHOUT_COUNT_ROW - 1].found, false, "the deleted count row was missing before");
	CHECK_EQ(scene, new[WITHOUT_COUNT_ROW - 1].found, true, "the missing count row was inserted");
	CHECK_EQ(scene, new[NEVER_LIKED - 1].n, 0, "the planted count of the item never liked");
	CHECK_EQ(scene, new[LIKED_AND_UNLIKED - 1].n, 0, "the planted count of the item liked and unliked");
	CHECK_EQ(scene, right, ITEMS, "items whose count equals their facts");
}

static void
go_on(Scene *scene, Session *lab, int64_t events)
{
	Rng rng = rng_stream(scene_seed(scene), 3);
	LikeTally tally = {0};
	LikeTotals totals;

	step(scene, "%d more requests on all items, delivered by the right consumer", MORE_REQUESTS);
	for (int i = 0; i < MORE_REQUESTS; i++)
	{
		int64_t user = 1 + (int64_t) rng_below(&rng, USERS);
		LikeResult result = set_like(scene, lab, user, 1 + i % ITEMS, rng_below(&rng, 2) == 1);

		tally_add(&tally, &result);
	}
	check_tally(scene, &tally, MORE_REQUESTS);
	totals = drain(scene, lab);
	CHECK_EQ(scene, totals.applied, tally.changed, "the new events are applied on top of the new baselines");
	CHECK_EQ(scene, totals.watermark, events + tally.changed, "watermark at the last event");
	check_write_side(scene, lab, "after recovery and more requests");
	check_drained(scene, lab, "after recovery and more requests");
}

static void
damage_facts(Scene *scene, Session *lab)
{
	step(scene, "a fact and a count changed past everything: recovery stops before it rebuilds");
	require(scene, session_execute(lab, "UPDATE like_fact SET liked = NOT liked WHERE user_id = 1 AND item_id = 6; "
										"UPDATE like_count SET n = n + 5 WHERE item_id = 6"));
	check_recovery_stops(scene, lab);
	CHECK_EQ(scene, audit_write_side(scene, lab).delta_sum_mismatch_items, 1, "the damage is as it was");
	require(scene, like_rebuild_all(lab, trace_installed, lab));
	CHECK_EQ(scene, audit_read_side(scene, lab).exact_violations, 0, "rebuilt all the same, the read side is clean");
	CHECK_EQ(scene, audit_write_side(scene, lab).delta_sum_mismatch_items, 1,
			 "and the damage is as it was all the same");
}

/* Events 4k+1 to 4k+4 are on items 1, 2, 1, 2: a batch of two for each of two consumers, in opposite order. */
static void
write_crossed_events(Scene *scene, Session *lab)
{
	clear_all(scene, lab);
	require(scene, session_begin(lab, READ_COMMITTED));
	for (int user = 1; user <= 2 * CROSSED_PAIRS; user++)
	{
		set_like_within(scene, lab, user, 1, true);
		set_like_within(scene, lab, user, 2, true);
	}
	commit(scene, lab);
	number_events(scene, lab);
}

/* The batch that was sent is over: committed, or ended by a deadlock and rolled back. */
static bool
commit_unless_deadlock(Scene *scene, Session *session)
{
	SqlStatus status = session_await(session, NULL, scene_deadline(scene, WAIT_MS));

	if (status == SQL_OK)
	{
		commit(scene, session);
		return true;
	}
	if (status != SQL_ERROR)
	{
		scene_broken(scene, "a batch ended as %s", sql_status_name(status));
	}
	check_text(scene, session_error(session)->sqlstate, "40P01", "what ended the batch");
	session_rollback(session);
	return false;
}

/*
 * One batch of each. The first waits for the row that its list names first; the second has the other row and queues up
 * behind the first. When the holder lets go, the first wants what the second has: a deadlock, in the order of the lists.
 * Answers how many of the two it ended; these run again when the other is committed.
 */
static int
cross_once(Scene *scene, Session *lab, Session *holder, Consumer consumers[2])
{
	static const char *const lists[2] = {"{4,3}", "{1,2}"};
	bool again[2];

	clear_derived(scene, lab);
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_query(holder, NULL, "SELECT FROM like_count WHERE item_id = 2 FOR UPDATE", NO_ARGS));
	for (int i = 0; i < 2; i++)
	{
		send_batch(scene, consumers[i].session, lists[i]);
		scene_await_blocked(scene, lab, session_backend_pid(consumers[i].session));
	}
	commit(scene, holder);
	for (int i = 0; i < 2; i++)
	{
		again[i] = !commit_unless_deadlock(scene, consumers[i].session);
	}
	for (int i = 0; i < 2; i++)
	{
		if (again[i])
		{
			send_batch(scene, consumers[i].session, lists[i]);
			(void) await_batch(scene, consumers[i].session);
		}
	}
	check_query(scene, lab, "SELECT string_agg(n::text, '/' ORDER BY item_id) FROM like_count WHERE item_id <= 2",
				NO_ARGS, "2/2", "the two counts after both batches");
	return again[0] + again[1];
}

static bool
deliver_crossed(int worker, void *context)
{
	Consumer *consumer = (Consumer *) context + worker;

	return deliver_in_batches(consumer->session, consumer->seqs, consumer->count, 2, &consumer->totals,
							  &consumer->refused);
}

static void
cross_many_times(Scene *scene, Session *lab, Consumer consumers[2])
{
	static int64_t seqs[2][2 * CROSSED_PAIRS];
	int64_t before = session_retries_40p01();

	step(scene, "%d such batches of each consumer at once", CROSSED_PAIRS);
	clear_derived(scene, lab);
	for (int64_t k = 0; k < CROSSED_PAIRS; k++)
	{
		seqs[0][2 * k] = 4 * k + 1;
		seqs[0][2 * k + 1] = 4 * k + 2;
		seqs[1][2 * k] = 4 * k + 4;
		seqs[1][2 * k + 1] = 4 * k + 3;
	}
	for (int i = 0; i < 2; i++)
	{
		consumers[i] =
			(Consumer){.session = consumers[i].session, .seqs = seqs[i], .count = (size_t) 2 * CROSSED_PAIRS};
		require(scene, to_events(lab, seqs[i], consumers[i].count));
	}
	run_workers(scene, "consumer", 2, deliver_crossed, consumers);
	CHECK_EQ(scene, session_retries_40p01() - before, 0, "deadlocks among them");
	check_drained(scene, lab, "after the crossed batches");
}

/* A batch names its items in any order; locked in that order, two of them are a deadlock. */
static void
crossed_batches(Scene *scene, Session *lab, Consumer consumers[CONSUMERS])
{
	Session *holder = consumers[2].session;

	write_crossed_events(scene, lab);
	for (int i = 0; i < 2; i++)
	{
		/* A role that may not set it waits a second for the server to notice. */
		(void) session_try(consumers[i].session, NULL, "SET deadlock_timeout = '10ms'", NO_ARGS);
	}
	step(scene, "a batch on items 2 and 1 meets one on items 1 and 2");
	CHECK_EQ(scene, cross_once(scene, lab, holder, consumers), 0, "deadlocks (40P01) of two batches in opposite order");
	cross_many_times(scene, lab, consumers);

	step(scene, "the same by a consumer that locks items as the list has them");
	load_variant(scene, lab, "like/mutants/M38/consume.sql");
	CHECK_EQ(scene, cross_once(scene, lab, holder, consumers), 1, "without an order one of the two ends with 40P01");
	load_variant(scene, lab, "like/consume.sql");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, ITEMS);
	static Consumer consumers[CONSUMERS]; /* outlives a case that ends early while they run */
	int64_t events;

	for (int i = 0; i < CONSUMERS; i++)
	{
		consumers[i].session = like_client(scene, "consumer");
	}
	fixed_orders(scene, lab, consumers);
	events = write_events(scene, lab);
	if (events == 0)
	{
		return;
	}
	with_dedup(scene, lab, consumers, events);
	without_dedup(scene, lab, consumers, events);
	plant_damage(scene, lab);
	recover_and_compare(scene, lab);
	go_on(scene, lab, events);
	damage_facts(scene, lab);
	crossed_batches(scene, lab, consumers);
}

const Scenario scenario_32_g = {
	.suite = "32",
	.id = "32-G",
	.title = "competing consumers and redelivery, with dedup and without",
	.claim =
		"an event delivered again takes effect once; without dedup counts drift unseen by lag, and recovery mends them",
	.kind = "real component, real threads, fixed interleaving, negative control",
	.guarantee = "dedup absorbs competing and repeated deliveries; a rebuild mends what their absence damaged",
	.observed = "pg_locks, applied, dup, exact_violations beside lag, item old -> new",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
