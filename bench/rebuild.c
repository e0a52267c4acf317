/*
 * The rebuild for many items, by items and facts, against the plain query that counts all facts: with every count wrong, with one
 * in a hundred, and with writers and a consumer running beside it, where the longest row lock counts. The exponent says how its
 * time grows with the facts.
 *
 * Facts are what a million requests would have left, made by one statement; their events are purged, as retention leaves it.
 * COUNTERPROOF_BENCH_FACTS is the largest data set (default 10000000, ten facts an item).
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "bench.h"
#include "like.h"
#include "rng.h"

#define FACTS_AN_ITEM 10
#define FACTS_LEAST 10000
#define FACTS_MOST 10000000
#define SIZES_MAX 8
#define ROUNDS 3
#define CHUNK 20000
#define WRITERS 4
#define NEW_USER 1000000000 /* from here on nobody likes anything yet */
#define END_MS 600000
#define LOCK_BAR_MS 1000

static const char plain_sql[] = "SELECT count(*), sum(n) FROM "
								"(SELECT item_id, count(*) AS n FROM like_fact WHERE liked GROUP BY item_id) counted";

typedef struct
{
	int64_t facts;
	double plain, all, few; /* seconds */
} Size;

typedef struct
{
	const Bench *bench;
	const char *conninfo;
	Session *session;
	Size sizes[SIZES_MAX];
	size_t count;
} RebuildBench;


/* --- the data --- */

/* From the last size to this one: the tables grow. */
static bool
grow(const RebuildBench *rebuild, int64_t from, int64_t facts)
{
	int64_t items = facts / FACTS_AN_ITEM;
	const SqlArg range[] = {arg_int(from / FACTS_AN_ITEM + 1), arg_int(items)};
	Session *session = rebuild->session;

	return session_query(session, NULL,
						 "INSERT INTO item SELECT i, 'item-' || i FROM generate_series($1::bigint, $2) i", range, 2) &&
		   session_query(
			   session, NULL,
			   "INSERT INTO like_count (item_id, n, base_seq) SELECT i, 10, 0 FROM generate_series($1::bigint, $2) i",
			   range, 2) &&
		   session_query(session, NULL,
						 "INSERT INTO like_fact SELECT u, i, true, 1 FROM generate_series(1, 10) u, "
						 "generate_series($1::bigint, $2) i",
						 range, 2) &&
		   session_execute(session, "VACUUM ANALYZE like_fact") &&
		   session_execute(session, "VACUUM ANALYZE like_count") && session_execute(session, "VACUUM ANALYZE item") &&
		   session_execute(session, "CHECKPOINT");
}


/* --- one measurement --- */

static bool
measure_plain(const RebuildBench *rebuild, double *seconds)
{
	int64_t begin = time_now_ns();
	bool done = session_query(rebuild->session, NULL, plain_sql, NO_ARGS);

	*seconds = bench_seconds_since(begin);
	return done;
}

/* One in so many counts is spoilt first, which is not measured. */
static bool
measure_rebuild(const RebuildBench *rebuild, int64_t one_in, double *seconds, LikeMended *mended)
{
	int64_t spoilt, left, begin;
	bool done = session_query_int(rebuild->session, &spoilt,
								  "WITH spoilt AS (UPDATE like_count SET n = n + 3 WHERE item_id % $1 = 0 RETURNING 1) "
								  "SELECT count(*) FROM spoilt",
								  ARGS(arg_int(one_in))) &&
				session_execute(rebuild->session, "VACUUM like_count") &&
				session_execute(rebuild->session, "CHECKPOINT");

	begin = time_now_ns();
	done = done && like_rebuild_wrong(rebuild->session, CHUNK, mended);
	*seconds = bench_seconds_since(begin);
	done = done && session_query_int(rebuild->session, &left, "SELECT like_find_wrong()", NO_ARGS);
	if (done && (mended->installed != spoilt || left != 0))
	{
		report_error("the rebuild that was measured is wrong: %" PRId64 " spoilt, %" PRId64 " installed, %" PRId64
					 " left",
					 spoilt, mended->installed, left);
		done = false;
	}
	return done && session_execute(rebuild->session, "VACUUM like_count");
}

static bool
measure_size(const RebuildBench *rebuild, Size *size)
{
	double plain[ROUNDS], all[ROUNDS], few[ROUNDS];
	LikeMended mended = {0};
	double longest_ms = 0;
	bool done = true;

	for (int i = 0; i < ROUNDS && done; i++)
	{
		done = measure_plain(rebuild, &plain[i]) && measure_rebuild(rebuild, 1, &all[i], &mended);
		longest_ms = (double) mended.longest_ns / 1e6 > longest_ms ? (double) mended.longest_ns / 1e6 : longest_ms;
		done = done && measure_rebuild(rebuild, 100, &few[i], &mended);
	}
	size->plain = done ? bench_median(plain, ROUNDS) : 0;
	size->all = done ? bench_median(all, ROUNDS) : 0;
	size->few = done ? bench_median(few, ROUNDS) : 0;
	if (done)
	{
		bench_say("  %8" PRId64 " items %9" PRId64
				  " facts: count %8.3f s, rebuild of all %8.3f s (longest chunk %4.0f ms), of 1 in 100 %8.3f s",
				  size->facts / FACTS_AN_ITEM, size->facts, size->plain, size->all, longest_ms, size->few);
	}
	return done;
}


/* --- beside writers --- */

typedef struct
{
	const RebuildBench *rebuild;
	int64_t items;
	atomic_bool over;
	atomic_llong likes;
	double longest_ms; /* of a like */
} Beside;

static bool
write_likes(Beside *beside, int worker)
{
	Session *session = session_open(beside->rebuild->conninfo, "writer");
	Rng rng = rng_stream(32, (uint64_t) worker);
	bool done = session != NULL && like_prepare(session);

	for (int64_t i = 0; done && !atomic_load(&beside->over); i++)
	{
		int64_t begin = time_now_ns();
		LikeResult result;
		double took;

		done = like_set(session, NEW_USER + i * WRITERS + worker,
						1 + (int64_t) rng_below(&rng, (uint64_t) beside->items), true, &result) &&
			   result.outcome == LIKE_CHANGED;
		took = (double) (time_now_ns() - begin) / 1e6;
		beside->longest_ms = worker == 0 && took > beside->longest_ms ? took : beside->longest_ms;
		atomic_fetch_add(&beside->likes, 1);
	}
	session_close(session);
	return done;
}

static bool
run_beside(int worker, void *context)
{
	Beside *beside = context;
	LikeTotals totals = {0};
	Session *session;
	bool done;

	if (worker < WRITERS)
	{
		return write_likes(beside, worker);
	}
	session = session_open(beside->rebuild->conninfo, "consumer");
	done = session != NULL;
	while (done && !atomic_load(&beside->over))
	{
		done = like_drain(session, 1000, &totals);
	}
	done = done && like_drain(session, 10000, &totals);
	session_close(session);
	return done;
}

static bool
measure_beside(const RebuildBench *rebuild, const Size *size)
{
	static Beside beside; /* outlives a measurement that ends early while its workers run */
	ActorGroup *group;
	LikeMended mended = {0};
	double seconds, most;
	bool done;

	beside.rebuild = rebuild;
	beside.items = size->facts / FACTS_AN_ITEM;
	atomic_store(&beside.over, false);
	done = session_execute(rebuild->session, "UPDATE like_count SET n = n + 3 WHERE item_id % 100 = 0");
	group = done ? actor_start("beside", WRITERS + 1, run_beside, &beside) : NULL;
	if (group == NULL)
	{
		return false;
	}
	actor_open_gate(group);
	seconds = (double) time_now_ns();
	done = like_rebuild_wrong(rebuild->session, CHUNK, &mended);
	seconds = ((double) time_now_ns() - seconds) / 1e9;
	atomic_store(&beside.over, true);
	done = actor_join(group, deadline_in_ms(END_MS)) && done;
	if (!done)
	{
		return false;
	}
	most = (double) mended.longest_ns / 1e6;
	bench_say(
		"  beside %d writers and a consumer: %.3f s for 1 in 100, %lld likes meanwhile (%.0f a second), the longest %.0f ms",
		WRITERS, seconds, (long long) atomic_load(&beside.likes), (double) atomic_load(&beside.likes) / seconds,
		beside.longest_ms);
	bench_print_row("longest row lock beside writers / 1 s", most, LOCK_BAR_MS, "ms", most / LOCK_BAR_MS, "at most 1");
	return session_query_int(rebuild->session, &mended.wrong, "SELECT like_find_wrong()", NO_ARGS) && mended.wrong == 0;
}


/* --- all sizes --- */

static void
print_growth(const RebuildBench *rebuild)
{
	double facts[SIZES_MAX], plain[SIZES_MAX], all[SIZES_MAX], few[SIZES_MAX];

	for (size_t i = 0; i < rebuild->count; i++)
	{
		facts[i] = (double) rebuild->sizes[i].facts;
		plain[i] = rebuild->sizes[i].plain * 1000;
		all[i] = rebuild->sizes[i].all * 1000;
		few[i] = rebuild->sizes[i].few * 1000;
	}
	bench_series("rebuild, ms", "x: facts", facts, rebuild->count);
	bench_series("rebuild, ms", "count all facts", plain, rebuild->count);
	bench_series("rebuild, ms", "rebuild, all wrong", all, rebuild->count);
	bench_series("rebuild, ms", "rebuild, 1 in 100 wrong", few, rebuild->count);
	bench_print_growth("rebuild, all wrong: growth by facts", facts, all, rebuild->count);
	bench_print_growth("rebuild, 1 in 100: growth by facts", facts, few, rebuild->count);
}

static bool
make_tables(RebuildBench *rebuild)
{
	char *sql = string_format("%s/sql/like", rebuild->bench->home);
	bool done = (rebuild->session = session_open(rebuild->conninfo, "bench")) != NULL &&
				like_create(rebuild->session, sql) && session_execute(rebuild->session, "SET work_mem = '64MB'");

	free(sql);
	return done;
}

bool
bench_rebuild(const Bench *bench, Cluster *cluster)
{
	char *conninfo = string_copy(cluster_conninfo(cluster, "postgres"));
	const char *chosen = getenv("COUNTERPROOF_BENCH_FACTS");
	RebuildBench rebuild = {.bench = bench, .conninfo = conninfo};
	int64_t most = FACTS_MOST, from = 0;
	bool done = chosen == NULL || string_to_int64(chosen, FACTS_LEAST, FACTS_MOST, &most);
	const Size *last;

	if (!done)
	{
		report_error("COUNTERPROOF_BENCH_FACTS takes a number from %d to %d, not \"%s\"", FACTS_LEAST, FACTS_MOST,
					 chosen);
	}
	done = done && make_tables(&rebuild);
	for (int64_t facts = FACTS_LEAST; facts <= most && done; facts *= 10)
	{
		rebuild.sizes[rebuild.count].facts = facts;
		done = grow(&rebuild, from, facts) && measure_size(&rebuild, &rebuild.sizes[rebuild.count]);
		rebuild.count++;
		from = facts;
	}
	if (done)
	{
		last = &rebuild.sizes[rebuild.count - 1];
		bench_print_row("rebuild, all wrong / count all facts", last->all, last->plain, "s", last->all / last->plain,
						"at most 3");
		bench_print_row("rebuild, 1 in 100 / count all facts", last->few, last->plain, "s", last->few / last->plain,
						"at most 1.5");
		done = measure_beside(&rebuild, last);
		print_growth(&rebuild);
	}
	session_close(rebuild.session);
	free(conninfo);
	return done;
}
