/*
 * The scenario language: sessions, steps and permutations in SQL.
 *
 * The compatible mode runs a file as PostgreSQL 16's isolationtester does, down to the byte and the exit status. What it
 * does otherwise: locks are looked at from 0.2 ms on, not every 10 ms; a COPY is ended and said once, not for ever.
 */
#ifndef COUNTERPROOF_SPEC_H
#define COUNTERPROOF_SPEC_H

#include <stdio.h>

#include "base.h"
#include "cluster.h"
#include "runner.h"

#define SPEC_ISOLATIONTESTER_VERSION "16.14"
#define SPEC_CONNINFO_DEFAULT "dbname = postgres"

/*
 * Run a file's text in the compatible mode. Results go to `out`, what it complains of to `err`; they may be the same.
 * EXIT_CODE_FAIL: it complained.
 */
extern ExitCode spec_run_compatible(const char *text, size_t length, const char *conninfo, FILE *out, FILE *err);

/*
 * Run files so, spread over as many databases as there are jobs, the longest first. The first database is the one that
 * conninfo means, which alone runs files that name it; the others are made beside it, <name>_2 and so on, and dropped.
 * Each file's output, under a line `== FILE (exit N)`, comes in the order of the files, whenever it ran. Files that share
 * what belongs to the whole server, roles say, must not be run side by side.
 * EXIT_CODE_FAIL: one of them did. EXIT_CODE_BROKEN: a file or a database could not be had, reported.
 */
extern ExitCode spec_run_compatible_files(const char *const *files, int count, const char *conninfo, int jobs,
										  FILE *out);


/* --- judged --- */

/* A file that was read and can be run. Never changes: may be judged several times. */
typedef struct SpecFile SpecFile;

typedef enum
{
	SPEC_ALL = 0, /* written permutations, and what is explored */
	SPEC_WRITTEN, /* one permutation, the number-th, from 0 */
	SPEC_EXPLORED,
	SPEC_ORDER /* the order given */
} SpecPart;

/* NULL: refused, reported with file, line and column. */
extern SpecFile *spec_file_read(const char *path) MUST_CHECK;
extern void spec_file_free(SpecFile *file); /* NULL allowed */

extern int spec_file_permutations(const SpecFile *file); /* that are written */
extern bool spec_file_explores(const SpecFile *file);    /* by its own word, or for having no permutation */
/* How many interleavings that part has at most; exact: or more, else. An order is one. */
extern uint64_t spec_file_planned(const SpecFile *file, SpecPart part, uint64_t seed, bool *exact);
extern bool spec_file_restarts(const SpecFile *file); /* the server: it wants a cluster of its own */

typedef struct
{
	const char *server;   /* conninfo of a server on which databases may be made; those of the run are dropped again */
	const char *prepared; /* a database to copy, or NULL: empty ones */
	bool in_place;    /* in the one database that `server` names: none is made, one job; left as the file leaves it */
	Cluster *cluster; /* that server, nobody else's: may be restarted. NULL: may not */
	int jobs;         /* interleavings side by side; a file that restarts its server has one */
	uint64_t seed;
	int64_t step_limit_ms;
	SpecPart part;
	int number;
	const char *order; /* names of steps and faults, separated by blanks */
	/* Now and then, from one of several threads, one at a time. NULL allowed. planned: UINT64_MAX when it is not known. */
	void (*progress)(void *context, uint64_t run, uint64_t planned);
	void *context;
} SpecJudging;

/* Something that the file says must hold. */
typedef struct
{
	char *what; /* "invariant NAME", "serializable", "expect of the permutation in line N" */
	uint64_t held, violated;
	Text order; /* of violations: the shortest interleaving, what was wrong with it, its story step by step */
	Text detail, story;
	int launched;
} SpecCheck;

/* What became of the sessions, and how often. */
typedef struct
{
	char *text;
	char *errors; /* among it: "40001 at w2 after a wait", of several sessions separated by "; ". "": none */
	uint64_t count;
	Text order; /* the shortest that led there */
	int launched;
} SpecOutcome;

typedef struct
{
	SpecCheck *checks;
	int check_count; /* 0: nothing to judge */
	SpecOutcome *outcomes;
	int outcome_count;
	uint64_t others; /* interleavings whose outcome found no room among these */
	uint64_t planned, run, skipped, waits;
	int64_t retries_40001, retries_40p01;
	int64_t false_conflicts; /* of the former, those that may have been for nothing, see specs/README.md */
	bool counted;            /* planned is exact, if nobody blocks; else there are more */
	struct SpecMet *met;     /* of each step, how it has ended */
	int step_count;
	uint64_t *fired; /* of each fault, interleavings in which it met something */
	char **fault_names;
	int fault_count;
	Text unknown; /* why nothing can be said for certain; empty: it can */
	Text refused; /* a permutation or a step that cannot run as it is written */
	Text broken;  /* the lab, or the file's setup, does not work */
	int64_t duration_ns;
} SpecReport;

/* Judge. Never NULL; the caller frees. An interrupt ends it early: see interrupt_seen(). */
extern SpecReport *spec_judge(const SpecFile *file, const SpecJudging *judging) MUST_CHECK;
extern void spec_report_free(SpecReport *report); /* NULL allowed */

/* The check of that name. NULL: there is none. */
extern const SpecCheck *spec_report_find(const SpecReport *report, const char *what);

/* FAIL before UNKNOWN before PASS; what was refused or is broken is BROKEN. */
extern Result spec_report_result(const SpecReport *report);

typedef struct
{
	const RunnerConfig *run;
	const char *order;          /* one interleaving of the one file; NULL: all */
	bool each;                  /* each written permutation is a case of its own */
	const char *const *replays; /* for each file the command that runs it again; an order is added to it */
} SpecSelection;

/*
 * Run files one after another as cases of the suite "spec" in the evidence. EXIT_CODE_USAGE: a file is refused, before
 * anything has run, or a permutation of it as soon as it shows that it cannot be run.
 */
extern ExitCode spec_run_files(const SpecSelection *selection, const char *const *files, int count);

#endif
