/*
 * scale/per-item  a number row and a watermark for each item: hot items still serialise, others do not
 *
 * Claim      Writers and consumers of one item wait for one another, those of different items never do; numbers, watermark,
 *            lag and baseline of an item say nothing of another's. What comes to an item that a pass has gone by is not lost.
 * Method     Fixed orders, waiting seen in pg_locks (manual 54.12). A like is open: one of its item, one of another. A batch
 *            is open: the same. Events of two items under the same number. A lag on one item, read on two. A rebuild over
 *            items that are not equally long. A like of the first item behind a pass. A read is kept from the watermarks by
 *            a table lock while a like is written and consumed. Two transactions of two likes each, in item order and in opposite order.
 * Expect     The one of the same item waits and has the next number, the other does not wait and has its item's first. Each
 *            event takes effect once, each baseline holds its own item's events. 17 of the item's events are stale with 16
 *            allowed, 16 are not, and none of it is told of the other item. In item order no deadlock, else 40P01 for one of the two.
 * Not shown  How fast it is (L1); a pass costs a look at the two rows of each item (L35). Items on several servers.
 */
#include <stdlib.h>
#include <string.h>

#include "32/recovery_lab.h"

enum
{
	HOT = 1,
	OTHER = 2,
	LATE = 3,
	ITEMS = 3,
	MOST = 1000,
	ALLOWED_LAG = 16,
	BEHIND = 17,
	WAIT_MS = 10000
};

#define DEADLOCK_SQLSTATE "40P01"

/* Of the items, in their order. */
static void
check_watermarks(Scene *scene, Session *lab, const char *expected, const char *when)
{
	check_query(scene, lab, "SELECT string_agg(applied_upto::text, ' ' ORDER BY item_id) FROM counter_watermark",
				NO_ARGS, expected, "%s: the watermarks", when);
}

static void
check_numbers(Scene *scene, Session *lab, const char *expected, const char *when)
{
	check_query(scene, lab,
				"SELECT string_agg(format('%s/%s', item_id, seq), ' ' ORDER BY item_id, seq) FROM like_outbox", NO_ARGS,
				expected, "%s: events by item and number", when);
}

/* false: they wait, and what follows would wait for ever. */
static bool
writers(Scene *scene, Session *lab)
{
	Session *first = like_client(scene, "first"), *same = like_client(scene, "same item"),
			*other = like_client(scene, "other item");
	LikeResult answer;
	bool goes_on;

	step(scene, "a like is open; another one of its item, and one of another item");
	require(scene, session_begin(first, READ_COMMITTED));
	answer = set_like_within(scene, first, 1, HOT, true);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "the first like is open, uncommitted");
	send_like(scene, other, 2, OTHER, true);
	goes_on = check_goes_on(scene, lab, other, "locks that the like of another item waits for");
	send_like(scene, same, 3, HOT, true);
	check_waits(scene, lab, same, "the like of the same item waits");
	CHECK_EQ(scene,
			 number_of(scene, lab, "SELECT count(*) FROM unnest(pg_blocking_pids($1)) AS b WHERE b = $2",
					   ARGS(arg_int(session_backend_pid(same)), arg_int(session_backend_pid(first)))),
			 1, "it waits for the first one's backend");
	commit(scene, first);
	answer = await_like(scene, same);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "the like of the same item, after the commit");
	answer = await_like(scene, other);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "the like of another item");
	check_numbers(scene, lab, "1/1 1/2 2/1", "after three likes");
	scene_close_session(scene, first);
	scene_close_session(scene, same);
	scene_close_session(scene, other);
	return goes_on;
}

/* Events 1/1, 1/2 and 2/1 are there, called so in SQL: the order in which their rows came is not told here. */
static void
consumers(Scene *scene, Session *lab)
{
	Session *first = scene_session(scene, "first"), *same = scene_session(scene, "same item"),
			*other = scene_session(scene, "other item");
	static const char consume[] = "SELECT applied FROM like_consume(ARRAY[like_event($1, $2)])";
	SqlResult *rows = NULL;

	step(scene, "a batch is open; another one of its item, and one of another item under the same number");
	require(scene, session_begin(first, READ_COMMITTED));
	CHECK_EQ(scene, number_of(scene, first, consume, ARGS(arg_int(HOT), arg_int(1))), 1, "applied by the first batch");
	require(scene, session_send(other, consume, ARGS(arg_int(OTHER), arg_int(1))));
	(void) check_goes_on(scene, lab, other, "locks that the batch of another item waits for");
	require(scene, session_send(same, consume, ARGS(arg_int(HOT), arg_int(2))));
	check_waits(scene, lab, same, "the batch of the same item waits");
	commit(scene, first);
	require(scene, session_await(same, &rows, scene_deadline(scene, WAIT_MS)) == SQL_OK);
	CHECK_EQ(scene, sql_int(rows, 0, 0), 1, "applied by the batch of the same item");
	sql_free(rows);
	require(scene, session_await(other, &rows, scene_deadline(scene, WAIT_MS)) == SQL_OK);
	CHECK_EQ(scene, sql_int(rows, 0, 0), 1, "applied by the batch of another item");
	sql_free(rows);
	check_watermarks(scene, lab, "2 1 0", "after three batches");
	like_in_order(scene, lab, LATE, 50, 50);
	CHECK_EQ(scene, number_of(scene, lab, consume, ARGS(arg_int(LATE), arg_int(1))), 1,
			 "applied under a number that is registered of other items");
	check_drained(scene, lab, "after four batches");
	scene_close_session(scene, first);
	scene_close_session(scene, same);
	scene_close_session(scene, other);
}

static void
lag_of_one(Scene *scene, Session *lab)
{
	step(scene, "%d events of one item are not consumed", BEHIND);
	like_in_order(scene, lab, HOT, 100, 100 + BEHIND - 1);
	check_count(scene, lab, HOT, ALLOWED_LAG, "n=2 lag=17 pending=17 stale=true", "17 behind with 16 allowed");
	check_count(scene, lab, OTHER, ALLOWED_LAG, "n=1 lag=0 pending=0 stale=false", "the other item meanwhile");
	require(scene, session_query(lab, NULL, "SELECT FROM like_consume(ARRAY[like_event($1, 3)])", ARGS(arg_int(HOT))));
	check_watermarks(scene, lab, "3 1 1", "after one event of the hot item");
	check_count(scene, lab, HOT, ALLOWED_LAG, "n=3 lag=16 pending=16 stale=false", "16 itself is not stale");
	(void) drain(scene, lab);
	check_drained(scene, lab, "after the lag");
}

static void
baselines(Scene *scene, Session *lab)
{
	LikeSnapshot snapshot;
	LikeTotals totals = {0};

	step(scene, "a rebuild over items of 19, 1 and 1 events, then one event more of each");
	snapshot = take_snapshot(scene, lab, OTHER);
	for (size_t i = 0; i < snapshot.count; i++)
	{
		(void) install_baseline(scene, lab, &snapshot, snapshot.items[i].item, READ_COMMITTED);
	}
	like_snapshot_free(&snapshot);
	check_query(scene, lab, "SELECT string_agg(base_seq::text, ' ' ORDER BY item_id) FROM like_count", NO_ARGS,
				"19 1 1", "the baselines");
	for (int64_t item = 1; item <= ITEMS; item++)
	{
		like_in_order(scene, lab, item, 200, 200);
	}
	totals = drain(scene, lab);
	check_totals(scene, &totals, "applied=3 covered=0 dup=0 watermark=24", "the event after each baseline");
	check_drained(scene, lab, "after the rebuild");
}

static void
behind_a_pass(Scene *scene, Session *lab)
{
	int64_t *events, after, watermark = -1;
	LikeTotals totals;
	size_t count;
	bool behind;

	step(scene, "a like of the first item comes when a pass has gone by");
	like_in_order(scene, lab, LATE, 300, 300);
	require(scene, like_pull(lab, 0, MOST, &events, &count));
	CHECK_EQ(scene, count, 1, "events pulled");
	after = count > 0 ? events[count - 1] : 0;
	free(events);
	like_in_order(scene, lab, HOT, 300, 300);
	require(scene, like_pull(lab, after, MOST, &events, &count));
	free(events);
	CHECK_EQ(scene, count, 0, "events above those, in order of items");
	require(scene, like_end_of_log(lab, after, &watermark, &behind));
	CHECK(scene, behind, "the end of the pass says that something is left behind it");
	CHECK_EQ(scene, watermark, 24, "the watermarks added up, at the end of the pass");
	totals = drain(scene, lab);
	check_totals(scene, &totals, "applied=2 covered=0 dup=0 watermark=26", "the pass after it");
	require(scene, like_end_of_log(lab, after, &watermark, &behind));
	CHECK(scene, !behind, "and then nothing is");
}

/* A last number read before the like and a watermark read after it would not belong together. */
static void
lag_in_one_snapshot(Scene *scene, Session *lab)
{
	Session *reader = scene_session(scene, "reader"), *holder = like_client(scene, "holder");
	SqlResult *seen = NULL;

	step(scene, "a read waits for the watermarks while a like of its item is written and consumed");
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, "LOCK TABLE counter_watermark"));
	require(scene, session_send(reader, "SELECT lag, pending FROM like_read_count($1, 0)", ARGS(arg_int(OTHER))));
	check_waits(scene, lab, reader, "the read waits");
	(void) set_like_within(scene, holder, 400, OTHER, true);
	require(scene,
			session_query(holder, NULL, "SELECT FROM like_consume(ARRAY[like_event($1, 3)])", ARGS(arg_int(OTHER))));
	commit(scene, holder);
	require(scene, session_await(reader, &seen, scene_deadline(scene, WAIT_MS)) == SQL_OK);
	check_at_least(scene, sql_int(seen, 0, 0), 0, "lag of the item, from number and watermark of one snapshot");
	CHECK(scene, sql_int(seen, 0, 1) <= sql_int(seen, 0, 0), "pending <= lag in it");
	sql_free(seen);
	scene_close_session(scene, reader);
	scene_close_session(scene, holder);
}

/*
 * Each session's transaction likes two items; the first is at its first when the second begins. Answers how many of the two a
 * deadlock has ended.
 */
static int64_t
two_of_two(Scene *scene, Session *lab, int64_t user, const int64_t second_items[2])
{
	Session *one = like_client(scene, "one"), *two = like_client(scene, "two");
	SqlStatus status;
	LikeResult last;

	require(scene, session_execute(one, "SET deadlock_timeout = '60s'"));
	require(scene, session_execute(two, "SET deadlock_timeout = '10ms'"));
	require(scene, session_begin(one, READ_COMMITTED));
	require(scene, session_begin(two, READ_COMMITTED));
	(void) set_like_within(scene, one, user, HOT, true);
	if (second_items[0] == OTHER)
	{
		(void) set_like_within(scene, two, user + 1, OTHER, true);
		require(scene,
				session_send(one, "SELECT changed FROM like_set($1, $2, true)", ARGS(arg_int(user), arg_int(OTHER))));
		check_waits(scene, lab, one, "in opposite order, the one waits for the other");
	}
	require(scene,
			session_send(two, "SELECT changed FROM like_set($1, $2, true)", ARGS(arg_int(user + 1), arg_int(HOT))));
	if (second_items[0] == HOT)
	{
		check_waits(scene, lab, two, "in item order, the other waits for the one");
		last = set_like_within(scene, one, user, OTHER, true);
		CHECK(scene, last.outcome == LIKE_CHANGED, "in item order, the one goes on");
		commit(scene, one);
	}
	status = session_await(two, NULL, scene_deadline(scene, WAIT_MS));
	if (status == SQL_OK)
	{
		(void) set_like_within(scene, two, user + 1, second_items[1], true);
		commit(scene, two);
	}
	else
	{
		check_text(scene, session_error(two)->sqlstate, DEADLOCK_SQLSTATE, "what ended the other");
		session_rollback(two);
		require(scene, session_await(one, NULL, scene_deadline(scene, WAIT_MS)) == SQL_OK);
		commit(scene, one);
	}
	scene_close_session(scene, one);
	scene_close_session(scene, two);
	return status != SQL_OK;
}

static void
several_likes(Scene *scene, Session *lab)
{
	step(scene, "two transactions like two items each: in item order, then in opposite order");
	CHECK_EQ(scene, two_of_two(scene, lab, 500, (const int64_t[]){HOT, OTHER}), 0,
			 "ended by a deadlock, in item order");
	CHECK_EQ(scene, two_of_two(scene, lab, 510, (const int64_t[]){OTHER, HOT}), 1,
			 "ended by a deadlock, in opposite order");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_of(scene, like_design_find("per-item"), ITEMS);

	if (!writers(scene, lab))
	{
		return;
	}
	consumers(scene, lab);
	lag_of_one(scene, lab);
	baselines(scene, lab);
	behind_a_pass(scene, lab);
	lag_in_one_snapshot(scene, lab);
	several_likes(scene, lab);
	check_write_side(scene, lab, "in the end");
	(void) drain(scene, lab);
	check_drained(scene, lab, "in the end");
}

const Scenario scenario_scale_per_item = {
	.suite = "scale",
	.id = "scale/per-item",
	.title = "a number row and a watermark for each item: hot items still serialise, others do not",
	.claim = "writers and consumers of different items never wait for one another; an item's invariants are its own",
	.kind = "real component, fixed interleaving, negative control",
	.guarantee = "one item one order; numbers, watermark, lag and baseline by item; no event behind a pass is lost",
	.observed = "pg_locks, like_outbox, counter_watermark, base_seq, 40P01",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 40000,
	.run = run,
};
