/*
 * One row for each option; parsing, the environment, refusals, nearest names and help read the rows.
 */
#include "options.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "design.h"
#include "folders.h"
#include "rng.h"

#define REPEAT_MAX 10000
#define JOBS_MAX 16 /* times 20 sessions of a case: below the server's max_connections */
#define JOBS_DEFAULT_MAX 4
#define TIMEOUT_MAX_S 86400
#define SEED_DEFAULT 32
#define PG_MAJOR_DEFAULT 16
#define SHARDS_MAX 1000
#define POINTS_MAX 1000000
#define CHUNK_MAX 10000000
#define SETTLE_DEFAULT_S 2
#define SETTLE_MAX_S 3600
#define REPORT_LIMIT_DEFAULT 100
#define REPORT_LIMIT_MAX 1000000000
#define EVERY_DEFAULT_S 300
#define EVERY_MAX_S 86400
#define LOAD_MAX 100000
#define LAG_MAX_MB 100000000

/* Answers of getopt_long(): 1 for a word, letters below, rows of the table from here on. */
#define WORD_ANSWER 1
#define FIRST_LONG (CHAR_MAX + 1)

typedef enum
{
	TYPE_FLAG = 1, /* bool */
	TYPE_INT,
	TYPE_SEED,  /* uint64_t */
	TYPE_REAL,  /* double */
	TYPE_TEXT,  /* const char * */
	TYPE_COLOR, /* ColorWhen */
	TYPE_SHARD,
	TYPE_POINTS,   /* PointRange */
	TYPE_FAULT,    /* CrashFault */
	TYPE_DURATION, /* int, seconds */
	TYPE_DESIGN    /* const char *, a name of like_designs */
} OptionType;

typedef struct
{
	const char *name;
	char letter;          /* 0: none */
	const char *variable; /* its name in the environment */
	OptionType type;
	size_t offset; /* into Options */
	double least, most;
	const char *argument; /* as help names it; NULL for a flag */
	const char *help;     /* NULL: not shown, for run.sh and tests */
	int commands;         /* that know it: FOR_... */
	bool replayed;        /* a run of the same needs it */
} OptionRow;

#define IN_COUNTERS(member) (offsetof(Options, counters) + offsetof(CountersOptions, member))
#define IN_REPAIR(member) (IN_COUNTERS(repair) + offsetof(CountersRepair, member))
#define IN_RUNNER(member) (offsetof(Options, runner) + offsetof(RunnerConfig, member))

/* clang-format off */
static const OptionRow ROWS[] = {
	{"seed", 0, "COUNTERPROOF_SEED", TYPE_SEED, IN_RUNNER(seed), 0, 9223372036854775807.0, "N|random",
	 "draw everything random from N (default 32, the suite's own); random draws one", FOR_RUNS | FOR_LOOK, false},
	{"repeat", 0, "COUNTERPROOF_REPEAT", TYPE_INT, IN_RUNNER(repeat), 1, REPEAT_MAX, "N",
	 "run each case N times", FOR_RUN, true},
	{"until-fail", 0, "COUNTERPROOF_UNTIL_FAIL", TYPE_FLAG, IN_RUNNER(until_fail), 0, 1, NULL,
	 "repeat until something does not pass", FOR_RUN, false},
	{"jobs", 0, "COUNTERPROOF_JOBS", TYPE_INT, IN_RUNNER(jobs), 1, JOBS_MAX, "N",
	 "cases side by side (default: processors, at most 4); never changes the order of output.txt; counters repair: workers "
	 "(default 1)", FOR_RUNS | FOR_REPAIR, true},
	{"shard", 0, "COUNTERPROOF_SHARD", TYPE_SHARD, offsetof(Options, shard), 1, SHARDS_MAX, "I/N",
	 "run the I-th of N parts of the selection", FOR_RUN | FOR_ALL | FOR_MUTANTS | FOR_CRASHPOINTS | FOR_LIST, true},
	{"variant", 0, "COUNTERPROOF_VARIANT", TYPE_TEXT, IN_RUNNER(variant), 0, 0, "ID",
	 "run the cases over this twin of the system, one of those that `help mutants` lists", FOR_RUN, true},
	{"design", 0, "COUNTERPROOF_DESIGN", TYPE_DESIGN, IN_RUNNER(design), 0, 0, "NAME",
	 "of the like system, one of those that `help run` lists (default row)",
	 FOR_RUN | FOR_ALL | FOR_MUTANTS | FOR_CRASHPOINTS, true},
	{"brief", 0, "COUNTERPROOF_BRIEF", TYPE_FLAG, offsetof(Options, brief), 0, 1, NULL,
	 "run each twin only over the case that must catch it", FOR_MUTANTS | FOR_ALL, false},
	{"points", 0, "COUNTERPROOF_POINTS", TYPE_POINTS, offsetof(Options, points), 1, POINTS_MAX, "A-B",
	 "only these points, or one", FOR_CRASHPOINTS, true},
	{"point", 0, NULL, TYPE_POINTS, offsetof(Options, points), 1, POINTS_MAX, "N", NULL, FOR_CRASHPOINTS, true},
	{"fault", 0, "COUNTERPROOF_FAULT", TYPE_FAULT, offsetof(Options, fault), 0, 0, "NAME",
	 "only this one of kill-client, cut, stop-server, pause", FOR_CRASHPOINTS, true},
	{"sample", 0, "COUNTERPROOF_SAMPLE", TYPE_INT, offsetof(Options, sample), 1, POINTS_MAX, "N",
	 "only N, drawn by the seed: runs, spread over points and faults, or keys of each counter", FOR_CRASHPOINTS | FOR_LOOK, true},
	{"order", 0, "COUNTERPROOF_ORDER", TYPE_TEXT, offsetof(Options, order), 0, 0, "STEPS",
	 "only this interleaving, names of steps and faults", FOR_SPEC, true},
	{"each", 0, "COUNTERPROOF_EACH", TYPE_FLAG, offsetof(Options, each), 0, 1, NULL,
	 "each written permutation is a case of its own", FOR_SPEC, false},
	{"config", 'c', "COUNTERPROOF_CONFIG", TYPE_TEXT, IN_COUNTERS(file), 0, 0, "FILE",
	 "the file that names the counters", FOR_COUNTERS, false},
	{"id", 0, "COUNTERPROOF_ID", TYPE_TEXT, IN_COUNTERS(id), 0, 0, "KEY",
	 "only this key; its columns are separated by commas", FOR_LOOK | FOR_REPAIR | FOR_HISTORY, false},
	{"chunk", 0, "COUNTERPROOF_CHUNK", TYPE_INT, IN_COUNTERS(chunk), 1, CHUNK_MAX, "N",
	 "N keys at a time (default: check asks the planner whether one pass is cheaper)", FOR_LOOK | FOR_REPAIR, false},
	{"settle", 0, "COUNTERPROOF_SETTLE", TYPE_DURATION, IN_COUNTERS(settle_s), 0, SETTLE_MAX_S, "TIME",
	 "with separate_transaction, look again after TIME at what differs (default 2s)", FOR_LOOK | FOR_REPAIR, false},
	{"limit-report", 0, "COUNTERPROOF_LIMIT_REPORT", TYPE_INT, IN_COUNTERS(report_limit), 0, REPORT_LIMIT_MAX, "N",
	 "print N rows of each counter (default 100), 0 for all", FOR_CHECK | FOR_REPAIR | FOR_HISTORY, false},
	{"json", 0, "COUNTERPROOF_JSON", TYPE_FLAG, IN_COUNTERS(json), 0, 1, NULL,
	 "one JSON document instead of lines", FOR_CHECK, false},
	{"every", 0, "COUNTERPROOF_EVERY", TYPE_DURATION, IN_COUNTERS(every_s), 1, EVERY_MAX_S, "TIME",
	 "watch: begin a round every TIME, such as 30s or 5m (default 5m)", FOR_WATCH, false},
	{"until-drift", 0, "COUNTERPROOF_UNTIL_DRIFT", TYPE_FLAG, IN_COUNTERS(until_drift), 0, 1, NULL,
	 "watch: end with 1 at the first drift", FOR_WATCH, false},
	{"prometheus", 0, "COUNTERPROOF_PROMETHEUS", TYPE_TEXT, IN_COUNTERS(metrics), 0, 0, "FILE",
	 "watch: replace this text file with each round's numbers", FOR_WATCH, false},
	{"mode", 0, "COUNTERPROOF_MODE", TYPE_TEXT, IN_REPAIR(mode), 0, 0, "MODE",
	 "repair: lock, snapshot, relative, outbox or maintenance (default: what is right for the writers; --explain)", FOR_REPAIR, false},
	{"dry-run", 0, "COUNTERPROOF_DRY_RUN", TYPE_FLAG, IN_REPAIR(dry_run), 0, 1, NULL,
	 "repair: tell what would be done", FOR_REPAIR, false},
	{"record", 0, "COUNTERPROOF_RECORD", TYPE_FLAG, IN_REPAIR(record), 0, 1, NULL,
	 "repair: keep what a dry run found in the history", FOR_REPAIR, false},
	{"explain", 0, "COUNTERPROOF_EXPLAIN", TYPE_FLAG, IN_REPAIR(explain), 0, 1, NULL,
	 "repair: tell which mode is right for which writers, and what each costs", FOR_REPAIR, false},
	{"resume", 0, "COUNTERPROOF_RESUME", TYPE_TEXT, IN_REPAIR(resume), 0, 0, "RUN|last",
	 "repair: go on with a run that stopped, or join one; last: the one that has not ended, else a new one", FOR_REPAIR, false},
	{"max-change", 0, "COUNTERPROOF_MAX_CHANGE", TYPE_INT, IN_REPAIR(max_change), 0, 100, "PERCENT",
	 "repair: refuse when more of the counts, and at least 10, would become 0 (default 20)", FOR_REPAIR, false},
	{"yes", 0, "COUNTERPROOF_YES", TYPE_FLAG, IN_REPAIR(yes), 0, 1, NULL,
	 "repair: however many counts become 0", FOR_REPAIR, false},
	{"pause-file", 0, "COUNTERPROOF_PAUSE_FILE", TYPE_TEXT, IN_REPAIR(pause_file), 0, 0, "FILE",
	 "repair: wait between two chunks while this file is there", FOR_REPAIR, false},
	{"max-load", 0, "COUNTERPROOF_MAX_LOAD", TYPE_INT, IN_REPAIR(max_load), 1, LOAD_MAX, "N",
	 "repair: wait while more than N queries of others are active", FOR_REPAIR, false},
	{"max-lag", 0, "COUNTERPROOF_MAX_LAG", TYPE_INT, IN_REPAIR(max_lag_mb), 1, LAG_MAX_MB, "MB",
	 "repair: wait while a replica has more WAL than this to replay", FOR_REPAIR, false},
	{"timeout", 0, "COUNTERPROOF_TIMEOUT", TYPE_INT, IN_RUNNER(timeout_s), 1, TIMEOUT_MAX_S, "S",
	 "end a case after S seconds instead of its own deadline; past it, it is BROKEN (spec: a step, then UNKNOWN)", FOR_RUNS, true},
	{"scale", 0, "COUNTERPROOF_SCALE", TYPE_REAL, IN_RUNNER(scale), 0.1, 1000, "F",
	 "multiply every deadline by F, on a slow or busy machine", FOR_RUNS | FOR_COUNTERS, true},
	{"fail-fast", 0, "COUNTERPROOF_FAIL_FAST", TYPE_FLAG, IN_RUNNER(fail_fast), 0, 1, NULL,
	 "start nothing more after the first case that does not pass", FOR_RUN, false},
	{"keep", 0, "COUNTERPROOF_KEEP", TYPE_FLAG, IN_RUNNER(keep), 0, 1, NULL,
	 "leave the server up, print the psql line and what ends it; keep all logs and histories", FOR_RUN, false},
	{"no-trace", 0, "COUNTERPROOF_NO_TRACE", TYPE_FLAG, IN_RUNNER(no_trace), 0, 1, NULL,
	 "do not record what happened before what: no trace.shiviz, and not the check made of it", FOR_RUN | FOR_ALL, true},
	{"evidence", 0, "COUNTERPROOF_EVIDENCE", TYPE_TEXT, IN_RUNNER(evidence_root), 0, 0, "DIR",
	 "write the evidence there (default: evidence/ of the checkout)", FOR_RUNS | FOR_REPORT, false},
	{"open", 0, NULL, TYPE_FLAG, offsetof(Options, open), 0, 1, NULL,
	 "show the page in the browser", FOR_REPORT, false},
	{"compare", 0, NULL, TYPE_FLAG, offsetof(Options, compare), 0, 1, NULL,
	 "make a page of what differs between two folders of evidence", FOR_REPORT, false},
	{"merge", 0, NULL, TYPE_FLAG, offsetof(Options, merge), 0, 1, NULL,
	 "join folders of evidence, parts of a campaign over one suite, into one", FOR_REPORT, false},
	{"pg", 0, "COUNTERPROOF_PG", TYPE_INT, IN_RUNNER(pg_major), 10, 99, "MAJOR",
	 "the server's major version (default 16)", FOR_RUNS, true},
	{"pg-bin", 0, "COUNTERPROOF_PG_BIN", TYPE_TEXT, IN_RUNNER(pg_bin), 0, 0, "DIR",
	 "the folder of the server's binaries", FOR_EVERY, true},
	{"server", 0, "COUNTERPROOF_SERVER", TYPE_TEXT, IN_RUNNER(server), 0, 0, "CONNINFO",
	 "use an existing server (of version --pg, with a role that may create databases); cases that need to break one are skipped; counters: the database to look at", FOR_RUN | FOR_ALL | FOR_SPEC | FOR_COUNTERS, true},
	{"color", 0, "COUNTERPROOF_COLOR", TYPE_COLOR, IN_RUNNER(color), 0, 0, "WHEN",
	 "auto, always or never; auto means on a terminal", FOR_EVERY, false},
	{"verbose", 'v', "COUNTERPROOF_VERBOSE", TYPE_FLAG, IN_RUNNER(verbose), 0, 1, NULL,
	 "show each line of each case; counters: all SQL on stderr", FOR_RUNS | FOR_COUNTERS, false},
	{"help", 'h', NULL, TYPE_FLAG, offsetof(Options, help), 0, 1, NULL, "show this", FOR_EVERY, false},
	{"home", 0, "COUNTERPROOF_HOME", TYPE_TEXT, offsetof(Options, home), 0, 0, "DIR", NULL, FOR_EVERY, false},
	{"programs", 0, "COUNTERPROOF_PROGRAMS", TYPE_TEXT, IN_RUNNER(programs), 0, 0, "DIR", NULL, FOR_EVERY, false},
	{"sql", 0, "COUNTERPROOF_SQL", TYPE_TEXT, IN_RUNNER(sql), 0, 0, "DIR", NULL, FOR_EVERY, false},
	{"commit", 0, "COUNTERPROOF_COMMIT", TYPE_TEXT, IN_RUNNER(commit), 0, 0, "HASH", NULL, FOR_EVERY, false},
};
/* clang-format on */

#define ROW_COUNT LENGTH_OF(ROWS)

static const char *const COLOR_WORDS[] = {[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};

typedef enum
{
	GIVEN_NOWHERE = 0,
	GIVEN_ENVIRONMENT,
	GIVEN_LINE
} Given;

#define BIT(row) ((uint64_t) 1 << (row))
_Static_assert(ROW_COUNT <= 64, "a bit for each row");

/* Which option was named where, and by which word a message calls it. */
static Given
given_where(const Options *options, const OptionRow *row)
{
	uint64_t bit = BIT(row - ROWS);

	return (options->on_line & bit) != 0          ? GIVEN_LINE
		   : (options->in_environment & bit) != 0 ? GIVEN_ENVIRONMENT
												  : GIVEN_NOWHERE;
}

static const OptionRow *
row_find(const char *name)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		if (strcmp(ROWS[i].name, name) == 0)
		{
			return &ROWS[i];
		}
	}
	return NULL;
}

static void
append_called(Text *text, const OptionRow *row, Given given)
{
	text_append(text, "%s%s", given == GIVEN_ENVIRONMENT ? "" : "--",
				given == GIVEN_ENVIRONMENT ? row->variable : row->name);
}


/* --- values; each false when the value is not of its kind, having said nothing --- */

static bool
read_flag(const char *value, bool *flag)
{
	static const char *const words[][2] = {{"1", "0"}, {"yes", "no"}, {"true", "false"}, {"on", "off"}};

	for (size_t i = 0; i < LENGTH_OF(words); i++)
	{
		if (strcasecmp(value, words[i][0]) == 0 || strcasecmp(value, words[i][1]) == 0)
		{
			*flag = strcasecmp(value, words[i][0]) == 0;
			return true;
		}
	}
	return false;
}

static bool
read_real(const char *value, double least, double most, double *real)
{
	char *end;
	double number;

	/* strtod() also takes blanks, hexadecimal numbers and words such as nan. */
	if (strspn(value, "0123456789.") != strlen(value) || value[0] == '\0')
	{
		return false;
	}
	number = strtod(value, &end);
	if (*end != '\0' || number < least || number > most)
	{
		return false;
	}
	*real = number;
	return true;
}

static bool
read_shard(const char *value, int most, Shard *shard)
{
	char *copy = string_copy(value);
	char *slash = strchr(copy, '/');
	int64_t index;
	int64_t count;
	bool done = false;

	if (slash != NULL)
	{
		*slash = '\0';
		done = string_to_int64(slash + 1, 1, most, &count) && string_to_int64(copy, 1, count, &index);
	}
	if (done)
	{
		*shard = (Shard){.index = (int) index, .count = (int) count};
	}
	free(copy);
	return done;
}

/* "17" or "10-40" */
static bool
read_points(const char *value, int most, PointRange *points)
{
	char *copy = string_copy(value);
	char *hyphen = strchr(copy, '-');
	int64_t first;
	int64_t last;
	bool done;

	if (hyphen != NULL)
	{
		*hyphen = '\0';
	}
	done = string_to_int64(copy, 1, most, &first) &&
		   string_to_int64(hyphen != NULL ? hyphen + 1 : copy, first, most, &last);
	if (done)
	{
		*points = (PointRange){.first = (int) first, .last = (int) last};
	}
	free(copy);
	return done;
}

/* "90", "90s", "5m" or "2h" */
static bool
read_duration(const char *value, int least, int most, int *seconds)
{
	static const struct
	{
		char unit;
		int seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
	char *copy = string_copy(value);
	size_t length = strlen(copy);
	int64_t number;
	int factor = 1;
	bool done;

	for (size_t i = 0; length > 0 && i < LENGTH_OF(units); i++)
	{
		if (copy[length - 1] == units[i].unit)
		{
			factor = units[i].seconds;
			copy[length - 1] = '\0';
			break;
		}
	}
	done = string_to_int64(copy, 0, most, &number) && number * factor >= least && number * factor <= most;
	if (done)
	{
		*seconds = (int) number * factor;
	}
	free(copy);
	return done;
}

static bool
read_color(const char *value, ColorWhen *color)
{
	for (size_t i = 0; i < LENGTH_OF(COLOR_WORDS); i++)
	{
		if (strcmp(value, COLOR_WORDS[i]) == 0)
		{
			*color = (ColorWhen) i;
			return true;
		}
	}
	return false;
}

static bool
read_value(const OptionRow *row, const char *value, void *member)
{
	int64_t number;

	switch (row->type)
	{
		case TYPE_FLAG:
			return read_flag(value, member);
		case TYPE_INT:
			if (!string_to_int64(value, (int64_t) row->least, (int64_t) row->most, &number))
			{
				return false;
			}
			*(int *) member = (int) number;
			return true;
		case TYPE_SEED:
			if (strcmp(value, "random") == 0)
			{
				*(uint64_t *) member = rng_random_seed();
				return true;
			}
			if (!string_to_int64(value, 0, INT64_MAX, &number))
			{
				return false;
			}
			*(uint64_t *) member = (uint64_t) number;
			return true;
		case TYPE_REAL:
			return read_real(value, row->least, row->most, member);
		case TYPE_TEXT:
			*(const char **) member = value;
			return value[0] != '\0';
		case TYPE_COLOR:
			return read_color(value, member);
		case TYPE_SHARD:
			return read_shard(value, (int) row->most, member);
		case TYPE_POINTS:
			return read_points(value, (int) row->most, member);
		case TYPE_FAULT:
			return crash_fault_parse(value, member);
		case TYPE_DESIGN:
			*(const char **) member = value;
			return value[0] != '\0' && like_design_find(value) != NULL;
		case TYPE_DURATION:
			return read_duration(value, (int) row->least, (int) row->most, member);
	}
	return false;
}

/* What would have been a value, for the refusal. */
static void
append_range(Text *text, const OptionRow *row)
{
	switch (row->type)
	{
		case TYPE_FLAG:
			text_append(text, "1 or 0");
			break;
		case TYPE_INT:
			text_append(text, "a number from %.0f to %.0f", row->least, row->most);
			break;
		case TYPE_SEED:
			text_append(text, "random or a number from 0 to %" PRId64, INT64_MAX);
			break;
		case TYPE_REAL:
			text_append(text, "a number from %g to %g", row->least, row->most);
			break;
		case TYPE_TEXT:
			text_append(text, "%s, not empty", row->argument);
			break;
		case TYPE_COLOR:
			text_append(text, "auto, always or never");
			break;
		case TYPE_SHARD:
			text_append(text, "I/N with 1 <= I <= N <= %.0f", row->most);
			break;
		case TYPE_POINTS:
			text_append(text, "N or A-B with 1 <= A <= B <= %.0f", row->most);
			break;
		case TYPE_FAULT:
			text_append(text, "kill-client, cut, stop-server or pause");
			break;
		case TYPE_DESIGN:
			for (const LikeDesign *design = like_designs; design->name != NULL; design++)
			{
				text_append(text, "%s%s", design == like_designs ? "" : " or ", design->name);
			}
			break;
		case TYPE_DURATION:
			text_append(text, "a time such as 30s or 5m, from %.0fs to %.0fs", row->least, row->most);
			break;
	}
}

static bool
take(Options *options, const OptionRow *row, const char *value, Given given)
{
	Text name = {0};
	Text range = {0};
	bool done = read_value(row, value, (char *) options + row->offset);

	if (done)
	{
		*(given == GIVEN_LINE ? &options->on_line : &options->in_environment) |= BIT(row - ROWS);
	}
	else
	{
		append_called(&name, row, given);
		append_range(&range, row);
		report_error("%s takes %s, not \"%s\"", text_get(&name), text_get(&range), value);
	}
	text_free(&name);
	text_free(&range);
	return done;
}


/* --- where values come from --- */

static void
set_defaults(Options *options)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	*options = (Options){
		.runner = {.seed = SEED_DEFAULT,
				   .repeat = 1,
				   .jobs = processors < 1                  ? 1
						   : processors > JOBS_DEFAULT_MAX ? JOBS_DEFAULT_MAX
														   : (int) processors,
				   .scale = 1,
				   .pg_major = PG_MAJOR_DEFAULT,
				   .design = like_designs[0].name,
				   .commit = "unknown"},
		.shard = {.index = 1, .count = 1},
		.counters = {.settle_s = SETTLE_DEFAULT_S,
					 .report_limit = REPORT_LIMIT_DEFAULT,
					 .every_s = EVERY_DEFAULT_S,
					 .repair = {.max_change = COUNTERS_MAX_CHANGE_PERCENT}},
	};
}

static bool
read_environment(Options *options)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		const char *value = ROWS[i].variable == NULL ? NULL : getenv(ROWS[i].variable);

		if (value != NULL && value[0] != '\0' && !take(options, &ROWS[i], value, GIVEN_ENVIRONMENT))
		{
			return false;
		}
	}
	return true;
}

static bool
refuse_unknown(const char *word)
{
	const char *candidates[ROW_COUNT + 1] = {NULL};
	char *name = string_copy(word + strspn(word, "-"));
	const char *nearest = NULL;
	int count = 0;

	name[strcspn(name, "=")] = '\0';
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		if (ROWS[i].help != NULL)
		{
			candidates[count++] = ROWS[i].name;
			/* A beginning is nearer than edits tell. */
			if (nearest == NULL && strncmp(ROWS[i].name, name, strlen(name)) == 0)
			{
				nearest = ROWS[i].name;
			}
		}
	}
	report_error("unknown option %.*s; the nearest is --%s (see: help)", (int) strcspn(word, "="), word,
				 nearest != NULL ? nearest : string_nearest(name, candidates));
	free(name);
	return false;
}

/* getopt takes any beginning that is not ambiguous; then a later option would change what an old script means. */
static bool
is_whole(const char *word, const char *name)
{
	size_t length = strlen(name);

	return strncmp(word, "--", 2) != 0 ||
		   (strncmp(word + 2, name, length) == 0 && (word[2 + length] == '\0' || word[2 + length] == '='));
}

/* A letter that is unknown, or without its value. */
static bool
refuse_letter(int answer, int letter)
{
	char word[3] = {'-', (char) letter, '\0'};

	for (size_t i = 0; answer == ':' && i < ROW_COUNT; i++)
	{
		if (ROWS[i].letter == letter)
		{
			report_error("%s needs a value: %s", word, ROWS[i].argument);
			return false;
		}
	}
	return refuse_unknown(word);
}

/* One answer of getopt_long() for a word that begins with a hyphen: take the option, or say what is wrong. */
static bool
take_option(Options *options, int answer, char **argv)
{
	bool refused = answer == '?' || answer == ':';
	bool separate = optarg != NULL && optarg == argv[optind - 1];
	const char *word = argv[optind - (separate ? 2 : 1)];
	const OptionRow *row;

	if (refused && optopt == 0)
	{
		return refuse_unknown(word);
	}
	if (refused && optopt <= CHAR_MAX)
	{
		return refuse_letter(answer, optopt);
	}
	row = &ROWS[(refused ? optopt : answer) - FIRST_LONG];
	if (!is_whole(word, row->name))
	{
		return refuse_unknown(word);
	}
	if (answer == '?')
	{
		report_error("--%s takes no value", row->name);
		return false;
	}
	if (answer == ':')
	{
		report_error("--%s needs a value: %s", row->name, row->argument);
		return false;
	}
	return take(options, row, row->argument == NULL ? "1" : optarg, GIVEN_LINE);
}

static bool
take_letter(Options *options, int letter)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		if (ROWS[i].letter == letter)
		{
			return take(options, &ROWS[i], ROWS[i].argument == NULL ? "1" : optarg, GIVEN_LINE);
		}
	}
	return false;
}

static bool
read_line(Options *options, int argc, char **argv)
{
	struct option longs[ROW_COUNT + 1] = {{0}};
	/* "-": words come in their place, whatever POSIXLY_CORRECT says; ":": a missing value is told from an unknown name. */
	char shorts[2 * ROW_COUNT + 3] = "-:";
	size_t length = 2;
	int answer;

	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		longs[i] = (struct option){.name = ROWS[i].name,
								   .has_arg = ROWS[i].argument == NULL ? no_argument : required_argument,
								   .val = FIRST_LONG + (int) i};
		if (ROWS[i].letter != 0)
		{
			shorts[length++] = ROWS[i].letter;
			if (ROWS[i].argument != NULL)
			{
				shorts[length++] = ':';
			}
		}
	}
	options->words = memory_get(sizeof(char *) * ((size_t) argc + 1));
	opterr = 0;
	optind = 0; /* begin anew: glibc keeps a place inside a cluster of letters */
	while ((answer = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
	{
		if (answer == WORD_ANSWER)
		{
			options->words[options->word_count++] = optarg;
		}
		else if (answer < FIRST_LONG && answer != '?' && answer != ':' ? !take_letter(options, answer)
																	   : !take_option(options, answer, argv))
		{
			return false;
		}
	}
	for (; optind < argc; optind++)
	{
		options->words[options->word_count++] = argv[optind];
	}
	return true;
}


/* --- what does not go together --- */

typedef struct
{
	const char *one;
	const char *other;
	bool
		line_only; /* of the other: run.sh names the binaries that it found in the environment, whatever is asked for */
	const char *why;
} Conflict;

static const Conflict CONFLICTS[] = {
	{"server", "pg-bin", true, "an existing server brings its own binaries"},
	{"until-fail", "repeat", false, "one repeats without end, the other a number of times"},
	{"keep", "until-fail", false, "only the server of a single round can be left up"},
	{"keep", "repeat", false, "only the server of a single round can be left up"},
	{"id", "sample", false, "one names the key, the other draws keys"},
};

/* What the command does not know is refused on its line, and forgotten when it comes from the environment. */

static size_t
size_of(OptionType type)
{
	switch (type)
	{
		case TYPE_FLAG:
			return sizeof(bool);
		case TYPE_INT:
		case TYPE_DURATION:
			return sizeof(int);
		case TYPE_SEED:
			return sizeof(uint64_t);
		case TYPE_REAL:
			return sizeof(double);
		case TYPE_TEXT:
		case TYPE_DESIGN:
			return sizeof(const char *);
		case TYPE_COLOR:
			return sizeof(ColorWhen);
		case TYPE_SHARD:
			return sizeof(Shard);
		case TYPE_POINTS:
			return sizeof(PointRange);
		case TYPE_FAULT:
			return sizeof(CrashFault);
	}
	return 0;
}

bool
options_fit(Options *options, int command, const char *name)
{
	Options defaults;

	set_defaults(&defaults);
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		const OptionRow *row = &ROWS[i];

		if ((row->commands & command) != 0)
		{
			continue;
		}
		if ((options->on_line & BIT(i)) != 0)
		{
			report_error("--%s cannot go with %s (see: help %.*s)", row->name, name != NULL ? name : "runs of cases",
						 name != NULL ? (int) strcspn(name, " ") : 3, name != NULL ? name : "run");
			return false;
		}
		if ((options->in_environment & BIT(i)) != 0)
		{
			memcpy((char *) options + row->offset, (const char *) &defaults + row->offset, size_of(row->type));
		}
	}
	return true;
}

/* Given, and not as what it is anyway. */
static Given
given_as(const Options *options, const OptionRow *row)
{
	const void *member = (const char *) options + row->offset;

	if ((row->type == TYPE_FLAG && !*(const bool *) member) ||
		(row->offset == IN_RUNNER(repeat) && *(const int *) member == 1))
	{
		return GIVEN_NOWHERE;
	}
	return given_where(options, row);
}

static bool
refuse_conflicts(const Options *options)
{
	for (size_t i = 0; i < LENGTH_OF(CONFLICTS); i++)
	{
		const OptionRow *one = row_find(CONFLICTS[i].one);
		const OptionRow *other = row_find(CONFLICTS[i].other);
		Given given_one = given_as(options, one);
		Given given_other = given_as(options, other);
		Text text = {0};

		if (given_one == GIVEN_NOWHERE || given_other < (CONFLICTS[i].line_only ? GIVEN_LINE : GIVEN_ENVIRONMENT))
		{
			continue;
		}
		append_called(&text, one, given_one);
		text_append(&text, " cannot go with ");
		append_called(&text, other, given_other);
		report_error("%s: %s", text_get(&text), CONFLICTS[i].why);
		text_free(&text);
		return false;
	}
	return true;
}


/* --- the whole --- */

static void
append_given(Text *text, const Options *options, const OptionRow *row)
{
	const char *member = (const char *) options + row->offset;

	if (row->type == TYPE_FLAG)
	{
		if (*(const bool *) (const void *) member)
		{
			text_append(text, " --%s", row->name);
		}
		return;
	}
	text_append(text, " --%s ", row->name);
	switch (row->type)
	{
		case TYPE_INT:
			text_append(text, "%d", *(const int *) (const void *) member);
			break;
		case TYPE_REAL:
			text_append(text, "%g", *(const double *) (const void *) member);
			break;
		case TYPE_SHARD:
			text_append(text, "%d/%d", options->shard.index, options->shard.count);
			break;
		case TYPE_POINTS:
			text_append(text, "%d", options->points.first);
			if (options->points.last != options->points.first)
			{
				text_append(text, "-%d", options->points.last);
			}
			break;
		case TYPE_FAULT:
			text_append(text, "%s", crash_fault_name(options->fault));
			break;
		default:
			if (row->offset == IN_RUNNER(server))
			{
				text_append(text, "%s", row->argument); /* it may hold a password */
			}
			else
			{
				text_append_word(text, *(const char *const *) (const void *) member);
			}
			break;
	}
}

/* Which part of a run, and not under which conditions. */
static bool
selects(const OptionRow *row)
{
	return row->type == TYPE_POINTS || row->type == TYPE_FAULT || row->type == TYPE_SHARD ||
		   row->offset == offsetof(Options, sample) || row->offset == offsetof(Options, order) ||
		   row->offset == IN_RUNNER(jobs);
}

static void
append_replay(Options *options)
{
	text_append(&options->replay, " --seed %" PRIu64, options->runner.seed);
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		if (!ROWS[i].replayed || (options->on_line & BIT(i)) == 0)
		{
			continue;
		}
		append_given(&options->replay, options, &ROWS[i]);
		if (!selects(&ROWS[i]))
		{
			append_given(&options->alike, options, &ROWS[i]);
		}
	}
}

/* A number of cases side by side that nobody asked for is none of workers in somebody's database. */
static void
set_workers(Options *options)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		if (ROWS[i].offset == IN_RUNNER(jobs))
		{
			options->counters.repair.jobs = given_where(options, &ROWS[i]) == GIVEN_NOWHERE ? 1 : options->runner.jobs;
		}
	}
}

bool
options_read(Options *options, int argc, char **argv)
{
	set_defaults(options);
	if (!read_environment(options) || !read_line(options, argc, argv) || !refuse_conflicts(options))
	{
		return false;
	}
	set_workers(options);
	append_replay(options);
	folders_find(options);
	return true;
}

void
options_free(Options *options)
{
	for (int i = 0; i < options->path_count; i++)
	{
		free(options->paths[i]);
	}
	text_free(&options->replay);
	text_free(&options->alike);
	free(options->words);
}

void
options_print_help(FILE *stream, int commands)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
	{
		const OptionRow *row = &ROWS[i];
		char letter[3] = {'-', row->letter, '\0'};
		char *left;

		if (row->help == NULL || (row->commands & commands) == 0)
		{
			continue;
		}
		left = string_format("%s%s--%s%s%s", row->letter != 0 ? letter : "", row->letter != 0 ? ", " : "", row->name,
							 row->argument == NULL ? "" : " ", row->argument == NULL ? "" : row->argument);
		fprintf(stream, "  %-18s  %s\n", left, row->help);
		free(left);
	}
	fprintf(
		stream,
		"Those of runs can also stand in the environment: --until-fail is COUNTERPROOF_UNTIL_FAIL=1. The command line "
		"wins.\n");
}
