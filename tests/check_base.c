/* The ground floor: what is printed, how deadlines and waits end, strings, files. */
#include "base.h"
#include "suite.h"

#include <check.h>
#include <inttypes.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS 1000000

static char folder[] = "/tmp/check_base_XXXXXX";


/* --- notices --- */

static int saved_stderr;
static int captured;

static void
capture_begin(void)
{
	char path[] = "/tmp/check_base_stderr_XXXXXX";

	captured = mkstemp(path);
	ck_assert_int_ge(captured, 0);
	ck_assert_int_eq(unlink(path), 0);
	saved_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(captured, STDERR_FILENO), 0);
}

static void
capture_end(char *buffer, size_t size)
{
	ssize_t got = pread(captured, buffer, size - 1, 0);

	ck_assert_int_ge(dup2(saved_stderr, STDERR_FILENO), 0);
	close(saved_stderr);
	close(captured);
	ck_assert_int_ge(got, 0);
	buffer[got] = '\0';
}

START_TEST(a_notice_is_one_line)
{
	char output[1024];
	char expected[256];
	char last[64];

	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "");
	capture_begin();
	report_warning("plain %d", 7);
	report_debug("not shown");
	notice_set_prefix("32-K");
	report_error("two\nlines\n");
	notice_set_level(NOTICE_DEBUG);
	report_debug("shown");
	notice_set_level(NOTICE_ERROR);
	report_warning("not shown");
	notice_expect_errors(true);
	report_error("expected");
	notice_expect_errors(false);
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "expected");
	report_error("two\nlines again");
	capture_end(output, sizeof(output));
	snprintf(expected, sizeof(expected),
			 "plain 7\n[32-K pid %d] two lines\n[32-K pid %d] shown\n[32-K pid %d] two lines again\n", (int) getpid(),
			 (int) getpid(), (int) getpid());
	ck_assert_str_eq(output, expected);
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "two lines again");
	notice_last_error(last, 4);
	ck_assert_str_eq(last, "two");
}
END_TEST

START_TEST(files_of_a_folder_come_in_order)
{
	char odd[] = "/tmp/check_base_[files]*_XXXXXX";
	char path[200];
	char **files;
	size_t count;

	ck_assert_ptr_nonnull(mkdtemp(odd));
	for (const char *const *name = (const char *const[]){"b.sql", "a.sql", "c.txt", ".sql", NULL}; *name != NULL;
		 name++)
	{
		snprintf(path, sizeof(path), "%s/%s", odd, *name);
		ck_assert(file_replace(path, ""));
	}
	ck_assert(folder_files(odd, ".sql", &files, &count));
	ck_assert_uint_eq(count, 2);
	snprintf(path, sizeof(path), "%s/a.sql", odd);
	ck_assert_str_eq(files[0], path);
	paths_free(files, count);
	snprintf(path, sizeof(path), "%s/none", odd);
	ck_assert(folder_files(path, ".sql", &files, &count));
	ck_assert_uint_eq(count, 0);
	paths_free(files, count);
	snprintf(path, sizeof(path), "%s/a.sql", odd);
	ck_assert(!folder_files(path, ".sql", &files, &count));
	paths_free(files, count);
	for (const char *const *name = (const char *const[]){"b.sql", "a.sql", "c.txt", ".sql", NULL}; *name != NULL;
		 name++)
	{
		snprintf(path, sizeof(path), "%s/%s", odd, *name);
		(void) unlink(path);
	}
	(void) rmdir(odd);
}
END_TEST

static void *
report_many(void *context)
{
	for (int i = 0; i < 200; i++)
	{
		report_error("thread %d says the same line again and again", *(int *) context);
	}
	return NULL;
}

START_TEST(threads_report_whole_lines)
{
	static char output[65536];
	pthread_t threads[4];
	int names[4] = {0, 1, 2, 3};
	int lines = 0;

	capture_begin();
	for (int i = 0; i < 4; i++)
	{
		ck_assert_int_eq(pthread_create(&threads[i], NULL, report_many, &names[i]), 0);
	}
	for (int i = 0; i < 4; i++)
	{
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	}
	capture_end(output, sizeof(output));
	for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n"))
	{
		ck_assert_uint_eq(strlen(line), strlen("thread 0 says the same line again and again"));
		ck_assert_int_eq(strncmp(line, "thread ", 7), 0);
		lines++;
	}
	ck_assert_int_eq(lines, 800);
}
END_TEST


/* --- time --- */

START_TEST(a_deadline_scales_and_never_rounds_to_zero)
{
	int64_t now = time_now_ns();
	Deadline soon = {.at_ns = now + 60000 * (int64_t) NS_PER_MS};
	Deadline later = {.at_ns = soon.at_ns + 1};
	int64_t scaled_ns;

	ck_assert(!deadline_passed(soon));
	ck_assert_int_gt(deadline_left_ms(soon), 50000);
	ck_assert_int_le(deadline_left_ms(soon), 60000);
	ck_assert(deadline_passed((Deadline){.at_ns = now}));
	ck_assert_int_eq(deadline_left_ms((Deadline){.at_ns = now}), 0);
	ck_assert_int_eq(deadline_left_ms((Deadline){.at_ns = INT64_MAX}), INT_MAX);
	ck_assert_int_eq(deadline_earlier(soon, later).at_ns, soon.at_ns);
	ck_assert_int_eq(deadline_earlier(later, soon).at_ns, soon.at_ns);
	ck_assert_int_eq(deadline_in_ms(INT64_MAX).at_ns, INT64_MAX);

	time_set_scale(5);
	scaled_ns = deadline_in_ms(1000).at_ns - time_now_ns();
	ck_assert_int_gt(scaled_ns, 4000 * (int64_t) NS_PER_MS);
	ck_assert_int_le(scaled_ns, 5000 * (int64_t) NS_PER_MS);
	time_set_scale(0.001);
	ck_assert_int_le(deadline_in_ms(1000).at_ns - time_now_ns(), NS_PER_MS);
}
END_TEST

START_TEST(less_than_a_millisecond_left_is_one)
{
	for (int i = 0; i < 1000; i++)
	{
		Deadline deadline = {.at_ns = time_now_ns() + NS_PER_MS / 2};
		int left = deadline_left_ms(deadline);

		if (!deadline_passed(deadline))
		{
			ck_assert_int_eq(left, 1);
		}
	}
}
END_TEST


/* --- waiting --- */

typedef struct
{
	int calls, done_at, failed_at;
} Countdown;

static ProbeAnswer
probe_countdown(void *context, Text *seen)
{
	Countdown *countdown = context;

	countdown->calls++;
	text_append(seen, "call %d of %d", countdown->calls > 2 ? 99 : countdown->calls, countdown->done_at);
	if (countdown->calls == countdown->failed_at)
	{
		return PROBE_FAILED;
	}
	return countdown->calls == countdown->done_at ? PROBE_DONE : PROBE_AGAIN;
}

START_TEST(a_wait_ends_when_done_or_failed)
{
	Countdown done = {.done_at = 5};
	Countdown failed = {.done_at = 5, .failed_at = 3};
	Countdown at_once = {.done_at = 1};
	char last[64];

	ck_assert(wait_until("five", deadline_in_ms(10000), probe_countdown, &done));
	ck_assert_int_eq(done.calls, 5);
	ck_assert(!wait_until("five", deadline_in_ms(10000), probe_countdown, &failed));
	ck_assert_int_eq(failed.calls, 3);
	/* a deadline that has passed still leaves one look */
	ck_assert(wait_until("one", (Deadline){.at_ns = 0}, probe_countdown, &at_once));
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "");
}
END_TEST

START_TEST(a_wait_that_expires_tells_what_it_saw)
{
	Countdown never = {.done_at = -1};
	char last[128];
	int64_t start_ns = time_now_ns();
	int waited_ms;

	ck_assert(!wait_until("the end", deadline_in_ms(60), probe_countdown, &never));
	ck_assert_int_ge(time_now_ns() - start_ns, 60 * (int64_t) NS_PER_MS);
	ck_assert_int_ge(never.calls, 3);
	ck_assert_int_le(never.calls, 40); /* 0.2 ms all the way would be 300 */
	notice_last_error(last, sizeof(last));
	ck_assert_int_eq(sscanf(last, "waited %d ms for the end; last seen: call 99 of -1", &waited_ms), 1);
	ck_assert_ptr_nonnull(strstr(last, "last seen: call 99 of -1"));
	ck_assert_int_ge(waited_ms, 60);
}
END_TEST

START_TEST(a_backoff_is_at_least_as_long)
{
	int64_t start_ns = time_now_ns();

	backoff_us(2000);
	ck_assert_int_ge(time_now_ns() - start_ns, 2 * (int64_t) NS_PER_MS);
	backoff_us(0);
	backoff_us(-1);
}
END_TEST


/* --- an interrupt: each test runs in a process of its own, which it may interrupt --- */

static void
assert_wait_is_given_up(void)
{
	Countdown never = {.done_at = -1};
	char last[64];
	int64_t start_ns = time_now_ns();

	ck_assert(!wait_until("the end", deadline_in_ms(10000), probe_countdown, &never));
	ck_assert_int_lt(time_now_ns() - start_ns, 5000 * (int64_t) NS_PER_MS);
	ck_assert_int_eq(never.calls, 1);
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "");
}

START_TEST(an_interrupt_ends_a_wait_silently)
{
	Countdown done = {.done_at = 5};

	interrupt_catch();
	ck_assert(!interrupt_seen());
	ck_assert(!interrupt_presses());
	ck_assert_int_eq(raise(SIGTERM), 0);
	ck_assert(interrupt_seen());
	assert_wait_is_given_up();

	interrupt_defer();
	interrupt_defer();
	interrupt_resume();
	ck_assert(interrupt_seen());
	ck_assert(!interrupt_presses());
	ck_assert(wait_until("five", deadline_in_ms(10000), probe_countdown, &done));
	ck_assert_int_eq(done.calls, 5);
	interrupt_resume();
	assert_wait_is_given_up();
}
END_TEST

START_TEST(an_interrupt_is_seen_while_it_is_blocked)
{
	sigset_t blocked;

	(void) signal(SIGHUP, SIG_IGN);
	interrupt_catch();
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGHUP);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
	ck_assert_int_eq(raise(SIGHUP), 0);
	ck_assert(!interrupt_seen());
	ck_assert_int_eq(raise(SIGINT), 0);
	ck_assert(interrupt_seen());
	assert_wait_is_given_up();
}
END_TEST

START_TEST(an_interrupt_is_not_inherited)
{
	int status;
	pid_t pid;

	interrupt_catch();
	ck_assert_int_eq(raise(SIGINT), 0);
	ck_assert(interrupt_seen());
	pid = fork();
	if (pid == 0)
	{
		Countdown done = {.done_at = 5};

		/* the handler is inherited, its meaning is not */
		_exit(raise(SIGINT) == 0 && !interrupt_seen() &&
					  wait_until("five", deadline_in_ms(10000), probe_countdown, &done)
				  ? 0
				  : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST


/* --- strings --- */

START_TEST(texts_grow)
{
	Text text = {0};
	char *copy;

	ck_assert_str_eq(text_get(&text), "");
	for (int i = 0; i < 1000; i++)
	{
		text_append(&text, "%d,", i);
	}
	ck_assert_uint_eq(text.length, 10 * 2 + 90 * 3 + 900 * 4);
	ck_assert_uint_eq(strlen(text_get(&text)), text.length);
	ck_assert_int_eq(strncmp(text_get(&text), "0,1,2,", 6), 0);
	ck_assert_str_eq(text_get(&text) + text.length - 8, "998,999,");
	text_clear(&text);
	ck_assert_str_eq(text_get(&text), "");
	text_append_bytes(&text, "a\0b", 3);
	ck_assert_uint_eq(text.length, 3);
	ck_assert_mem_eq(text.data, "a\0b", 4);
	text_free(&text);
	ck_assert_ptr_null(text.data);

	copy = string_format("%0*d", 300, 7);
	ck_assert_uint_eq(strlen(copy), 300);
	ck_assert_int_eq(copy[299], '7');
	free(copy);
	copy = string_copy("abc");
	ck_assert_str_eq(copy, "abc");
	free(copy);
	ck_assert_ptr_null(string_copy(NULL));
}
END_TEST

START_TEST(numbers_in_decimal)
{
	static const int64_t numbers[] = {0, 1, 9, 10, 1234567890123, -1, -10, INT64_MAX, INT64_MIN};
	Text text = {0};

	for (size_t i = 0; i < LENGTH_OF(numbers); i++)
	{
		char *expected = string_format("%" PRId64, numbers[i]);

		text_clear(&text);
		text_append_int64(&text, numbers[i]);
		ck_assert_str_eq(text_get(&text), expected);
		free(expected);
	}
	text_free(&text);
}
END_TEST

START_TEST(a_word_is_quoted_for_the_shell)
{
	Text text = {0};

	text_append_word(&text, "32-K");
	ck_assert_str_eq(text_get(&text), "32-K");
	text_clear(&text);
	text_append_word(&text, "a b'c");
	ck_assert_str_eq(text_get(&text), "'a b'\\''c'");
	text_clear(&text);
	text_append_word(&text, "");
	ck_assert_str_eq(text_get(&text), "''");
	text_free(&text);
}
END_TEST

START_TEST(memory_is_zeroed_and_grows)
{
	unsigned char *bytes = memory_get(100);

	for (int i = 0; i < 100; i++)
	{
		ck_assert_uint_eq(bytes[i], 0);
	}
	bytes[99] = 42;
	bytes = memory_grow(bytes, 100000);
	ck_assert_uint_eq(bytes[99], 42);
	free(bytes);
	bytes = memory_get(0);
	ck_assert_ptr_nonnull(bytes);
	free(bytes);
}
END_TEST

START_TEST(numbers_are_whole_and_within_range)
{
	static const char *const wrong[] = {
		"", " 1", "1 ", "+1", "1.0", "0x10", "1e3", "abc", "--1", "-", "101", "-6", "9223372036854775808"};
	int64_t value = 77;

	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
	{
		ck_assert_msg(!string_to_int64(wrong[i], -5, 100, &value), "%s", wrong[i]);
		ck_assert_int_eq(value, 77);
	}
	ck_assert(string_to_int64("-5", -5, 100, &value));
	ck_assert_int_eq(value, -5);
	ck_assert(string_to_int64("100", -5, 100, &value));
	ck_assert_int_eq(value, 100);
	ck_assert(string_to_int64("-9223372036854775808", INT64_MIN, INT64_MAX, &value));
	ck_assert_int_eq(value, INT64_MIN);
	ck_assert(!string_to_int64("9223372036854775808", INT64_MIN, INT64_MAX, &value));
}
END_TEST

START_TEST(the_nearest_name_is_found)
{
	static const char *const names[] = {"--seed", "--repeat", "--jobs", "--until-fail", NULL};
	static const char *const none[] = {NULL};

	ck_assert_str_eq(string_nearest("--sed", names), "--seed");
	ck_assert_str_eq(string_nearest("--untilfail", names), "--until-fail");
	ck_assert_str_eq(string_nearest("--jbos", names), "--jobs");
	ck_assert_str_eq(string_nearest("repeat", names), "--repeat");
	ck_assert_str_eq(string_nearest("", names), "--seed"); /* the first of the shortest */
	ck_assert_ptr_null(string_nearest("x", none));
}
END_TEST


/* --- files --- */

START_TEST(a_file_is_replaced_whole)
{
	char *path = string_format("%s/offset", folder);
	char *nowhere = string_format("%s/none/offset", folder);
	char *listing = string_format("ls -A %s | wc -l", folder);
	Text text = {0};
	char last[256];
	char count[16] = "";
	FILE *ls;

	ck_assert(file_replace(path, "25\n"));
	ck_assert(file_replace(path, "50\n"));
	text_append(&text, "offset ");
	ck_assert(file_read(path, &text));
	ck_assert_str_eq(text_get(&text), "offset 50\n");
	ck_assert(file_replace(path, ""));
	text_clear(&text);
	ck_assert(file_read(path, &text));
	ck_assert_str_eq(text_get(&text), "");

	ck_assert(!file_replace(nowhere, "x"));
	notice_last_error(last, sizeof(last));
	ck_assert_ptr_nonnull(strstr(last, "No such file or directory"));
	ck_assert(!file_read(nowhere, &text));
	ck_assert(!file_read(folder, &text)); /* a directory */

	ls = popen(listing, "r"); /* nothing is left beside it */
	ck_assert_ptr_nonnull(ls);
	ck_assert_ptr_nonnull(fgets(count, sizeof(count), ls));
	ck_assert_int_eq(pclose(ls), 0);
	ck_assert_str_eq(count, "1\n");
	ck_assert_int_eq(unlink(path), 0);
	text_free(&text);
	free(listing);
	free(nowhere);
	free(path);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_leaves_the_old_one)
{
	char *path = string_format("%s/taken", folder);
	char *inside = string_format("%s/taken/file", folder);
	char last[256];

	/* rename over a directory that is not empty fails after the temporary file was written */
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert(file_replace(inside, "kept"));
	ck_assert(!file_replace(path, "new"));
	notice_last_error(last, sizeof(last));
	ck_assert_ptr_nonnull(strstr(last, "cannot rename"));
	ck_assert_int_eq(access(inside, F_OK), 0);
	ck_assert_int_eq(unlink(inside), 0);
	ck_assert_int_eq(rmdir(path), 0);
	free(inside);
	free(path);
}
END_TEST

START_TEST(a_big_file_comes_whole)
{
	char *path = string_format("%s/big", folder);
	Text text = {0};
	Text back = {0};

	for (int i = 0; i < 20000; i++)
	{
		text_append(&text, "line %d\n", i);
	}
	ck_assert(file_replace(path, text_get(&text)));
	ck_assert(file_read(path, &back));
	ck_assert_uint_eq(back.length, text.length);
	ck_assert_str_eq(text_get(&back), text_get(&text));
	ck_assert_int_eq(unlink(path), 0);
	text_free(&text);
	text_free(&back);
	free(path);
}
END_TEST

static void
add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 20);
	tcase_add_test(tcase, a_notice_is_one_line);
	tcase_add_test(tcase, files_of_a_folder_come_in_order);
	tcase_add_test(tcase, threads_report_whole_lines);
	tcase_add_test(tcase, a_deadline_scales_and_never_rounds_to_zero);
	tcase_add_test(tcase, less_than_a_millisecond_left_is_one);
	tcase_add_test(tcase, a_wait_ends_when_done_or_failed);
	tcase_add_test(tcase, a_wait_that_expires_tells_what_it_saw);
	tcase_add_test(tcase, a_backoff_is_at_least_as_long);
	tcase_add_test(tcase, an_interrupt_ends_a_wait_silently);
	tcase_add_test(tcase, an_interrupt_is_seen_while_it_is_blocked);
	tcase_add_test(tcase, an_interrupt_is_not_inherited);
	tcase_add_test(tcase, texts_grow);
	tcase_add_test(tcase, numbers_in_decimal);
	tcase_add_test(tcase, a_word_is_quoted_for_the_shell);
	tcase_add_test(tcase, memory_is_zeroed_and_grows);
	tcase_add_test(tcase, numbers_are_whole_and_within_range);
	tcase_add_test(tcase, the_nearest_name_is_found);
	tcase_add_test(tcase, a_file_is_replaced_whole);
	tcase_add_test(tcase, a_file_that_cannot_be_written_leaves_the_old_one);
	tcase_add_test(tcase, a_big_file_comes_whole);
}

int
main(void)
{
	Suite *suite = suite_create("base");
	TCase *tcase = tcase_create("base");
	int failed;

	if (mkdtemp(folder) == NULL)
	{
		perror(folder);
		return EXIT_FAILURE;
	}
	add_tests(tcase);
	suite_add_tcase(suite, tcase);
	failed = suite_run(suite);
	if (rmdir(folder) != 0)
	{
		perror(folder);
		return EXIT_FAILURE;
	}
	return failed;
}
