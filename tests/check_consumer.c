/*
 * like-consumer as a program that somebody starts by hand: what it refuses, with one line and which exit code, and what
 * it leaves alone then. It runs in a shell, which closes and redirects its streams. The environment names a private
 * server in COUNTERPROOF_TEST_CONNINFO, and COUNTERPROOF_SQL and COUNTERPROOF_PROGRAMS.
 */
#include "like.h"
#include "proc.h"
#include "served_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATABASE "check_consumer"
#define EVENTS 120
#define TEST_SECONDS 60
#define WAIT_MS 20000
#define ALL "DRAINED applied=120 covered=0 dup=0 watermark=120\n"

static char *database;
static char *like_folder;
static char folder[] = "/tmp/check-consumer-XXXXXX"; /* has one for each test */
static Session *lab;


/* --- fixtures --- */

/* 120 events of one item, nothing delivered; the working directory is empty. */
static void
setup(void)
{
	char *own = string_format("%s/XXXXXX", folder);

	ck_assert_ptr_nonnull(mkdtemp(own));
	ck_assert_int_eq(chdir(own), 0);
	free(own);
	server_execute("DROP DATABASE IF EXISTS " DATABASE " WITH (FORCE)");
	server_execute("CREATE DATABASE " DATABASE);
	lab = session_open(database, "check_consumer");
	ck_assert_ptr_nonnull(lab);
	ck_assert(like_create(lab, like_folder));
	ck_assert(like_add_item(lab, 1, "item-lab-01"));
	ck_assert(
		session_query(lab, NULL, "SELECT like_set(u, 1, true) FROM generate_series(1, $1) u", ARGS(arg_int(EVENTS))));
}

static void
teardown(void)
{
	session_close(lab);
	server_execute("DROP DATABASE " DATABASE " WITH (FORCE)");
}

/* A file of the working directory. */
static void
put(const char *name, const char *bytes, size_t length)
{
	FILE *file = fopen(name, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
	ck_assert_int_eq(fclose(file), 0);
}

static void
expect_file(const char *name, const char *expected)
{
	Text content = {0};

	ck_assert(file_read(name, &content));
	ck_assert_str_eq(text_get(&content), expected);
	text_free(&content);
}

static void
expect_delivered(int64_t expected)
{
	int64_t value;

	ck_assert(session_query_int(lab, &value, "SELECT count(*) FROM processed_event", NO_ARGS));
	ck_assert_int_eq(value, expected);
	ck_assert(like_watermark(lab, &value));
	ck_assert_int_eq(value, expected);
}

/*
 * Run the consumer with these arguments and redirections as the shell reads them. `output` gets its stderr, and its
 * stdout where that was not redirected. It must not take half a minute.
 */
static int
consumer(Text *output, const char *arguments)
{
	char *command = string_format("{ timeout 30 \"$COUNTERPROOF_PROGRAMS\"/like-consumer --conninfo \"%s\" %s; } 2>&1",
								  database, arguments);
	char line[512];
	FILE *stream = popen(command, "r");
	int status;

	ck_assert_ptr_nonnull(stream);
	text_clear(output);
	while (fgets(line, sizeof(line), stream) != NULL)
	{
		text_append(output, "%s", line);
	}
	status = pclose(stream);
	free(command);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
expect_lines(const Text *output, int expected)
{
	int lines = 0;

	for (const char *p = text_get(output); *p != '\0'; p++)
	{
		lines += *p == '\n';
	}
	ck_assert_msg(lines == expected, "%d lines, not %d: %s", lines, expected, text_get(output));
}

/* One line that says so, exit code 2, and nothing was delivered. */
static void
expect_refused(const char *arguments, const char *words)
{
	Text output = {0};
	int code = consumer(&output, arguments);

	ck_assert_msg(code == EXIT_CODE_USAGE, "%s: exit %d: %s", arguments, code, text_get(&output));
	ck_assert_msg(strstr(text_get(&output), words) != NULL, "%s: does not say \"%s\": %s", arguments, words,
				  text_get(&output));
	expect_lines(&output, 1);
	expect_delivered(0);
	text_free(&output);
}

static void
expect_drained(const char *arguments, const char *expected)
{
	Text output = {0};
	int code = consumer(&output, arguments);

	ck_assert_msg(code == EXIT_CODE_PASS, "%s: exit %d: %s", arguments, code, text_get(&output));
	ck_assert_str_eq(text_get(&output), expected);
	text_free(&output);
}


/* --- the offset --- */

START_TEST(an_offset_beyond_the_last_event_is_refused)
{
	put("off", "1000\n", 5);
	expect_refused("--offset-file off", "says event 1000, but the last event is 120");
	expect_file("off", "1000\n");
	put("off", "121", 3);
	expect_refused("--offset-file off", "says event 121, but the last event is 120");
}
END_TEST

START_TEST(the_file_is_believed_up_to_the_last_event)
{
	put("off", "120\n", 4);
	expect_drained("--offset-file off", "DRAINED applied=0 covered=0 dup=0 watermark=0\n");
	put("off", "100", 3);
	expect_drained("--offset-file off", "DRAINED applied=20 covered=0 dup=0 watermark=0\n");
	expect_file("off", "120\n");
	put("off", "0\n", 2);
	expect_drained("--offset-file off --batch 7", "DRAINED applied=100 covered=0 dup=20 watermark=120\n");
	expect_file("off", "120\n");
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
	static const struct
	{
		const char *bytes;
		size_t length;
		const char *words;
	} cases[] = {
		{"", 0, "holds no event number: \"\""},
		{"7\0008", 3, "a zero byte follows \"7\""},
		{"7\0\n", 3, "a zero byte follows \"7\""},
		{"7 ", 2, "holds no event number: \"7 \""},
		{"7\n\n", 3, "holds no event number"},
		{"-1", 2, "holds no event number: \"-1\""},
		{"9223372036854775808", 19, "holds no event number"},
		{"00000000000000000000000000000000000000000000000000000000000000007", 65, "it has 65 bytes"},
	};

	for (size_t i = 0; i < LENGTH_OF(cases); i++)
	{
		put("off", cases[i].bytes, cases[i].length);
		expect_refused("--offset-file off", cases[i].words);
	}
}
END_TEST


/* --- the file --- */

START_TEST(what_is_no_file_is_refused)
{
	ck_assert_int_eq(mkdir("folder", 0755), 0);
	ck_assert_int_eq(mkfifo("pipe", 0644), 0);
	ck_assert_int_eq(symlink("nothing", "dangling"), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	put("file", "0\n", 2);
	expect_refused("--offset-file ''", "takes the name of a file");
	expect_refused("--offset-file folder", "not a regular file");
	expect_refused("--offset-file pipe", "not a regular file");
	expect_refused("--offset-file /dev/zero", "not a regular file");
	expect_refused("--offset-file /dev/null", "not a regular file");
	expect_refused("--offset-file dangling", "a link to a file that does not exist");
	expect_refused("--offset-file loop", "cannot open offset file loop");
	expect_refused("--offset-file file/off", "cannot open offset file file/off");
}
END_TEST

START_TEST(a_table_that_a_crash_would_empty_is_refused)
{
	ck_assert(session_execute(lab, "ALTER TABLE processed_event SET UNLOGGED"));
	expect_refused("--offset-file off", "table processed_event is not logged");
	ck_assert(session_execute(lab, "ALTER TABLE processed_event SET LOGGED"));
	ck_assert(session_execute(lab, "ALTER TABLE counter_watermark SET UNLOGGED"));
	expect_refused("--offset-file off", "table counter_watermark is not logged");
	ck_assert(session_execute(lab, "ALTER TABLE counter_watermark SET LOGGED"));
	expect_drained("--offset-file off", ALL);
}
END_TEST

START_TEST(a_place_that_cannot_be_written_is_refused)
{
	expect_refused("--offset-file nowhere/off", "cannot create nowhere/off");
	expect_refused("--offset-file /proc/off", "cannot create /proc/off");
}
END_TEST

START_TEST(a_link_is_followed)
{
	struct stat status;

	ck_assert_int_eq(mkdir("elsewhere", 0755), 0);
	put("elsewhere/off", "20\n", 3);
	ck_assert_int_eq(symlink("elsewhere/off", "link"), 0);
	ck_assert_int_eq(symlink("link", "link-to-link"), 0);
	expect_drained("--offset-file link-to-link", "DRAINED applied=100 covered=0 dup=0 watermark=0\n");
	expect_file("elsewhere/off", "120\n");
	ck_assert_int_eq(lstat("link", &status), 0);
	ck_assert(S_ISLNK(status.st_mode));
	ck_assert_int_eq(lstat("link-to-link", &status), 0);
	ck_assert(S_ISLNK(status.st_mode));
}
END_TEST


/* --- the streams --- */

START_TEST(a_stream_that_takes_nothing_is_reported)
{
	static const char *const streams[] = {">/dev/full", ">&-", "<&- >&-"};
	Text output = {0};

	for (size_t i = 0; i < LENGTH_OF(streams); i++)
	{
		char *arguments = string_format("--offset-file off %s", streams[i]);

		ck_assert_int_eq(consumer(&output, arguments), EXIT_CODE_BROKEN);
		ck_assert_msg(strstr(text_get(&output), "cannot write to stdout: ") != NULL, "%s: %s", streams[i],
					  text_get(&output));
		expect_lines(&output, 1);
		expect_delivered(EVENTS);
		free(arguments);
	}
	ck_assert_int_eq(consumer(&output, "--help >/dev/full"), EXIT_CODE_BROKEN);
	expect_lines(&output, 1);
	text_free(&output);
}
END_TEST

/* With all three closed the connection would be one of them. */
START_TEST(what_is_printed_never_reaches_the_server)
{
	static const char *const streams[] = {">&- </dev/null", "<&- >&- 2>&-"};
	Text output = {0};

	for (size_t i = 0; i < LENGTH_OF(streams); i++)
	{
		char *arguments =
			string_format("--offset-file off%zu --pause-at consumer.before_commit:2 --batch 50 %s", i, streams[i]);

		ck_assert_int_eq(consumer(&output, arguments), EXIT_CODE_BROKEN);
		if (i == 0)
		{
			ck_assert_ptr_nonnull(strstr(text_get(&output), "cannot announce point consumer.before_commit on stdout"));
			expect_lines(&output, 2);
		}
		expect_delivered(EVENTS);
		free(arguments);
	}
	expect_file("off0", "120\n");
	expect_file("off1", "120\n");
	text_free(&output);
}
END_TEST

START_TEST(without_a_file_all_is_delivered)
{
	expect_drained("--offset-file off", ALL);
	expect_file("off", "120\n");
	expect_delivered(EVENTS);
}
END_TEST


/* --- main --- */

static Suite *
consumer_suite(void)
{
	const TTest *const tests[] = {
		without_a_file_all_is_delivered,
		an_offset_beyond_the_last_event_is_refused,
		the_file_is_believed_up_to_the_last_event,
		what_is_no_number_is_refused,
		what_is_no_file_is_refused,
		a_table_that_a_crash_would_empty_is_refused,
		a_place_that_cannot_be_written_is_refused,
		a_link_is_followed,
		a_stream_that_takes_nothing_is_reported,
		what_is_printed_never_reaches_the_server,
	};
	Suite *suite = suite_create("consumer");
	TCase *tcase = tcase_create("consumer");

	tcase_set_timeout(tcase, TEST_SECONDS);
	tcase_add_checked_fixture(tcase, setup, teardown);
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
	{
		tcase_add_test(tcase, tests[i]);
	}
	suite_add_tcase(suite, tcase);
	return suite;
}

int
main(void)
{
	const char *sql = getenv("COUNTERPROOF_SQL");
	int failed;

	if (!suite_has_server((const char *const[]){WITH_SQL, WITH_PROGRAMS, NULL}))
	{
		return EXIT_FAILURE;
	}
	if (mkdtemp(folder) == NULL)
	{
		fprintf(stderr, "/tmp must be writable\n");
		return EXIT_FAILURE;
	}
	database = string_format("%s dbname=" DATABASE, server);
	like_folder = string_format("%s/like", sql);
	failed = suite_run(consumer_suite());
	free(database);
	free(like_folder);
	failed += !process_remove_directory(folder, deadline_in_ms(WAIT_MS));
	return failed;
}
