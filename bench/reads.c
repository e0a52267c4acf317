/*
 * readCount by what lies behind it: how many events of history, and how many that are not processed yet. Single calls on one
 * session, the median of many, histories in alternation by growing: each call must cost the same however long history is.
 *
 * History is what a drained system leaves: events, dedup rows, and a watermark at the last.
 * COUNTERPROOF_BENCH_EVENTS is the longest (default 10000000).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "like.h"

#define ITEMS 1000
#define EVENTS_LEAST 10000
#define EVENTS_MOST 10000000
#define SIZES_MAX 8
#define CALLS 2000

typedef struct
{
	Session *session;
	double events[SIZES_MAX], us[SIZES_MAX];
	size_t count;
} ReadsBench;

static bool
grow(Session *session, int64_t from, int64_t to)
{
	const SqlArg range[] = {arg_int(from + 1), arg_int(to)};

	return session_execute(
			   session, "ALTER TABLE like_outbox DROP CONSTRAINT IF EXISTS like_outbox_user_id_item_id_version_key") &&
		   session_execute(session, "DROP INDEX IF EXISTS like_outbox_item") &&
		   session_query(
			   session, NULL,
			   "INSERT INTO like_outbox SELECT i, i, 1 + i % 1000, 1, 1 FROM generate_series($1::bigint, $2) i", range,
			   2) &&
		   session_query(session, NULL,
						 "INSERT INTO processed_event SELECT i, 'APPLIED' FROM generate_series($1::bigint, $2) i",
						 range, 2) &&
		   session_execute(session, "ALTER TABLE like_outbox ADD UNIQUE (user_id, item_id, version)") &&
		   session_execute(session, "CREATE INDEX like_outbox_item ON like_outbox (item_id, seq)") &&
		   session_query(session, NULL, "UPDATE like_seq SET last = $1", ARGS(arg_int(to))) &&
		   session_query(session, NULL, "UPDATE counter_watermark SET applied_upto = $1", ARGS(arg_int(to))) &&
		   session_execute(session, "VACUUM ANALYZE") && session_execute(session, "CHECKPOINT");
}

/* *us is the median of a call; `lag` is what it must say. */
static bool
measure(Session *session, int64_t lag, double *us)
{
	double *calls = memory_get(sizeof(double) * CALLS);
	bool done = true;

	for (int i = 0; i < CALLS && done; i++)
	{
		int64_t begin = time_now_ns();
		LikeCount count = {0};
		bool found = false;

		done = like_read_count(session, 1 + i % ITEMS, 0, &found, &count);
		calls[i] = (double) (time_now_ns() - begin) / 1e3;
		if (done && (!found || count.lag != lag))
		{
			report_error("the read that was measured is wrong: lag %" PRId64 ", not %" PRId64, count.lag, lag);
			done = false;
		}
	}
	*us = done ? bench_median(calls, CALLS) : 0;
	free(calls);
	return done;
}

static bool
measure_histories(ReadsBench *reads, int64_t most)
{
	int64_t from = 0;
	bool done = true;

	for (int64_t events = EVENTS_LEAST; events <= most && done; events *= 10)
	{
		double warm;

		reads->events[reads->count] = (double) events;
		done = grow(reads->session, from, events) && measure(reads->session, 0, &warm) &&
			   measure(reads->session, 0, &reads->us[reads->count]);
		if (done)
		{
			bench_say("  %9" PRId64 " events of history: %.1f us a read", events, reads->us[reads->count]);
		}
		reads->count++;
		from = events;
	}
	return done;
}

/* The same history, with so many of its last events not processed. */
static bool
measure_lags(const ReadsBench *reads)
{
	static const int64_t lags[] = {0, 100, 1000, 10000};
	double lag[LENGTH_OF(lags)], us[LENGTH_OF(lags)];
	bool done = true;

	for (size_t i = 0; i < LENGTH_OF(lags) && done; i++)
	{
		lag[i] = (double) lags[i];
		done = session_query(reads->session, NULL,
							 "WITH gone AS (DELETE FROM processed_event p USING like_seq s WHERE p.seq > s.last - $1) "
							 "UPDATE counter_watermark SET applied_upto = (SELECT last FROM like_seq) - $1",
							 ARGS(arg_int(lags[i]))) &&
			   session_execute(reads->session, "VACUUM processed_event") && measure(reads->session, lags[i], &us[i]);
		if (done)
		{
			bench_say("  %9" PRId64 " events unprocessed: %.1f us a read", lags[i], us[i]);
		}
	}
	if (done)
	{
		bench_series("a read by lag, us", "x: unprocessed events", lag, LENGTH_OF(lags));
		bench_series("a read by lag, us", "readCount", us, LENGTH_OF(lags));
	}
	return done;
}

static bool
make_tables(const Bench *bench, Session *session)
{
	char *sql = string_format("%s/sql/like", bench->home);
	bool done =
		like_create(session, sql) &&
		session_execute(session, "INSERT INTO item SELECT i, 'item-' || i FROM generate_series(1, 1000) i") &&
		session_execute(session, "INSERT INTO like_count (item_id, n, base_seq) SELECT item_id, 0, 0 FROM item");

	free(sql);
	return done;
}

bool
bench_reads(const Bench *bench, Cluster *cluster)
{
	char *conninfo = string_copy(cluster_conninfo(cluster, "postgres"));
	const char *chosen = getenv("COUNTERPROOF_BENCH_EVENTS");
	ReadsBench reads = {.session = session_open(conninfo, "bench")};
	int64_t most = EVENTS_MOST;
	bool done = chosen == NULL || string_to_int64(chosen, EVENTS_LEAST, EVENTS_MOST, &most);

	if (!done)
	{
		report_error("COUNTERPROOF_BENCH_EVENTS takes a number from %d to %d, not \"%s\"", EVENTS_LEAST, EVENTS_MOST,
					 chosen);
	}
	done = done && reads.session != NULL && make_tables(bench, reads.session) && measure_histories(&reads, most);
	if (done)
	{
		size_t last = reads.count - 1;

		bench_print_row("readCount, longest history / shortest", reads.us[last], reads.us[0], "us",
						reads.us[last] / reads.us[0], "at most 1.2");
		bench_series("a read by history, us", "x: events", reads.events, reads.count);
		bench_series("a read by history, us", "readCount", reads.us, reads.count);
		done = measure_lags(&reads);
	}
	session_close(reads.session);
	free(conninfo);
	return done;
}
