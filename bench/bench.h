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

extern void bench_print_row(const char *what, double value, double yardstick, const char *unit, double ratio,
							const char *bar);

/* Run to the end, with exit code 0; what it printed is appended to `output` (may be NULL). false: reported. */
extern bool bench_run_command(const char *const *argv, const char *directory, const Account *account,
							  Text *output) MUST_CHECK;

/* Run to the end, whatever its exit code; its own peak resident memory. false: reported. */
extern bool bench_peak_of(const char *const *argv, const char *output_file, double *peak_mib) MUST_CHECK;

extern bool bench_crashpoints(const Bench *bench) MUST_CHECK;
extern bool bench_counters(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_isolation(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_spec(const Bench *bench, Cluster *cluster) MUST_CHECK;
extern bool bench_clocks(const Bench *bench) MUST_CHECK;

#endif
