/*
 * The options, all from one table: what the command line and the environment may say, what is refused, and the help.
 */
#ifndef COUNTERPROOF_OPTIONS_H
#define COUNTERPROOF_OPTIONS_H

#include <stdio.h>

#include "base.h"
#include "counters.h"
#include "crashpoints.h"
#include "runner.h"

/* Which commands an option belongs to. */
enum
{
	FOR_NONE = 0,
	FOR_RUN = 1,
	FOR_ALL = 2,
	FOR_MUTANTS = 4,
	FOR_CRASHPOINTS = 8,
	FOR_SPEC = 16,
	FOR_LIST = 32,
	FOR_TRACE = 64,
	FOR_REPORT = 128,
	FOR_CHECK = 256,
	FOR_WATCH = 512,
	FOR_EXPLAIN = 1024,
	FOR_REPAIR = 2048,
	FOR_HISTORY = 4096,
	FOR_INIT = 8192,
	FOR_LOOK = FOR_CHECK | FOR_WATCH | FOR_EXPLAIN, /* what looks at counters and writes nothing */
	FOR_COUNTERS = FOR_LOOK | FOR_REPAIR | FOR_HISTORY | FOR_INIT,
	FOR_RUNS = FOR_RUN | FOR_ALL | FOR_MUTANTS | FOR_CRASHPOINTS | FOR_SPEC,
	FOR_EVERY = ~0,
};

/* Where a case of the selection belongs: every count-th, beginning with the index-th, from 1. */
typedef struct
{
	int index;
	int count;
} Shard;

/* Points of a program, from 1: 0..0 when all are meant. */
typedef struct
{
	int first;
	int last;
} PointRange;

/* What the commands of counters take besides. */
typedef struct
{
	const char *file; /* NULL: not given */
	const char *id;   /* NULL: all keys */
	int chunk;        /* 0: not given */
	int settle_s;
	int report_limit; /* 0: all */
	bool json;
	int every_s;
	bool until_drift;
	const char *metrics; /* NULL: none */
	CountersRepair repair;
} CountersOptions;

typedef struct
{
	RunnerConfig runner; /* replay is left to the caller; programs, sql and evidence_root are absolute */
	Shard shard;
	bool brief; /* each twin only in the case that must catch it */
	PointRange points;
	CrashFault fault;  /* 0: all */
	int sample;        /* 0: all */
	const char *order; /* the only interleaving, NULL: all */
	bool each;         /* permutations are cases of their own */
	CountersOptions counters;
	bool open;        /* the page, in a browser */
	bool compare;     /* two folders of evidence */
	bool merge;       /* folders of evidence into one */
	const char *home; /* the checkout */
	bool help;
	const char **words; /* what is left of the command line, ended by NULL */
	int word_count;
	Text replay;    /* the options that a run of the same needs, each after a blank */
	Text alike;     /* those of them that do not select: what any part of it needs to run under the same conditions */
	char *paths[5]; /* the memory of the folders above, as many as there are */
	int path_count;
	uint64_t on_line, in_environment; /* where each option was given, a bit for each row of the table */
} Options;

/* Defaults, then the environment, then the command line. false: reported, one line (EXIT_CODE_USAGE). */
extern bool options_read(Options *options, int argc, char **argv) MUST_CHECK;
extern void options_free(Options *options);

/*
 * Once it is known which command is meant: one of FOR_..., and its name, NULL for cases without a command. An option of
 * others on the command line is refused (false, reported: EXIT_CODE_USAGE); in the environment it is theirs alone, and
 * forgotten here.
 */
extern bool options_fit(Options *options, int command, const char *name) MUST_CHECK;

extern void options_print_help(FILE *stream, int commands); /* those of any of these */

#endif
