/*
 * The command line: what is taken, what is refused with which words, and what words select.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "registry.h"
#include "suite.h"

#define WORDS_MAX 32

static Options options;

/* Read a command line given as one string with blanks between its words. */
static bool
read_words(const char *line)
{
	static char copy[512];
	char *argv[WORDS_MAX + 1] = {NULL};
	int argc = 0;

	options_free(&options);
	snprintf(copy, sizeof(copy), "counterproof %s", line);
	for (char *word = strtok(copy, " "); word != NULL && argc < WORDS_MAX; word = strtok(NULL, " "))
	{
		argv[argc++] = word;
	}
	return options_read(&options, argc, argv);
}

static void
forget(void)
{
	options_free(&options);
	memset(&options, 0, sizeof(options));
}

static void
assert_refused(const char *line, const char *expected)
{
	char error[512];

	ck_assert_msg(!read_words(line), "taken: %s", line);
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, expected);
}

START_TEST(defaults)
{
	char here[512];

	ck_assert(read_words("32"));
	ck_assert_uint_eq(options.runner.seed, 32);
	ck_assert_int_eq(options.runner.repeat, 1);
	ck_assert(options.runner.jobs >= 1 && options.runner.jobs <= 4);
	ck_assert_int_eq(options.runner.timeout_s, 0);
	ck_assert(options.runner.scale == 1.0);
	ck_assert_int_eq(options.runner.pg_major, 16);
	ck_assert_int_eq(options.runner.color, COLOR_AUTO);
	ck_assert(!options.runner.keep && !options.runner.fail_fast && !options.runner.until_fail);
	ck_assert_ptr_null(options.runner.server);
	ck_assert_str_eq(options.runner.commit, "unknown");
	ck_assert_int_eq(options.shard.index, 1);
	ck_assert_int_eq(options.shard.count, 1);
	ck_assert_int_eq(options.word_count, 1);
	ck_assert_str_eq(options.words[0], "32");
	ck_assert_str_eq(text_get(&options.replay), " --seed 32");
	ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
	strcat(here, "/evidence");
	ck_assert_str_eq(options.runner.evidence_root, here);
}
END_TEST

START_TEST(everything_given)
{
	ck_assert(
		read_words("--seed=7 32-K --repeat 5 --jobs 16 --shard 2/3 --timeout 9 --scale 2.5 --fail-fast --evidence /e "
				   "--pg 15 --color never"));
	ck_assert_uint_eq(options.runner.seed, 7);
	ck_assert_int_eq(options.runner.repeat, 5);
	ck_assert_int_eq(options.runner.jobs, 16);
	ck_assert_int_eq(options.shard.index, 2);
	ck_assert_int_eq(options.shard.count, 3);
	ck_assert_int_eq(options.runner.timeout_s, 9);
	ck_assert(options.runner.scale == 2.5);
	ck_assert(options.runner.fail_fast);
	ck_assert_str_eq(options.runner.evidence_root, "/e");
	ck_assert_int_eq(options.runner.pg_major, 15);
	ck_assert_int_eq(options.runner.color, COLOR_NEVER);
	ck_assert_int_eq(options.word_count, 1);
	ck_assert_str_eq(options.words[0], "32-K");
	ck_assert_str_eq(text_get(&options.replay),
					 " --seed 7 --repeat 5 --jobs 16 --shard 2/3 --timeout 9 --scale 2.5 --pg 15");
	ck_assert(read_words("-v a --keep -- --seed b"));
	ck_assert(options.runner.verbose && options.runner.keep);
	ck_assert_int_eq(options.word_count, 3);
	ck_assert_str_eq(options.words[1], "--seed");
	ck_assert_str_eq(options.words[2], "b");
	ck_assert(read_words("--keep -vh"));
	ck_assert(options.runner.verbose && options.help);
	ck_assert(read_words("32 --seed 0 --repeat 10000 --scale 0.1"));
	ck_assert(read_words("32 --seed 9223372036854775807 --scale 1000"));
	ck_assert_uint_eq(options.runner.seed, 9223372036854775807u);
	ck_assert(read_words("32 --no-trace"));
	ck_assert(options.runner.no_trace);
	ck_assert_str_eq(text_get(&options.replay), " --seed 32 --no-trace");
	ck_assert(read_words("32 --server host=x"));
	ck_assert_str_eq(options.runner.server, "host=x");
	ck_assert_str_eq(text_get(&options.replay), " --seed 32 --server CONNINFO");
}
END_TEST

START_TEST(pages_of_evidence)
{
	ck_assert(read_words("report --compare before after --open"));
	ck_assert(options.compare && options.open);
	ck_assert_int_eq(options.word_count, 3);
	ck_assert(options_fit(&options, FOR_REPORT, "report"));
	ck_assert(!options_fit(&options, FOR_RUN, NULL));
	ck_assert(read_words("report --keep"));
	ck_assert(!options_fit(&options, FOR_REPORT, "report"));
}
END_TEST

START_TEST(points_of_a_program)
{
	ck_assert(read_words("crashpoints a.yaml --points 10-40 --fault stop-server --sample 12 --timeout 3 --jobs 2"));
	ck_assert_int_eq(options.points.first, 10);
	ck_assert_int_eq(options.points.last, 40);
	ck_assert_int_eq(options.fault, CRASH_STOP_SERVER);
	ck_assert_int_eq(options.sample, 12);
	ck_assert_str_eq(text_get(&options.replay),
					 " --seed 32 --jobs 2 --points 10-40 --fault stop-server --sample 12 --timeout 3");
	ck_assert_str_eq(text_get(&options.alike), " --timeout 3");
	ck_assert(read_words("crashpoints a.yaml --point 17"));
	ck_assert_int_eq(options.points.first, 17);
	ck_assert_int_eq(options.points.last, 17);
	ck_assert_str_eq(text_get(&options.replay), " --seed 32 --point 17");
	assert_refused("--points 4-3", "--points takes N or A-B with 1 <= A <= B <= 1000000, not \"4-3\"");
	assert_refused("--points 0", "--points takes N or A-B with 1 <= A <= B <= 1000000, not \"0\"");
	assert_refused("--points -3", "--points takes N or A-B with 1 <= A <= B <= 1000000, not \"-3\"");
	assert_refused("--points 3-", "--points takes N or A-B with 1 <= A <= B <= 1000000, not \"3-\"");
	assert_refused("--design rwo", "--design takes row or sequencer or per-item or wal, not \"rwo\"");
	assert_refused("--fault shoot", "--fault takes kill-client, cut, stop-server or pause, not \"shoot\"");
	assert_refused("--sample 0", "--sample takes a number from 1 to 1000000, not \"0\"");
}
END_TEST

START_TEST(random_seed)
{
	uint64_t first;
	char replay[64];

	ck_assert(read_words("--seed random 32"));
	first = options.runner.seed;
	ck_assert_uint_lt(first, 1ull << 63);
	snprintf(replay, sizeof(replay), " --seed %llu", (unsigned long long) first);
	ck_assert_str_eq(text_get(&options.replay), replay);
	ck_assert(read_words("--seed random 32"));
	ck_assert_uint_ne(options.runner.seed, first);
}
END_TEST

START_TEST(environment_twins)
{
	setenv("COUNTERPROOF_REPEAT", "3", 1);
	setenv("COUNTERPROOF_FAIL_FAST", "yes", 1);
	setenv("COUNTERPROOF_HOME", "/house", 1);
	setenv("COUNTERPROOF_COMMIT", "abc", 1);
	setenv("COUNTERPROOF_SEED", "", 1);
	setenv("PG_BIN", "/pg/bin", 1);
	ck_assert(read_words("32"));
	ck_assert_int_eq(options.runner.repeat, 3);
	ck_assert(options.runner.fail_fast);
	ck_assert_uint_eq(options.runner.seed, 32);
	ck_assert_str_eq(options.runner.commit, "abc");
	ck_assert_str_eq(options.runner.sql, "/house/sql");
	ck_assert_str_eq(options.runner.evidence_root, "/house/evidence");
	ck_assert_str_eq(options.runner.pg_bin, "/pg/bin");
	ck_assert_str_eq(text_get(&options.replay), " --seed 32");
	ck_assert(read_words("32 --repeat 4 --pg-bin /other"));
	ck_assert_int_eq(options.runner.repeat, 4);
	ck_assert_str_eq(options.runner.pg_bin, "/other");
	assert_refused("32 --keep",
				   "--keep cannot go with COUNTERPROOF_REPEAT: only the server of a single round can be left up");
	setenv("COUNTERPROOF_REPEAT", "many", 1);
	assert_refused("32", "COUNTERPROOF_REPEAT takes a number from 1 to 10000, not \"many\"");
	setenv("COUNTERPROOF_REPEAT", "1", 1);
	setenv("COUNTERPROOF_FAIL_FAST", "maybe", 1);
	assert_refused("32", "COUNTERPROOF_FAIL_FAST takes 1 or 0, not \"maybe\"");
	setenv("COUNTERPROOF_FAIL_FAST", "off", 1);
	setenv("COUNTERPROOF_PG_BIN", "/found", 1);
	ck_assert(read_words("32 --server host=x --keep"));
	ck_assert(!options.runner.fail_fast);
}
END_TEST

START_TEST(refusals)
{
	assert_refused("32 --sede 7", "unknown option --sede; the nearest is --seed (see: help)");
	assert_refused("32 --repeats=7", "unknown option --repeats; the nearest is --repeat (see: help)");
	assert_refused("32 --rep 7", "unknown option --rep; the nearest is --repeat (see: help)");
	assert_refused("32 --see=7", "unknown option --see; the nearest is --seed (see: help)");
	assert_refused("32 --verb", "unknown option --verb; the nearest is --verbose (see: help)");
	assert_refused("32 --repeat", "--repeat needs a value: N");
	assert_refused("32 --keep=1", "--keep takes no value");
	assert_refused("32 --repeat 0", "--repeat takes a number from 1 to 10000, not \"0\"");
	assert_refused("32 --repeat 10001", "--repeat takes a number from 1 to 10000, not \"10001\"");
	assert_refused("32 --repeat 5x", "--repeat takes a number from 1 to 10000, not \"5x\"");
	assert_refused("32 --repeat -v", "--repeat takes a number from 1 to 10000, not \"-v\"");
	assert_refused("32 --seed -1", "--seed takes random or a number from 0 to 9223372036854775807, not \"-1\"");
	assert_refused("32 --seed 9223372036854775808",
				   "--seed takes random or a number from 0 to 9223372036854775807, not \"9223372036854775808\"");
	assert_refused("32 --jobs 17", "--jobs takes a number from 1 to 16, not \"17\"");
	assert_refused("32 --scale 0.01", "--scale takes a number from 0.1 to 1000, not \"0.01\"");
	assert_refused("32 --scale nan", "--scale takes a number from 0.1 to 1000, not \"nan\"");
	assert_refused("32 --scale 1.2.3", "--scale takes a number from 0.1 to 1000, not \"1.2.3\"");
	assert_refused("32 --shard 3/2", "--shard takes I/N with 1 <= I <= N <= 1000, not \"3/2\"");
	assert_refused("32 --shard 2", "--shard takes I/N with 1 <= I <= N <= 1000, not \"2\"");
	assert_refused("32 --color red", "--color takes auto, always or never, not \"red\"");
	assert_refused("32 --evidence=", "--evidence takes DIR, not empty, not \"\"");
}
END_TEST

START_TEST(counters_have_options_of_their_own)
{
	ck_assert(read_words("counters check -c x.yaml name --chunk 500 --id 7 --limit-report 0 --json --settle 3"));
	ck_assert_str_eq(options.counters.file, "x.yaml");
	ck_assert_str_eq(options.counters.id, "7");
	ck_assert_int_eq(options.counters.chunk, 500);
	ck_assert_int_eq(options.counters.report_limit, 0);
	ck_assert_int_eq(options.counters.settle_s, 3);
	ck_assert(options.counters.json);
	ck_assert_int_eq(options.word_count, 3);
	ck_assert(read_words("counters watch -cx.yaml --every 5m --until-drift --prometheus /m"));
	ck_assert_str_eq(options.counters.file, "x.yaml");
	ck_assert_int_eq(options.counters.every_s, 300);
	ck_assert_int_eq(options.counters.settle_s, 2);
	ck_assert_int_eq(options.counters.report_limit, 100);
	ck_assert(read_words("counters watch --config x --every 2h --sample 9"));
	ck_assert_int_eq(options.sample, 9);
	ck_assert_int_eq(options.counters.every_s, 7200);
	assert_refused("counters check -c", "-c needs a value: FILE");
	assert_refused("counters check --id 7 --sample 3",
				   "--id cannot go with --sample: one names the key, the other draws keys");
	assert_refused("counters watch --every 25h",
				   "--every takes a time such as 30s or 5m, from 1s to 86400s, not \"25h\"");
	assert_refused("counters watch --every 0", "--every takes a time such as 30s or 5m, from 1s to 86400s, not \"0\"");
	assert_refused("counters watch --every m", "--every takes a time such as 30s or 5m, from 1s to 86400s, not \"m\"");
	assert_refused("counters check --chunk 0", "--chunk takes a number from 1 to 10000000, not \"0\"");
}
END_TEST

/* What an action of counters would ignore it refuses; in the environment it is theirs who know it. */
START_TEST(options_of_an_action)
{
	static const struct
	{
		const char *words;
		int knows;
	} rows[] = {
		{"--every 5m", FOR_WATCH},
		{"--until-drift", FOR_WATCH},
		{"--prometheus f", FOR_WATCH},
		{"--json", FOR_CHECK},
		{"--seed 1", FOR_CHECK | FOR_WATCH | FOR_EXPLAIN},
		{"--sample 1", FOR_CHECK | FOR_WATCH | FOR_EXPLAIN},
		{"--chunk 1", FOR_CHECK | FOR_WATCH | FOR_EXPLAIN | FOR_REPAIR},
		{"--settle 1", FOR_CHECK | FOR_WATCH | FOR_EXPLAIN | FOR_REPAIR},
		{"--id 1", FOR_CHECK | FOR_WATCH | FOR_EXPLAIN | FOR_REPAIR | FOR_HISTORY},
		{"--limit-report 1", FOR_CHECK | FOR_REPAIR | FOR_HISTORY},
		{"--jobs 2", FOR_REPAIR},
		{"--max-change 1", FOR_REPAIR},
		{"--dry-run", FOR_REPAIR},
		{"-v --scale 2 --server x -c f", FOR_COUNTERS},
	};
	static const int actions[] = {FOR_CHECK, FOR_WATCH, FOR_EXPLAIN, FOR_REPAIR, FOR_HISTORY, FOR_INIT};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		for (size_t k = 0; k < LENGTH_OF(actions); k++)
		{
			ck_assert(read_words(rows[i].words));
			ck_assert_msg(options_fit(&options, actions[k], "counters x") == ((rows[i].knows & actions[k]) != 0),
						  "%s for action %d", rows[i].words, actions[k]);
		}
	}
	setenv("COUNTERPROOF_EVERY", "7s", 1);
	ck_assert(read_words("counters check"));
	ck_assert(options_fit(&options, FOR_CHECK, "counters check"));
	ck_assert_int_eq(options.counters.every_s, 300);
	unsetenv("COUNTERPROOF_EVERY");
}
END_TEST

START_TEST(unknown_letter_and_combinations)
{
	char error[512];

	ck_assert(!read_words("32 -x"));
	notice_last_error(error, sizeof(error));
	ck_assert_int_eq(strncmp(error, "unknown option -x; the nearest is --", 36), 0);
	assert_refused("32 --server x --pg-bin /y",
				   "--server cannot go with --pg-bin: an existing server brings its own binaries");
	assert_refused("32 --until-fail --repeat 3",
				   "--until-fail cannot go with --repeat: one repeats without end, the other a number of times");
	assert_refused("32 --keep --repeat 2",
				   "--keep cannot go with --repeat: only the server of a single round can be left up");
	assert_refused("32 --keep --until-fail",
				   "--keep cannot go with --until-fail: only the server of a single round can be left up");
	ck_assert(read_words("32 --keep --repeat 1"));
}
END_TEST

START_TEST(help_comes_from_the_table)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	options_print_help(stream, FOR_RUN);
	fclose(stream);
	ck_assert_ptr_nonnull(strstr(text, "  --shard I/N         run the I-th of N parts of the selection\n"));
	ck_assert_ptr_nonnull(
		strstr(text, "  -v, --verbose       show each line of each case; counters: all SQL on stderr\n"));
	ck_assert_ptr_null(strstr(text, "--programs"));
	ck_assert_ptr_null(strstr(text, "--brief"));
	free(text);
}
END_TEST

START_TEST(options_of_other_commands)
{
	char error[512];

	ck_assert(read_words("mutants --brief --jobs 2"));
	ck_assert(options_fit(&options, FOR_MUTANTS, "mutants"));
	ck_assert(options.brief);
	ck_assert(!options_fit(&options, FOR_RUN, NULL));
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, "--brief cannot go with runs of cases (see: help run)");
	ck_assert(!options_fit(&options, FOR_LIST, "list"));
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, "--jobs cannot go with list (see: help list)");

	setenv("COUNTERPROOF_POINTS", "3-5", 1);
	setenv("COUNTERPROOF_VARIANT", "M07", 1);
	setenv("COUNTERPROOF_SHARD", "2/3", 1);
	ck_assert(read_words("spec x"));
	ck_assert_int_eq(options.points.last, 5);
	ck_assert(options_fit(&options, FOR_SPEC, "spec"));
	ck_assert_int_eq(options.points.first, 0);
	ck_assert_int_eq(options.points.last, 0);
	ck_assert_ptr_null(options.runner.variant);
	ck_assert_int_eq(options.shard.index, 1);
	ck_assert_int_eq(options.shard.count, 1);
	ck_assert(read_words("32"));
	ck_assert(options_fit(&options, FOR_RUN, NULL));
	ck_assert_str_eq(options.runner.variant, "M07");
	ck_assert_int_eq(options.shard.count, 3);
}
END_TEST


/* --- selection --- */

static const Scenario CASE_A = {.suite = "32", .id = "32-A"};
static const Scenario CASE_B = {.suite = "32", .id = "32-B"};
static const Scenario CASE_SKEW = {.suite = "isolation", .id = "isolation/skew"};
static const Scenario *const CASES[] = {&CASE_A, &CASE_B, &CASE_SKEW, NULL};
static const char *const COMMANDS[] = {"list", "help", NULL};

static void
assert_selected(const char *const *words, int word_count, const Scenario *const *expected, int expected_count)
{
	const Scenario **selected = NULL;
	int count = 0;

	ck_assert(registry_select(CASES, words, word_count, COMMANDS, &selected, &count));
	ck_assert_int_eq(count, expected_count);
	for (int i = 0; i < count; i++)
	{
		ck_assert_ptr_eq(selected[i], expected[i]);
	}
	free(selected);
}

START_TEST(selection)
{
	assert_selected((const char *[]){"all"}, 1, CASES, 3);
	assert_selected((const char *[]){"32"}, 1, CASES, 2);
	assert_selected((const char *[]){"isolation/skew", "32-B", "32", "32-B"}, 4, CASES, 3);
	assert_selected((const char *[]){"32-B"}, 1, &CASES[1], 1);
	assert_selected((const char *[]){"isolation"}, 1, &CASES[2], 1);
}
END_TEST

START_TEST(selection_refused)
{
	static const char *const rows[][2] = {
		{"32-b", "no suite or case is named \"32-b\"; the nearest is \"32-B\" (see: list)"},
		{"31", "no suite or case is named \"31\"; the nearest is \"32\" (see: list)"},
		{"isolaton", "no suite or case is named \"isolaton\"; the nearest is \"isolation\" (see: list)"},
		{"lits", "no suite or case is named \"lits\"; the nearest is \"list\" (see: list)"},
	};
	const Scenario **selected = NULL;
	int count = 0;
	char error[256];

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		const char *words[] = {"32-A", rows[i][0]};

		ck_assert(!registry_select(CASES, words, 2, COMMANDS, &selected, &count));
		notice_last_error(error, sizeof(error));
		ck_assert_str_eq(error, rows[i][1]);
		ck_assert_ptr_null(selected);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("options");
	TCase *tcase = tcase_create("options");

	tcase_set_timeout(tcase, 30);
	tcase_add_checked_fixture(tcase, NULL, forget);
	tcase_add_test(tcase, defaults);
	tcase_add_test(tcase, everything_given);
	tcase_add_test(tcase, pages_of_evidence);
	tcase_add_test(tcase, points_of_a_program);
	tcase_add_test(tcase, random_seed);
	tcase_add_test(tcase, environment_twins);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, unknown_letter_and_combinations);
	tcase_add_test(tcase, options_of_an_action);
	tcase_add_test(tcase, counters_have_options_of_their_own);
	tcase_add_test(tcase, help_comes_from_the_table);
	tcase_add_test(tcase, options_of_other_commands);
	tcase_add_test(tcase, selection);
	tcase_add_test(tcase, selection_refused);
	suite_add_tcase(suite, tcase);
	for (char **variable = environ; *variable != NULL;)
	{
		if (strncmp(*variable, "COUNTERPROOF_", 13) == 0)
		{
			char *name = strndup(*variable, strcspn(*variable, "="));

			unsetenv(name);
			free(name);
			variable = environ;
		}
		else
		{
			variable++;
		}
	}
	unsetenv("PG_BIN");
	return suite_run(suite);
}
