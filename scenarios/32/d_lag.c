/*
 * 32-D  what lag means, and how wrong a count can be meanwhile
 *
 * Claim      lag is the number of events between the watermark and the last number; the count of an item differs from
 *            its facts by at most the item's own pending events, and count plus pending deltas equals the facts at
 *            every step. Reading a count never looks at the facts.
 * Method     30 likes, nothing consumed; then parts of them, so that lag passes the allowed 16 exactly; then all. An
 *            unlike is delivered before its like. An audit is held up by a table lock while a like is written and
 *            consumed. The plan of the read function is looked at.
 * Expect     0/30/20, then 14/10/6, then 20/0/0 for n/lag/pending; 17 is stale, 16 is not; n = -1 is shown as it is. The
 *            audit's number and watermark are of one snapshot: lag is not below zero.
 * Not shown  How long the lag lasts: it is a number of events, not a time (L9). What counting pending events costs.
 */
#include <stdlib.h>
#include <string.h>

#include "lab.h"

#define LIKES 30
#define ALLOWED_LAG 16
/* Enough for an audit that waits for a lock which the case is about to release. */
#define AUDIT_MS 10000

/* Both statements about error hold now: the identity exactly, and each item's own bound. */
static void
check_error(Scene *scene, Session *lab, const char *when)
{
	LikeReadAudit read_side = audit_read_side(scene, lab);
	int64_t beyond = 0, largest = 0;

	for (int64_t item = 1; item <= 3; item++)
	{
		LikeCount count = read_count(scene, lab, item, ALLOWED_LAG);
		int64_t error = llabs((long long) (count.n - facts_of(scene, lab, item)));

		beyond += error > count.pending;
		largest = error > largest ? error : largest;
	}
	CHECK_EQ(scene, beyond, 0, "%s: items whose error exceeds their pending events", when);
	CHECK_EQ(scene, read_side.max_abs_err, largest, "%s: the largest error, as the audit says", when);
	CHECK_EQ(scene, read_side.exact_violations, 0, "%s: items whose count and pending deltas miss the facts", when);
	CHECK(scene, like_read_side_holds(&read_side), "%s: watermark contiguous, unprocessed <= lag", when);
}

/* Likes 0..29 by 30 users; every third goes to item-lab-02, the other 20 to item-lab-01. */
static void
write_likes(Scene *scene, Session *lab)
{
	int64_t changed = 0;

	for (int64_t i = 0; i < LIKES; i++)
	{
		changed += set_like(scene, lab, i + 1, i % 3 == 2 ? 2 : 1, true).outcome == LIKE_CHANGED;
	}
	CHECK_EQ(scene, changed, LIKES, "likes that changed something");
}

/* Delivers first..last in one batch. */
static LikeTotals
deliver_range(Scene *scene, Session *lab, int64_t first, int64_t last)
{
	int64_t seqs[LIKES];
	size_t count = 0;

	for (int64_t seq = first; seq <= last; seq++)
	{
		seqs[count++] = seq;
	}
	return deliver(scene, lab, seqs, count);
}

static void
fall_behind_and_catch_up(Scene *scene, Session *lab)
{
	LikeTotals sum, part;

	step(scene, "no consumer yet");
	write_likes(scene, lab);
	check_count(scene, lab, 1, ALLOWED_LAG, "n=0 lag=30 pending=20 stale=true", "item-lab-01, nothing consumed");
	CHECK_EQ(scene, facts_of(scene, lab, 1), 20, "facts of item-lab-01");
	check_error(scene, lab, "nothing consumed");

	step(scene, "20 events consumed, with a look at the edge of what is allowed");
	sum = deliver_range(scene, lab, 1, 13);
	check_count(scene, lab, 1, ALLOWED_LAG, "n=9 lag=17 pending=11 stale=true", "17 events behind with 16 allowed");
	check_error(scene, lab, "17 behind");
	part = deliver_range(scene, lab, 14, 14);
	like_totals_add(&sum, &part);
	check_count(scene, lab, 1, ALLOWED_LAG, "n=10 lag=16 pending=10 stale=false", "16 itself is not stale");
	check_error(scene, lab, "16 behind");
	part = deliver_range(scene, lab, 15, 20);
	like_totals_add(&sum, &part);
	check_totals(scene, &sum, "applied=20 covered=0 dup=0 watermark=20", "20 events");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=14 lag=10 pending=6 stale=false", "item-lab-01 after 20 events");
	check_count(scene, lab, 2, ALLOWED_LAG, "n=6 lag=10 pending=4 stale=false",
				"item-lab-02: lag is global, pending is not");
	check_error(scene, lab, "10 behind");

	step(scene, "drained");
	part = drain(scene, lab);
	check_totals(scene, &part, "applied=10 covered=0 dup=0 watermark=30", "the other 10 events");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=20 lag=0 pending=0 stale=false", "item-lab-01 drained");
	check_error(scene, lab, "drained");
}

static void
below_zero(Scene *scene, Session *lab)
{
	LikeTotals totals;

	step(scene, "an unlike delivered before its like: the count is told as it is");
	(void) set_like(scene, lab, 1, 3, true);
	(void) set_like(scene, lab, 1, 3, false);
	totals = deliver(scene, lab, SEQS(32));
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=30", "event 32 before 31");
	check_count(scene, lab, 3, ALLOWED_LAG, "n=-1 lag=2 pending=1 stale=false", "below zero, and not clamped");
	check_error(scene, lab, "below zero");
	(void) deliver(scene, lab, SEQS(31));
	check_count(scene, lab, 3, ALLOWED_LAG, "n=0 lag=0 pending=0 stale=false", "event 31 has followed");
	check_drained(scene, lab, "all consumed");
}

/*
 * The audit is kept from the watermark by a table lock, and the holder writes a like and consumes it: a last number read
 * before it and a watermark read after it would not belong together.
 */
static void
audit_beside_consumer(Scene *scene, Session *lab)
{
	Session *auditor = scene_session(scene, "auditor"), *holder = like_client(scene, "holder");
	SqlResult *seen = NULL;

	step(scene, "an audit waits while a like is written and consumed");
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, "LOCK TABLE counter_watermark"));
	require(scene, session_send(auditor, "SELECT lag, unprocessed FROM like_audit_read_side()", NO_ARGS));
	scene_await_blocked(scene, lab, session_backend_pid(auditor));
	CHECK(scene, set_like_within(scene, holder, 2, 3, true).outcome == LIKE_CHANGED, "a like while the audit waits");
	number_events(scene, holder);
	require(scene, session_query(holder, NULL, "SELECT FROM like_consume(lab_events('{33}'))", NO_ARGS));
	check_query(scene, holder, "SELECT like_watermark()", NO_ARGS, "33", "and it is consumed");
	require(scene, session_commit(holder) == SQL_OK);
	require(scene, session_await(auditor, &seen, scene_deadline(scene, AUDIT_MS)) == SQL_OK);
	check_at_least(scene, sql_int(seen, 0, 0), 0, "lag, from number and watermark of one snapshot");
	CHECK(scene, sql_int(seen, 0, 1) <= sql_int(seen, 0, 0), "unprocessed <= lag in it");
	sql_free(seen);
	scene_close_session(scene, auditor);
	scene_close_session(scene, holder);
}

/* The function is a single SQL statement, which the planner takes into the query; so its plan shows all it reads. */
static void
look_at_plan(Scene *scene, Session *lab)
{
	SqlResult *result = NULL;
	Text plan = {0};

	step(scene, "the plan of a read, with sequential scans avoided where an index serves");
	require(scene, session_begin(lab, READ_COMMITTED));
	require(scene, session_execute(lab, "SET LOCAL enable_seqscan = off"));
	require(scene, session_query(lab, &result, "EXPLAIN SELECT * FROM like_read_count(1, 16)", NO_ARGS));
	for (int row = 0; row < sql_rows(result); row++)
	{
		text_append(&plan, "%s\n", sql_text(result, row, 0));
	}
	sql_free(result);
	session_rollback(lab);
	CHECK(scene, strstr(text_get(&plan), "like_count_pkey") != NULL, "like_count is read by its primary key");
	CHECK(scene, strstr(text_get(&plan), "like_outbox_item") != NULL, "pending events are found by item and number");
	CHECK(scene, strstr(text_get(&plan), "like_fact") == NULL, "like_fact does not occur");
	CHECK(scene, strstr(text_get(&plan), "Seq Scan on like_outbox") == NULL, "like_outbox is not scanned");
	text_free(&plan);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, 3);

	fall_behind_and_catch_up(scene, lab);
	below_zero(scene, lab);
	audit_beside_consumer(scene, lab);
	look_at_plan(scene, lab);
}

const Scenario scenario_32_d = {
	.suite = "32",
	.id = "32-D",
	.title = "what lag means, and how wrong a count can be meanwhile",
	.claim =
		"a count lags by a known number of events and errs by at most the item's pending ones, exactly accounted for",
	.kind = "real component",
	.guarantee = "definition of lag, stale mark, error bound, identity; reads never count facts",
	.observed = "readCount, read-side audit, EXPLAIN",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 20000,
	.run = run,
};
