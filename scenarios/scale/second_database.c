/*
 * scale/second-database  facts and outbox in one database, counts and watermark in another, on two servers
 *
 * Claim      No transaction spans the two, and none is needed: an event is committed in the first before it is counted in the second,
 *            where registration, effect and watermark are one transaction. Whichever server dies, in whatever order they come
 *            back, each event takes effect once. A count is answered with its bound if the first answers, and without it if not.
 * Method     Fixed order. The second is stopped at once inside a batch, and after one whose events are then delivered again; the
 *            first while its events are counted; both, and they come back in either order. A baseline of the first is installed in
 *            the second beside a batch that is above it. Audits read the second first; once the other way round. A consumer that
 *            keeps its place in the first stands beside it as a negative control. Then a writer and a consumer run while
 *            20 audits are made, with neither of them held up.
 * Expect     Identity and bound in every audit; drained counts equal facts. The other way round the audit finds violations
 *            where nothing is wrong. The place in the first, written before the commit in the second, loses 5 events; written
 *            after it, they are counted twice unless the second knows them.
 * Not shown  A first database that loses what the second has counted, by a failover or with synchronous_commit off, is
 *            refused and not mended; designs other than row (L42).
 */
#include "32/recovery_lab.h"
#include "second.h"

#include <stdatomic.h>
#include <stdlib.h>

enum
{
	ITEMS = 2,
	BATCH = 5,
	SAMPLES = 20,
	START_MS = 30000,
	RUN_MS = 30000,
	RUNNING_USERS = 1000 /* from this one on */
};

typedef struct
{
	Cluster *first, *second;
	LikeStores stores;
	int64_t users; /* who have liked so far */
} Lab;

/* The next `count` users like the items in turn. */
static void
likes(Scene *scene, Lab *lab, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
	{
		int64_t user = ++lab->users;
		LikeResult result = set_like(scene, lab->stores.facts, user, 1 + user % ITEMS, true);

		expect_changed(scene, &result, user);
	}
}

static LikeTotals
drain_stores(Scene *scene, const Lab *lab)
{
	LikeTotals totals = {0};

	require(scene, like_stores_drain(&lab->stores, BATCH, &totals));
	return totals;
}

/* It says why, which is expected here. */
static bool
drain_refused(const Lab *lab)
{
	LikeTotals totals = {0};
	bool drained;

	notice_expect_errors(true);
	drained = like_stores_drain(&lab->stores, BATCH, &totals);
	notice_expect_errors(false);
	return !drained && totals.applied == 0;
}

static LikeTotals
deliver_from(Scene *scene, const Lab *lab, int64_t after)
{
	LikeTotals totals = {0};
	int64_t highest;

	require(scene, like_stores_deliver(&lab->stores, after, BATCH, &totals, &highest));
	return totals;
}

static LikeReadAudit
audit_stores(Scene *scene, const Lab *lab)
{
	LikeReadAudit result = {0};
	Text fields = {0};

	require(scene, like_stores_audit(&lab->stores, &result));
	like_read_audit_describe(&result, &fields);
	audit(scene, "both databases", text_get(&fields));
	text_free(&fields);
	return result;
}

static void
check_stores(Scene *scene, const Lab *lab, int64_t lag, const char *when)
{
	LikeReadAudit result = audit_stores(scene, lab);

	CHECK(scene, like_read_side_holds(&result), "%s: identity, bound and watermark hold over both", when);
	CHECK_EQ(scene, result.lag, lag, "%s: lag", when);
	if (lag == 0)
	{
		CHECK_EQ(scene, result.count_mismatch_items, 0, "%s: items whose count differs from their facts", when);
	}
}

static void
check_read(Scene *scene, const Lab *lab, const char *expected, const char *when)
{
	LikeStoresCount count;
	bool found = false;
	Text text = {0};

	require(scene, like_stores_read_count(&lab->stores, 1, 0, &found, &count));
	like_stores_count_describe(&count, &text);
	check_text(scene, found ? text_get(&text) : "", expected, "%s: the count of item 1", when);
	text_free(&text);
}

static void
stop(Scene *scene, Cluster *cluster, const char *what)
{
	require(scene,
			fault_stop_immediate(scene_fault(scene, "immediate stop of %s", what), scene_history(scene), cluster));
}

/* Started again, with a new session in the place of the one that was lost. */
static void
start(Scene *scene, Cluster *cluster, Session **session, const char *name)
{
	scene_close_session(scene, *session);
	require(scene, cluster_start(cluster, scene_deadline(scene, START_MS)));
	*session = scene_session_on(scene, cluster, name);
}

static void
start_first(Scene *scene, Lab *lab)
{
	start(scene, lab->first, &lab->stores.facts, "facts");
	require(scene, steps()->prepare(lab->stores.facts));
}

static void
start_second(Scene *scene, Lab *lab)
{
	start(scene, lab->second, &lab->stores.counts, "counts");
}


/* --- either server dies --- */

#define APPLY                                                                                                          \
	"SELECT applied FROM like_apply('{13,14,15,16,17}', '{2,1,2,1,2}', "                                               \
	"(SELECT array_agg(1::smallint) FROM generate_series(1, 5)))"

static void
second_dies(Scene *scene, Lab *lab)
{
	LikeTotals totals;

	step(scene, "the second is stopped at once inside a batch");
	likes(scene, lab, BATCH);
	require(scene, session_begin(lab->stores.counts, READ_COMMITTED));
	CHECK_EQ(scene, number_of(scene, lab->stores.counts, APPLY, NO_ARGS), BATCH, "events applied, uncommitted");
	stop(scene, lab->second, "the second inside a batch");
	start_second(scene, lab);
	CHECK_EQ(scene, number_of(scene, lab->stores.counts, "SELECT count(*) FROM processed_event", NO_ARGS), 12,
			 "events processed after it");
	check_stores(scene, lab, BATCH, "inside a batch");
	totals = drain_stores(scene, lab);
	check_totals(scene, &totals, "applied=5 covered=0 dup=0 watermark=17", "the batch again");
	check_stores(scene, lab, 0, "inside a batch, drained");

	step(scene, "the second is stopped at once after a batch, which is delivered again");
	stop(scene, lab->second, "the second after a batch");
	start_second(scene, lab);
	totals = deliver_from(scene, lab, 12);
	check_totals(scene, &totals, "applied=0 covered=0 dup=5 watermark=17", "redelivered");
	check_stores(scene, lab, 0, "redelivered");
}

static void
first_dies(Scene *scene, Lab *lab)
{
	LikeTotals totals;

	step(scene, "the first is stopped at once with events that are not counted");
	likes(scene, lab, 3);
	check_read(scene, lab, "n=8 lag=3 bound=2 stale=true", "both answer");
	stop(scene, lab->first, "the first");
	check_read(scene, lab, "n=8 lag=unknown bound=unknown stale=unknown", "the first is gone");
	CHECK(scene, drain_refused(lab), "the consumer cannot go on without it");
	start_first(scene, lab);
	CHECK_EQ(scene, number_of(scene, lab->stores.facts, "SELECT last FROM like_seq", NO_ARGS), lab->users,
			 "events acknowledged before and there after");
	check_read(scene, lab, "n=8 lag=3 bound=2 stale=true", "the first is back");
	totals = drain_stores(scene, lab);
	check_totals(scene, &totals, "applied=3 covered=0 dup=0 watermark=20", "after the first came back");
	check_stores(scene, lab, 0, "after the first came back");
}

static void
both_die(Scene *scene, Lab *lab)
{
	for (int round = 0; round < 2; round++)
	{
		LikeTotals totals;

		step(scene, "both are stopped at once; the %s comes back before the other", round == 0 ? "first" : "second");
		likes(scene, lab, 4);
		stop(scene, lab->second, round == 0 ? "both, the second" : "both again, the second");
		stop(scene, lab->first, round == 0 ? "both, the first" : "both again, the first");
		if (round == 0)
		{
			start_first(scene, lab);
			likes(scene, lab, 1);
			start_second(scene, lab);
		}
		else
		{
			start_second(scene, lab);
			check_read(scene, lab, "n=12 lag=unknown bound=unknown stale=unknown", "the second alone");
			start_first(scene, lab);
			likes(scene, lab, 1);
		}
		check_stores(scene, lab, 5, "both are back");
		totals = drain_stores(scene, lab);
		CHECK_EQ(scene, totals.applied, 5, "events applied after both came back");
		check_stores(scene, lab, 0, "after both came back");
	}
}


/* --- baselines and audits --- */

static void
baseline_from_the_first(Scene *scene, Lab *lab)
{
	LikeSnapshot snapshot;
	LikeInstall install;
	LikeTotals totals;

	step(scene, "a count is damaged, and a baseline of the first installed beside a batch that is above it");
	likes(scene, lab, 4);
	require(scene, session_execute(lab->stores.counts, "UPDATE like_count SET n = n + 7 WHERE item_id = 1"));
	snapshot = take_snapshot(scene, lab->stores.facts, 1);
	likes(scene, lab, 4);
	totals = deliver_from(scene, lab, snapshot.seq);
	check_totals(scene, &totals, "applied=4 covered=0 dup=0 watermark=30", "above the snapshot, before what is below");
	install = install_baseline(scene, lab->stores.counts, &snapshot, 1, READ_COMMITTED);
	CHECK_EQ(scene, install.applied_after_base, 2, "applied above S, and kept");
	like_snapshot_free(&snapshot);
	check_stores(scene, lab, 8, "installed");
	totals = drain_stores(scene, lab);
	check_totals(scene, &totals, "applied=2 covered=2 dup=4 watermark=38", "what is below, and above again");
	check_stores(scene, lab, 0, "after the rebuild");
}

/* The first's snapshot is older than the second's. */
static void
audit_the_other_way_round(Scene *scene, Lab *lab)
{
	Session *old = scene_session_on(scene, lab->first, "reader of the first");
	LikeStores reader = {.facts = old, .counts = lab->stores.counts};
	LikeReadAudit seen = {0};

	step(scene, "an audit reads the first, then the second");
	require(scene, session_begin(old, REPEATABLE_READ));
	(void) number_of(scene, old, "SELECT count(*) FROM like_seq", NO_ARGS);
	likes(scene, lab, 2);
	(void) drain_stores(scene, lab);
	require(scene, like_stores_audit(&reader, &seen));
	session_rollback(old);
	scene_close_session(scene, old);
	CHECK(scene, !like_read_side_holds(&seen) && seen.lag == -2,
		  "the other way round: it finds violations where there are none, and a lag of -2");
	check_stores(scene, lab, 0, "the second, then the first");
}

/* Who restores the first from a copy, or fails over to one that is behind, has a second that has counted more. */
static void
log_that_ends_early(Scene *scene, const Lab *lab)
{
	char reason[256];

	step(scene, "the second has counted more events than the first has");
	require(scene, session_execute(lab->stores.counts, "BEGIN; UPDATE counter_watermark SET applied_upto = 1000"));
	CHECK(scene, drain_refused(lab), "the consumer refuses to go on");
	session_rollback(lab->stores.counts);
	notice_last_error(reason, sizeof(reason));
	check_text(scene, reason,
			   "events up to 1000 are counted, but the log ends at 40: it is another one, or was restored",
			   "what it says");
}


/* --- negative control: the place is kept in the first --- */

/* A consumer's place, which it writes in a transaction of its own: before or after the commit in the second, which dies between. */
static int64_t
place(Scene *scene, const Lab *lab)
{
	return number_of(scene, lab->stores.facts, "SELECT place FROM lab_place", NO_ARGS);
}

static void
place_move(Scene *scene, const Lab *lab)
{
	require(scene, session_execute(lab->stores.facts, "UPDATE lab_place SET place = (SELECT last FROM like_seq)"));
}

static void
place_before_the_commit(Scene *scene, Lab *lab)
{
	LikeTotals totals;

	step(scene, "negative control: the place is kept in the first, and moved before the commit in the second");
	require(scene, session_execute(lab->stores.facts, "CREATE TABLE lab_place AS SELECT last AS place FROM like_seq"));
	likes(scene, lab, BATCH);
	place_move(scene, lab);
	stop(scene, lab->second, "the second, before its commit and after the place was moved");
	start_second(scene, lab);
	totals = deliver_from(scene, lab, place(scene, lab));
	check_totals(scene, &totals, "applied=0 covered=0 dup=0 watermark=0",
				 "from the place in the first: nothing is left");
	check_stores(scene, lab, BATCH, "the place before the commit: that many events are lost to that consumer");
	(void) drain_stores(scene, lab);
	check_stores(scene, lab, 0, "from the watermark in the second");
}

static void
place_after_the_commit(Scene *scene, Lab *lab)
{
	LikeTotals totals;
	LikeReadAudit seen;

	step(scene, "negative control: it is moved after that commit, and the second knows no event again");
	require(scene, session_execute_file(lab->stores.counts,
										scene_sql(scene, "like/parts/second/counts/mutants/D02/apply.sql")));
	place_move(scene, lab);
	likes(scene, lab, BATCH);
	(void) deliver_from(scene, lab, place(scene, lab));
	stop(scene, lab->first, "the first, after the commit in the second and before the place was moved");
	start_first(scene, lab);
	totals = deliver_from(scene, lab, place(scene, lab));
	CHECK_EQ(scene, totals.applied, BATCH, "the place after the commit: events counted twice");
	seen = audit_stores(scene, lab);
	CHECK_EQ(scene, seen.exact_violations, ITEMS, "items whose counts the audit finds wrong");
}

static void
load_run_checks(Scene *scene, int64_t held, int64_t written, int64_t applied)
{
	note(scene, "written=%lld applied=%lld meanwhile", (long long) written, (long long) applied);
	CHECK_EQ(scene, held, SAMPLES, "audits over both that hold beside a writer and a consumer");
	check_at_least(scene, written, 1, "events written meanwhile");
	check_at_least(scene, applied, 1, "events applied meanwhile");
}


/* --- nobody held up --- */

typedef struct
{
	Session *writer;
	LikeStores stores;
	atomic_bool stop;
	atomic_llong written, applied;
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
			ok = like_stores_drain(&load->stores, BATCH, &totals);
			atomic_fetch_add(&load->applied, totals.applied);
		}
	}
	return ok;
}

static void
audits_beside_load(Scene *scene, Lab *lab)
{
	static Load load; /* outlives a case that ends early while they run */
	int64_t held = 0, last = 0;
	ActorGroup *group;

	step(scene, "%d audits beside a writer and a consumer", SAMPLES);
	load.writer = like_client(scene, "writer");
	load.stores.facts = scene_session_on(scene, lab->first, "consumer");
	load.stores.counts = scene_session_on(scene, lab->second, "consumer");
	group = actor_start("load", 2, load_run, &load);
	require(scene, group != NULL);
	actor_open_gate(group);
	for (int i = 0; i < SAMPLES; i++)
	{
		LikeReadAudit seen = {0};

		/* Something new is counted from one to the next. */
		scene_await_int(scene, lab->stores.counts, 1, "SELECT count(*) FROM counter_watermark WHERE applied_upto > $1",
						ARGS(arg_int(last)));
		require(scene, like_stores_audit(&lab->stores, &seen));
		held += like_read_side_holds(&seen);
		last = seen.watermark;
	}
	atomic_store(&load.stop, true);
	require(scene, actor_join(group, scene_deadline(scene, RUN_MS)));
	load_run_checks(scene, held, atomic_load(&load.written), atomic_load(&load.applied));
	scene_close_session(scene, load.writer);
	scene_close_session(scene, load.stores.facts);
	scene_close_session(scene, load.stores.counts);
	(void) drain_stores(scene, lab);
	check_stores(scene, lab, 0, "drained after the load");
}

static void
run(Scene *scene)
{
	Lab lab = {.first = scene_cluster(scene)};
	LikeTotals totals;

	lab.stores.facts = like_lab_of(scene, like_design_find(NULL), ITEMS);
	load_part(scene, lab.stores.facts, "second/facts");
	lab.second = scene_add_cluster(scene, "counts");
	lab.stores.counts = scene_session_on(scene, lab.second, "counts");
	load_part(scene, lab.stores.counts, "second/counts");

	step(scene, "12 likes in the first are counted in the second");
	likes(scene, &lab, 12);
	check_stores(scene, &lab, 12, "before anything is counted");
	totals = drain_stores(scene, &lab);
	check_totals(scene, &totals, "applied=12 covered=0 dup=0 watermark=12", "the consumer between the two");
	check_read(scene, &lab, "n=6 lag=0 bound=0 stale=false", "drained");
	check_stores(scene, &lab, 0, "drained");

	second_dies(scene, &lab);
	first_dies(scene, &lab);
	both_die(scene, &lab);
	baseline_from_the_first(scene, &lab);
	audit_the_other_way_round(scene, &lab);
	log_that_ends_early(scene, &lab);
	place_before_the_commit(scene, &lab);
	audits_beside_load(scene, &lab);
	check_write_side(scene, lab.stores.facts, "in the end");
	place_after_the_commit(scene, &lab);
}

const Scenario scenario_scale_second_database = {
	.suite = "scale",
	.id = "scale/second-database",
	.title = "facts and outbox in one database, counts and watermark in another, on two servers",
	.claim = "whichever server dies, each event takes effect once; a count has its bound if the first answers",
	.kind = "two servers, fixed interleaving, immediate stops, real threads, negative control",
	.guarantee =
		"each event counted once; identity over both when the second is read first; no bound without the first",
	.observed = "processed_event and like_count of the second, facts and events of the first, audits over both",
	.needs = NEEDS_CLUSTER,
	.server_setting = NULL,
	.deadline_ms = 90000,
	.run = run,
};
