/*
 * What a crash point costs: all points of the offset file's program, from what ./run.sh crashpoints says about itself.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_PAIRS 5
#define KILL_BAR_FACTOR 1.3
#define KILL_BAR_MS 80
#define STOP_BAR_MS 150

typedef struct
{
	double run_ms;   /* a run of a point, at the mean */
	double alone_ms; /* the program without a fault */
	double points_s; /* points a second, all told */
} Figures;

/* The number that stands before `unit`. */
static bool
number_before(const char *output, const char *unit, double *number)
{
	const char *end = strstr(output, unit);
	const char *begin = end;

	while (begin != NULL && begin > output && strchr("0123456789.", begin[-1]) != NULL)
	{
		begin--;
	}
	if (begin == end)
	{
		report_error("no number before \"%s\" in: %s", unit, output);
		return false;
	}
	*number = strtod(begin, NULL);
	return true;
}

static bool
measure(const Bench *bench, const char *fault, const char *jobs, Figures *figures)
{
	char *program = string_format("%s/counterproof", bench->programs);
	char *file = string_format("%s/crashpoints/offset-file.yaml", bench->home);
	char *evidence = string_format("%s/evidence-bench", bench->programs);
	const char *argv[] = {program, "crashpoints", file, "--fault", fault, "--jobs", jobs, "--evidence", evidence, NULL};
	Text output = {0};
	bool done = bench_run_command(argv, NULL, NULL, &output) &&
				number_before(text_get(&output), " ms a run", &figures->run_ms) &&
				number_before(text_get(&output), " ms, the longest wait", &figures->alone_ms) &&
				number_before(text_get(&output), " points a second", &figures->points_s);

	done = bench_run_command((const char *[]){"/bin/rm", "-rf", evidence, NULL}, NULL, NULL, NULL) && done;
	text_free(&output);
	free(program);
	free(file);
	free(evidence);
	return done;
}

/* Both faults in each pair, so that both bars are held against the same state of the machine. */
static bool
bench_costs(const Bench *bench)
{
	double kill_ms[JOBS_PAIRS];
	double stop_ms[JOBS_PAIRS];
	double alone_ms[JOBS_PAIRS];
	double bar;

	for (int i = 0; i < JOBS_PAIRS; i++)
	{
		Figures kill;
		Figures stop;

		if (!measure(bench, "kill-client", "1", &kill) || !measure(bench, "stop-server", "1", &stop))
		{
			return false;
		}
		kill_ms[i] = kill.run_ms;
		stop_ms[i] = stop.run_ms;
		alone_ms[i] = kill.alone_ms;
	}
	bar = KILL_BAR_FACTOR * bench_median(alone_ms, JOBS_PAIRS) + KILL_BAR_MS;
	bench_print_row("a kill-client run / 1.3 x alone + 80 ms", bench_median(kill_ms, JOBS_PAIRS), bar, "ms",
					bench_median(kill_ms, JOBS_PAIRS) / bar, "at most 1");
	bar = bench_median(kill_ms, JOBS_PAIRS) + STOP_BAR_MS;
	bench_print_row("a stop-server run / kill-client + 150", bench_median(stop_ms, JOBS_PAIRS), bar, "ms",
					bench_median(stop_ms, JOBS_PAIRS) / bar, "at most 1");
	return true;
}

static bool
bench_jobs(const Bench *bench)
{
	double one_s[JOBS_PAIRS];
	double two_s[JOBS_PAIRS];
	double ratios[JOBS_PAIRS];

	for (int i = 0; i < JOBS_PAIRS; i++)
	{
		Figures one;
		Figures two;

		if (!measure(bench, "kill-client", "1", &one) || !measure(bench, "kill-client", "2", &two))
		{
			return false;
		}
		one_s[i] = one.points_s;
		two_s[i] = two.points_s;
		ratios[i] = two.points_s / one.points_s;
	}
	bench_print_row("points a second, two jobs / one", bench_median(two_s, JOBS_PAIRS), bench_median(one_s, JOBS_PAIRS),
					"1/s", bench_median(ratios, JOBS_PAIRS), "at least 1.3");
	return true;
}

bool
bench_crashpoints(const Bench *bench)
{
	return bench_costs(bench) && bench_jobs(bench);
}
