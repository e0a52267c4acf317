/*
 * scale/sharded  counts in shards: consumers of one item side by side, one baseline over all its shards
 *
 * Claim      Batches with the same item do not wait for each other where it has a shard for each; an event that two of them
 *            deliver at once counts once. A baseline is installed over all shards or none, with one base_seq. The number of
 *            shards changes beside consumers and readers, and no read in between is wrong. The watermark, which no batch
 *            holds, is never too high, and comes to the end.
 * Method     Fixed orders on one item. Two batches open at once, the second with the event after the first one's, then both
 *            with the same event. An install that waits behind a batch on the second shard, looked at from outside, then
 *            a batch that waits behind an install. Shards added under a baseline and an event below it delivered on a new
 *            one; shards taken away behind an open batch, and while a batch waits for one that goes. A base_seq made wrong on
 *            one shard by hand. Then 32-J's storm, with the hot item's shards changed every 60 requests.
 * Expect     No wait, n by shard as the lanes say, one dup; 6 installed with base_seq=5 on all shards, never seen in parts; the
 *            sum the same before, during and after each change. In the storm what 32-J expects.
 * Not shown  How much faster it is, and that it cannot be with fewer shards than consumers (L37). Shards of the design sequencer:
 *            its audit and its read path are its own, so this part is for the default design.
 */
#include "32/recovery_lab.h"
#include "32/storm.h"

#include <stdlib.h>

enum
{
	ITEMS = STORM_ITEMS,
	ITEM = 1,
	OTHER_ITEM = 2,
	SHARDS_MOST = 5,
	WAIT_MS = 10000
};

#define CLEAN "exact_violations=0 bound_violations=0 watermark_violations=0"

static void
reshard(Scene *scene, Session *session, int64_t item, int shards)
{
	require(scene, session_query(session, NULL, "SELECT like_reshard($1, $2)", ARGS(arg_int(item), arg_int(shards))));
}

/* n and base_seq of each shard, "1/0 0/0". */
static void
check_shards(Scene *scene, Session *lab, const char *expected, const char *what)
{
	check_query(scene, lab,
				"SELECT string_agg(n || '/' || base_seq, ' ' ORDER BY shard) FROM like_count WHERE item_id = $1",
				ARGS(arg_int(ITEM)), expected, "%s: n/base_seq by shard", what);
}

/* An open transaction that has the first lane: who comes next has the second. */
static Session *
take_first_lane(Scene *scene)
{
	Session *session = scene_session(scene, "first lane");

	require(scene, session_begin(session, READ_COMMITTED));
	CHECK_EQ(scene, number_of(scene, session, "SELECT like_lane()", NO_ARGS), 0, "the lane that is taken");
	return session;
}

static void
check_watermark(Scene *scene, Session *lab, int64_t expected, const char *when)
{
	int64_t watermark;

	require(scene, like_watermark(lab, &watermark));
	CHECK_EQ(scene, watermark, expected, "%s: the watermark, carried on", when);
}

static void
start_over(Scene *scene, Session *lab, int shards)
{
	clear_all(scene, lab);
	reshard(scene, lab, ITEM, shards);
}

static void
two_batches_of_one_item(Scene *scene, Session *lab)
{
	Session *first = like_client(scene, "first"), *second = like_client(scene, "second");
	LikeTotals totals;

	step(scene, "two batches of one item are open at once");
	start_over(scene, lab, 2);
	like_in_order(scene, lab, ITEM, 1, 2);
	require(scene, session_begin(first, READ_COMMITTED));
	require(scene, session_begin(second, READ_COMMITTED));
	totals = deliver_within(scene, first, "{1}");
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=1", "the first batch, seen by itself");
	totals = deliver_within(scene, second, "{2}");
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=0", "the second batch, which did not wait");
	commit(scene, second);
	check_state(scene, lab, ITEM, 1, "watermark=0 lag=2 unprocessed=1 " CLEAN, "the second committed");
	commit(scene, first);
	check_shards(scene, lab, "1/0 1/0", "both committed");
	(void) check_count(scene, lab, ITEM, 0, "n=2 lag=1 pending=0 stale=true", "read before somebody follows");
	check_watermark(scene, lab, 2, "both committed");
	check_drained(scene, lab, "both committed");
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}

static void
one_event_on_two_lanes(Scene *scene, Session *lab)
{
	Session *first = like_client(scene, "first"), *second = like_client(scene, "second");
	LikeTotals totals;

	step(scene, "an event is delivered on two lanes at once, beside one of its own on each");
	start_over(scene, lab, 2);
	like_in_order(scene, lab, ITEM, 1, 3);
	require(scene, session_begin(first, READ_COMMITTED));
	totals = deliver_within(scene, first, "{1,2}");
	send_batch(scene, second, "{2,3}");
	check_waits(scene, lab, second, "the second waits at the event that both have");
	commit(scene, first);
	totals = await_batch(scene, second);
	check_totals(scene, &totals, "applied=1 covered=0 dup=1 watermark=3", "the second batch, looked at again");
	check_shards(scene, lab, "2/0 1/0", "an event on two lanes");
	check_drained(scene, lab, "an event on two lanes");
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}

typedef struct
{
	Session *session;
	LikeSnapshot snapshot;
	LikeInstall install;
} Installer;

static bool
install(int worker, void *context)
{
	Installer *installer = context;

	(void) worker;
	return steps()->install(installer->session, installer->snapshot.seq, &installer->snapshot.items[0], READ_COMMITTED,
							&installer->install);
}

/* Event 6 is on the second shard, uncommitted, when the install of S=5 comes to that shard. */
static void
install_behind_batch(Scene *scene, Session *lab)
{
	static Installer installer; /* outlives a case that ends early while its thread waits */
	Session *lane = NULL, *consumer = like_client(scene, "consumer");
	ActorGroup *group;
	LikeTotals totals;

	step(scene, "an install waits behind a batch on the second shard");
	start_over(scene, lab, 2);
	like_in_order(scene, lab, ITEM, 1, 5);
	installer = (Installer){.session = like_client(scene, "install"), .snapshot = take_snapshot(scene, lab, ITEM)};
	like_in_order(scene, lab, ITEM, 6, 6);
	lane = take_first_lane(scene);
	require(scene, session_begin(consumer, READ_COMMITTED));
	totals = deliver_within(scene, consumer, "{1,6}");
	check_totals(scene, &totals, "applied=2 covered=0 dup=0 watermark=1", "the batch with events 1 and 6");
	session_rollback(lane);

	group = actor_start("install", 1, install, &installer);
	require(scene, group != NULL);
	actor_open_gate(group);
	scene_await_blocked(scene, lab, session_backend_pid(installer.session));
	check_shards(scene, lab, "0/0 0/0", "seen from outside while the install waits");
	check_state(scene, lab, ITEM, 0, "watermark=0 lag=6 unprocessed=6 " CLEAN, "while the install waits");
	commit(scene, consumer);
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	CHECK_EQ(scene, installer.install.applied_after_base, 1, "it saw event 6, for which it waited, and not event 1");
	check_shards(scene, lab, "6/5 0/5", "installed over all shards");
	totals = deliver(scene, lab, SEQS(1, 2, 3, 4, 5, 6));
	check_totals(scene, &totals, "applied=0 covered=4 dup=2 watermark=6", "deliver {1..6}");
	check_drained(scene, lab, "an install behind a batch");
	like_snapshot_free(&installer.snapshot);
	scene_close_session(scene, lane);
	scene_close_session(scene, consumer);
	scene_close_session(scene, installer.session);
}

static void
batch_behind_install(Scene *scene, Session *lab)
{
	Session *installing = scene_session(scene, "install"), *consumer = like_client(scene, "consumer"), *lane;
	LikeSnapshot snapshot;
	LikeTotals totals;

	step(scene, "a batch waits for the second shard, behind an install");
	start_over(scene, lab, 2);
	like_in_order(scene, lab, ITEM, 1, 2);
	snapshot = take_snapshot(scene, lab, ITEM);
	like_in_order(scene, lab, ITEM, 3, 3);
	require(scene, session_begin(installing, READ_COMMITTED));
	require(scene, session_query(installing, NULL, "SELECT FROM like_install($1, $2, $3)",
								 ARGS(arg_int(ITEM), arg_int(snapshot.seq), arg_int(snapshot.items[0].facts))));
	like_snapshot_free(&snapshot);
	lane = take_first_lane(scene);
	send_batch(scene, consumer, "{1,2,3}");
	check_waits(scene, lab, consumer, "the batch waits for the install");
	commit(scene, installing);
	totals = await_batch(scene, consumer);
	check_totals(scene, &totals, "applied=1 covered=2 dup=0 watermark=3", "by the baseline just installed");
	check_shards(scene, lab, "2/2 1/2", "a batch behind an install");
	check_drained(scene, lab, "a batch behind an install");
	scene_close_session(scene, lane);
	scene_close_session(scene, installing);
	scene_close_session(scene, consumer);
}

static void
more_shards(Scene *scene, Session *lab)
{
	Session *operator= scene_session(scene, "operator"), *lane;
	LikeSnapshot snapshot;
	LikeTotals totals;

	step(scene, "shards are added under a baseline, and an event below it comes on a new one");
	start_over(scene, lab, 1);
	like_in_order(scene, lab, ITEM, 1, 2);
	snapshot = take_snapshot(scene, lab, ITEM);
	(void) install_baseline(scene, lab, &snapshot, ITEM, READ_COMMITTED);
	like_snapshot_free(&snapshot);
	(void) check_count(scene, lab, ITEM, 9, "n=2 lag=2 pending=2 stale=false", "before");
	require(scene, session_begin(operator, READ_COMMITTED));
	reshard(scene, operator, ITEM, 4);
	(void) check_count(scene, lab, ITEM, 9, "n=2 lag=2 pending=2 stale=false", "before it is committed");
	commit(scene, operator);
	(void) check_count(scene, lab, ITEM, 9, "n=2 lag=2 pending=2 stale=false", "with four shards");
	lane = take_first_lane(scene);
	totals = deliver(scene, lab, SEQS(1, 2));
	check_totals(scene, &totals, "applied=0 covered=2 dup=0 watermark=2", "events below the baseline on a new shard");
	check_shards(scene, lab, "2/2 0/2 0/2 0/2", "more shards");
	check_drained(scene, lab, "more shards");
	scene_close_session(scene, lane);
	scene_close_session(scene, operator);
}

/* A batch holds the shard that is to go, and one waits for it behind the operator. */
static void
fewer_shards(Scene *scene, Session *lab)
{
	Session *operator= scene_session(scene, "operator"), *first = like_client(scene, "first");
	Session *second = like_client(scene, "second"), *lane;
	LikeTotals totals;

	step(scene, "shards are taken away behind an open batch, and from under a batch that waits for one of them");
	start_over(scene, lab, 2);
	like_in_order(scene, lab, ITEM, 1, 3);
	totals = deliver(scene, lab, SEQS(1));
	lane = take_first_lane(scene);
	require(scene, session_begin(first, READ_COMMITTED));
	totals = deliver_within(scene, first, "{2}");
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=2", "the batch that holds the second shard");
	require(scene, session_send(operator, "SELECT 1 FROM like_reshard($1, $2)", ARGS(arg_int(ITEM), arg_int(1))));
	check_waits(scene, lab, operator, "the operator waits for it");
	(void) check_count(scene, lab, ITEM, 9, "n=1 lag=2 pending=2 stale=false", "read meanwhile");
	commit(scene, first);
	require(scene, session_await(operator, NULL, scene_deadline(scene, WAIT_MS)) == SQL_OK);
	check_shards(scene, lab, "2/0", "fewer shards");
	check_audits_clean(scene, lab, "fewer shards");

	reshard(scene, lab, ITEM, 2);
	require(scene, session_begin(operator, READ_COMMITTED));
	reshard(scene, operator, ITEM, 1);
	send_batch(scene, second, "{3}");
	check_waits(scene, lab, second, "a batch waits for the shard that is going");
	commit(scene, operator);
	totals = await_batch(scene, second);
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=3", "the batch, on a shard that is there");
	check_shards(scene, lab, "3/0", "a shard that went");
	check_drained(scene, lab, "fewer shards");
	scene_close_session(scene, lane);
	scene_close_session(scene, operator);
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}

static void
damaged_shard(Scene *scene, Session *lab)
{
	LikeReadAudit read_side;
	LikeSnapshot snapshot;

	step(scene, "one shard has another base_seq than the rest");
	start_over(scene, lab, 2);
	require(scene, session_execute(lab, "UPDATE like_count SET base_seq = 7 WHERE item_id = 1 AND shard = 1"));
	read_side = audit_read_side(scene, lab);
	CHECK_EQ(scene, read_side.count_mismatch_items, 0, "items whose sum is not their facts");
	CHECK_EQ(scene, read_side.exact_violations, 1, "items without one baseline over all their shards");
	require(scene, session_execute(lab, "UPDATE like_count SET base_seq = 0, n = 5 WHERE item_id = 1 AND shard = 1"));
	read_side = audit_read_side(scene, lab);
	CHECK_EQ(scene, read_side.exact_violations, 1, "items with a wrong n on one of their shards");
	snapshot = take_snapshot(scene, lab, ITEM);
	(void) install_baseline(scene, lab, &snapshot, ITEM, READ_COMMITTED);
	like_snapshot_free(&snapshot);
	check_drained(scene, lab, "mended by a rebuild");
	require(scene, session_execute(lab, "UPDATE like_count SET n = 5 WHERE item_id = 1 AND shard = 1"));
	CHECK_EQ(scene, number_of(scene, lab, "SELECT like_find_wrong()", NO_ARGS), 1,
			 "items that a rebuild of many finds wrong");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT like_install_wrong(1, 1)", NO_ARGS), 1, "and installs");
	check_drained(scene, lab, "mended in a chunk");
}

/* 1, 3, 5, 2, 4, and again: more and fewer by turns. */
static bool
change_hot_item(Session *session, int visit)
{
	int shards = 1 + 2 * visit % SHARDS_MOST;

	return session_query(session, NULL, "SELECT like_reshard($1, $2)", ARGS(arg_int(STORM_HOT_ITEM), arg_int(shards)));
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_with(scene, "sharded", ITEMS);

	two_batches_of_one_item(scene, lab);
	one_event_on_two_lanes(scene, lab);
	install_behind_batch(scene, lab);
	batch_behind_install(scene, lab);
	more_shards(scene, lab);
	fewer_shards(scene, lab);
	damaged_shard(scene, lab);

	step(scene, "shards of the hot item change in a storm");
	start_over(scene, lab, 1);
	reshard(scene, lab, OTHER_ITEM, 2);
	storm_run(scene, lab, change_hot_item);
}

const Scenario scenario_scale_sharded = {
	.suite = "scale",
	.id = "scale/sharded",
	.title = "counts in shards: consumers of one item side by side, one baseline over all its shards",
	.claim =
		"batches of one item do not wait for each other, an event counts once, a baseline is on all shards or none",
	.kind = "real component, fixed interleaving, real threads",
	.guarantee = "the sum of the shards keeps the invariants, also while their number changes",
	.observed = "like_count by shard, COVERED, dup, pg_locks, read-side audit of every sample",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 90000,
	.run = run,
};
