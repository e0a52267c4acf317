/*
 * 32-I  install and consumer wait for each other's uncommitted row
 *
 * Claim      Install and consumer lock the count row before they read processed_event, so an install that had to wait
 *            sees the event for which it waited, and a consumer that had to wait the baseline. In Repeatable Read the
 *            same install fails with 40001 and its retry is right. A snapshot's number and facts belong together.
 * Method     Events 1..4 committed and unprocessed, snapshot S=4; a consumer applies event 5 and stops before its commit,
 *            holding the count row. The install is started and seen waiting in pg_locks, granted = false, by its own
 *            backend (manual 54.12); then the consumer is let go. Read Committed: the statement after the wait sees what
 *            was just committed; Repeatable Read: a row changed since the snapshot ends the transaction (13.2.2). Then
 *            the install is the one that is open, and a batch it covers in part waits. Last, a snapshot is held up while
 *            a like commits: by a lock on the facts, as if it had read its number before, and by one on the number.
 * Expect     4 + 1 = 5 installed with base_seq=4; 1..4 end COVERED, n stays 5. Repeatable Read: one 40001, then the same. Of
 *            the batch behind the install 2 are covered and 2 applied. C(S) is the sum of events 1..S.
 * Not shown  Other orders of the two: a search for them is 32-J. More than one item in an install's transaction.
 */
#include "recovery_lab.h"

#include <stdatomic.h>
#include <stdlib.h>

enum
{
	ITEM = 1,
	OTHER_ITEM = 2,
	FACTS = 5,
	WAIT_MS = 10000
};

#define CLEAN "exact_violations=0 bound_violations=0 watermark_violations=0"

/* A consumer's thread stops at a point until the case lets it go. */
typedef struct
{
	Session *session;
	int64_t event;
	atomic_bool stopped;
	atomic_bool released;
	LikeTotals totals;
} PausedConsumer;

typedef struct
{
	Session *session;
	const LikeSnapshot *snapshot;
	Isolation isolation;
	LikeInstall install;
} Installer;

static ProbeAnswer
probe_flag(void *context, Text *seen)
{
	atomic_bool *flag = context;

	if (atomic_load(flag))
	{
		return PROBE_DONE;
	}
	text_append(seen, "not yet");
	return PROBE_AGAIN;
}

/* A release that never comes is reported by the wait; the consumer then goes on, and the case's checks say so. */
static void
stop_until_released(void *context, const char *name, const char *detail)
{
	PausedConsumer *consumer = context;

	(void) name;
	(void) detail;
	atomic_store(&consumer->stopped, true);
	if (!wait_until("the release of the consumer", deadline_in_ms(WAIT_MS), probe_flag, &consumer->released))
	{
		report_warning("the consumer was never let go");
	}
}

static bool
apply_event_5(int worker, void *context)
{
	PausedConsumer *consumer = context;

	(void) worker;
	return steps()->deliver(consumer->session, &consumer->event, 1, 1, &consumer->totals);
}

static bool
install(int worker, void *context)
{
	Installer *installer = context;

	(void) worker;
	return steps()->install(installer->session, installer->snapshot->items[0].seq, &installer->snapshot->items[0],
							installer->isolation, &installer->install);
}

static ActorGroup *
start_one(Scene *scene, const char *name, ActorBody body, void *context)
{
	ActorGroup *group = actor_start(name, 1, body, context);

	require(scene, group != NULL);
	actor_open_gate(group);
	return group;
}

/* The interleaving itself; the install's result and the consumer's totals are left in their structures. */
static void
install_behind_consumer(Scene *scene, Session *lab, PausedConsumer *consumer, Installer *installer)
{
	ActorGroup *consuming, *installing;
	int pid = session_backend_pid(installer->session);

	point_disarm_all();
	point_arm_call("consumer.before_commit", 1, stop_until_released, consumer);
	consuming = start_one(scene, "consumer", apply_event_5, consumer);
	require(scene,
			wait_until("the consumer at its point", scene_deadline(scene, WAIT_MS), probe_flag, &consumer->stopped));
	note(scene, "consumer stopped before its commit of event 5, holding the count row");
	check_state(scene, lab, ITEM, 0, "watermark=0 lag=5 unprocessed=5 " CLEAN, "seen from outside");

	installing = start_one(scene, "install", install, installer);
	scene_await_blocked(scene, lab, pid);
	CHECK_EQ(scene,
			 number_of(scene, lab, "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1", ARGS(arg_int(pid))),
			 1, "the install waits for one lock (pg_locks, granted = false, its own pid)");
	CHECK_EQ(scene,
			 number_of(scene, lab, "SELECT count(*) FROM unnest(pg_blocking_pids($1)) b WHERE b = $2",
					   ARGS(arg_int(pid), arg_int(session_backend_pid(consumer->session)))),
			 1, "the consumer is what it waits for");

	atomic_store(&consumer->released, true);
	require(scene, actor_join(consuming, scene_deadline(scene, WAIT_MS)));
	require(scene, actor_join(installing, scene_deadline(scene, WAIT_MS)));
	point_disarm_all();
}

static void
one_round(Scene *scene, Session *lab, Isolation isolation)
{
	static PausedConsumer consumer; /* these outlive a case that ends early while their threads wait */
	static Installer installer;
	static LikeSnapshot snapshot;
	const char *level = isolation == READ_COMMITTED ? "Read Committed" : "Repeatable Read";
	LikeTotals totals;

	consumer = (PausedConsumer){.session = like_client(scene, "consumer")};
	installer = (Installer){.session = like_client(scene, "install"), .isolation = isolation};
	like_in_order(scene, lab, ITEM, 1, 4);
	snapshot = take_snapshot(scene, lab, ITEM);
	CHECK_EQ(scene, snapshot.seq, 4, "S");
	CHECK_EQ(scene, snapshot.items[0].facts, 4, "C(S)");
	like_in_order(scene, lab, ITEM, 5, 5);
	installer.snapshot = &snapshot;
	consumer.event = to_event(scene, lab, 5);
	install_behind_consumer(scene, lab, &consumer, &installer);

	note(scene, "installed(n %lld->%lld, base_seq=%lld, applied_after_base=%lld)", (long long) installer.install.old_n,
		 (long long) installer.install.new_n, (long long) installer.install.base_seq,
		 (long long) installer.install.applied_after_base);
	check_totals(scene, &consumer.totals, "applied=1 covered=0 dup=0 watermark=0", "the consumer, n 0->1");
	CHECK_EQ(scene, installer.install.old_n, 1, "n as the install found it behind the lock");
	CHECK_EQ(scene, installer.install.applied_after_base, 1, "%s: it saw the event for which it waited", level);
	CHECK_EQ(scene, installer.install.new_n, 5, "%s: installed value = C(S) + 1", level);
	CHECK_EQ(scene, installer.install.base_seq, 4, "%s: base_seq", level);
	check_state(scene, lab, ITEM, 5, "watermark=0 lag=5 unprocessed=4 " CLEAN, "after the install");

	totals = deliver(scene, lab, SEQS(1, 2, 3, 4));
	check_totals(scene, &totals, "applied=0 covered=4 dup=0 watermark=5", "%s: deliver {1,2,3,4}", level);
	CHECK_EQ(scene, facts_of(scene, lab, ITEM), FACTS, "facts");
	check_state(scene, lab, ITEM, FACTS, "watermark=5 lag=0 unprocessed=0 " CLEAN, "drained");
	like_snapshot_free(&snapshot);
	scene_close_session(scene, consumer.session);
	scene_close_session(scene, installer.session);
}

/* The other way round: the baseline is installed and uncommitted when a batch arrives that it covers in part. */
static void
consumer_behind_install(Scene *scene, Session *lab)
{
	Session *installing = scene_session(scene, "install"), *consuming = scene_session(scene, "consumer");
	LikeSnapshot snapshot;
	LikeTotals totals;

	like_in_order(scene, lab, ITEM, 1, 2);
	like_in_order(scene, lab, OTHER_ITEM, 3, 4);
	snapshot = take_snapshot(scene, lab, ITEM);
	require(scene, session_begin(installing, READ_COMMITTED));
	require(scene,
			session_query(installing, NULL, "SELECT FROM like_install($1, $2, $3)",
						  ARGS(arg_int(ITEM), arg_int(snapshot.items[0].seq), arg_int(snapshot.items[0].facts))));
	like_snapshot_free(&snapshot);
	send_batch(scene, consuming, "{1,2,3,4}");
	check_waits(scene, lab, consuming, "the consumer waits for the install");
	check_count_row_free(scene, lab, OTHER_ITEM, "it locks in item order: the next count row is free");
	commit(scene, installing);
	totals = await_batch(scene, consuming);
	check_totals(scene, &totals, "applied=2 covered=2 dup=0 watermark=4",
				 "by the baseline just installed, of its item");
	CHECK_EQ(scene, count_of(scene, lab, ITEM), 2, "n of the item with the baseline");
	CHECK_EQ(scene, count_of(scene, lab, OTHER_ITEM), 2, "n of the item without");
	check_drained(scene, lab, "after the consumer");
	scene_close_session(scene, installing);
	scene_close_session(scene, consuming);
}

typedef struct
{
	Session *session;
	LikeSnapshot snapshot;
} Rebuild;

static bool
read_snapshot(int worker, void *context)
{
	Rebuild *rebuild = context;

	(void) worker;
	return steps()->snapshot(rebuild->session, &rebuild->snapshot);
}

/*
 * A rebuild's snapshot is kept from one of its two tables by a lock, and a like of the holder commits meanwhile: what was
 * read before it and what was read after it would not belong together.
 */
static void
snapshot_beside_like(Scene *scene, Session *lab, int64_t user, const char *table, const char *held_up)
{
	static Rebuild rebuild; /* outlives a case that ends early while its thread waits */
	Session *writer = like_client(scene, "writer");
	char *lock = string_format("LOCK TABLE %s", table);
	ActorGroup *group;
	LikeResult answer;

	rebuild = (Rebuild){.session = scene_session(scene, "rebuild")};
	require(scene, session_begin(writer, READ_COMMITTED));
	require(scene, session_execute(writer, lock));
	free(lock);
	group = start_one(scene, "rebuild", read_snapshot, &rebuild);
	scene_await_blocked(scene, lab, session_backend_pid(rebuild.session));
	answer = set_like_within(scene, writer, user, ITEM, true);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "a like while the snapshot waits for %s", held_up);
	number_events(scene, writer);
	commit(scene, writer);
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	note(scene, "rebuild snapshot: S=%lld, C(S)=%lld", (long long) rebuild.snapshot.seq,
		 (long long) rebuild.snapshot.items[0].facts);
	CHECK_EQ(scene, rebuild.snapshot.items[0].facts,
			 number_of(scene, lab, "SELECT sum(delta) FROM like_outbox WHERE item_id = $1 AND seq <= $2",
					   ARGS(arg_int(ITEM), arg_int(rebuild.snapshot.items[0].seq))),
			 "held up at %s: C(S) = the deltas of events 1..S", held_up);
	like_snapshot_free(&rebuild.snapshot);
	scene_close_session(scene, rebuild.session);
	scene_close_session(scene, writer);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, 2);

	step(scene, "the install in Read Committed");
	one_round(scene, lab, READ_COMMITTED);
	CHECK_EQ(scene, session_retries_40001(), 0, "no serialization failure in Read Committed");

	step(scene, "the same in Repeatable Read");
	clear_all(scene, lab);
	one_round(scene, lab, REPEATABLE_READ);
	note(scene, "Repeatable Read: retries_40001=%lld; the whole install ran again",
		 (long long) session_retries_40001());
	scene_expect_retries(scene, 1, 0);

	step(scene, "a consumer meets an install that has not committed yet");
	clear_all(scene, lab);
	consumer_behind_install(scene, lab);

	step(scene, "a snapshot meets a like that has not committed yet");
	snapshot_beside_like(scene, lab, 5, "like_fact", "the facts");
	snapshot_beside_like(scene, lab, 6, "like_seq", "the number");
}

const Scenario scenario_32_i = {
	.suite = "32",
	.id = "32-I",
	.title = "install and consumer wait for each other's uncommitted row",
	.claim =
		"an install that waited for the count row sees the event it waited for: 4 + 1 = 5, base_seq=4, 1..4 COVERED",
	.kind = "real component, fixed interleaving, real threads",
	.guarantee = "lock first, then read: baseline and a batch in flight neither repeat nor miss an event",
	.observed = "pg_locks, n, base_seq, COVERED, 40001",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
