/* What the parts of the bench share. */
#ifndef COUNTERPROOF_BENCH_H
#define COUNTERPROOF_BENCH_H

#include "cluster.h"
#include "proc.h"

#define PAIRS_MAX 15

typedef struct
{
	ServerKit kit;
	const char *home;     /* the checkout */
	const char *programs; /* the built programs */
	const char *pgbench;
	const char *evidence; /* a folder for runs */
	int pairs;
} Bench;

extern double bench_median(const double *values, int count);
extern double bench_seconds_since(int64_t begin_ns);

/* A row of the table. A bar, "at least 1.6" or "at most 3", is held against the ratio; "" is none. */
extern void bench_print_row(const char *what, double value, double yardstick, const char *unit, double ratio,
							const char *bar);

/*
 * How `y` grows with `x`: the exponent of the power that fits best over the upper half of the sizes, where fixed costs no
 * longer count. 1 is in proportion; more than 1.1 is a finding, and misses the bar.
 */
extern void bench_print_growth(const char *what, const double *x, const double *y, size_t count);

/* A line beside the table. */
extern void bench_say(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * A curve of the part that runs, for its page; whole numbers. One that is named "x: clients" is no curve, but the axis of those
 * with the same plot.
 */
extern void bench_series(const char *plot, const char *name, const double *values, size_t count);

/* Run to the end, with exit code 0; what it printed is appended to `output` (may be NULL). false: reported. */
extern bool bench_run_command(const char *const *argv, const char *directory, const Account *account,
							  Text *output) MUST_CHECK;

/* Run to the end, whatever its exit code; its own peak resident memory. false: reported. */
extern bool bench_peak_of(const char *const *argv, const char *output_file, double *peak_mib) MUST_CHECK;


/* --- record.c, for the bench's main program: evidence of suite bench below `root`, a case for each part that is measured --- */

typedef struct
{
	const char *name;
	const char *what;
} BenchTitle;

extern bool record_open(const char *root, const BenchTitle *titles, int count, const char *replay) MUST_CHECK;
extern void record_begin(int part);
extern void record_end(bool done);                 /* false: it could not be measured, which was reported */
extern bool record_close(bool *missed) MUST_CHECK; /* *missed: a row did not reach its bar */


/* --- the parts --- */

extern bool bench_crashpoints(const Bench *bench) MUST_CHECK;
extern bool bench_counters(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_isolation(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_spec(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_clocks(const Bench *bench) MUST_CHECK;
extern bool bench_reads(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_rebuild(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_write(const Bench *bench, Cluster *cluster) MUST_CHECK;

#endif
