/*
 * 32-J  writers, consumers, redelivery, rebuilds and a sampler, all at once
 *
 * Claim      While all of them run, every snapshot keeps the identity (n + unprocessed deltas above base_seq = facts),
 *            the error bound of each item, and unprocessed <= lag; each event ends APPLIED or COVERED, once.
 * Method     8 writers x 300 requests on 6 items, half of them on item-lab-01; 3 competing consumers; a redeliverer that
 *            draws from the run's seed; a full rebuild every 100 ms; a sampler that runs the proof audit without a pause
 *            until it has 50 samples and the writers have ended. Both outcomes are made certain: rebuild 1 takes its
 *            snapshot after 100 events and is in place before a consumer starts (those 100 end COVERED), and the writers
 *            hold before their last third until the last rebuild has ended (what they write then ends APPLIED, and the
 *            drained counts judge the consumers and not the repair). Last, each event's commit is looked up in the WAL.
 * Expect     0 violations over all samples; CHANGED = events = APPLIED + COVERED; drained counts equal facts; the
 *            independent judge finds one order for the requests; numbers go up with the positions of their commits.
 * Not shown  A proof: this is a search, samples are spot checks (L8); each race it could meet also has a fixed
 *            interleaving (32-C, 32-E, 32-G, 32-H, 32-I). Numbers vary (L7) and are no performance data (L1).
 */
#include "recovery_lab.h"
#include "trace_lab.h"

#include <stdatomic.h>
#include <stdlib.h>

enum
{
	ITEMS = 6,
	USERS = 60,
	HOT_ITEM = 1,
	WRITERS = 8,
	REQUESTS_EACH = 300,
	REQUESTS = WRITERS * REQUESTS_EACH,
	HOLD_EACH = REQUESTS_EACH - REQUESTS_EACH / 3, /* requests of a writer before it holds for the last rebuild */
	CONSUMERS = 3,
	BATCH = 50,
	FIRST_REBUILD_EVENTS = 100,
	REBUILD_EVERY_MS = 100,
	REBUILDS_LEAST = 2,
	REDELIVER_EVERY = 40, /* requests */
	REDELIVERED_MOST = 10,
	SAMPLES_LEAST = 50,
	REFUSED_MOST = 20, /* a consumer that is refused again and again gives up */
	SEEN_MOST = 5000,  /* samples that are kept for the report's plots */
	IDLE_MS = 20,      /* a consumer that found nothing waits for a batch, but no longer than this */
	WAIT_MS = 20000
};

typedef struct
{
	int64_t count, exact, bound, over_lag, watermark, max_lag, max_abs_err;
	size_t seen; /* what the read path said of the hot item, after each audit */
	int64_t n[SEEN_MOST], facts[SEEN_MOST], error[SEEN_MOST], pending[SEEN_MOST], lag[SEEN_MOST];
} Samples;

typedef struct
{
	History *history;
	uint64_t seed;
	Session *writers[WRITERS], *consumers[CONSUMERS], *redeliverer, *rebuilder, *sampler;

	/* Each is written by one worker and read after the join. */
	LikeTally tallies[WRITERS];
	LikeTotals consumed[CONSUMERS], redelivered;
	int64_t refused[CONSUMERS + 1]; /* batches, the last for the redeliverer */
	int64_t redeliveries;
	Samples samples;
	int64_t rebuilds, requests_at_last_rebuild;

	/* What they wait for; a flag is a counter that becomes 1. */
	atomic_llong requests, events, rebuilt_once, rebuilds_over, writers_ended;
	atomic_bool failed; /* a worker failed and has reported it: nobody waits any longer */
} Storm;

typedef struct
{
	Storm *storm;
	atomic_llong *counter;
	int64_t target;
	Deadline latest; /* done by then in any case */
} Threshold;

static const Deadline never = {INT64_MAX};

static ProbeAnswer
probe_threshold(void *context, Text *seen)
{
	Threshold *threshold = context;
	long long now = atomic_load(threshold->counter);

	if (atomic_load(&threshold->storm->failed))
	{
		return PROBE_FAILED;
	}
	if (now >= threshold->target || deadline_passed(threshold->latest))
	{
		return PROBE_DONE;
	}
	text_append(seen, "%lld of %lld", now, (long long) threshold->target);
	return PROBE_AGAIN;
}

static bool
await(Storm *storm, const char *what, atomic_llong *counter, int64_t target, Deadline latest)
{
	Threshold threshold = {storm, counter, target, latest};

	return wait_until(what, deadline_in_ms(WAIT_MS), probe_threshold, &threshold);
}

/* A failure ends everybody's waiting: the case then ends at once and says whose it was. */
static bool
ended(Storm *storm, bool done)
{
	if (!done)
	{
		atomic_store(&storm->failed, true);
	}
	return done;
}

static bool
write_requests(Storm *storm, int worker)
{
	Rng rng = rng_stream(storm->seed, (uint64_t) worker);

	for (int i = 0; i < REQUESTS_EACH; i++)
	{
		int64_t user = 1 + (int64_t) rng_below(&rng, USERS);
		int64_t item = rng_below(&rng, 2) == 0 ? HOT_ITEM : HOT_ITEM + 1 + (int64_t) rng_below(&rng, ITEMS - 1);
		bool want = rng_below(&rng, 2) == 1;
		LikeResult result;

		if (i == HOLD_EACH && !await(storm, "the last rebuild", &storm->rebuilds_over, 1, never))
		{
			return false;
		}
		if (!recorded_set(storm->history, worker, storm->writers[worker], user, item, want, &result))
		{
			return false;
		}
		tally_add(&storm->tallies[worker], &result);
		atomic_fetch_add(&storm->requests, 1);
		atomic_fetch_add(&storm->events, result.outcome == LIKE_CHANGED);
	}
	return true;
}

static bool
writer(int worker, void *context)
{
	return ended(context, write_requests(context, worker));
}

static bool
consume(Storm *storm, Session *session, LikeTotals *totals, int64_t *refused)
{
	int64_t delivered_from = -1;

	if (!await(storm, "the first rebuild", &storm->rebuilt_once, 1, never))
	{
		return false;
	}
	for (;;)
	{
		bool last_round = atomic_load(&storm->writers_ended) != 0;
		int64_t watermark, *seqs;
		size_t count;
		bool done, stuck;

		if (!like_watermark(session, &watermark) || !like_pull(session, watermark, BATCH, &seqs, &count))
		{
			return false;
		}
		done = count == 0 || deliver_in_batches(session, seqs, count, BATCH, totals, refused);
		free(seqs);
		/* A watermark that stands still behind a delivered batch will never move: the drained counts are for the checks. */
		stuck = count > 0 && watermark == delivered_from;
		delivered_from = count > 0 ? watermark : -1;
		if (!done || (last_round && (count == 0 || stuck)) || *refused > REFUSED_MOST)
		{
			return done;
		}
		if (count == 0 &&
			!await(storm, "events to consume", &storm->events, watermark + BATCH, deadline_in_ms(IDLE_MS)))
		{
			return false;
		}
	}
}

static bool
consumer(int worker, void *context)
{
	Storm *storm = context;

	return ended(storm, consume(storm, storm->consumers[worker], &storm->consumed[worker], &storm->refused[worker]));
}

/* Numbers are given in commit order, and without a gap: 1..last may be drawn. */
static bool
redeliver(Storm *storm)
{
	Rng rng = rng_stream(storm->seed, WRITERS);
	int64_t last;

	if (!await(storm, "the first rebuild", &storm->rebuilt_once, 1, never))
	{
		return false;
	}
	for (int64_t at = atomic_load(&storm->requests); at <= REQUESTS; at += REDELIVER_EVERY)
	{
		int64_t seqs[REDELIVERED_MOST];
		size_t count = 1 + rng_below(&rng, REDELIVERED_MOST);

		if (!await(storm, "requests between two redeliveries", &storm->requests, at, never) ||
			!session_query_int(storm->redeliverer, &last, "SELECT last FROM like_seq", NO_ARGS))
		{
			return false;
		}
		for (size_t i = 0; i < count; i++)
		{
			seqs[i] = 1 + (int64_t) rng_below(&rng, (uint64_t) last);
		}
		if (!history_delivery(storm->history, WRITERS, seqs, count) ||
			!deliver_in_batches(storm->redeliverer, seqs, count, BATCH, &storm->redelivered,
								&storm->refused[CONSUMERS]))
		{
			return false;
		}
		storm->redeliveries += (int64_t) count;
	}
	return true;
}

static bool
redeliverer(int worker, void *context)
{
	(void) worker;
	return ended(context, redeliver(context));
}

/* The first starts after 100 events; none starts once the writers have come to their hold, two at the least. */
static bool
rebuild(Storm *storm)
{
	int64_t numbered;

	if (!await(storm, "the first 100 events", &storm->events, FIRST_REBUILD_EVENTS, never) ||
		!like_number(storm->rebuilder, FIRST_REBUILD_EVENTS, &numbered))
	{
		return false;
	}
	do
	{
		Deadline next = deadline_in_ms(REBUILD_EVERY_MS);

		if (!like_rebuild_all(storm->rebuilder, trace_installed, storm->rebuilder))
		{
			return false;
		}
		storm->rebuilds++;
		storm->requests_at_last_rebuild = atomic_load(&storm->requests);
		atomic_store(&storm->rebuilt_once, 1);
		if (!await(storm, "the next rebuild", &storm->requests, HOLD_EACH * WRITERS, next))
		{
			return false;
		}
	} while (storm->rebuilds < REBUILDS_LEAST || atomic_load(&storm->requests) < HOLD_EACH * WRITERS);
	atomic_store(&storm->rebuilds_over, 1);
	return true;
}

static bool
rebuilder(int worker, void *context)
{
	(void) worker;
	return ended(context, rebuild(context));
}

/* Count, facts and pending events in one snapshot. A picture for the report; the audit judges. */
static bool
see_hot_item(Session *session, Samples *samples)
{
	size_t at = samples->seen;
	SqlResult *row;

	if (at == SEEN_MOST)
	{
		return true;
	}
	if (!session_query(session, &row,
					   "SELECT n, (SELECT count(*) FROM like_fact WHERE item_id = $1 AND liked), pending, lag "
					   "FROM like_read_count($1, 0)",
					   ARGS(arg_int(HOT_ITEM))))
	{
		return false;
	}
	samples->n[at] = sql_int(row, 0, 0);
	samples->facts[at] = sql_int(row, 0, 1);
	samples->pending[at] = sql_int(row, 0, 2);
	samples->lag[at] = sql_int(row, 0, 3);
	samples->error[at] = llabs(samples->n[at] - samples->facts[at]);
	samples->seen++;
	sql_free(row);
	return true;
}

static bool
sample(Storm *storm)
{
	Samples *samples = &storm->samples;

	while (samples->count < SAMPLES_LEAST || atomic_load(&storm->writers_ended) == 0)
	{
		LikeReadAudit seen;

		if (atomic_load(&storm->failed) || !like_audit_read_side(storm->sampler, &seen) ||
			!see_hot_item(storm->sampler, samples))
		{
			return false;
		}
		trace_audit(storm->sampler, &seen);
		samples->count++;
		samples->exact += seen.exact_violations;
		samples->bound += seen.bound_violations;
		samples->over_lag += seen.unprocessed > seen.lag;
		samples->watermark += seen.watermark_violations;
		samples->max_lag = seen.lag > samples->max_lag ? seen.lag : samples->max_lag;
		samples->max_abs_err = seen.max_abs_err > samples->max_abs_err ? seen.max_abs_err : samples->max_abs_err;
	}
	return true;
}

static bool
sampler(int worker, void *context)
{
	(void) worker;
	return ended(context, sample(context));
}

static void
open_sessions(Scene *scene, Storm *storm)
{
	for (int i = 0; i < WRITERS; i++)
	{
		storm->writers[i] = like_client(scene, "writer");
	}
	for (int i = 0; i < CONSUMERS; i++)
	{
		storm->consumers[i] = like_client(scene, "consumer");
	}
	storm->redeliverer = like_client(scene, "redeliverer");
	storm->rebuilder = like_client(scene, "rebuilder");
	storm->sampler = like_client(scene, "sampler");
}

/* The writers are joined first: their end is what the others wait for. All are joined before a failure ends the case. */
static void
run_storm(Scene *scene, Storm *storm)
{
	const struct
	{
		const char *name;
		int workers;
		ActorBody body;
	} roles[] = {{"writer", WRITERS, writer},
				 {"consumer", CONSUMERS, consumer},
				 {"redeliverer", 1, redeliverer},
				 {"rebuilder", 1, rebuilder},
				 {"sampler", 1, sampler}};
	ActorGroup *groups[LENGTH_OF(roles)];
	bool done = true;

	for (size_t i = 0; i < LENGTH_OF(roles); i++)
	{
		groups[i] = actor_start(roles[i].name, roles[i].workers, roles[i].body, storm);
		require(scene, groups[i] != NULL);
	}
	for (size_t i = 0; i < LENGTH_OF(roles); i++)
	{
		actor_open_gate(groups[i]);
	}
	for (size_t i = 0; i < LENGTH_OF(roles); i++)
	{
		done = actor_join(groups[i], scene_deadline(scene, 2 * WAIT_MS)) && done;
		atomic_store(&storm->writers_ended, 1);
	}
	require(scene, done);
}

static void
plot_samples(Scene *scene, const Samples *samples)
{
	series(scene, "item-lab-01: count and facts", "n", samples->n, samples->seen);
	series(scene, "item-lab-01: count and facts", "facts", samples->facts, samples->seen);
	series(scene, "item-lab-01: error and its bound", "error", samples->error, samples->seen);
	series(scene, "item-lab-01: error and its bound", "pending events", samples->pending, samples->seen);
	series(scene, "lag", "events above the watermark", samples->lag, samples->seen);
}

static void
check_samples(Scene *scene, const Samples *samples)
{
	note(scene, "sampler (values vary by run): samples=%lld max lag=%lld max abs err=%lld", (long long) samples->count,
		 (long long) samples->max_lag, (long long) samples->max_abs_err);
	check_at_least(scene, samples->count, SAMPLES_LEAST, "samples taken while all ran");
	CHECK_EQ(scene, samples->exact, 0, "identity violated, over %lld samples", (long long) samples->count);
	CHECK_EQ(scene, samples->bound, 0, "error bound of an item violated, over %lld samples",
			 (long long) samples->count);
	CHECK_EQ(scene, samples->over_lag, 0, "unprocessed > lag, over %lld samples", (long long) samples->count);
	CHECK_EQ(scene, samples->watermark, 0, "watermark not the contiguous prefix, over %lld samples",
			 (long long) samples->count);
}

static void
check_storm(Scene *scene, Session *lab, Storm *storm)
{
	LikeTally tally = {0};
	LikeTotals totals = storm->redelivered;
	int64_t refused = 0;
	Text line = {0};
	int64_t events = last_number(scene, lab);
	int64_t applied = number_of(scene, lab, "SELECT count(*) FROM processed_event WHERE how = 'APPLIED'", NO_ARGS);
	int64_t covered = number_of(scene, lab, "SELECT count(*) FROM processed_event WHERE how = 'COVERED'", NO_ARGS);

	for (int i = 0; i < WRITERS; i++)
	{
		tally_merge(&tally, &storm->tallies[i]);
	}
	for (int i = 0; i < CONSUMERS; i++)
	{
		like_totals_add(&totals, &storm->consumed[i]);
	}
	for (int i = 0; i < CONSUMERS + 1; i++)
	{
		refused += storm->refused[i];
	}
	require(scene, like_watermark(lab, &totals.watermark));
	note(scene, "requests=%d CHANGED=%lld events=%lld rebuild rounds=%lld redelivered=%lld", REQUESTS,
		 (long long) tally.changed, (long long) events, (long long) storm->rebuilds, (long long) storm->redeliveries);
	like_totals_describe(&totals, &line);
	note(scene, "%s", text_get(&line));
	text_free(&line);

	check_tally(scene, &tally, REQUESTS);
	CHECK_EQ(scene, refused, 0, "batches that the server refused");
	CHECK_EQ(scene, events, tally.changed, "events = CHANGED");
	CHECK_EQ(scene, applied + covered, events, "APPLIED + COVERED = events: one row an event, in one of the two");
	CHECK_EQ(scene, totals.applied, applied, "applied, as the consumers were told = APPLIED, as registered");
	CHECK_EQ(scene, totals.covered, covered, "covered, as the consumers were told = COVERED, as registered");
	check_at_least(scene, covered, FIRST_REBUILD_EVENTS, "COVERED: the first rebuild came before the consumers");
	check_at_least(scene, applied, 1, "APPLIED: the last third was written after the last rebuild");
	check_at_least(scene, storm->rebuilds, REBUILDS_LEAST, "rebuilds");
	CHECK(scene, storm->requests_at_last_rebuild <= HOLD_EACH * WRITERS, "no rebuild ran in the last third");
	check_at_least(scene, storm->redeliveries, 1, "old events delivered again");
}

/* NULL where this role or this server does not let WAL be read, which is said. The caller frees it. */
static SqlResult *
wal_position(Scene *scene, Session *lab)
{
	SqlResult *position;

	if (session_try(lab, NULL, "CREATE EXTENSION IF NOT EXISTS pg_walinspect", NO_ARGS) != SQL_OK)
	{
		note(scene, "positions of commits in the WAL are not looked at: %s", session_error(lab)->message);
		return NULL;
	}
	require(scene, session_execute_file(lab, scene_sql(scene, "lab/commit_positions.sql")));
	require(scene, session_query(lab, &position, "SELECT pg_current_wal_insert_lsn()", NO_ARGS));
	return position;
}

/* The clocks of the trace are held against the numbers, which here are held against what the server wrote down. */
static void
check_commit_positions(Scene *scene, Session *lab, const SqlResult *since)
{
	SqlResult *row;

	require(scene,
			session_query(lab, &row, "SELECT * FROM commit_positions($1)", ARGS(arg_text(sql_text(since, 0, 0)))));
	CHECK_EQ(scene, sql_int(row, 0, 1), sql_int(row, 0, 0), "events whose commit is found in the WAL");
	CHECK_EQ(scene, sql_int(row, 0, 2), 0, "events that committed before one with a smaller number, by the WAL");
	sql_free(row);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, ITEMS);
	SqlResult *since = wal_position(scene, lab);
	static Storm storm; /* outlives a case that ends early while threads run */

	storm.history = scene_history(scene);
	storm.seed = scene_seed(scene);
	step(scene, "%d writers x %d requests, %d consumers, redelivery, rebuilds, a sampler", WRITERS, REQUESTS_EACH,
		 CONSUMERS);
	open_sessions(scene, &storm);
	run_storm(scene, &storm);
	check_storm(scene, lab, &storm);
	check_samples(scene, &storm.samples);
	plot_samples(scene, &storm.samples);

	step(scene, "drained by the consumers alone");
	check_write_side(scene, lab, "after all have ended");
	check_drained(scene, lab, "after all have ended");
	judge_history(scene, "requests of 8 writers");
	if (since != NULL)
	{
		step(scene, "numbers beside the positions of commits in the WAL");
		check_commit_positions(scene, lab, since);
	}
	sql_free(since);
}

const Scenario scenario_32_j = {
	.suite = "32",
	.id = "32-J",
	.title = "writers, consumers, redelivery, rebuilds and a sampler at once",
	.claim = "every snapshot keeps identity, error bound and lag while all run; each event takes effect once",
	.kind = "real component, real threads",
	.guarantee = "the identity holds in every sample; drained counts equal facts; numbers follow commits",
	.observed = "read-side audit of every sample, processed_event, the judge's verdict, the WAL",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 90000,
	.run = run,
};
