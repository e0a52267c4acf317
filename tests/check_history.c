#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "history.h"
#include "suite.h"

static char path[64];

static void
make_path(void)
{
	strcpy(path, "/tmp/check-history-XXXXXX");
	temporary_file(path);
}

static void
remove_path(void)
{
	unlink(path);
}

static void
write_file(const char *content)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(content, 1, strlen(content), file), strlen(content));
	ck_assert_int_eq(fclose(file), 0);
}

/* What a text's reading reports; "" when it is read. */
static void
read_and_expect(const char *content, const char *reported)
{
	HistoryOp *ops;
	size_t count;
	char last[512];

	write_file(content);
	ck_assert_msg(!history_read(path, &ops, &count), "read: %s", content);
	ck_assert_ptr_null(ops);
	notice_last_error(last, sizeof(last));
	ck_assert_msg(strstr(last, reported) != NULL, "expected \"%s\" in \"%s\"", reported, last);
}

START_TEST(what_was_written_is_read)
{
	History *history = history_open(path);
	HistoryOp op = {.worker = 3, .key = {-7, 9000000000}, .want = true};
	HistoryOp lost = {.worker = 4, .key = {1, 2}};
	HistoryOp open = {.worker = 5, .key = {3, 4}, .want = true};
	HistoryOp *ops;
	size_t count;

	ck_assert_ptr_nonnull(history);
	ck_assert(history_begin(history, &op));
	ck_assert(history_begin(history, &lost));
	op.outcome = OP_OK;
	op.changed = op.state = true;
	op.version = 5;
	op.number = 12;
	op.xid = UINT64_MAX;
	ck_assert(history_end(history, &op));
	ck_assert(history_begin(history, &open));
	lost.outcome = OP_UNKNOWN;
	memcpy(lost.sqlstate, "08006", sizeof(lost.sqlstate));
	ck_assert(history_end(history, &lost));
	ck_assert(history_delivery(history, 1, (int64_t[]){3, 4, 9}, 3));
	ck_assert(history_delivery(history, 1, NULL, 0));
	ck_assert(history_fault(history, "kill\t-9\nof \\ it"));
	history_close(history);

	ck_assert(history_read(path, &ops, &count));
	ck_assert_uint_eq(count, 3);
	ck_assert_int_eq(ops[0].id, op.id);
	ck_assert_int_eq(ops[0].worker, 3);
	ck_assert_int_eq(ops[0].begin_ns, op.begin_ns);
	ck_assert_int_eq(ops[0].end_ns, op.end_ns);
	ck_assert_int_eq(ops[0].key[0], -7);
	ck_assert_int_eq(ops[0].key[1], 9000000000);
	ck_assert(ops[0].want && ops[0].changed && ops[0].state);
	ck_assert_int_eq(ops[0].outcome, OP_OK);
	ck_assert_int_eq(ops[0].version, 5);
	ck_assert_int_eq(ops[0].number, 12);
	ck_assert_uint_eq(ops[0].xid, UINT64_MAX);
	ck_assert_str_eq(ops[0].sqlstate, "");
	ck_assert_int_eq(ops[1].outcome, OP_UNKNOWN);
	ck_assert_str_eq(ops[1].sqlstate, "08006");
	ck_assert(!ops[1].want);
	ck_assert_int_ge(ops[1].end_ns, ops[1].begin_ns);
	ck_assert_int_eq(ops[2].outcome, OP_OPEN);
	ck_assert_int_eq(ops[2].end_ns, INT64_MAX);
	free(ops);
}
END_TEST

START_TEST(the_text_is_one_record_a_line)
{
	History *history = history_open(path);
	HistoryOp op = {.worker = 1, .key = {2, 3}, .want = true};
	char *expected;
	Text text = {0};

	ck_assert_ptr_nonnull(history);
	ck_assert(history_begin(history, &op));
	op.outcome = OP_FAILED;
	memcpy(op.sqlstate, "23503", sizeof(op.sqlstate));
	ck_assert(history_end(history, &op));
	history_close(history);
	expected = string_format("B\t%" PRId64 "\t1\t%" PRId64 "\t2\t3\t1\n"
							 "E\t%" PRId64 "\t%" PRId64 "\tfailed\t0\t0\t0\t0\t0\t23503\n",
							 op.id, op.begin_ns, op.id, op.end_ns);
	ck_assert(file_read(path, &text));
	ck_assert_str_eq(text_get(&text), expected);
	text_free(&text);
	free(expected);
}
END_TEST

START_TEST(a_fault_keeps_to_its_line)
{
	History *history = history_open(path);
	Text text = {0};

	ck_assert_ptr_nonnull(history);
	ck_assert(history_fault(history, "a\tb\nc\r\\d"));
	history_close(history);
	ck_assert(file_read(path, &text));
	ck_assert_ptr_nonnull(strstr(text_get(&text), "\ta\\tb\\nc\\r\\\\d\n"));
	ck_assert_ptr_eq(strchr(text_get(&text), '\n'), text_get(&text) + text.length - 1);
	text_free(&text);
}
END_TEST

START_TEST(an_existing_history_is_appended_to)
{
	HistoryOp *ops;
	size_t count;

	for (int i = 0; i < 2; i++)
	{
		History *history = history_open(path);
		HistoryOp op = {.worker = i};

		ck_assert_ptr_nonnull(history);
		ck_assert(history_begin(history, &op));
		history_close(history);
	}
	ck_assert(history_read(path, &ops, &count));
	ck_assert_uint_eq(count, 2);
	ck_assert_int_ne(ops[0].id, ops[1].id);
	free(ops);
}
END_TEST

START_TEST(an_empty_history_has_no_operations)
{
	HistoryOp *ops;
	size_t count = 9;

	write_file("");
	ck_assert(history_read(path, &ops, &count));
	ck_assert_uint_eq(count, 0);
	free(ops);
}
END_TEST

START_TEST(operations_are_in_order_of_invocation)
{
	HistoryOp *ops;
	size_t count;

	write_file("B\t1\t0\t300\t1\t1\t1\nB\t2\t0\t100\t1\t1\t1\nB\t3\t0\t200\t1\t1\t1\n"
			   "E\t2\t400\tok\t0\t1\t1\t0\t0\t-\n");
	ck_assert(history_read(path, &ops, &count));
	ck_assert_uint_eq(count, 3);
	ck_assert_int_eq(ops[0].id, 2);
	ck_assert_int_eq(ops[0].end_ns, 400);
	ck_assert_int_eq(ops[1].id, 3);
	ck_assert_int_eq(ops[2].id, 1);
	free(ops);
}
END_TEST

#define BEGIN_1 "B\t1\t0\t100\t1\t1\t1\n"
#define END_1 "E\t1\t200\tok\t1\t1\t1\t1\t5\t-\n"

START_TEST(what_cannot_be_read_is_named_by_line)
{
	read_and_expect(BEGIN_1 "E\t1\t200\tok\t1", "line 2 is torn");
	read_and_expect(BEGIN_1 "E\t1\t200\tok\t1" BEGIN_1, "line 2 cannot be read");
	read_and_expect(BEGIN_1 "\n", "line 2 cannot be read");
	read_and_expect("X\t1\n", "line 1 cannot be read");
	read_and_expect("B\tone\t0\t100\t1\t1\t1\n", "line 1 cannot be read");
	read_and_expect("B\t1\t0\t100\t1\t1\t2\n", "line 1 cannot be read");
	read_and_expect("B\t1\t0\t100\t1\t1\t1\t1\n", "line 1 cannot be read");
	read_and_expect("B\t1\t0\t100\t1\t1\t1\t1\t1\t1\t1\t1\t1\n", "line 1 cannot be read");
	read_and_expect(BEGIN_1 "E\t1\t200\tperhaps\t1\t1\t1\t1\t5\t-\n", "line 2 cannot be read");
	read_and_expect(BEGIN_1 "E\t1\t200\tok\t1\t1\t1\t1\t-5\t-\n", "line 2 cannot be read");
	read_and_expect(BEGIN_1 "E\t1\t200\tok\t1\t1\t1\t1\t5\t080060\n", "line 2 cannot be read");
	read_and_expect("D\t1\t100\t3,x\n", "line 1 cannot be read");
	read_and_expect("F\tx\tkilled\n", "line 1 cannot be read");
}
END_TEST

START_TEST(ends_must_fit_beginnings)
{
	read_and_expect(BEGIN_1 BEGIN_1, "line 2 begins operation 1 again");
	read_and_expect(BEGIN_1 END_1 END_1, "line 3 ends operation 1, which did not begin or had ended");
	read_and_expect(BEGIN_1 "E\t2\t200\tok\t1\t1\t1\t1\t5\t-\n", "line 2 ends operation 2, which did not begin");
	read_and_expect("E\t0\t200\tok\t1\t1\t1\t1\t5\t-\n" BEGIN_1, "line 1 cannot be read");
	read_and_expect("B\t3\t0\t100\t1\t1\t1\n" END_1, "line 2 ends operation 1, which did not begin");
	read_and_expect(END_1 BEGIN_1, "line 1 ends operation 1 before it began");
	read_and_expect(BEGIN_1 "E\t1\t99\tok\t1\t1\t1\t1\t5\t-\n", "line 2 ends operation 1 before it began");
}
END_TEST

START_TEST(an_end_needs_an_outcome)
{
	History *history = history_open(path);
	HistoryOp op = {0};

	ck_assert_ptr_nonnull(history);
	ck_assert(history_begin(history, &op));
	ck_assert(!history_end(history, &op));
	history_close(history);
}
END_TEST

START_TEST(a_folder_that_is_not_there)
{
	char last[512];
	HistoryOp *ops;
	size_t count;

	ck_assert_ptr_null(history_open("/nonexistent/history"));
	notice_last_error(last, sizeof(last));
	ck_assert_ptr_nonnull(strstr(last, "/nonexistent/history"));
	ck_assert(!history_read("/nonexistent/history", &ops, &count));
}
END_TEST

/* A file size limit cuts a write as a full disk does. */
START_TEST(a_full_disk_is_an_error)
{
	History *history = history_open(path);
	HistoryOp op = {0};
	struct rlimit limit = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};
	HistoryOp *ops;
	size_t count;
	char last[512];

	ck_assert_ptr_nonnull(history);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert(!history_begin(history, &op));
	notice_last_error(last, sizeof(last));
	ck_assert_ptr_nonnull(strstr(last, "10 of "));
	ck_assert(!history_begin(history, &op));
	history_close(history);
	ck_assert(!history_read(path, &ops, &count));
	notice_last_error(last, sizeof(last));
	ck_assert_ptr_nonnull(strstr(last, "line 1 is torn"));
}
END_TEST

#define WRITERS 4
#define ROUNDS 500

static void *
write_rounds(void *argument)
{
	History *history = argument;
	bool ok = true;

	for (int i = 0; i < ROUNDS && ok; i++)
	{
		HistoryOp op = {.worker = (int) getpid(), .key = {i, 0}, .want = true};

		ok = history_begin(history, &op);
		op.outcome = OP_OK;
		op.version = i;
		ok = ok && history_end(history, &op);
	}
	return ok ? history : NULL;
}

static void
write_in_threads(History *history)
{
	pthread_t threads[WRITERS];
	void *answer;

	for (int i = 0; i < WRITERS; i++)
	{
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_rounds, history), 0);
	}
	for (int i = 0; i < WRITERS; i++)
	{
		ck_assert_int_eq(pthread_join(threads[i], &answer), 0);
		ck_assert_ptr_eq(answer, history);
	}
}

/* One history, opened before the fork, written to by threads here and by children. */
START_TEST(threads_and_processes_do_not_disturb_each_other)
{
	History *history = history_open(path);
	HistoryOp first = {0};
	pid_t children[WRITERS];
	HistoryOp *ops;
	size_t count;

	ck_assert_ptr_nonnull(history);
	ck_assert(history_begin(history, &first));
	for (int i = 0; i < WRITERS; i++)
	{
		children[i] = fork();
		ck_assert_int_ge(children[i], 0);
		if (children[i] == 0)
		{
			_exit(write_rounds(history) != NULL ? 0 : 1);
		}
	}
	write_in_threads(history);
	for (int i = 0; i < WRITERS; i++)
	{
		int status;

		ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
		ck_assert_int_eq(status, 0);
	}
	history_close(history);

	ck_assert(history_read(path, &ops, &count));
	ck_assert_uint_eq(count, 1 + 2 * WRITERS * ROUNDS);
	for (size_t i = 1; i < count; i++)
	{
		ck_assert_int_eq(ops[i].outcome, OP_OK);
		ck_assert_int_eq(ops[i].version, ops[i].key[0]);
	}
	free(ops);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {what_was_written_is_read,
								  the_text_is_one_record_a_line,
								  a_fault_keeps_to_its_line,
								  an_existing_history_is_appended_to,
								  an_empty_history_has_no_operations,
								  operations_are_in_order_of_invocation,
								  what_cannot_be_read_is_named_by_line,
								  ends_must_fit_beginnings,
								  an_end_needs_an_outcome,
								  a_folder_that_is_not_there,
								  a_full_disk_is_an_error,
								  threads_and_processes_do_not_disturb_each_other};
	Suite *suite = suite_create("history");
	TCase *tcase = tcase_create("history");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, make_path, remove_path);
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
	{
		tcase_add_test(tcase, tests[i]);
	}
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
