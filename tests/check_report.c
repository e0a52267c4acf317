/*
 * The page is made from evidence that nobody vouches for: what is damaged, cut or of another format is refused and leaves
 * no page, at every place where it may have been cut. tests/browser.mjs looks at what is drawn.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence.h"
#include "report.h"
#include "suite.h"

#define HEADER "(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})\n=== (?<trace>.*) ===\n"

static char folder[64];
static Text results; /* the sample's */
static Text trace;

static char *
in_folder(const char *name)
{
	return string_format("%s/%s", folder, name);
}

static void
put(const char *name, const char *bytes, size_t length)
{
	char *path = in_folder(name);
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
	ck_assert_int_eq(fclose(file), 0);
	free(path);
}

static void
put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

static void
drop(const char *name)
{
	char *path = in_folder(name);

	(void) unlink(path);
	free(path);
}

static bool
has_page(void)
{
	char *path = in_folder(REPORT_PAGE);
	bool there = access(path, F_OK) == 0;

	free(path);
	return there;
}

static int
count_files(void)
{
	DIR *directory = opendir(folder);
	int count = 0;

	ck_assert_ptr_nonnull(directory);
	while (readdir(directory) != NULL)
	{
		count++;
	}
	closedir(directory);
	return count - 2;
}

static void
set_up(void)
{
	const char *home = getenv("COUNTERPROOF_HOME");
	char *path;

	snprintf(folder, sizeof(folder), "/tmp/check-report-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	path = string_format("%s/tests/report/sample/results.json", home != NULL ? home : ".");
	ck_assert(file_read(path, &results));
	free(path);
	path = string_format("%s/tests/report/sample/trace.shiviz", home != NULL ? home : ".");
	ck_assert(file_read(path, &trace));
	free(path);
	put("results.json", results.data, results.length);
	notice_expect_errors(true);
}

static void
tear_down(void)
{
	static const char *const names[] = {"results.json", "results.json.part", "trace.shiviz", "output.txt",
										"env.txt",      REPORT_PAGE,         "other.html"};

	for (size_t i = 0; i < LENGTH_OF(names); i++)
	{
		drop(names[i]);
	}
	ck_assert_int_eq(rmdir(folder), 0); /* nothing was left aside */
	text_free(&results);
	text_free(&trace);
}

/* Refused, with these words, and without a page. */
static void
assert_refused(const char *words)
{
	char error[512];

	ck_assert_int_eq(report_write(folder), REPORT_UNREADABLE);
	notice_last_error(error, sizeof(error));
	ck_assert_msg(strstr(error, words) != NULL, "not \"%s\": %s", words, error);
	ck_assert_ptr_null(strchr(error, '\n'));
	ck_assert(!has_page());
}

/* The sample with one thing in it replaced. */
static void
assert_results_refused(const char *old, const char *new, const char *words)
{
	const char *at = strstr(results.data, old);
	char *spoiled;

	ck_assert_ptr_nonnull(at);
	spoiled = string_format("%.*s%s%s", (int) (at - results.data), results.data, new, at + strlen(old));
	put_text("results.json", spoiled);
	free(spoiled);
	assert_refused(words);
}

static void
assert_trace_refused(const char *events, const char *words)
{
	char *text = string_format(HEADER "%s", events);

	put_text("trace.shiviz", text);
	free(text);
	assert_refused(words);
}

START_TEST(page_has_the_run)
{
	char *path = in_folder(REPORT_PAGE);
	Text page = {0};

	put("trace.shiviz", trace.data, trace.length);
	ck_assert_int_eq(report_write(folder), REPORT_WRITTEN);
	ck_assert_int_eq(count_files(), 3);
	ck_assert(file_read(path, &page));
	ck_assert_ptr_nonnull(strstr(page.data, "\"replay\":\"./run.sh 32-J 32-K 32-L --seed 32\""));
	ck_assert_ptr_nonnull(strstr(page.data, "kill -9 consumer-1 at consumer.before_commit"));
	ck_assert_ptr_nonnull(strstr(page.data, "\\u003cscript>alert(1)\\u003c/script>"));
	ck_assert_ptr_null(strstr(page.data, "<script>alert"));
	ck_assert_ptr_null(strstr(page.data, "</script><script>document.title"));
	ck_assert_ptr_null(strstr(page.data, "<!--data-->"));
	ck_assert_str_eq(page.data + page.length - strlen("</html>\n"), "</html>\n");
	text_free(&page);
	free(path);
}
END_TEST

/* Wherever it was cut, it is not taken for whole. */
START_TEST(cut_results_are_refused)
{
	for (size_t length = 0; length < results.length; length += 1 + length % 7)
	{
		put("results.json", results.data, length);
		assert_refused("results.json: line ");
	}
	put("results.json", results.data, results.length - 1);
	assert_refused("line 11: neither a case nor the end");
	drop("results.json");
	assert_refused("results.json: No such file");
}
END_TEST

START_TEST(damaged_results_are_refused)
{
	assert_results_refused("\"format\": 1", "\"format\": 2", "its format is 2, and this program knows 1");
	assert_results_refused("\"format\": 1,\n", "", "format");
	assert_results_refused("\"id\":\"32-K\"", "\"id\":32", "line 9: ");
	assert_results_refused("\"ok\":true", "\"ok\":\"true\"", "line 8: ");
	assert_results_refused("\"scenarios\":3", "\"scenarios\":4", "3 cases, and its head says 4");
	assert_results_refused("\"repetition\":1", "\"repetition\":1,\"repetition\":1", "line 8: duplicate");
	assert_results_refused("32-K", "32-\xff", "line ");
	assert_results_refused("\n]}\n", "\n]}\n{}\n", "something stands behind its end");
	put_text("results.json", "{\"cases\": []}\n");
	assert_refused("it has no cases, each on a line");
}
END_TEST

/* A trace that ends with an event is one. Anywhere else it is refused. */
START_TEST(cut_traces_are_refused)
{
	size_t lines = 0;

	for (size_t length = 0; length < trace.length; length++)
	{
		bool whole = length > 0 && trace.data[length - 1] == '\n' && lines >= 5 && lines % 2 == 1;

		put("trace.shiviz", trace.data, length);
		if (whole)
		{
			ck_assert_int_eq(report_write(folder), REPORT_WRITTEN);
			drop(REPORT_PAGE);
		}
		else
		{
			assert_refused("trace.shiviz: line ");
		}
		lines += trace.data[length] == '\n';
	}
}
END_TEST

/* By the trace's own check, of which check_trace has more. */
START_TEST(damaged_traces_are_refused)
{
	assert_trace_refused("x\na {\"a\":1}\ny\na {\"a\":3}\n", "trace.shiviz: line 5: a has an event 3, but none with");
	assert_trace_refused("x\na {\"a\":1}\ny\na {\"a\":1}\n", "a second time");
	assert_trace_refused("x\na {\"a\":1, \"b\":1}\n", "line 3: ");
	assert_trace_refused("x\na {\"a\":1, \"b\":-1}\n", "line 3: ");
	assert_trace_refused("x\na {\"a\":1, \"b\":99999999999999999999}\n", "line 3: ");
	assert_trace_refused("x\na {\"a\":1, \"a\":1}\n", "line 3: ");
	assert_trace_refused("x\na {\"b\":1}\n", "line ");
	assert_trace_refused("x\na [1]\n", "line 3: ");
	put_text("trace.shiviz", "<html>\n\n");
	assert_refused("line 1: not a format known here");
}
END_TEST

/* A text that was cut to its most bytes may end inside a character. */
START_TEST(odd_bytes_of_a_trace_become_visible)
{
	char *path = in_folder(REPORT_PAGE);
	Text page = {0};

	put_text("trace.shiviz", HEADER "caf\xc3\na {\"a\":1}\n");
	ck_assert_int_eq(report_write(folder), REPORT_WRITTEN);
	ck_assert(file_read(path, &page));
	ck_assert_ptr_nonnull(strstr(page.data, "[\"caf#xC3\",0,1]"));
	text_free(&page);
	free(path);
}
END_TEST

/* Whatever the check of traces can read. */
START_TEST(other_formats_are_read)
{
	char *path = in_folder(REPORT_PAGE);
	Text page = {0};

	put_text("trace.shiviz", "(?<clock>{.*}) of (?<host>\\S*): (?<event>.*)\n^--- (?<trace>.*)$\n"
							 "{\"a\":1} of a: x\n--- two\n{\"b\":1} of b: y\n");
	ck_assert_int_eq(report_write(folder), REPORT_WRITTEN);
	ck_assert(file_read(path, &page));
	ck_assert_ptr_nonnull(strstr(page.data, "{\"label\":\"\",\"events\":[[\"x\",0,1]],\"hosts\":[\"a\"]}"));
	ck_assert_ptr_nonnull(strstr(page.data, "{\"label\":\"two\",\"events\":[[\"y\",0,1]],\"hosts\":[\"b\"]}"));
	text_free(&page);
	free(path);
}
END_TEST

/* GoVector writes the host first, and one execution without a name. */
START_TEST(other_order_is_read)
{
	put_text("trace.shiviz",
			 "(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\na {\"a\":1}\nsends\nb {\"a\":1, \"b\":1}\nreceives\n");
	ck_assert_int_eq(report_write(folder), REPORT_WRITTEN);
}
END_TEST

/* Of a run that was killed: the cases that had ended, what was running, and not what was being written. */
START_TEST(what_was_cut_short_is_shown)
{
	const char *first = strstr(results.data, "{\"id\":\"32-J\"");
	const char *second = strstr(results.data, "{\"id\":\"32-K\"");
	char *path = in_folder(REPORT_PAGE);
	Text page = {0};

	drop("results.json");
	put("results.json.part", first, (size_t) (second - first) + 40);
	put_text("output.txt", "== 32-J  one\nresult   PASS passed=1 failed=0\n== 32-K  two\nstep     <b>waits\n");
	put_text("env.txt", "seed=77\nreplay=./run.sh 32 --seed 77\n");
	ck_assert_int_eq(report_write(folder), REPORT_WRITTEN);
	ck_assert(file_read(path, &page));
	ck_assert_ptr_nonnull(strstr(page.data, "\"cut_short\":[\"== 32-K  two\",\"step     \\u003cb>waits\"]"));
	ck_assert_ptr_nonnull(strstr(page.data, "{\"id\":\"32-J\""));
	ck_assert_ptr_null(strstr(page.data, "{\"id\":\"32-K\""));
	ck_assert_ptr_nonnull(strstr(page.data, "\"seed\":77"));
	text_free(&page);
	free(path);
	put("results.json.part", second, 40);
	put_text("env.txt", "");
	ck_assert_int_eq(report_write(folder), REPORT_WRITTEN);
}
END_TEST

START_TEST(place_that_cannot_be_written)
{
	char *path = in_folder(REPORT_PAGE);

	ck_assert_int_eq(mkdir(path, 0777), 0);
	ck_assert_int_eq(report_write(folder), REPORT_UNWRITABLE);
	ck_assert_int_eq(count_files(), 2);
	ck_assert_int_eq(rmdir(path), 0);
	free(path);
	ck_assert_int_eq(report_write("/tmp/no/such/evidence"), REPORT_UNREADABLE);
	ck_assert_int_eq(report_compare(folder, "/tmp/no/such/evidence", "/dev/full/x"), REPORT_UNREADABLE);
}
END_TEST

START_TEST(two_runs_are_one_page)
{
	char *path = in_folder("other.html");

	ck_assert_int_eq(report_compare(folder, folder, path), REPORT_WRITTEN);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(report_compare(folder, "/tmp/no/such/evidence", path), REPORT_UNREADABLE);
	ck_assert_int_eq(count_files(), 1);
	free(path);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("report");
	TCase *tcase = tcase_create("report");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, page_has_the_run);
	tcase_add_test(tcase, cut_results_are_refused);
	tcase_add_test(tcase, damaged_results_are_refused);
	tcase_add_test(tcase, cut_traces_are_refused);
	tcase_add_test(tcase, damaged_traces_are_refused);
	tcase_add_test(tcase, odd_bytes_of_a_trace_become_visible);
	tcase_add_test(tcase, other_formats_are_read);
	tcase_add_test(tcase, other_order_is_read);
	tcase_add_test(tcase, what_was_cut_short_is_shown);
	tcase_add_test(tcase, place_that_cannot_be_written);
	tcase_add_test(tcase, two_runs_are_one_page);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
