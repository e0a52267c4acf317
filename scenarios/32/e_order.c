/*
 * 32-E  deliveries repeated and out of order end in the same counts
 *
 * Claim      The deltas are written into the events and commute: in whatever order and however often events are
 *            delivered, each takes effect once and the final counts equal the facts; only repetition threatens, and
 *            the key of processed_event absorbs it in the transaction that adds to the count.
 * Method     Eight events on two items are delivered in one fixed order with repeats, within a batch and across
 *            batches, and inversions; once with one event slow, all others done, and a start from the watermark; then,
 *            the derived side cleared each time, in 20 seeded shuffles with repeats, cut into batches at random. A batch
 *            with an event that cannot be counted is tried, and a wrong watermark is planted for the audit.
 * Expect     Exact totals and counts after each batch, below zero on the way; dup = deliveries - events; the
 *            watermark contiguous and the identity exact after every batch. With seven of eight done and 4 missing, lag
 *            is 5. The batch is refused whole and names the event; the audit sees a watermark too low and one too high,
 *            where unprocessed <= lag sees nothing.
 * Not shown  Redelivery is the lab's, no transport's (L6); 20 orders are a sample of all (L8); dedup rows are never
 *            cleaned (L5).
 */
#include <stdlib.h>

#include "lab.h"

#define EVENTS 8
#define SHUFFLES 20
#define REPEATS_MAX 12
#define BATCH_MAX 8
#define FINAL_COUNTS "1 1"

/* One batch of the fixed order and what it must lead to. */
typedef struct
{
	int64_t seqs[EVENTS];
	size_t count;
	const char *totals, *counts;
} FixedBatch;

static const FixedBatch fixed_batches[] = {
	{{2}, 1, "applied=1 covered=0 dup=0 watermark=0", "-1 0"},
	{{5, 2}, 2, "applied=1 covered=0 dup=1 watermark=0", "-1 -1"},
	{{8}, 1, "applied=1 covered=0 dup=0 watermark=0", "-2 -1"},
	{{1, 1}, 2, "applied=1 covered=0 dup=1 watermark=2", "-1 -1"},
	{{7, 4, 2}, 3, "applied=2 covered=0 dup=1 watermark=2", "0 0"},
	{{3}, 1, "applied=1 covered=0 dup=0 watermark=5", "0 1"},
	{{8, 7, 6, 5}, 4, "applied=1 covered=0 dup=3 watermark=8", "1 1"},
	{{1, 2, 3, 4, 5, 6, 7, 8}, 8, "applied=0 covered=0 dup=8 watermark=8", FINAL_COUNTS},
};

static const char *const counts_sql = "SELECT string_agg(n::text, ' ' ORDER BY item_id) FROM like_count";

/* Leaves user 1 liking item-lab-01 and user 3 liking item-lab-02; user 2 and user 3's other like are taken back. */
static void
write_events(Scene *scene, Session *lab)
{
	static const struct
	{
		int64_t user, item;
		bool want;
	} requests[EVENTS] = {{1, 1, true},  {1, 1, false}, {2, 2, true}, {1, 1, true},
						  {2, 2, false}, {3, 1, true},  {3, 2, true}, {3, 1, false}};

	for (int i = 0; i < EVENTS; i++)
	{
		(void) set_like(scene, lab, requests[i].user, requests[i].item, requests[i].want);
	}
	CHECK_EQ(scene, last_number(scene, lab), EVENTS, "eight events");
	check_query(scene, lab, "SELECT string_agg(delta::text, ' ' ORDER BY number) FROM lab_event", NO_ARGS,
				"1 -1 1 1 -1 1 1 -1", "their deltas");
	CHECK_EQ(scene, facts_of(scene, lab, 1), 1, "facts of item-lab-01");
	CHECK_EQ(scene, facts_of(scene, lab, 2), 1, "facts of item-lab-02");
}

/* In a transaction that is taken back: `damage`, then a batch that must be refused whole, and name what it cannot count. */
static void
check_refused(Scene *scene, Session *lab, const char *damage, const char *batch, const char *expected)
{
	require(scene, session_begin(lab, READ_COMMITTED));
	require(scene, session_execute(lab, damage));
	(void) session_try(lab, NULL, "SELECT FROM like_consume(lab_events($1))", ARGS(arg_text(batch)));
	check_text(scene, session_error(lab)->message, expected, "the batch %s is refused", batch);
	session_rollback(lab);
}

static void
refused_batches(Scene *scene, Session *lab)
{
	step(scene, "a batch that holds an event which cannot be counted");
	check_refused(scene, lab, "SELECT", "{1,9}", "event 9 is not in the outbox");
	check_refused(scene, lab, "DELETE FROM like_count WHERE item_id = 2", "{1,3}", "event 3: item 2 has no count row");
	check_query(scene, lab, "SELECT count(*) FROM processed_event", NO_ARGS, "0", "nothing of them was registered");
	check_query(scene, lab, counts_sql, NO_ARGS, "0 0", "nor counted");
}

/* All eight are processed; in a transaction that is taken back, 4 and 7 are not, and what is delivered again is known. */
static void
wrong_watermarks(Scene *scene, Session *lab)
{
	static const struct
	{
		int64_t move;
		const char *expected, *what;
	} planted[] = {
		{0, "lag=5 unprocessed=2 watermark_violations=0", "the watermark where it belongs"},
		{-1, "lag=6 unprocessed=2 watermark_violations=1", "one too low: nothing is lost, lag says too much"},
		{2, "lag=4 unprocessed=2 watermark_violations=1", "too high, and unprocessed <= lag sees nothing"}};

	step(scene, "events 4 and 7 are not processed: a wrong watermark is seen");
	require(scene, session_begin(lab, READ_COMMITTED));
	require(scene, session_query(lab, NULL, "SELECT lab_forget('{4,7}')", NO_ARGS));
	require(scene, session_query(lab, NULL, "SELECT like_watermark_reset()", NO_ARGS));
	require(scene, session_query(lab, NULL, "SELECT FROM like_consume(lab_events('{1,2,3}'))", NO_ARGS));
	for (size_t i = 0; i < LENGTH_OF(planted); i++)
	{
		LikeReadAudit read_side;
		Text actual = {0};

		require(scene, session_query(lab, NULL, "UPDATE counter_watermark SET applied_upto = applied_upto + $1",
									 ARGS(arg_int(planted[i].move))));
		read_side = audit_read_side(scene, lab);
		text_append(&actual, "lag=%lld unprocessed=%lld watermark_violations=%lld", (long long) read_side.lag,
					(long long) read_side.unprocessed, (long long) read_side.watermark_violations);
		check_text(scene, text_get(&actual), planted[i].expected, "%s", planted[i].what);
		text_free(&actual);
	}
	session_rollback(lab);
}

static void
fixed_order(Scene *scene, Session *lab)
{
	LikeTotals sum = {0};
	size_t deliveries = 0;

	for (size_t i = 0; i < LENGTH_OF(fixed_batches); i++)
	{
		const FixedBatch *batch = &fixed_batches[i];
		LikeTotals totals;
		LikeReadAudit read_side;
		Text list = {0};

		text_append_int64_array(&list, batch->seqs, batch->count);
		step(scene, "deliver %s", text_get(&list));
		totals = deliver(scene, lab, batch->seqs, batch->count);
		check_totals(scene, &totals, batch->totals, "the batch's totals: %s", text_get(&list));
		text_free(&list);
		check_query(scene, lab, counts_sql, NO_ARGS, batch->counts, "the two counts");
		read_side = audit_read_side(scene, lab);
		CHECK(scene, like_read_side_holds(&read_side), "identity, bound and contiguous watermark");
		like_totals_add(&sum, &totals);
		deliveries += batch->count;
	}
	CHECK_EQ(scene, sum.applied, EVENTS, "each event was applied once");
	CHECK_EQ(scene, sum.dup, (int64_t) deliveries - EVENTS, "dup = deliveries - events");
	check_drained(scene, lab, "after the fixed order");
}

/* All but event 4 are done: lag counts from the hole, and whoever starts again at the watermark gets what it needs. */
static void
slow_event(Scene *scene, Session *lab)
{
	LikeTotals totals;
	LikeReadAudit read_side;
	int64_t watermark;
	int64_t *seqs;
	size_t count;

	step(scene, "event 4 is slow, the seven others are done; then a consumer starts again from the watermark");
	clear_derived(scene, lab);
	totals = deliver(scene, lab, SEQS(1, 2, 3, 5, 6, 7, 8));
	check_totals(scene, &totals, "applied=7 covered=0 dup=0 watermark=3", "all but event 4");
	read_side = audit_read_side(scene, lab);
	CHECK_EQ(scene, read_side.lag, EVENTS - 3, "lag counts from the hole, not from the highest event seen");
	CHECK_EQ(scene, read_side.unprocessed, 1, "one event is unprocessed");
	require(scene, like_watermark(lab, &watermark));
	require(scene, like_pull(lab, watermark, EVENTS, &seqs, &count));
	totals = deliver(scene, lab, seqs, count);
	free(seqs);
	check_totals(scene, &totals, "applied=1 covered=0 dup=4 watermark=8", "what is pulled above the watermark");
	check_query(scene, lab, counts_sql, NO_ARGS, FINAL_COUNTS, "the counts after the slow event");
	check_drained(scene, lab, "after the slow event");
}

/* What the shuffles found wrong, each counted over all of them. */
typedef struct
{
	int64_t deliveries, batches, below_zero;
	int64_t wrong_totals, wrong_counts, wrong_watermarks, broken_audits;
} Shuffles;

static void
deliver_shuffled(Scene *scene, Session *lab, Rng *rng, Shuffles *seen)
{
	int64_t order[EVENTS + REPEATS_MAX];
	size_t count = EVENTS + 1 + (size_t) rng_below(rng, REPEATS_MAX), size;
	LikeTotals sum = {0};

	for (size_t i = 0; i < count; i++)
	{
		order[i] = 1 + (int64_t) (i < EVENTS ? i : rng_below(rng, EVENTS));
	}
	rng_shuffle(rng, order, count);
	clear_derived(scene, lab);
	for (size_t done = 0; done < count; done += size)
	{
		LikeTotals totals;
		LikeReadAudit read_side;

		size = 1 + (size_t) rng_below(rng, BATCH_MAX);
		size = size < count - done ? size : count - done;
		totals = deliver(scene, lab, order + done, size);
		like_totals_add(&sum, &totals);
		require(scene, like_audit_read_side(lab, &read_side));
		seen->broken_audits += !like_read_side_holds(&read_side);
		seen->below_zero += number_of(scene, lab, "SELECT count(*) FROM like_count WHERE n < 0", NO_ARGS) > 0;
		seen->batches++;
	}
	seen->deliveries += (int64_t) count;
	seen->wrong_totals += sum.applied != EVENTS || sum.covered != 0 || sum.dup != (int64_t) count - EVENTS;
	seen->wrong_watermarks += sum.watermark != EVENTS;
	seen->wrong_counts += number_of(scene, lab, "SELECT count(*) FROM like_count WHERE n = 1", NO_ARGS) != 2;
}

static void
shuffled_orders(Scene *scene, Session *lab)
{
	Rng rng = rng_stream(scene_seed(scene), 0);
	Shuffles seen = {0};

	step(scene, "the same events in %d seeded shuffles with repeats", SHUFFLES);
	for (int i = 0; i < SHUFFLES; i++)
	{
		deliver_shuffled(scene, lab, &rng, &seen);
	}
	note(scene, "%d shuffles: deliveries=%lld batches=%lld, after %lld of them a count was below zero", SHUFFLES,
		 (long long) seen.deliveries, (long long) seen.batches, (long long) seen.below_zero);
	check_at_least(scene, seen.deliveries, SHUFFLES * (EVENTS + 1), "deliveries, at least one repeat in each shuffle");
	CHECK_EQ(scene, seen.wrong_totals, 0, "shuffles without applied = events and dup = deliveries - events");
	CHECK_EQ(scene, seen.wrong_counts, 0, "shuffles that ended with other counts");
	CHECK_EQ(scene, seen.wrong_watermarks, 0, "shuffles that ended with another watermark");
	CHECK_EQ(scene, seen.broken_audits, 0, "batches after which identity, bound or watermark did not hold");
	check_query(scene, lab, counts_sql, NO_ARGS, FINAL_COUNTS, "the counts after the last shuffle");
	check_audits_clean(scene, lab, "after the last shuffle");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, 2);

	write_events(scene, lab);
	refused_batches(scene, lab);
	fixed_order(scene, lab);
	wrong_watermarks(scene, lab);
	slow_event(scene, lab);
	shuffled_orders(scene, lab);
}

const Scenario scenario_32_e = {
	.suite = "32",
	.id = "32-E",
	.title = "deliveries repeated and out of order end in the same counts",
	.claim = "in any order and however often delivered, each event takes effect once and the counts equal the facts",
	.kind = "real component, fixed delivery order",
	.guarantee = "repeated and inverted deliveries are absorbed; the watermark stays contiguous",
	.observed = "applied, dup, like_count, read-side audit",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
