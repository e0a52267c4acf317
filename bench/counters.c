/*
 * counters check and repair over 1,000,000 counts of 10,000,000 rows, beside the plain query that counts and joins, row by row to this
 * program and with the same work_mem, as the planner plans it and as it is fastest; in alternating rounds.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define CHECK_ROUNDS 5
#define REPAIR_ROUNDS 3
#define SINGLE_ROWS 4000 /* counted and written one by one in each round, of KEYS */
#define CHECK_MS 600000
#define KEYS 1000000
#define WRONG 10000

static const char *const PLAIN =
	"SELECT t.id, t.usage_count, s.n FROM media t"
	" LEFT JOIN (SELECT media_id, count(*) AS n FROM media_usages GROUP BY media_id) s ON s.media_id = t.id";

typedef struct
{
	char *conninfo;
	Session *session;
	char *program;
	char *file;
} CountersBench;

static bool
count_row(void *context, const SqlResult *row)
{
	(void) row;
	++*(int64_t *) context;
	return true;
}

/* The planner hashes what an index has in order. */
static bool
time_plain(const CountersBench *counters, const char *hashed, double *seconds)
{
	int64_t begin;
	int64_t rows = 0;

	if (!session_query(counters->session, NULL, "SELECT set_config('enable_hashagg', $1, false)",
					   ARGS(arg_text(hashed))))
	{
		return false;
	}
	begin = time_now_ns();
	if (session_stream(counters->session, PLAIN, NO_ARGS, count_row, &rows) != SQL_OK || rows != KEYS)
	{
		report_error("the plain query gave %lld rows: %s", (long long) rows, session_error(counters->session)->message);
		return false;
	}
	*seconds = bench_seconds_since(begin);
	return true;
}

/* It finds the drift, hence its exit code 1; a fast wrong answer would be none. */
static bool
time_check(const CountersBench *counters, double *seconds)
{
	const char *argv[] = {
		counters->program, "counters",         "check", "-c", counters->file, "big", "--limit-report", "1",
		"--server",        counters->conninfo, NULL};
	ProcessSpec process = {.argv = argv};
	int64_t begin = time_now_ns();
	char *expected = string_format("Scanned: %d  Correct: %d  Drifted: %d  ", KEYS, KEYS - WRONG, WRONG);
	Text output = {0};
	ProcessEnd end;
	bool done = process_run(&process, deadline_in_ms(CHECK_MS), &output, &end) && end.how == ENDED_EXIT &&
				end.code == EXIT_CODE_FAIL && strstr(text_get(&output), expected) != NULL;

	*seconds = bench_seconds_since(begin);
	if (!done)
	{
		report_error("check said: %.400s", text_get(&output));
	}
	text_free(&output);
	free(expected);
	return done;
}

static bool
bench_check(const CountersBench *counters)
{
	double plain_s[CHECK_ROUNDS], ordered_s[CHECK_ROUNDS], check_s[CHECK_ROUNDS];
	double ratios[CHECK_ROUNDS], ordered_ratios[CHECK_ROUNDS];

	for (int i = 0; i < CHECK_ROUNDS; i++)
	{
		if (!time_plain(counters, "on", &plain_s[i]) || !time_check(counters, &check_s[i]) ||
			!time_plain(counters, "off", &ordered_s[i]))
		{
			return false;
		}
		ratios[i] = check_s[i] / plain_s[i];
		ordered_ratios[i] = check_s[i] / ordered_s[i];
	}
	bench_print_row("counters check, 1M of 10M / plain join", bench_median(check_s, CHECK_ROUNDS),
					bench_median(plain_s, CHECK_ROUNDS), "s", bench_median(ratios, CHECK_ROUNDS), "at most 1.3");
	bench_print_row("the same / plain join, not hashed", bench_median(check_s, CHECK_ROUNDS),
					bench_median(ordered_s, CHECK_ROUNDS), "s", bench_median(ordered_ratios, CHECK_ROUNDS),
					"at most 1.5");
	return true;
}

/* It repairs all that is wrong, and has verified that. */
static bool
time_repair(const CountersBench *counters, double *seconds)
{
	const char *argv[] = {
		counters->program, "counters",         "repair", "-c", counters->file, "big", "--limit-report", "1",
		"--server",        counters->conninfo, NULL};
	ProcessSpec process = {.argv = argv};
	char *expected = string_format("Updated: %d  Inserted: 0  Still drifted: 0  ", WRONG);
	Text output = {0};
	ProcessEnd end;
	int64_t begin = time_now_ns();
	bool done = process_run(&process, deadline_in_ms(CHECK_MS), &output, &end) && end.how == ENDED_EXIT &&
				end.code == EXIT_CODE_PASS && strstr(text_get(&output), expected) != NULL;

	*seconds = bench_seconds_since(begin);
	if (!done)
	{
		report_error("repair said: %.400s", text_get(&output));
	}
	text_free(&output);
	free(expected);
	return done;
}

/*
 * Each row in a transaction of its own, as a loop over the keys does it, as durable as repair; all of them would take so long. Other
 * rows each time, and none that is wrong.
 */
static bool
time_single_rows(const CountersBench *counters, int round, double *seconds)
{
	int64_t begin = time_now_ns();

	for (int i = 0; i < SINGLE_ROWS; i++)
	{
		if (session_try_prepared(counters->session, NULL, "single",
								 ARGS(arg_int(1 + round + (int64_t) i * (KEYS / SINGLE_ROWS)))) != SQL_OK)
		{
			report_error("cannot count one row: %s", session_error(counters->session)->message);
			return false;
		}
	}
	*seconds = bench_seconds_since(begin) * (KEYS / SINGLE_ROWS);
	return true;
}

/* 1 % is wrong before each repair; the rows that the last round wrote are cleaned up, as they would be by then. */
static bool
spoil(const CountersBench *counters)
{
	return session_execute(counters->session, "UPDATE media SET usage_count = usage_count + 1 WHERE id % 100 = 0") &&
		   session_execute(counters->session, "VACUUM media");
}

static bool
bench_repair(const CountersBench *counters)
{
	double check_s[REPAIR_ROUNDS], repair_s[REPAIR_ROUNDS], single_s[REPAIR_ROUNDS];
	double ratios[REPAIR_ROUNDS], single_ratios[REPAIR_ROUNDS];

	if (!session_prepare(
			counters->session, "single",
			"UPDATE media SET usage_count = (SELECT count(*) FROM media_usages WHERE media_id = $1) WHERE id = $1"))
	{
		return false;
	}
	for (int i = 0; i < REPAIR_ROUNDS; i++)
	{
		if ((i > 0 && !spoil(counters)) || !time_check(counters, &check_s[i]) || !time_repair(counters, &repair_s[i]) ||
			!time_single_rows(counters, i, &single_s[i]))
		{
			return false;
		}
		ratios[i] = repair_s[i] / check_s[i];
		single_ratios[i] = single_s[i] / repair_s[i];
	}
	bench_print_row("counters repair of 1 % / check", bench_median(repair_s, REPAIR_ROUNDS),
					bench_median(check_s, REPAIR_ROUNDS), "s", bench_median(ratios, REPAIR_ROUNDS), "at most 1.6");
	bench_print_row("row by row, from samples / repair", bench_median(single_s, REPAIR_ROUNDS),
					bench_median(repair_s, REPAIR_ROUNDS), "s", bench_median(single_ratios, REPAIR_ROUNDS),
					"at least 30");
	return true;
}

static bool
peak_of(const CountersBench *counters, const char *name, double *peak_mib)
{
	const char *argv[] = {
		counters->program, "counters",         "check", "-c", counters->file, name, "--limit-report", "1",
		"--server",        counters->conninfo, NULL};

	return bench_peak_of(argv, "/dev/null", peak_mib);
}

static bool
bench_check_memory(const CountersBench *counters)
{
	double many_mib;
	double few_mib;

	if (!peak_of(counters, "all wrong", &many_mib) || !peak_of(counters, "few", &few_mib))
	{
		return false;
	}
	bench_print_row("check's peak, 1M rows wrong / 10 rows", many_mib, few_mib, "MiB", many_mib / few_mib,
					"at most 1.1");
	return true;
}

/* As autovacuum leaves them a minute later. */
static bool
make_tables(const CountersBench *counters, const char *file)
{
	return session_execute_file(counters->session, file) &&
		   session_execute(counters->session, "VACUUM ANALYZE media, media_usages") &&
		   session_execute(counters->session, "CHECKPOINT") &&
		   session_execute(counters->session, "SET work_mem = '64MB'");
}

bool
bench_counters(const Bench *bench, Cluster *cluster)
{
	CountersBench counters = {.conninfo = string_copy(cluster_conninfo(cluster, "postgres")),
							  .program = string_format("%s/counterproof", bench->programs),
							  .file = string_format("%s/bench/counters/big.yaml", bench->home)};
	char *setup = string_format("%s/bench/counters/big.sql", bench->home);
	bool done;

	counters.session = session_open(counters.conninfo, "bench");
	done = counters.session != NULL && make_tables(&counters, setup) && bench_check(&counters) &&
		   bench_check_memory(&counters) && bench_repair(&counters);
	session_close(counters.session);
	free(setup);
	free(counters.program);
	free(counters.file);
	free(counters.conninfo);
	return done;
}
