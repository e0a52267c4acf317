/*
 * Crash points: a program is run once through the proxy, then again for every message and every kind of fault, recovered,
 * and judged by SQL invariants. The file's format and the output's grammar are in crashpoints/README.md and evidence/README.md.
 */
#ifndef COUNTERPROOF_CRASHPOINTS_H
#define COUNTERPROOF_CRASHPOINTS_H

#include "base.h"
#include "runner.h"

typedef enum
{
	CRASH_KILL_CLIENT = 1,
	CRASH_CUT,
	CRASH_STOP_SERVER,
	CRASH_PAUSE
} CrashFault;

#define CRASH_FAULTS 4

extern const char *crash_fault_name(CrashFault fault);                         /* "kill-client" */
extern bool crash_fault_parse(const char *name, CrashFault *fault) MUST_CHECK; /* false: reports nothing */

typedef struct
{
	const RunnerConfig *run; /* seed, jobs, scale, binaries, evidence, programs, replay, color */
	int first_point;         /* 0: all points, else first..last */
	int last_point;
	CrashFault fault; /* 0: all that the file names */
	int sample;       /* 0: all, else that many (point, fault) pairs, drawn by the seed and spread over the points */
	int shard_index;  /* every shard_count-th pair, from the shard_index-th, from 1 */
	int shard_count;
	const char *const *replays; /* for each file the command that runs it again; a point and a fault are added to it */
} CrashSelection;

/*
 * Run files one after another; each is a case of the suite "crashpoints" in the evidence. EXIT_CODE_USAGE: a file is not
 * what it should be, reported with line and column, nothing was started. EXIT_CODE_FAIL: an invariant was violated, also
 * without any fault. EXIT_CODE_BROKEN: also when a setup fails, or the program does not end with 0 without any fault.
 * EXIT_CODE_INCONCLUSIVE: a point was not reached again, or nothing was tried.
 */
extern ExitCode crashpoints_run(const CrashSelection *selection, const char *const *files, int count);

#endif
