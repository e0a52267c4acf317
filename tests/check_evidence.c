/*
 * The files of a run: exact lines in the order of the selection, what a killed or a neighbouring run leaves, and what
 * readers of results.json and junit.xml get.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include "evidence.h"
#include "suite.h"

static char root[64];

static const EvidenceCase CASES[] = {
	{"32", "32-A", "normal path", "a like counts once", "fixed interleaving", 1, "counts equal facts", "like_count",
	 "two clients", NULL, "power loss (L3)"},
	{"32", "32-B", "repeats", "a repeat changes nothing", "fixed interleaving", 1, "counts equal facts", "like_count",
	 "two clients", NULL, "power loss (L3)"},
	{"iso", "iso/skew", "write skew", "one of two is refused", "fixed interleaving", 1, "counts equal facts",
	 "like_count", "two clients", NULL, "power loss (L3)"},
	{"32", "32-A", "normal path", "a like counts once", "fixed interleaving", 2, "counts equal facts", "like_count",
	 "two clients", NULL, "power loss (L3)"},
};

static const EvidenceSetting SETTINGS[] = {{"version", "16.14"}, {"fsync", "on"}};

static EvidenceRun
a_run(int case_count)
{
	return (EvidenceRun){
		.root = root, .seed = 32, .cases = CASES, .case_count = case_count, .replay = "./run.sh 32 iso --seed 32"};
}

static void
make_root(void)
{
	strcpy(root, "/tmp/check-evidence-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void
remove_root(void)
{
	char *command = string_format("rm -rf '%s'", root);

	ck_assert_int_eq(system(command), 0);
	free(command);
}

static const char *
read_file(const char *name)
{
	static Text text;
	char *path = string_format("%s/%s", root, name);

	text_clear(&text);
	ck_assert_msg(file_read(path, &text), "cannot read %s", path);
	free(path);
	return text_get(&text);
}

static bool
exists(const char *name)
{
	char *path = string_format("%s/%s", root, name);
	bool found = access(path, F_OK) == 0;

	free(path);
	return found;
}

/* How many run folders there are, of living and dead. */
static int
run_folders(void)
{
	char *command = string_format("ls -d %s/.run-* 2>/dev/null | wc -l", root);
	FILE *stream = popen(command, "r");
	int count = -1;

	ck_assert_int_eq(fscanf(stream, "%d", &count), 1);
	pclose(stream);
	free(command);
	return count;
}

static void
say(Evidence *evidence, int index, LineKind kind, const char *text)
{
	evidence_case_line(evidence, index, &(EvidenceLine){.kind = kind, .text = text});
}

static void
say_check(Evidence *evidence, int index, LineKind kind, const char *expected, const char *actual)
{
	evidence_case_line(evidence, index,
					   &(EvidenceLine){.kind = kind, .text = "events", .expected = expected, .actual = actual});
}

/* A run of four cases, two of them side by side, that ends out of order and not well. */
static void
tell_run(Evidence *evidence)
{
	evidence_case_begin(evidence, 0);
	evidence_case_begin(evidence, 1);
	evidence_case_begin(evidence, 2);
	say(evidence, 2, LINE_NOTE, "two\nlines");
	evidence_case_end(evidence, 2, RESULT_SKIP, "needs a server of its own", 0);
	say_check(evidence, 1, LINE_FAIL, "1", "2");
	say_check(evidence, 1, LINE_PASS, "7", "7");
	evidence_case_retries(evidence, 1, 2, 1);
	evidence_case_end(evidence, 1, RESULT_FAIL, NULL, 1501);
	ck_assert_str_eq(read_file("output.txt"), "== 32-A  normal path\nclaim    a like counts once\n");
	say(evidence, 0, LINE_STEP, "a like");
	ck_assert_str_eq(read_file("output.txt"), "== 32-A  normal path\nclaim    a like counts once\nstep     a like\n");
	say(evidence, 0, LINE_AUDIT, "read-side: lag=0");
	evidence_case_line(evidence, 0,
					   &(EvidenceLine){.kind = LINE_FAULT, .text = "kill -9: fired 1, exit by signal 9", .fired = 1});
	say_check(evidence, 0, LINE_PASS, "1", "1");
	evidence_case_end(evidence, 0, RESULT_PASS, "not said of a PASS", 20);
	evidence_case_begin(evidence, 3);
	evidence_case_end(evidence, 3, RESULT_BROKEN, "server\x07 gone\xff", 3);
}

#define LINES_32_AB                                                                                                    \
	"== 32-A  normal path\n"                                                                                           \
	"claim    a like counts once\n"                                                                                    \
	"step     a like\n"                                                                                                \
	"audit    read-side: lag=0\n"                                                                                      \
	"fault    kill -9: fired 1, exit by signal 9\n"                                                                    \
	"PASS     events; expected 1, got 1\n"                                                                             \
	"result   PASS passed=1 failed=0\n"                                                                                \
	"== 32-B  repeats\n"                                                                                               \
	"claim    a repeat changes nothing\n"                                                                              \
	"FAIL     events; expected 1, got 2\n"                                                                             \
	"PASS     events; expected 7, got 7\n"                                                                             \
	"result   FAIL passed=1 failed=1\n"
#define LINES_SKEW                                                                                                     \
	"== iso/skew  write skew\n"                                                                                        \
	"claim    one of two is refused\n"                                                                                 \
	"note     two lines\n"                                                                                             \
	"result   SKIP passed=0 failed=0 reason: needs a server of its own\n"
#define LINES_32_A2                                                                                                    \
	"== 32-A #2  normal path\n"                                                                                        \
	"claim    a like counts once\n"                                                                                    \
	"result   BROKEN passed=0 failed=0 reason: server#x07 gone#xFF\n"
#define REPLAY "replay   ./run.sh 32 iso --seed 32\n"
#define SUMMARY_ALL                                                                                                    \
	"SUMMARY  passed=2 failed=1 unknown=0 skipped=1 scenarios=4 retries_40001=2 retries_40P01=1 broken=1 seed=32"

START_TEST(lines_are_exact_and_in_order)
{
	EvidenceRun run = a_run(4);
	Evidence *evidence = evidence_open(&run);
	Text summary = {0};

	ck_assert_ptr_nonnull(evidence);
	ck_assert_str_eq(read_file("output.txt"), "");
	ck_assert(evidence_add_settings(evidence, SETTINGS, (int) LENGTH_OF(SETTINGS)));
	tell_run(evidence);
	ck_assert_str_eq(read_file("output.txt"), LINES_32_AB LINES_SKEW LINES_32_A2);
	evidence_summary(evidence, &summary);
	ck_assert_str_eq(text_get(&summary), SUMMARY_ALL);
	text_free(&summary);
	ck_assert(evidence_close(evidence, NULL, false));
	ck_assert_str_eq(evidence_output_path(evidence) + strlen(root), "/output.txt");
	evidence_free(evidence);
	ck_assert_str_eq(read_file("output.txt"), LINES_32_AB LINES_SKEW LINES_32_A2 REPLAY SUMMARY_ALL "\n");
	ck_assert_str_eq(read_file("32/output.txt"), LINES_32_AB LINES_32_A2 REPLAY
					 "SUMMARY  passed=2 failed=1 unknown=0 skipped=0 scenarios=3 retries_40001=2 retries_40P01=1 "
					 "broken=1 seed=32\n");
	ck_assert_str_eq(read_file("iso/output.txt"),
					 LINES_SKEW "SUMMARY  passed=0 failed=0 unknown=0 skipped=1 scenarios=1 retries_40001=0 "
								"retries_40P01=0 seed=32\n");
	ck_assert_str_eq(read_file("32/env.txt"), "seed=32\nreplay=./run.sh 32 iso --seed 32\nversion=16.14\nfsync=on\n");
	ck_assert_int_eq(run_folders(), 0);
	ck_assert(!exists("32/results.json.part"));
}
END_TEST

static void
run_told(void)
{
	EvidenceRun run = a_run(4);
	Evidence *evidence = evidence_open(&run);

	ck_assert_ptr_nonnull(evidence);
	ck_assert(evidence_add_settings(evidence, SETTINGS, (int) LENGTH_OF(SETTINGS)));
	tell_run(evidence);
	ck_assert(evidence_close(evidence, NULL, false));
	evidence_free(evidence);
}

START_TEST(results_hold_the_run)
{
	json_error_t error;
	json_t *results;
	const char *id, *result;
	const char *text, *expected, *actual, *line;
	json_int_t scenarios, failed, broken, seed, duration, fired;
	int ok;

	run_told();
	results = json_loads(read_file("32/results.json"), JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(results != NULL, "line %d: %s", error.line, error.text);
	ck_assert_int_eq(json_unpack(results, "{s:I, s:{s:I, s:I, s:I}}", "seed", &seed, "totals", "scenarios", &scenarios,
								 "failed", &failed, "broken", &broken),
					 0);
	ck_assert_int_eq((int) seed, 32);
	ck_assert_int_eq((int) scenarios, 3);
	ck_assert_int_eq((int) failed, 1);
	ck_assert_int_eq((int) broken, 1);
	ck_assert_uint_eq(json_array_size(json_object_get(results, "cases")), 3);
	ck_assert_int_eq(json_unpack(json_array_get(json_object_get(results, "cases"), 1),
								 "{s:s, s:s, s:I, s:[{s:s, s:b, s:s, s:s}]}", "id", &id, "result", &result,
								 "duration_ms", &duration, "checks", "text", &text, "ok", &ok, "expected", &expected,
								 "actual", &actual),
					 0);
	ck_assert_str_eq(id, "32-B");
	ck_assert_str_eq(result, "FAIL");
	ck_assert_int_eq((int) duration, 1501);
	ck_assert_str_eq(text, "events");
	ck_assert_int_eq(ok, 0);
	ck_assert_str_eq(expected, "1");
	ck_assert_str_eq(actual, "2");
	ck_assert_int_eq(json_unpack(json_array_get(json_object_get(results, "cases"), 0), "{s:[{s:s, s:I}], s:[s,s]}",
								 "faults", "text", &text, "fired", &fired, "lines", &line, &line),
					 0);
	ck_assert_str_eq(text, "kill -9: fired 1, exit by signal 9");
	ck_assert_int_eq((int) fired, 1);
	ck_assert_str_eq(line, "step     a like");
	json_decref(results);
}
END_TEST

/* Numbers for plots are in results.json and nowhere in output.txt, which is the same for the same seed. */
START_TEST(series_are_for_results_only)
{
	static const int64_t values[] = {0, -3, INT64_MAX};
	EvidenceRun run = a_run(1);
	Evidence *evidence = evidence_open(&run);
	const char *plot, *name, *guarantee, *method, *expect, *not_shown;
	json_int_t first, second, third;
	json_t *results;

	ck_assert_ptr_nonnull(evidence);
	evidence_case_begin(evidence, 0);
	evidence_case_series(evidence, 0, &(EvidenceSeries){"lag over\nsamples", "lag", values, LENGTH_OF(values)});
	evidence_case_end(evidence, 0, RESULT_PASS, NULL, 1);
	ck_assert(evidence_close(evidence, NULL, false));
	evidence_free(evidence);
	results = json_loads(read_file("32/results.json"), 0, NULL);
	ck_assert_int_eq(json_unpack(results, "{s:[{s:s, s:s, s:s, s:s, s:[{s:s, s:s, s:[I, I, I]}]}]}", "cases",
								 "guarantee", &guarantee, "method", &method, "expect", &expect, "not_shown", &not_shown,
								 "series", "plot", &plot, "name", &name, "values", &first, &second, &third),
					 0);
	ck_assert_str_eq(guarantee, "counts equal facts");
	ck_assert_str_eq(method, "two clients");
	ck_assert_str_eq(expect, "");
	ck_assert_str_eq(not_shown, "power loss (L3)");
	ck_assert_str_eq(plot, "lag over samples");
	ck_assert_str_eq(name, "lag");
	ck_assert(first == 0 && second == -3 && third == INT64_MAX);
	json_decref(results);
	ck_assert_ptr_null(strstr(read_file("32/output.txt"), "lag over"));
	ck_assert_ptr_nonnull(strstr(read_file("32/report.html"), "lag over samples"));
}
END_TEST

/* A trace that is not as it should be costs the page, and no other evidence. */
START_TEST(page_that_cannot_be_made)
{
	EvidenceRun run = a_run(1);
	Evidence *evidence = evidence_open(&run);
	char *path;
	char error[512];

	ck_assert_ptr_nonnull(evidence);
	evidence_case_begin(evidence, 0);
	path = string_format("%s/" EVIDENCE_TRACE, evidence_case_folder(evidence, 0));
	ck_assert(file_replace(path, "a {\"a\":7}\nbegin x\n"));
	free(path);
	evidence_case_end(evidence, 0, RESULT_PASS, NULL, 1);
	ck_assert(!evidence_close(evidence, NULL, false));
	notice_last_error(error, sizeof(error));
	ck_assert_ptr_nonnull(strstr(error, "32/trace.shiviz: line "));
	ck_assert(!evidence_failed(evidence));
	evidence_free(evidence);
	ck_assert(!exists("32/report.html"));
	ck_assert(exists("32/results.json") && exists("32/trace.shiviz"));
	ck_assert_ptr_nonnull(strstr(read_file("output.txt"), "SUMMARY"));
}
END_TEST

static void
assert_attribute(xmlNode *node, const char *name, const char *expected)
{
	xmlChar *value = xmlGetProp(node, BAD_CAST name);

	ck_assert_msg(value != NULL, "%s has no %s", node->name, name);
	ck_assert_str_eq((const char *) value, expected);
	xmlFree(value);
}

static xmlNode *
nth_element(xmlNode *parent, const char *name, int n)
{
	for (xmlNode *node = xmlFirstElementChild(parent); node != NULL; node = xmlNextElementSibling(node))
	{
		if (strcmp((const char *) node->name, name) == 0 && n-- == 0)
		{
			return node;
		}
	}
	ck_abort_msg("no %s", name);
	return NULL;
}

static void
assert_body_begins(xmlNode *node, const char *expected)
{
	xmlChar *body = xmlNodeGetContent(node);

	ck_assert_int_eq(strncmp((const char *) body, expected, strlen(expected)), 0);
	xmlFree(body);
}

START_TEST(junit_is_what_readers_take)
{
	const char *text;
	xmlDoc *document;
	xmlNode *suite, *entry, *outcome;

	run_told();
	text = read_file("32/junit.xml");
	document = xmlReadMemory(text, (int) strlen(text), "junit.xml", NULL, XML_PARSE_NONET);
	ck_assert_ptr_nonnull(document);
	ck_assert_str_eq((const char *) xmlDocGetRootElement(document)->name, "testsuites");
	suite = nth_element(xmlDocGetRootElement(document), "testsuite", 0);
	assert_attribute(suite, "name", "32");
	assert_attribute(suite, "tests", "3");
	assert_attribute(suite, "failures", "1");
	assert_attribute(suite, "errors", "1");
	assert_attribute(suite, "skipped", "0");
	assert_attribute(suite, "time", "1.524");
	entry = nth_element(nth_element(suite, "properties", 0), "property", 2);
	assert_attribute(entry, "name", "version");
	assert_attribute(entry, "value", "16.14");
	entry = nth_element(suite, "testcase", 0);
	assert_attribute(entry, "name", "32-A normal path [seed 32]");
	assert_attribute(entry, "classname", "counterproof.32");
	assert_attribute(entry, "time", "0.020");
	ck_assert_ptr_null(xmlFirstElementChild(entry));
	outcome = nth_element(nth_element(suite, "testcase", 1), "failure", 0);
	assert_attribute(outcome, "message", "events; expected 1, got 2");
	assert_attribute(outcome, "type", "FAIL");
	assert_body_begins(outcome, "events; expected 1, got 2\nclaim    a repeat changes nothing\nFAIL     events;");
	entry = nth_element(suite, "testcase", 2);
	assert_attribute(entry, "name", "32-A normal path [seed 32] #2");
	outcome = nth_element(entry, "error", 0);
	assert_attribute(outcome, "type", "BROKEN");
	assert_attribute(outcome, "message", "server#x07 gone#xFF");
	xmlFreeDoc(document);
	text = read_file("iso/junit.xml");
	document = xmlReadMemory(text, (int) strlen(text), "junit.xml", NULL, XML_PARSE_NONET);
	suite = nth_element(xmlDocGetRootElement(document), "testsuite", 0);
	assert_attribute(suite, "skipped", "1");
	assert_attribute(suite, "errors", "0");
	assert_attribute(nth_element(nth_element(suite, "testcase", 0), "skipped", 0), "message",
					 "needs a server of its own");
	xmlFreeDoc(document);
}
END_TEST

START_TEST(all_that_passes_has_no_replay)
{
	EvidenceRun run = a_run(1);
	Evidence *evidence = evidence_open(&run);
	char *log = string_format("%s/log", root);

	ck_assert_ptr_nonnull(evidence);
	ck_assert(file_replace(log, "LOG:  ready\n"));
	ck_assert_ptr_nonnull(evidence_case_folder(evidence, 0));
	ck_assert_int_eq(access(evidence_case_folder(evidence, 0), W_OK), 0);
	ck_assert(evidence_add_settings(evidence, SETTINGS, (int) LENGTH_OF(SETTINGS)));
	ck_assert(evidence_add_settings(evidence, &(EvidenceSetting){"version", "16.15"}, 1));
	evidence_case_begin(evidence, 0);
	say_check(evidence, 0, LINE_PASS, "1", "1");
	evidence_case_end(evidence, 0, RESULT_PASS, NULL, 1);
	ck_assert(evidence_close(evidence, log, false));
	evidence_free(evidence);
	ck_assert_str_eq(read_file("output.txt"),
					 "== 32-A  normal path\nclaim    a like counts once\nPASS     events; expected 1, got 1\n"
					 "result   PASS passed=1 failed=0\n"
					 "SUMMARY  passed=1 failed=0 unknown=0 skipped=0 scenarios=1 retries_40001=0 retries_40P01=0 "
					 "seed=32\n");
	ck_assert_str_eq(read_file("32/env.txt"), "seed=32\nreplay=./run.sh 32 iso --seed 32\nversion=16.15\nfsync=on\n");
	ck_assert(!exists("32/server.log"));
	ck_assert(!exists("32/32-A"));
	free(log);
}
END_TEST

START_TEST(what_failed_keeps_its_files)
{
	EvidenceRun run = a_run(2);
	Evidence *evidence = evidence_open(&run);
	char *log = string_format("%s/log", root);
	char *history;

	ck_assert_ptr_nonnull(evidence);
	ck_assert(file_replace(log, "LOG:  ready\n"));
	history = string_format("%s/history", evidence_case_folder(evidence, 0));
	ck_assert(file_replace(history, "1\n"));
	ck_assert_ptr_nonnull(evidence_case_folder(evidence, 1));
	evidence_case_end(evidence, 0, RESULT_UNKNOWN, "a fault never fired", 1);
	evidence_case_end(evidence, 1, RESULT_PASS, NULL, 1);
	ck_assert(evidence_close(evidence, log, false));
	evidence_free(evidence);
	ck_assert_str_eq(read_file("32/32-A/history"), "1\n");
	ck_assert_str_eq(read_file("32/server.log"), "LOG:  ready\n");
	ck_assert(!exists("32/32-B"));
	free(history);
	free(log);

	/* The next run takes the place of all that, and with keep leaves the files of a case that passes. */
	run = a_run(1);
	run.keep = true;
	evidence = evidence_open(&run);
	ck_assert_ptr_nonnull(evidence);
	ck_assert_ptr_nonnull(evidence_case_folder(evidence, 0));
	evidence_case_end(evidence, 0, RESULT_PASS, NULL, 1);
	ck_assert(evidence_close(evidence, NULL, false));
	evidence_free(evidence);
	ck_assert(exists("32/32-A") && !exists("32/32-A/history") && !exists("32/server.log"));
}
END_TEST

/* A child that tells a little, and is killed with its run open. */
static pid_t
start_other_run(void)
{
	int ready[2];
	pid_t child;
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	if (child == 0)
	{
		EvidenceRun run = a_run(1);
		Evidence *evidence = evidence_open(&run);

		evidence_case_begin(evidence, 0);
		say(evidence, 0, LINE_STEP, "what was running");
		(void) !write(ready[1], "x", 1);
		for (;;)
		{
			pause();
		}
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void
end_other_run(pid_t child)
{
	int status;

	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}

START_TEST(killed_run_shows_what_was_running)
{
	pid_t child;
	char target[64] = "";
	char *link = string_format("%s/output.txt", root);

	run_told();
	child = start_other_run();
	end_other_run(child);
	ck_assert_str_eq(read_file("output.txt"),
					 "== 32-A  normal path\nclaim    a like counts once\nstep     what was running\n");
	ck_assert_int_gt(readlink(link, target, sizeof(target) - 1), 0);
	ck_assert_int_eq(strncmp(target, ".run-", 5), 0);
	ck_assert_int_eq(run_folders(), 1);
	ck_assert_ptr_nonnull(strstr(read_file("32/output.txt"), "SUMMARY"));

	/* The next run removes the dead one's folder. */
	run_told();
	ck_assert_int_eq(run_folders(), 0);
	ck_assert_int_lt(readlink(link, target, sizeof(target)), 0);
	free(link);
}
END_TEST

START_TEST(living_run_is_not_disturbed)
{
	EvidenceRun run = a_run(1);
	Evidence *first = evidence_open(&run);
	pid_t child = start_other_run();
	Evidence *third;

	ck_assert_ptr_nonnull(first);
	evidence_case_begin(first, 0);
	third = evidence_open(&run);
	ck_assert_ptr_nonnull(third);
	ck_assert_int_eq(run_folders(), 3);
	evidence_case_end(third, 0, RESULT_SKIP, "third", 1);
	ck_assert(evidence_close(third, NULL, false));
	evidence_free(third);
	ck_assert_int_eq(run_folders(), 2);
	ck_assert_ptr_nonnull(strstr(read_file("32/output.txt"), "reason: third\n"));
	evidence_case_end(first, 0, RESULT_SKIP, "first", 1);
	ck_assert(evidence_close(first, NULL, false));
	evidence_free(first);
	ck_assert_ptr_nonnull(strstr(read_file("output.txt"), "reason: first\n"));
	ck_assert_ptr_nonnull(strstr(read_file("32/output.txt"), "reason: first\n"));
	ck_assert_int_eq(run_folders(), 1);
	end_other_run(child);
}
END_TEST

START_TEST(interrupted_run_has_no_summary)
{
	EvidenceRun run = a_run(3);
	Evidence *evidence = evidence_open(&run);
	char *page;

	ck_assert_ptr_nonnull(evidence);
	evidence_case_begin(evidence, 0);
	evidence_case_begin(evidence, 1);
	say(evidence, 1, LINE_STEP, "waits");
	ck_assert(evidence_close(evidence, NULL, true));
	ck_assert_ptr_nonnull(strstr(evidence_output_path(evidence), "/.run-"));
	page = string_format("%.*s/32/report.html",
						 (int) (strrchr(evidence_output_path(evidence), '/') - evidence_output_path(evidence)),
						 evidence_output_path(evidence));
	ck_assert_int_eq(access(page, R_OK), 0);
	free(page);
	evidence_free(evidence);
	ck_assert_str_eq(read_file("output.txt"), "== 32-A  normal path\nclaim    a like counts once\n"
											  "== 32-B  repeats\nclaim    a repeat changes nothing\nstep     waits\n");
	ck_assert(!exists("32"));
}
END_TEST

static void
assert_error(const char *head, const char *below_root, const char *tail)
{
	char *expected = string_format("%s%s%s", head, root, below_root);
	char error[512];

	notice_last_error(error, sizeof(error));
	ck_assert_msg(strncmp(error, expected, strlen(expected)) == 0, "%s", error);
	ck_assert_msg(strstr(error, tail) != NULL, "%s", error);
	free(expected);
}

START_TEST(files_in_the_way)
{
	EvidenceRun run = a_run(1);
	char *file = string_format("%s/32", root);
	char *below = string_format("%s/32/deeper", root);
	char *output = string_format("%s/output.txt", root);

	ck_assert(file_replace(file, "precious"));
	ck_assert_ptr_null(evidence_open(&run));
	assert_error("cannot make evidence folder ", "/32: ", "a file is in the way");
	ck_assert_str_eq(read_file("32"), "precious");
	run.root = file;
	ck_assert_ptr_null(evidence_open(&run));
	assert_error("cannot make evidence folder ", "/32: ", "a file is in the way");
	run.root = below;
	ck_assert_ptr_null(evidence_open(&run));
	assert_error("cannot make evidence folder ", "/32/deeper: ", "Not a directory");
	run.root = root;
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(mkdir(output, 0700), 0);
	ck_assert_ptr_null(evidence_open(&run));
	assert_error("cannot write evidence: ", "/output.txt: ", "directory");
	ck_assert_int_eq(run_folders(), 0);
	free(file);
	free(below);
	free(output);
}
END_TEST

START_TEST(folder_that_cannot_be_written)
{
	EvidenceRun run = a_run(1);
	char error[256];

	run.root = "/proc/evidence";
	ck_assert_ptr_null(evidence_open(&run));
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, "cannot make evidence folder /proc/evidence: No such file or directory");
}
END_TEST

/* A limit on the size of files refuses a write as a full disk does. */
/*
 * A disk that is full after so many bytes a file; returns the limit before. Nothing may be asserted until it is lifted: Check
 * tells its parent of each assertion in a file, too, in lines as long as the path of the checkout.
 */
static rlim_t
limit_files(rlim_t bytes)
{
	struct rlimit limit;
	rlim_t before;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
	{
		abort();
	}
	before = limit.rlim_cur;
	limit.rlim_cur = bytes;
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
	{
		abort();
	}
	return before;
}

START_TEST(full_disk_loses_nothing)
{
	EvidenceRun run = a_run(2);
	rlim_t before;
	Evidence *evidence;

	run_told();
	evidence = evidence_open(&run);
	ck_assert_ptr_nonnull(evidence);
	evidence_case_begin(evidence, 0);
	ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
	before = limit_files(100);
	for (int i = 0; i < 10; i++)
	{
		say_check(evidence, 0, LINE_PASS, "1", "1");
	}
	evidence_case_end(evidence, 0, RESULT_PASS, NULL, 1);
	(void) limit_files(before);
	assert_error("cannot write evidence: ", "/.run-", "output.txt: File too large");
	ck_assert(!evidence_close(evidence, NULL, false));
	evidence_free(evidence);
	ck_assert_ptr_nonnull(strstr(read_file("32/output.txt"), "SUMMARY"));
	ck_assert_ptr_null(strstr(read_file("output.txt"), "SUMMARY"));
}
END_TEST

/* Only the summary's files meet the full disk. */
START_TEST(full_disk_at_the_end)
{
	EvidenceRun run = a_run(1);
	Evidence *evidence = evidence_open(&run);
	rlim_t before;
	bool closed;

	ck_assert_ptr_nonnull(evidence);
	evidence_case_end(evidence, 0, RESULT_FAIL, NULL, 1);
	ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
	before = limit_files(400);
	closed = evidence_close(evidence, NULL, false);
	(void) limit_files(before);
	ck_assert(!closed);
	assert_error("cannot write evidence: ", "/.run-", "File too large");
	evidence_free(evidence);
	ck_assert(!exists("32"));
}
END_TEST

START_TEST(odd_bytes_become_visible)
{
	static const char *const rows[][2] = {
		{"tab\there\r\n", "tab here  "},
		{"\x01\x1b[31m", "#x01#x1B[31m"},
		{"\xc3\xa9 \xe7\x82\xb9 \xf0\x9f\x91\x8d", "\xc3\xa9 \xe7\x82\xb9 \xf0\x9f\x91\x8d"},
		{"\xc0\x80 \xed\xa0\x80 \xf5", "#xC0#x80 #xED#xA0#x80 #xF5"},
		{"\xef\xbf\xbf \xe7\x82", "#xEF#xBF#xBF #xE7#x82"},
	};
	EvidenceRun run = a_run(1);
	Evidence *evidence = evidence_open(&run);
	Text expected = {0};

	ck_assert_ptr_nonnull(evidence);
	evidence_case_begin(evidence, 0);
	text_append(&expected, "== 32-A  normal path\nclaim    a like counts once\n");
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		say(evidence, 0, LINE_NOTE, rows[i][0]);
		text_append(&expected, "note     %s\n", rows[i][1]);
	}
	ck_assert_str_eq(read_file("output.txt"), text_get(&expected));
	evidence_free(evidence);
	text_free(&expected);
}
END_TEST

#define REPEATS 100
#define LINES_EACH 20
#define PEAK_GROWTH_MAX_KIB 4096

/* The peak of a run of many cases is that of few. */
START_TEST(many_repeats_stay_small)
{
	EvidenceCase *cases = memory_get(sizeof(*cases) * REPEATS * 12);
	EvidenceRun run = {.root = root, .seed = 1, .cases = cases, .case_count = REPEATS * 12};
	Evidence *evidence;
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < run.case_count; i++)
	{
		cases[i] = CASES[0];
		cases[i].repetition = i / 12 + 1;
	}
	evidence = evidence_open(&run);
	ck_assert_ptr_nonnull(evidence);
	for (int i = 0; i < run.case_count; i++)
	{
		for (int line = 0; line < LINES_EACH; line++)
		{
			say_check(evidence, i, LINE_PASS, "a value of middle length", "a value of middle length");
		}
		evidence_case_end(evidence, i, RESULT_PASS, NULL, 1);
	}
	ck_assert(evidence_close(evidence, NULL, false));
	ck_assert_int_eq(evidence_totals(evidence).passed, REPEATS * 12 * LINES_EACH);
	evidence_free(evidence);
	free(cases);
	getrusage(RUSAGE_SELF, &after);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep freed memory */
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, PEAK_GROWTH_MAX_KIB);
#endif
	ck_assert(strstr(read_file("32/junit.xml"), "tests=\"1200\"") != NULL);
}
END_TEST

/* --- parts of a campaign --- */

/* A run of its own below root, of cases that end as `results` says; each has a file and a trace. */
static void
make_part(const char *name, const EvidenceCase *cases, const Result *results, int count, const char *conclusion)
{
	char *below = string_format("%s/%s", root, name);
	char *replay = string_format("./run.sh %s", name);
	EvidenceRun run = {.root = below, .seed = 32, .cases = cases, .case_count = count, .replay = replay};
	Evidence *evidence = evidence_open(&run);

	ck_assert_ptr_nonnull(evidence);
	for (int i = 0; i < count; i++)
	{
		char *path = string_format("%s/" EVIDENCE_TRACE, evidence_case_folder(evidence, i));
		char *execution = string_format("%s {\"%s\":1}\nbegin of %s\n", name, name, cases[i].id);

		ck_assert(file_replace(path, execution));
		say(evidence, i, LINE_STEP, name);
		say_check(evidence, i, results[i] == RESULT_FAIL ? LINE_FAIL : LINE_PASS, "1", "1");
		evidence_case_end(evidence, i, results[i], NULL, 5);
		free(execution);
		free(path);
	}
	if (conclusion != NULL)
	{
		evidence_conclude(evidence, conclusion);
	}
	ck_assert(evidence_close(evidence, NULL, false));
	evidence_free(evidence);
	free(replay);
	free(below);
}

static bool
merge(const char *first, const char *second, EvidenceTotals *totals, Text *summary)
{
	char *a = string_format("%s/%s", root, first);
	char *b = second != NULL ? string_format("%s/%s", root, second) : NULL;
	bool done = evidence_merge(root, (const char *[]){a, b}, b != NULL ? 2 : 1, totals, summary);

	free(a);
	free(b);
	return done;
}

START_TEST(parts_become_one_run)
{
	static const EvidenceCase ab[] = {{"32", "32-A", "a", "is", "k", 1, "g", "o", "m", "e", "n"},
									  {"32", "32-B", "b", "is", "k", 1, "g", "o", "m", "e", "n"}};
	static const EvidenceCase ac[] = {{"32", "32-A", "a", "is", "k", 1, "g", "o", "m", "e", "n"},
									  {"32", "32-C", "c", "is", "k", 1, "g", "o", "m", "e", "n"}};
	EvidenceTotals totals;
	Text summary = {0};

	make_part("one", ac, (const Result[]){RESULT_PASS, RESULT_PASS}, 2, NULL);
	make_part("two", ab, (const Result[]){RESULT_FAIL, RESULT_PASS}, 2, NULL);
	ck_assert(merge("one/32", "two/32", &totals, &summary));
	ck_assert_int_eq(totals.scenarios, 4);
	ck_assert_int_eq(totals.failed, 1);
	ck_assert_str_eq(
		read_file("32/output.txt"),
		"== 32-A  a\nclaim    is\nstep     one\nPASS     events; expected 1, got 1\nresult   PASS passed=1 failed=0\n"
		"== 32-B  b\nclaim    is\nstep     two\nPASS     events; expected 1, got 1\nresult   PASS passed=1 failed=0\n"
		"== 32-C  c\nclaim    is\nstep     one\nPASS     events; expected 1, got 1\nresult   PASS passed=1 failed=0\n"
		"== 32-A #2  a\nclaim    is\nstep     two\nFAIL     events; expected 1, got 1\nresult   FAIL passed=0 failed=1\n"
		"replay   ./run.sh one; ./run.sh two\n"
		"SUMMARY  passed=3 failed=1 unknown=0 skipped=0 scenarios=4 retries_40001=0 retries_40P01=0 seed=32\n");
	ck_assert_str_eq(text_get(&summary), "SUMMARY  passed=3 failed=1 unknown=0 skipped=0 scenarios=4 retries_40001=0 "
										 "retries_40P01=0 seed=32");
	ck_assert(strstr(read_file("32/trace.shiviz"), "=== 32-A #2 ===\ntwo {\"two\":1}\nbegin of 32-A\n") != NULL);
	ck_assert(strstr(read_file("32/trace.shiviz"), "=== 32-C ===\none {\"one\":1}\nbegin of 32-C\n") != NULL);
	ck_assert(exists("32/32-A#2/trace.shiviz") && !exists("32/32-B"));
	ck_assert(exists("32/report.html") && exists("32/junit.xml"));
	text_free(&summary);
}
END_TEST

/* What is joined from one part is that part, to the byte. */
START_TEST(one_part_stays_what_it_is)
{
	EvidenceRun run = a_run(LENGTH_OF(CASES));
	Evidence *evidence;
	EvidenceTotals totals;
	Text summary = {0}, before[3] = {{0}};
	static const char *const names[] = {"32/output.txt", "32/results.json", "32/junit.xml"};

	evidence = evidence_open(&run);
	ck_assert(evidence_add_settings(evidence, SETTINGS, LENGTH_OF(SETTINGS)));
	tell_run(evidence);
	ck_assert(evidence_close(evidence, NULL, false));
	evidence_free(evidence);
	for (size_t i = 0; i < LENGTH_OF(names); i++)
	{
		text_append(&before[i], "%s", read_file(names[i]));
	}
	ck_assert(merge("32", NULL, &totals, &summary));
	for (size_t i = 0; i < LENGTH_OF(names); i++)
	{
		ck_assert_str_eq(read_file(names[i]), text_get(&before[i]));
		text_free(&before[i]);
	}
	text_free(&summary);
}
END_TEST

START_TEST(conclusions_are_added)
{
	static const EvidenceCase one[] = {{"mutants", "M01", "a", "is", "k", 1, "g", "o", "m", "e", "n"}};
	static const EvidenceCase two[] = {{"mutants", "M02", "b", "is", "k", 1, "g", "o", "m", "e", "n"}};
	const Result pass[] = {RESULT_PASS};
	EvidenceTotals totals;
	Text summary = {0};

	make_part("one", one, pass, 1, "caught=12 survived=0 canary=survived seed=32");
	make_part("two", two, pass, 1, "caught=11 survived=1 canary=caught system=red seed=32");
	ck_assert(merge("one/mutants", "two/mutants", &totals, &summary));
	ck_assert_str_eq(text_get(&summary), "SUMMARY  caught=23 survived=1 canary=survived,caught seed=32 system=red");
	text_free(&summary);
}
END_TEST

START_TEST(parts_that_do_not_fit)
{
	static const EvidenceCase one[] = {{"32", "32-A", "a", "is", "k", 1, "g", "o", "m", "e", "n"}};
	static const EvidenceCase two[] = {{"33", "33-A", "b", "is", "k", 1, "g", "o", "m", "e", "n"}};
	const Result pass[] = {RESULT_PASS};
	EvidenceTotals totals;
	Text summary = {0};
	char *output = string_format("%s/one/32/output.txt", root);

	make_part("one", one, pass, 1, NULL);
	make_part("two", two, pass, 1, NULL);
	notice_expect_errors(true);
	ck_assert(!merge("one/32", "two/33", &totals, &summary));
	ck_assert(!merge("one/32", "one/32", &totals, &summary));
	ck_assert(!merge("one/32", "none/32", &totals, &summary));
	ck_assert_int_eq(unlink(output), 0);
	ck_assert(!merge("one/32", NULL, &totals, &summary));
	ck_assert(!exists("32") && !exists("33"));
	ck_assert_uint_eq(summary.length, 0);
	free(output);
}
END_TEST

static void
add_tests(TCase *tcase)
{
	tcase_add_test(tcase, lines_are_exact_and_in_order);
	tcase_add_test(tcase, results_hold_the_run);
	tcase_add_test(tcase, series_are_for_results_only);
	tcase_add_test(tcase, page_that_cannot_be_made);
	tcase_add_test(tcase, junit_is_what_readers_take);
	tcase_add_test(tcase, all_that_passes_has_no_replay);
	tcase_add_test(tcase, what_failed_keeps_its_files);
	tcase_add_test(tcase, killed_run_shows_what_was_running);
	tcase_add_test(tcase, living_run_is_not_disturbed);
	tcase_add_test(tcase, interrupted_run_has_no_summary);
	tcase_add_test(tcase, files_in_the_way);
	tcase_add_test(tcase, folder_that_cannot_be_written);
	tcase_add_test(tcase, full_disk_loses_nothing);
	tcase_add_test(tcase, full_disk_at_the_end);
	tcase_add_test(tcase, odd_bytes_become_visible);
	tcase_add_test(tcase, many_repeats_stay_small);
	tcase_add_test(tcase, parts_become_one_run);
	tcase_add_test(tcase, one_part_stays_what_it_is);
	tcase_add_test(tcase, conclusions_are_added);
	tcase_add_test(tcase, parts_that_do_not_fit);
}

int
main(void)
{
	Suite *suite = suite_create("evidence");
	TCase *tcase = tcase_create("evidence");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, make_root, remove_root);
	add_tests(tcase);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
