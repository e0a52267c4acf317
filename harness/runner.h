/*
 * Runs selected cases: each in a process and a database (or a cluster) of its own, with a deadline, watched by a host
 * process that finds what the case left behind; collects what they say into evidence; answers the exit code.
 */
#ifndef COUNTERPROOF_RUNNER_H
#define COUNTERPROOF_RUNNER_H

#include "base.h"
#include "evidence.h"
#include "scenario.h"

typedef enum
{
	COLOR_AUTO = 0,
	COLOR_ALWAYS,
	COLOR_NEVER
} ColorWhen;

typedef struct
{
	uint64_t seed;
	int repeat;      /* how often each case runs, at least 1 */
	bool until_fail; /* repeat until something does not pass */
	bool fail_fast;  /* start nothing more after the first case that does not pass */
	bool keep;       /* leave the server up and print the psql line */
	int jobs;        /* cases side by side, at least 1 */
	int timeout_s;   /* per case, 0: the case's own deadline */
	double scale;    /* multiplies every deadline */
	int pg_major;
	const char *pg_bin; /* folder of the server binaries */
	const char *server; /* conninfo of an existing server, or NULL */
	const char *evidence_root;
	const char *programs;        /* folder of the built programs */
	const char *sql;             /* the sql/ folder */
	const char *variant;         /* handed to the cases, which decide what it means; NULL: the system as it is */
	const char *design;          /* likewise; NULL: the default */
	const char *server_settings; /* further lines for postgresql.conf of each server of the run, NULL: none */
	const char *commit;          /* for env.txt, "unknown" without git */
	const ScenarioTale *tales;   /* of the cases, for the evidence; NULL: none */
	const char *replay;          /* the command that runs this selection again, for the evidence */
	ColorWhen color;
	bool verbose;
	bool no_trace; /* cases do not record what happened before what */
} RunnerConfig;

/* What the cases of a run come to: 1 before 3 before 4 before 0. */
extern ExitCode runner_exit_code(const EvidenceTotals *totals);

extern ExitCode runner_run(const RunnerConfig *config, const Scenario *const *scenarios, int count);

#endif
