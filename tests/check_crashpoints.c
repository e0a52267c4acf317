/*
 * Crash points: what a file may say, which points a record has, which are tried, and whole runs over small programs, right
 * and wrong.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "crashpoints/pairs.h"
#include "crashpoints/plan.h"
#include "crashpoints/points.h"
#include "server_suite.h"

#define ONCE "invariants: [{name: once, sql: SELECT count(*) FROM done HAVING count(*) <> 1}]\n"
#define WITH_KEY "setup: CREATE TABLE done (id int PRIMARY KEY)\n"
#define WITHOUT_KEY "setup: CREATE TABLE done (id int)\n"
#define INSERT "program: [crash-client, BEGIN, INSERT INTO done VALUES (1), COMMIT]\n"
#define INSERT_ONCE "program: [crash-client, BEGIN, INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING, COMMIT]\n"

/* Of INSERT, in their order: what a run of it looks like. */
enum
{
	TERMINATE = 13,
	INSERT_POINTS = 13
};

static char folder[] = "/tmp/check-crashpoints-XXXXXX";


/* --- the file --- */

static char *
in_folder(const char *name)
{
	return string_format("%s/%s", folder, name);
}

/* Write folder/name and answer its path; the caller frees. */
static char *
write_file(const char *name, const char *content)
{
	char *path = in_folder(name);

	ck_assert(file_replace(path, content));
	return path;
}

static CrashPlan *
read_plan(const char *content)
{
	char *path = write_file("plan.yaml", content);
	CrashPlan *plan = crash_plan_read(path);

	free(path);
	return plan;
}

static void
assert_refused(const char *content, const char *where_and_what)
{
	char *expected = string_format("%s/plan.yaml:%s", folder, where_and_what);
	char error[600];

	ck_assert_msg(read_plan(content) == NULL, "taken: %s", content);
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, expected);
	free(expected);
}

START_TEST(a_file_that_is_right)
{
	CrashPlan *plan =
		read_plan("setup: |\n  CREATE TABLE a ();\n  CREATE TABLE b ();\n"
				  "setup_program: echo set up\n"
				  "program: psql -c 'x'\n"
				  "recover: [mend, 'a b']\n"
				  "concurrent: [beside]\n"
				  "invariants:\n  - name: one\n    sql: SELECT 1\n  - {name: two, sql: SELECT 2}\n"
				  "faults: [pause, kill-client]\n"
				  "timeout: 3\npause: 70\nsettle: 20\ntcp: true\nneeds: psql\nexpect: violation\npoints: turns\n"
				  "server: |\n  work_mem = 7MB\n");

	ck_assert_ptr_nonnull(plan);
	ck_assert_str_eq(plan->id, "plan");
	ck_assert_str_eq(plan->setup, "CREATE TABLE a ();\nCREATE TABLE b ();\n");
	ck_assert_str_eq(plan->program.argv[2], "psql -c 'x'");
	ck_assert_str_eq(plan->recover.argv[2], "exec \"$@\"");
	ck_assert_str_eq(plan->recover.argv[4], "mend");
	ck_assert_str_eq(plan->recover.argv[5], "a b");
	ck_assert_ptr_null(plan->recover.argv[6]);
	ck_assert_ptr_nonnull(plan->concurrent.argv);
	ck_assert_ptr_nonnull(plan->setup_program.argv);
	ck_assert_int_eq(plan->invariant_count, 2);
	ck_assert_str_eq(plan->invariants[1].sql, "SELECT 2");
	ck_assert_int_eq(plan->fault_count, 2);
	ck_assert_int_eq(plan->faults[0], CRASH_KILL_CLIENT);
	ck_assert_int_eq(plan->faults[1], CRASH_PAUSE);
	ck_assert_int_eq(plan->timeout_ms, 3000);
	ck_assert_int_eq(plan->pause_ms, 70);
	ck_assert_int_eq(plan->settle_ms, 20);
	ck_assert(plan->tcp);
	ck_assert_str_eq(plan->needs, "psql");
	ck_assert_str_eq(plan->server, "work_mem = 7MB\n");
	ck_assert(plan->expects_violation);
	ck_assert(plan->turns);
	crash_plan_free(plan);
}
END_TEST

START_TEST(what_a_file_does_not_say)
{
	CrashPlan *plan = read_plan("program: x\n" ONCE);

	ck_assert_ptr_nonnull(plan);
	ck_assert_ptr_null(plan->setup);
	ck_assert_ptr_null(plan->setup_file);
	ck_assert_ptr_null(plan->concurrent.argv);
	ck_assert_str_eq(plan->recover.argv[2], "x");
	ck_assert_int_eq(plan->fault_count, CRASH_FAULTS);
	ck_assert_int_eq(plan->timeout_ms, 10000);
	ck_assert_int_eq(plan->pause_ms, 500);
	ck_assert_int_eq(plan->settle_ms, 0);
	ck_assert(!plan->tcp);
	ck_assert_ptr_null(plan->needs);
	ck_assert_ptr_null(plan->server);
	ck_assert(!plan->expects_violation);
	ck_assert(!plan->turns);
	crash_plan_free(plan);
}
END_TEST

START_TEST(a_setup_file_lies_beside_the_file)
{
	char *sql = write_file("setup.sql", "SELECT 1");
	CrashPlan *plan = read_plan("setup_file: setup.sql\nprogram: x\n" ONCE);
	char real[512];

	ck_assert_ptr_nonnull(plan);
	ck_assert_ptr_nonnull(realpath(sql, real));
	ck_assert_str_eq(plan->setup_file, real);
	crash_plan_free(plan);
	free(sql);
}
END_TEST

static const struct
{
	const char *content;
	const char *refusal; /* after the file's name and a colon */
} REFUSALS[] = {
	{"", "1:1: not a mapping of keys to values"},
	{"- a\n", "1:1: not a mapping of keys to values"},
	{"program: x\n\ttab: y\n", "2:1: found a tab character that violates indentation"},
	{"program: \"open\n", "2:1: found unexpected end of stream"},
	{"program: x\n" ONCE "---\nprogram: y\n", "4:1: a second document; one file is one"},
	{"program: x\n" ONCE "tiemout: 3\n", "3:1: unknown key \"tiemout\"; the nearest is \"timeout\""},
	{"program: x\ninvariants:\n  - name: a\n    sqll: b\n", "4:5: unknown key \"sqll\"; the nearest is \"sql\""},
	{"program: x\n" ONCE "program: y\n", "3:1: \"program\" a second time"},
	{"program: x\n", "1:10: the key \"invariants\" is missing"},
	{ONCE, "1:13: the key \"program\" is missing"},
	{"program: x\ninvariants: []\n", "2:13: Insufficient entries (0 of 1 min) in sequence."},
	{"program: x\ninvariants:\n  - name: a\n", "3:11: the key \"sql\" is missing"},
	{"program: {a: b}\n" ONCE, "1:10: Expecting STRING, got event: MAPPING_START"},
	{"program: [a, {b: c}]\n" ONCE, "1:14: Expecting STRING, got event: MAPPING_START"},
	{"program: []\n" ONCE, "1:10: Insufficient entries (0 of 1 min) in sequence."},
	{"program:\n" ONCE, "1:9: there must be something here"},
	{"program: x\n" ONCE "setup: [a]\n", "3:8: Expecting STRING, got event: SEQUENCE_START"},
	{"program: x\n" ONCE "timeout: abc\n", "3:10: Invalid INT value: 'abc'"},
	{"program: x\n" ONCE "timeout: [1]\n", "3:10: Expecting INT, got event: SEQUENCE_START"},
	{"program: x\n" ONCE "timeout: 0\n", "3:10: timeout is a number from 1 to 3600, not 0"},
	{"program: x\n" ONCE "timeout: 1.5\n", "3:10: timeout is a number from 1 to 3600, not 1.5"},
	{"program: x\n" ONCE "timeout: 010\n", "3:10: timeout is a number from 1 to 3600, not 010"},
	{"program: x\ninvariants: [{name: a, sql: \"b\\0c\"}]\n", "2:29: a text with a zero byte"},
	{"program: x\ninvariants: [{name: recovers, sql: b}]\n",
	 "2:13: \"recovers\" is the name of the invariant that is there always"},
	{"program: &a x\nrecover: *a\n" ONCE, "2:1: YAML alias unsupported"},
	{"program: x\n" ONCE "pause: 600001\n", "3:8: pause is a number from 1 to 600000, not 600001"},
	{"program: x\n" ONCE "settle: -1\n", "3:9: settle is a number from 1 to 600000, not -1"},
	{"program: x\n" ONCE "expect: trouble\n", "3:9: \"trouble\" is none of: clean, violation"},
	{"program: x\n" ONCE "points: some\n", "3:9: \"some\" is none of: all, turns"},
	{"program: x\n" ONCE "tcp: maybe\n", "3:6: \"maybe\" is none of: true, false"},
	{"program: x\n" ONCE "faults: [cut, shoot]\n", "3:15: \"shoot\" is none of: kill-client, cut, stop-server, pause"},
	{"program: x\n" ONCE "faults: cut\n", "3:9: Expecting SEQUENCE, got event: SCALAR"},
	{"program: x\n" ONCE "faults: [cut, cut]\n", "3:9: cut a second time"},
	{"program: x\ninvariants: [{name: a, sql: b}, {name: a, sql: c}]\n", "2:13: two invariants have the name \"a\""},
	{"program: x\ninvariants: [{name: \"a\\tb\", sql: b}]\n",
	 "2:13: the name of an invariant is one line without tabs"},
	{"program: x\n" ONCE "setup: a\nsetup_file: b\n", "4:1: setup and setup_file: one of them"},
};

START_TEST(files_that_are_refused)
{
	assert_refused(REFUSALS[_i].content, REFUSALS[_i].refusal);
}
END_TEST

START_TEST(files_that_are_not_there)
{
	char *expected = string_format("%s/plan.yaml:3:13: %s/gone.sql: No such file or directory", folder, folder);
	char error[600];

	ck_assert_ptr_null(read_plan("program: x\n" ONCE "setup_file: gone.sql\n"));
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, expected);
	ck_assert_ptr_null(crash_plan_read("/nowhere/x.yaml"));
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, "/nowhere/x.yaml: No such file or directory");
	ck_assert_ptr_null(crash_plan_read("two\nlines.yaml"));
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, "the name of a file has a control character: two ...");
	free(expected);
}
END_TEST


/* --- points --- */

/* One message a word: c or s for its direction, its type, then perhaps a number of messages in its run. '^' is a start. */
static size_t
make_record(const char *line, ProxyMessage *record)
{
	char *copy = string_copy(line);
	int64_t numbers[2] = {0};
	size_t count = 0;

	for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
	{
		Direction direction = word[0] == 'c' ? FROM_CLIENT : FROM_SERVER;
		int64_t *number = &numbers[direction == FROM_CLIENT ? 0 : 1];
		int64_t length = word[2] != '\0' ? atoi(word + 2) : 1;

		record[count] = (ProxyMessage){.connection = 1,
									   .direction = direction,
									   .type = (char) (word[1] == '^' ? PROXY_STARTUP : word[1]),
									   .first = *number + 1,
									   .last = *number + length};
		*number += length;
		count++;
	}
	free(copy);
	return count;
}

/* Written the same way with their number in the direction. */
static void
assert_are(const CrashPoints *points, const char *expected)
{
	Text got = {0};

	for (int i = 0; i < points->count; i++)
	{
		const ProxyMessage *message = &points->points[i].message;

		text_append(&got, "%s%c%c%d", i > 0 ? " " : "", message->direction == FROM_CLIENT ? 'c' : 's',
					message->type == PROXY_STARTUP ? '^' : message->type, (int) message->first);
	}
	ck_assert_str_eq(text_get(&got), expected);
	text_free(&got);
}

static void
assert_points(const char *line, const char *expected)
{
	ProxyMessage record[64];
	CrashPoints points = {0};

	crash_points_derive(record, make_record(line, record), &points);
	assert_are(&points, expected);
	crash_points_free(&points);
}

static void
assert_ends(const char *line, const char *expected)
{
	ProxyMessage record[64];
	CrashPoints points = {0};

	crash_points_derive(record, make_record(line, record), &points);
	crash_points_keep_ends(&points);
	assert_are(&points, expected);
	crash_points_free(&points);
}

START_TEST(points_of_a_record)
{
	/* of a start three, in the order of turns */
	assert_points("c^ sR sS14 sK sZ cX", "c^1 sR1 sZ17 cX2");
	assert_points("c^ sR sE", "c^1 sR1 sE2");
	/* of a run three, or two, or one */
	assert_points("c^ sR sZ cQ sT sD sC sZ", "c^1 sR1 sZ2 cQ2 sT3 sD4 sC5 sZ6");
	assert_points("c^ sR sZ cQ sD2 sC sZ", "c^1 sR1 sZ2 cQ2 sD3 sD4 sC5 sZ6");
	assert_points("c^ sR sZ cQ sD3 sC sZ", "c^1 sR1 sZ2 cQ2 sD3 sD4 sD5 sC6 sZ7");
	assert_points("c^ sR sZ cQ sD100 sC sZ", "c^1 sR1 sZ2 cQ2 sD3 sD53 sD102 sC103 sZ104");
	/* a ParameterStatus after the start is a point */
	assert_points("c^ sR sZ cQ sC sS sZ", "c^1 sR1 sZ2 cQ2 sC3 sS4 sZ5");
	/* COPY in: the client's turn is between */
	assert_points("c^ sR sZ cQ sG cd5 cc sC sZ cX", "c^1 sR1 sZ2 cQ2 sG3 cd3 cd5 cd7 cc8 sC4 sZ5 cX9");
}
END_TEST

START_TEST(points_do_not_depend_on_how_directions_mix)
{
	const char *expected = "c^1 sR1 sZ2 cP2 cB3 cE4 cS5 s13 s24 sC5 sZ6 cP6 cS7 s17 sZ8 cX8";

	assert_points("c^ sR sZ cP cB cE cS s1 s2 sC sZ cP cS s1 sZ cX", expected);
	assert_points("c^ sR sZ cP s1 cB s2 cE sC cS cP sZ cS cX s1 sZ", expected);
	assert_points("c^ sR sZ cP cB cE cS cP cS cX s1 s2 sC sZ s1 sZ", expected);
}
END_TEST

START_TEST(points_at_the_ends_of_turns)
{
	assert_ends("c^ sR sZ cP cB cD cE cS s1 s2 sT sD3 sC sZ cQ sC sC sZ cX",
				"c^1 sR1 sZ2 cP2 cS6 s13 sZ10 cQ7 sC11 sZ13 cX8");
	assert_ends("c^", "c^1");
	assert_ends("", "");
}
END_TEST

static void
derive(CrashPoints *points, const char *line, const char *const *tags)
{
	ProxyMessage record[64];
	size_t count = make_record(line, record);

	for (size_t i = 0; tags != NULL && i < count && tags[i] != NULL; i++)
	{
		snprintf(record[i].tag, sizeof(record[i].tag), "%s", tags[i]);
	}
	crash_points_derive(record, count, points);
}

START_TEST(a_program_whose_counts_differ_is_unstable)
{
	CrashPoints points = {0};
	CrashPoints same = {0};
	CrashPoints longer = {0};
	Text text = {0};
	const char *tags[] = {"", "0", "I", "COMMIT", "COMMIT", "I", "COMMIT", NULL};

	derive(&points, "c^ sR sZ cQ sC sZ cQ", tags);
	derive(&same, "c^ sR sZ cQ sC sZ cQ", tags);
	crash_points_compare(&points, &same);
	ck_assert(!points.unstable);
	derive(&longer, "c^ sR sZ cQ sD2 sC sZ cQ", NULL);
	crash_points_compare(&points, &longer);
	ck_assert(points.unstable);
	ck_assert_int_eq(points.points[6].ordinal, 2);
	crash_point_describe(&points, &points.points[6], &text);
	ck_assert_str_eq(text_get(&text), "2nd client Query COMMIT");
	text_free(&text);
	ck_assert(!same.unstable);
	crash_points_free(&longer);
	derive(&longer, "c^ sR sZ cQ sC sZ", tags);
	crash_points_compare(&same, &longer); /* shorter, and the same as far as it goes */
	ck_assert(same.unstable);
	crash_points_free(&points);
	crash_points_free(&same);
	crash_points_free(&longer);
}
END_TEST

START_TEST(a_text_that_differs_is_no_other_message)
{
	CrashPoints points = {0};
	CrashPoints other = {0};
	const char *tags[] = {"", "0", "I", "SELECT 17", NULL};
	const char *others[] = {"", "0", "I", "SELECT 18", NULL};
	ProxyMessage held = {.connection = 1, .direction = FROM_CLIENT, .type = 'Q', .tag = "SELECT 19"};

	derive(&points, "c^ sR sZ cQ", tags);
	ck_assert(!crash_point_is(&points.points[3], &held));
	derive(&other, "c^ sR sZ cQ", others);
	crash_points_compare(&points, &other);
	ck_assert(!points.unstable);
	ck_assert(crash_point_is(&points.points[3], &held));
	held.type = 'P';
	ck_assert(!crash_point_is(&points.points[3], &held));
	ck_assert(!points.points[2].tag_varies);
	crash_points_free(&points);
	crash_points_free(&other);
}
END_TEST


/* --- pairs --- */

static const RunnerConfig config = {.seed = 32};

static CrashPlan
plan_of(int faults)
{
	CrashPlan plan = {.fault_count = faults};

	for (int i = 0; i < faults; i++)
	{
		plan.faults[i] = (CrashFault) (i + 1);
	}
	return plan;
}

START_TEST(all_pairs_in_order)
{
	CrashSelection selection = {.run = &config, .shard_index = 1, .shard_count = 1};
	CrashPlan plan = plan_of(4);
	int count;
	CrashPair *pairs = crash_pairs_select(&selection, &plan, 5, &count);

	ck_assert_int_eq(count, 20);
	for (int i = 0; i < count; i++)
	{
		ck_assert_int_eq(pairs[i].point, i / 4);
		ck_assert_int_eq(pairs[i].fault, i % 4 + 1);
	}
	free(pairs);
	selection.first_point = 2;
	selection.last_point = 3;
	selection.fault = CRASH_CUT;
	pairs = crash_pairs_select(&selection, &plan, 5, &count);
	ck_assert_int_eq(count, 2);
	ck_assert_int_eq(pairs[0].point, 1);
	ck_assert_int_eq(pairs[1].point, 2);
	ck_assert_int_eq(pairs[1].fault, CRASH_CUT);
	free(pairs);
	selection.last_point = 99;
	free(crash_pairs_select(&selection, &plan, 5, &count));
	ck_assert_int_eq(count, 4);
	selection.first_point = 6;
	free(crash_pairs_select(&selection, &plan, 5, &count));
	ck_assert_int_eq(count, 0);
	selection = (CrashSelection){.run = &config, .fault = CRASH_PAUSE, .shard_index = 1, .shard_count = 1, .sample = 3};
	plan = plan_of(2);
	free(crash_pairs_select(&selection, &plan, 5, &count));
	ck_assert_int_eq(count, 0); /* the file does not have that fault */
}
END_TEST

START_TEST(shards_split_what_there_is)
{
	CrashPlan plan = plan_of(4);

	for (int shards = 1; shards <= 7; shards++)
	{
		int seen[28] = {0};

		for (int shard = 1; shard <= shards; shard++)
		{
			CrashSelection selection = {.run = &config, .shard_index = shard, .shard_count = shards};
			int count;
			CrashPair *pairs = crash_pairs_select(&selection, &plan, 7, &count);

			ck_assert_int_ge(count, 28 / shards);
			for (int i = 0; i < count; i++)
			{
				seen[pairs[i].point * 4 + pairs[i].fault - 1]++;
			}
			free(pairs);
		}
		for (int i = 0; i < 28; i++)
		{
			ck_assert_int_eq(seen[i], 1);
		}
	}
}
END_TEST

START_TEST(shards_split_a_sample_too)
{
	CrashSelection selection = {.run = &config, .sample = 9, .shard_count = 1, .shard_index = 1};
	CrashPlan plan = plan_of(4);
	int all;
	CrashPair *whole = crash_pairs_select(&selection, &plan, 13, &all);
	int found = 0;

	ck_assert_int_eq(all, 9);
	selection.shard_count = 3;
	for (selection.shard_index = 1; selection.shard_index <= 3; selection.shard_index++)
	{
		int count;
		CrashPair *part = crash_pairs_select(&selection, &plan, 13, &count);

		ck_assert_int_eq(count, 3);
		for (int i = 0; i < count; i++)
		{
			const CrashPair *same = &whole[3 * i + selection.shard_index - 1];

			ck_assert_int_eq(part[i].point, same->point);
			ck_assert_int_eq(part[i].fault, same->fault);
			found++;
		}
		free(part);
	}
	ck_assert_int_eq(found, all);
	free(whole);
}
END_TEST

/* As many as asked for, each once, the same for a seed, faults as even as can be, points no further apart than they must. */
static void
assert_sample(uint64_t seed, int points, int faults, int sample)
{
	RunnerConfig run = {.seed = seed};
	CrashSelection selection = {.run = &run, .sample = sample, .shard_index = 1, .shard_count = 1};
	CrashPlan plan = plan_of(faults);
	int of_fault[CRASH_FAULTS + 1] = {0};
	int of_point[64] = {0};
	int count;
	int again;
	CrashPair *pairs = crash_pairs_select(&selection, &plan, points, &count);
	CrashPair *same = crash_pairs_select(&selection, &plan, points, &again);
	int expected = sample < points * faults ? sample : points * faults;

	ck_assert_int_eq(count, expected);
	ck_assert_int_eq(again, count);
	ck_assert_int_eq(memcmp(pairs, same, sizeof(*pairs) * (size_t) count), 0);
	for (int i = 0; i < count; i++)
	{
		ck_assert(i == 0 || pairs[i].point > pairs[i - 1].point ||
				  (pairs[i].point == pairs[i - 1].point && pairs[i].fault > pairs[i - 1].fault));
		of_fault[pairs[i].fault]++;
		of_point[pairs[i].point]++;
	}
	for (int fault = 1; fault <= faults; fault++)
	{
		ck_assert_int_ge(of_fault[fault], count / faults);
		ck_assert_int_le(of_fault[fault], (count + faults - 1) / faults);
	}
	for (int point = 0; point < points; point++)
	{
		ck_assert_int_ge(of_point[point], count / points);
		ck_assert_int_le(of_point[point], (count + points - 1) / points);
	}
	free(pairs);
	free(same);
}

START_TEST(samples_are_even)
{
	for (uint64_t seed = 0; seed < 20; seed++)
	{
		for (int points = 1; points <= 40; points += 3)
		{
			for (int sample = 1; sample <= 4 * points + 1; sample++)
			{
				assert_sample(seed, points, 4, sample);
				assert_sample(seed, points, 1 + sample % 3, sample);
			}
		}
	}
}
END_TEST


/* --- whole runs --- */

static const char *programs;

/* Run `counterproof crashpoints <file of this content> OPTIONS`; its output is kept in `output`. Answers its exit code. */
static int
crash(const char *content, const char *options, Text *output)
{
	char *path = write_file("run.yaml", content);
	char *line = string_format("exec '%s/counterproof' crashpoints '%s' --evidence '%s/evidence' %s", programs, path,
							   folder, options);
	const char *argv[] = {"/bin/sh", "-c", line, NULL};
	ProcessSpec spec = {.argv = argv, .own_group = true};
	ProcessEnd end;

	ck_assert(process_run(&spec, soon(), output, &end));
	ck_assert_int_eq(end.how, ENDED_EXIT);
	free(line);
	free(path);
	return end.code;
}

static void
assert_has(const Text *output, const char *part)
{
	ck_assert_msg(strstr(text_get(output), part) != NULL, "\"%s\" is not in: %s", part, text_get(output));
}

static void
assert_has_not(const Text *output, const char *part)
{
	ck_assert_msg(strstr(text_get(output), part) == NULL, "\"%s\" is in: %s", part, text_get(output));
}

static void
assert_run(const char *content, const char *options, int code, const char *part)
{
	Text output = {0};
	int got = crash(content, options, &output);

	ck_assert_msg(got == code, "exit %d, not %d: %s", got, code, text_get(&output));
	assert_has(&output, part);
	text_free(&output);
}

START_TEST(an_idempotent_program_holds_everywhere)
{
	Text output = {0};
	Text evidence = {0};
	char *path = in_folder("evidence/crashpoints/output.txt");

	ck_assert_int_eq(crash(WITH_KEY INSERT_ONCE ONCE, "--jobs 2", &output), EXIT_CODE_PASS);
	assert_has(&output, "13 points, from 3 runs");
	assert_has(&output, "kill-client: fired 13, tried 13 held 13 violated 0 unknown 0");
	assert_has(&output, "cut: fired 13, tried 13 held 13 violated 0 unknown 0");
	assert_has(&output, "stop-server: fired 13, tried 13 held 13 violated 0 unknown 0");
	assert_has(&output, "pause: fired 13, tried 13 held 13 violated 0 unknown 0");
	assert_has_not(&output, "partial");
	ck_assert(file_read(path, &evidence));
	assert_has(&evidence, "note     #10 client Query COMMIT\n");
	assert_has(&evidence, "PASS     #13 client Terminate, pause; expected held, got held\n");
	assert_has(&evidence, "SUMMARY  passed=52 failed=0 unknown=0");
	text_free(&output);
	text_free(&evidence);
	free(path);
}
END_TEST

/* Which of the points are violated, as a string of 0 and 1. */
static void
violated_points(const Text *output, const char *fault, char *marks)
{
	memset(marks, '0', INSERT_POINTS);
	marks[INSERT_POINTS] = '\0';
	for (const char *at = strstr(text_get(output), "FAIL     #"); at != NULL; at = strstr(at + 1, "FAIL     #"))
	{
		const char *comma = strchr(at, '\n');
		char *named = string_format(", %s: ", fault);
		char *line = string_format("%.*s", (int) (comma - at), at);

		if (strstr(line, named) != NULL)
		{
			marks[atoi(at + strlen("FAIL     #")) - 1] = '1';
		}
		free(named);
		free(line);
	}
}

START_TEST(a_repeated_insert_is_found_where_it_was_committed_and_not_told)
{
	Text output = {0};
	char marks[INSERT_POINTS + 1];

	ck_assert_int_eq(crash(WITHOUT_KEY INSERT ONCE, "--jobs 2", &output), EXIT_CODE_FAIL);
	violated_points(&output, "kill-client", marks);
	marks[TERMINATE - 1] = '?'; /* killed, or gone before: then it had succeeded */
	ck_assert_str_eq(marks, "000000000011?");
	violated_points(&output, "cut", marks); /* with its Terminate cut off, the program has succeeded */
	ck_assert_str_eq(marks, "0000000000110");
	violated_points(&output, "stop-server", marks);
	ck_assert_str_eq(marks, "0000000000110");
	violated_points(&output, "pause", marks); /* both owners did it */
	marks[TERMINATE - 1] = '?';               /* stopped, or gone before: then there was one owner */
	ck_assert_str_eq(marks, "111111111111?");
	assert_has(&output, "once: count=2");
	assert_has(&output, "run.yaml --point 11 --fault kill-client\n");
	text_free(&output);
}
END_TEST

START_TEST(the_replay_of_a_violation_shows_it_again)
{
	assert_run(WITHOUT_KEY INSERT ONCE, "--point 11 --fault cut", EXIT_CODE_FAIL,
			   "FAIL     #11 server CommandComplete COMMIT, cut: once; expected 0 rows, got 1");
	assert_run(WITHOUT_KEY INSERT ONCE, "--point 10 --fault cut", EXIT_CODE_PASS, "partial: 1 of 52 runs");
	assert_run(WITHOUT_KEY INSERT ONCE, "--points 14-20", EXIT_CODE_INCONCLUSIVE,
			   "nothing was tried: the program has 13 points");
}
END_TEST

START_TEST(a_program_known_to_be_wrong_has_to_be_found_wrong)
{
	assert_run(WITHOUT_KEY INSERT "faults: [cut]\nexpect: violation\n" ONCE, "", EXIT_CODE_PASS,
			   "note     violated: #11 server CommandComplete COMMIT, cut: once; expected 0 rows, got 1");
	assert_run(WITHOUT_KEY INSERT "faults: [cut]\nexpect: violation\n" ONCE, "--point 11", EXIT_CODE_PASS,
			   "violated: #11 server CommandComplete COMMIT, cut: once; expected 0 rows, got 1");
	assert_run(WITHOUT_KEY INSERT "faults: [cut]\nexpect: violation\n" ONCE, "--point 10", EXIT_CODE_INCONCLUSIVE,
			   "none of the 1 runs of this part");
	assert_run(WITH_KEY "program: crash-client 'INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING'\n"
						"faults: [cut]\nexpect: violation\n" ONCE,
			   "", EXIT_CODE_FAIL, "violate an invariant; expected at least 1, got 0");
}
END_TEST

START_TEST(a_file_that_needs_what_is_not_there_is_skipped)
{
	assert_run(WITH_KEY INSERT "needs: no-such-program\n" ONCE, "", EXIT_CODE_INCONCLUSIVE,
			   "it needs no-such-program, which is not installed");
	assert_run(WITH_KEY INSERT "needs: crash-client\n" ONCE, "--point 10 --fault cut", EXIT_CODE_PASS, "held 1");
}
END_TEST

START_TEST(a_recovery_that_never_succeeds_is_a_violation)
{
	assert_run(WITH_KEY INSERT "recover: exit 7\n" ONCE, "--point 11 --fault kill-client", EXIT_CODE_FAIL,
			   "kill-client: recovers; expected exit 0, got exit 7 at the last of 5 attempts");
	assert_run(WITH_KEY INSERT "recover: sleep 30\ntimeout: 1\n" ONCE, "--point 11 --fault kill-client", EXIT_CODE_FAIL,
			   "recovers; expected exit 0, got attempt 1 still ran after 1000 ms");
}
END_TEST

/* At its last message the program has done its work, and the one beside it has not. */
START_TEST(who_runs_beside_is_recovered_too)
{
	assert_run(WITH_KEY INSERT "concurrent: [crash-client, SELECT pg_sleep(0.5), INSERT INTO done VALUES (2)]\n"
							   "recover: crash-client 'INSERT INTO done VALUES (2) ON CONFLICT DO NOTHING'\n"
							   "invariants: [{name: both, sql: SELECT count(*) FROM done HAVING count(*) <> 2}]\n",
			   "--point 13 --fault stop-server", EXIT_CODE_PASS, "held 1");
}
END_TEST

START_TEST(a_program_that_hangs_after_the_fault_is_unknown)
{
	assert_run(WITH_KEY "program: crash-client BEGIN 'INSERT INTO done VALUES (1)' COMMIT || exec sleep 30\n"
						"recover: crash-client 'INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING'\ntimeout: 1\n" ONCE,
			   "--point 10 --fault cut", EXIT_CODE_INCONCLUSIVE,
			   "unknown: the program still ran 1000 ms after the fault");
}
END_TEST

/* The n-th run is another program: a file beside the plan counts. */
#define COUNTED "n=$(cat $CRASHPOINTS_DIR/count || echo 0); echo $((n + 1)) > $CRASHPOINTS_DIR/count; "

static void
forget_count(void)
{
	char *path = in_folder("count");

	(void) unlink(path);
	free(path);
}

START_TEST(a_program_whose_messages_vary_is_named_and_matched_by_kind)
{
	static const char content[] =
		WITH_KEY "program: |\n  " COUNTED "\n  more=; [ $((n % 2)) = 0 ] || more='SELECT 1'\n"
				 "  exec crash-client BEGIN ${more:+\"$more\"} 'INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING' "
				 "COMMIT\n" ONCE;

	forget_count();
	assert_run(content, "--fault kill-client", EXIT_CODE_PASS, "UNSTABLE");
	forget_count();
	assert_run(content, "--point 10 --fault kill-client -v", EXIT_CODE_PASS, "1st client Query COMMIT");
}
END_TEST

START_TEST(a_point_that_does_not_come_again_is_unknown)
{
	static const char content[] =
		WITH_KEY "program: |\n  " COUNTED "\n  [ $n -lt 3 ] || exec true\n"
				 "  exec crash-client BEGIN 'INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING' COMMIT\n" ONCE;

	forget_count();
	assert_run(content, "--point 10 --fault cut", EXIT_CODE_INCONCLUSIVE, "not reached: the program ended before");
	forget_count();
	assert_run(WITH_KEY "program: |\n  " COUNTED
						"\n  [ $n -lt 3 ] || exec crash-client 'SELECT 1' 'SELECT 2' 'SELECT 3'\n"
						"  exec crash-client BEGIN 'INSERT INTO done VALUES (1)' COMMIT\n" ONCE,
			   "--point 7 --fault cut", EXIT_CODE_INCONCLUSIVE, "not reached: in its place came Query SELECT 2");
}
END_TEST

START_TEST(a_reference_that_fails)
{
	assert_run(WITH_KEY "program: exit 3\n" ONCE, "", EXIT_CODE_BROKEN,
			   "without any fault, program did not end with 0: exit 3");
	assert_run(WITH_KEY INSERT "invariants: [{name: never, sql: SELECT 5 AS five}]\n", "", EXIT_CODE_FAIL,
			   "without any fault: never; expected 0 rows, got 1");
	assert_run(WITH_KEY INSERT "invariants: [{name: odd, sql: SELECT * FROM gone}]\n", "", EXIT_CODE_BROKEN,
			   "invariant odd cannot be asked: relation \"gone\" does not exist");
	assert_run("setup: CREATE TABEL x\n" INSERT ONCE, "--jobs 1", EXIT_CODE_BROKEN, "its setup failed");
	assert_run(WITH_KEY "setup_program: 'echo oh no; exit 1'\n" INSERT ONCE, "--jobs 1", EXIT_CODE_BROKEN,
			   "its setup_program failed: exit 1; last line: oh no");
	assert_run(WITH_KEY "program: nothing-of-that-name\n" ONCE, "", EXIT_CODE_BROKEN, "not found");
	assert_run("program: x\ntiemout: 3\n" ONCE, "", EXIT_CODE_USAGE, "unknown key");
}
END_TEST

/* What is no query returns no row whatever has happened: taken for one, it would hold for ever. */
static const struct
{
	const char *sql;
	ExitCode code;
	const char *part;
} INVARIANTS[] = {
	{"DO $$BEGIN END$$", EXIT_CODE_BROKEN, "invariant odd cannot be asked: syntax error at or near \"DO\""},
	{"-- SELECT 1", EXIT_CODE_BROKEN, "cannot be asked: syntax error at end of input"},
	{"WITH d AS (DELETE FROM done RETURNING 1) SELECT FROM d WHERE false", EXIT_CODE_BROKEN, "cannot be asked: "},
	{"SELECT 1 WHERE false; SELECT 1", EXIT_CODE_BROKEN, "cannot be asked: cannot insert multiple commands"},
	{"SELECT 1 WHERE pg_sleep(60) IS NULL", EXIT_CODE_BROKEN, "canceling statement due to statement timeout"},
	{"SELECT FROM done", EXIT_CODE_FAIL, "odd; expected 0 rows, got 1"},
	{"SELECT repeat('x', 1000) FROM generate_series(1, 100000)", EXIT_CODE_FAIL, "got 1000 or more"},
	{"WITH d AS (TABLE done) SELECT FROM d WHERE id <> 1; -- a comment", EXIT_CODE_PASS, "held 1"},
};

START_TEST(an_invariant_is_a_query_that_only_reads)
{
	char *content = string_format("setup: CREATE TABLE done (id int)\n" INSERT_ONCE
								  "timeout: 1\ninvariants:\n  - name: odd\n    sql: |\n      %s\n",
								  INVARIANTS[_i].sql);

	assert_run(content, "--point 4 --fault cut", INVARIANTS[_i].code, INVARIANTS[_i].part);
	free(content);
}
END_TEST

/* The server says in its log what a full disk makes it say. */
START_TEST(what_a_full_disk_does_is_no_violation)
{
	assert_run(WITH_KEY "program: [crash-client, \"DO $$BEGIN RAISE LOG 'No space left on device'; END$$\", BEGIN, "
						"INSERT INTO done VALUES (1), COMMIT]\n" ONCE,
			   "--point 14 --fault kill-client", EXIT_CODE_BROKEN, "the disk of the server was full");
}
END_TEST

/* A division by zero as long as nobody sleeps. */
#define UNTIL_ASLEEP                                                                                                   \
	"until crash-client \"SELECT 1 / count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'\"; do :; done"

START_TEST(a_reference_that_cannot_be_judged)
{
	assert_run(WITH_KEY "program: setsid crash-client 'SELECT pg_sleep(60)' & " UNTIL_ASLEEP "\n"
						"concurrent: setsid crash-client 'SELECT pg_sleep(60)' & " UNTIL_ASLEEP "\ntimeout: 1\n" ONCE,
			   "--jobs 1 --point 1", EXIT_CODE_BROKEN, "without any fault, a backend of the run was still at work");
}
END_TEST

/* Everything that a file can say, at once: a program that finds what the setup program left, another beside it, TCP. */
START_TEST(over_tcp_with_another_beside)
{
	assert_run(WITHOUT_KEY
			   "setup_program: [crash-client, INSERT INTO done VALUES (1), CREATE TABLE beside (id int PRIMARY KEY)]\n"
			   "program: |\n  test \"$PGHOST\" = 127.0.0.1 && test -z \"$(ls)\" && touch here &&\n"
			   "  crash-client \"UPDATE done SET id = 2\"\n"
			   "recover: [crash-client, UPDATE done SET id = 2]\n"
			   "concurrent: until crash-client 'INSERT INTO beside VALUES (1) ON CONFLICT DO NOTHING'; do :; done\n"
			   "invariants:\n  - {name: done, sql: SELECT * FROM done WHERE id <> 2}\n"
			   "  - {name: beside, sql: SELECT count(*) FROM beside HAVING count(*) <> 1}\n"
			   "tcp: true\nsettle: 20\n",
			   "--sample 6", EXIT_CODE_PASS, "partial: 6 of");
}
END_TEST

/*
 * The notice is told in the middle of a statement. Its client is killed there; the backend sleeps on, inserts and commits. To
 * hold, judging must have waited for it. With settle: the server looks after its client, and nothing is inserted.
 */
START_TEST(judging_waits_for_the_backend_of_a_killed_client)
{
	static const char slow[] =
		WITH_KEY "program: [crash-client, \"DO $$ BEGIN RAISE NOTICE 'here'; PERFORM pg_sleep(1);"
				 " INSERT INTO done VALUES (1); END $$\"]\nrecover: 'true'\n" ONCE;
	char *settled = string_format("%s%s", slow, "settle: 10\n");

	assert_run(slow, "--point 5 --fault kill-client -v", EXIT_CODE_PASS,
			   "PASS     #5 server NoticeResponse 00000, kill-client; expected held, got held");
	assert_run(settled, "--point 5 --fault kill-client", EXIT_CODE_FAIL, "once: count=0");
	free(settled);
}
END_TEST

/* A program that leaves something outside of its group, which would go on connecting in the runs that follow. */
START_TEST(what_leaves_its_group_is_ended)
{
	static const char content[] =
		WITH_KEY "program: |\n  setsid sh -c 'echo $$ >> $CRASHPOINTS_DIR/count; exec sleep 1000' &\n"
				 "  until [ -s $CRASHPOINTS_DIR/count ]; do :; done\n"
				 "  exec crash-client 'INSERT INTO done VALUES (1) ON CONFLICT DO NOTHING'\n" ONCE;
	char *path = in_folder("count");
	Text pids = {0};

	forget_count();
	assert_run(content, "--jobs 1 --sample 2", EXIT_CODE_PASS, "partial: 2 of");
	ck_assert(file_read(path, &pids));
	for (char *word = strtok(pids.data, "\n"); word != NULL; word = strtok(NULL, "\n"))
	{
		ProcessStatus status;

		ck_assert_msg(!process_status((pid_t) atoi(word), &status), "%s is left", word);
	}
	text_free(&pids);
	free(path);
}
END_TEST

START_TEST(a_recovery_is_tried_five_times)
{
	static const char patient[] = WITH_KEY INSERT
		"recover: |\n  " COUNTED "\n  [ $n -ge 4 ] && exec crash-client 'INSERT INTO done VALUES (1)'\n" ONCE;
	static const char more_patient[] = WITH_KEY INSERT
		"recover: |\n  " COUNTED "\n  [ $n -ge 5 ] && exec crash-client 'INSERT INTO done VALUES (1)'\n" ONCE;

	forget_count();
	assert_run(patient, "--point 10 --fault kill-client", EXIT_CODE_PASS, "held 1 violated 0 unknown 0");
	forget_count();
	assert_run(more_patient, "--point 10 --fault kill-client", EXIT_CODE_FAIL, "exit 1 at the last of 5 attempts");
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *suite = suite_create("crashpoints");
	TCase *files = tcase_create("files");
	TCase *points = tcase_create("points");
	TCase *runs = tcase_create("runs");

	tcase_add_test(files, a_file_that_is_right);
	tcase_add_test(files, what_a_file_does_not_say);
	tcase_add_test(files, a_setup_file_lies_beside_the_file);
	tcase_add_loop_test(files, files_that_are_refused, 0, (int) LENGTH_OF(REFUSALS));
	tcase_add_test(files, files_that_are_not_there);
	suite_add_tcase(suite, files);
	tcase_set_timeout(points, 20);
	tcase_add_test(points, points_of_a_record);
	tcase_add_test(points, points_do_not_depend_on_how_directions_mix);
	tcase_add_test(points, points_at_the_ends_of_turns);
	tcase_add_test(points, a_program_whose_counts_differ_is_unstable);
	tcase_add_test(points, a_text_that_differs_is_no_other_message);
	tcase_add_test(points, all_pairs_in_order);
	tcase_add_test(points, shards_split_what_there_is);
	tcase_add_test(points, shards_split_a_sample_too);
	tcase_add_test(points, samples_are_even);
	suite_add_tcase(suite, points);
	tcase_set_timeout(runs, 90);
	tcase_add_test(runs, an_idempotent_program_holds_everywhere);
	tcase_add_test(runs, a_repeated_insert_is_found_where_it_was_committed_and_not_told);
	tcase_add_test(runs, the_replay_of_a_violation_shows_it_again);
	tcase_add_test(runs, a_recovery_that_never_succeeds_is_a_violation);
	tcase_add_test(runs, a_recovery_is_tried_five_times);
	tcase_add_test(runs, who_runs_beside_is_recovered_too);
	tcase_add_test(runs, a_program_that_hangs_after_the_fault_is_unknown);
	tcase_add_test(runs, a_program_whose_messages_vary_is_named_and_matched_by_kind);
	tcase_add_test(runs, a_point_that_does_not_come_again_is_unknown);
	tcase_add_test(runs, a_reference_that_fails);
	tcase_add_loop_test(runs, an_invariant_is_a_query_that_only_reads, 0, (int) LENGTH_OF(INVARIANTS));
	tcase_add_test(runs, a_reference_that_cannot_be_judged);
	tcase_add_test(runs, what_a_full_disk_does_is_no_violation);
	tcase_add_test(runs, what_leaves_its_group_is_ended);
	tcase_add_test(runs, a_program_known_to_be_wrong_has_to_be_found_wrong);
	tcase_add_test(runs, a_file_that_needs_what_is_not_there_is_skipped);
	tcase_add_test(runs, over_tcp_with_another_beside);
	tcase_add_test(runs, judging_waits_for_the_backend_of_a_killed_client);
	suite_add_tcase(suite, runs);
	return suite;
}

int
main(void)
{
	int code;

	programs = getenv("COUNTERPROOF_PROGRAMS");
	if (programs == NULL || mkdtemp(folder) == NULL)
	{
		fprintf(stderr, "COUNTERPROOF_PROGRAMS must name the folder of the built programs, and /tmp be writable\n");
		return EXIT_FAILURE;
	}
	code = suite_run_with_servers(make_suite());
	return process_remove_directory(folder, soon()) ? code : EXIT_FAILURE;
}
