/*
 * 32-K  a consumer is killed inside its transaction, then again between its commit and its offset
 *
 * Claim      A batch killed before its commit leaves nothing behind; a batch killed after its commit and before its
 *            offset was written is delivered again and absorbed.
 * Method     like-consumer as a process of its own, 120 events in batches of 25, stopped at a named point, then SIGKILL.
 *            It starts from its offset file (none: 0), never from the watermark. The server finds the broken connection
 *            when it next reads from it (manual 20.3.1: client_connection_check_interval is off by default), and the
 *            session's end rolls its open transaction back (55.2.9); nothing is read before its backend is gone.
 * Expect     watermark/processed/offset 25/25/25, then 75/75/50, then 120/120/120 with applied=45 covered=0 dup=25.
 * Not shown  Power loss (L3). A backend busy in a statement outlives its client and may still commit: this one is idle in
 *            its transaction (L12). A transport's acknowledgements: the offset file stands in for them (L6).
 */
#include "recovery_lab.h"

#include <stdlib.h>
#include <string.h>

enum
{
	ITEM_COUNT = 4,
	EVENTS = 120,
	EACH = EVENTS / ITEM_COUNT, /* of an item */
	PAUSED_MS = 10000,
	ARGS_MAX = 16
};

#define BATCH "25"
#define OFFSET_FILE "consumer.offset"

/* Of this case's database: others on the same server have consumers of their own. */
#define BACKENDS                                                                                                       \
	"SELECT count(*) FROM pg_stat_activity "                                                                           \
	"WHERE datname = current_database() AND application_name = 'like-consumer'"

typedef struct
{
	int64_t watermark, processed, offset; /* by number; the file's content */
} Progress;

/*
 * One client and nobody beside it: a single transaction is the same requests with one commit. Item after item, which is the
 * order in which they are pulled also where each item has a log of its own.
 */
static void
write_events(Scene *scene, Session *lab)
{
	require(scene, session_begin(lab, READ_COMMITTED));
	for (int i = 0; i < EVENTS; i++)
	{
		int64_t user = 1 + i % EACH;
		LikeResult result = set_like_within(scene, lab, user, 1 + i / EACH, true);

		expect_changed(scene, &result, user);
	}
	commit(scene, lab);
	CHECK_EQ(scene, last_number(scene, lab), EVENTS, "events written");
}

static void
add_option(const char *argv[ARGS_MAX], size_t *count, const char *name, const char *value)
{
	if (value != NULL)
	{
		argv[(*count)++] = name;
		argv[(*count)++] = value;
	}
}

/* `pause` is "POINT:N": stop at the N-th batch; NULL to run to the end. */
static Process *
start_consumer(Scene *scene, const char *pause)
{
	const char *const *program = steps()->consumer;
	const char *argv[ARGS_MAX] = {scene_program(scene, program[0])};
	size_t count = 1;

	while (program[count] != NULL)
	{
		argv[count] = program[count];
		count++;
	}
	add_option(argv, &count, "--conninfo", scene_conninfo(scene));
	add_option(argv, &count, "--offset-file", scene_file(scene, OFFSET_FILE));
	add_option(argv, &count, "--batch", BATCH);
	add_option(argv, &count, "--pause-at", pause);
	add_option(argv, &count, "--trace", scene_trace(scene));
	return scene_start(scene, &(ProcessSpec){.argv = argv});
}

/* One check of the next line that it prints. false: there was none, it has ended. */
static bool
check_line(Scene *scene, Process *consumer, const char *expected, const char *what)
{
	Text line = {0};
	bool ended = false;
	bool found = process_read_line(consumer, &line, scene_deadline(scene, PAUSED_MS), &ended);

	if (!found && !ended)
	{
		scene_broken(scene, "like-consumer neither paused nor ended");
	}
	note(scene, "like-consumer| %s", found ? text_get(&line) : "ended and said nothing");
	scene_heard(scene, steps()->consumer[0], text_get(&line));
	check_text(scene, text_get(&line), expected, "%s", what);
	text_free(&line);
	return found;
}

/* The same, at a point in its second batch, of the events from one number to another. */
static bool
check_paused(Scene *scene, Session *lab, Process *consumer, const char *point, const int64_t numbers[2],
			 const char *what)
{
	char *expected =
		string_format("PAUSED %s batch=2 seq=%lld..%lld", point, (long long) to_event(scene, lab, numbers[0]),
					  (long long) to_event(scene, lab, numbers[1]));
	bool found = check_line(scene, consumer, expected, what);

	free(expected);
	return found;
}

static void
kill_consumer(Scene *scene, Session *lab, Process *consumer, Fault *fault)
{
	require(scene, fault_kill(fault, scene_history(scene), consumer, scene_deadline(scene, PAUSED_MS)));
	scene_await_int(scene, lab, 0, BACKENDS, NO_ARGS);
	CHECK_EQ(scene, fault->fired, 1, "killed by signal 9 at its point");
	CHECK_EQ(scene, number_of(scene, lab, BACKENDS, NO_ARGS), 0, "its backend is gone");
}

static void
check_progress(Scene *scene, Session *lab, Progress expected, const char *when)
{
	Text file = {0};
	int64_t watermark;
	char *offset = string_format("%lld", (long long) to_event(scene, lab, expected.offset));

	require(scene, like_watermark(lab, &watermark));
	require(scene, file_read(scene_file(scene, OFFSET_FILE), &file));
	if (file.length > 0 && file.data[file.length - 1] == '\n')
	{
		file.data[--file.length] = '\0';
	}
	CHECK_EQ(scene, watermark, expected.watermark, "%s: watermark", when);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM processed_event", NO_ARGS), expected.processed,
			 "%s: events processed", when);
	check_text(scene, text_get(&file), offset, "%s: offset file", when);
	text_free(&file);
	free(offset);
	check_audits_clean(scene, lab, when);
}

/* false: it ended too early to be killed. */
static bool
kill_before_commit(Scene *scene, Session *lab)
{
	Fault *fault = scene_fault(scene, "kill -9 like-consumer at consumer.before_commit");
	Process *consumer;

	step(scene, "killed inside the transaction of its second batch");
	consumer = start_consumer(scene, "consumer.before_commit:2");
	if (!check_paused(scene, lab, consumer, "consumer.before_commit", (int64_t[]){26, 50}, "where it stopped"))
	{
		return false;
	}
	CHECK_EQ(scene, number_of(scene, lab, BACKENDS " AND state = 'idle in transaction'", NO_ARGS), 1,
			 "its backend is idle in transaction");
	kill_consumer(scene, lab, consumer, fault);
	CHECK_EQ(scene,
			 number_of(scene, lab, "SELECT count(*) FROM lab_event WHERE how IS NOT NULL AND number BETWEEN 26 AND 50",
					   NO_ARGS),
			 0, "rows of 26..50 registered");
	check_progress(scene, lab, (Progress){.watermark = 25, .processed = 25, .offset = 25}, "killed before its commit");
	return true;
}

static bool
kill_after_commit(Scene *scene, Session *lab)
{
	Fault *fault = scene_fault(scene, "kill -9 like-consumer at consumer.after_commit");
	Process *consumer;

	step(scene, "started again, and killed after the commit of 51..75, before its offset is written");
	consumer = start_consumer(scene, "consumer.after_commit:2");
	if (!check_paused(scene, lab, consumer, "consumer.after_commit", (int64_t[]){51, 75},
					  "where the second one stopped"))
	{
		return false;
	}
	CHECK_EQ(scene, number_of(scene, lab, BACKENDS " AND state = 'idle'", NO_ARGS), 1,
			 "its backend is idle, committed");
	kill_consumer(scene, lab, consumer, fault);
	check_progress(scene, lab, (Progress){.watermark = 75, .processed = 75, .offset = 50}, "killed after its commit");
	return true;
}

static void
run_to_the_end(Scene *scene, Session *lab)
{
	ProcessEnd end = {0};
	Process *consumer;

	step(scene, "started a third time: it receives 51..75 again");
	consumer = start_consumer(scene, NULL);
	(void) check_line(scene, consumer, "DRAINED applied=45 covered=0 dup=25 watermark=120", "what it printed");
	require(scene, process_wait(consumer, scene_deadline(scene, PAUSED_MS), &end));
	CHECK(scene, end.how == ENDED_EXIT && end.code == 0, "it exited with 0");
	check_progress(scene, lab, (Progress){.watermark = 120, .processed = 120, .offset = 120}, "drained");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM processed_event WHERE how = 'APPLIED'", NO_ARGS),
			 EVENTS, "events applied, once each");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, ITEM_COUNT);
	LikeRecovery recovery;

	write_events(scene, lab);
	if (!kill_before_commit(scene, lab) || !kill_after_commit(scene, lab))
	{
		return;
	}
	run_to_the_end(scene, lab);

	step(scene, "the recovery function finds all in order");
	recovery = recover(scene, lab, false);
	check_totals(scene, &recovery.totals, "applied=0 covered=0 dup=0 watermark=120", "it had nothing left to deliver");
	check_drained(scene, lab, "after recovery");
}

const Scenario scenario_32_k = {
	.suite = "32",
	.id = "32-K",
	.title = "a consumer is killed in its transaction, then after its commit",
	.claim =
		"a batch killed before its commit leaves nothing; one killed before its offset is delivered again and absorbed",
	.kind = "several processes, kill -9",
	.guarantee = "a rolled-back batch leaves no trace, a repeated one no second effect",
	.observed = "pg_stat_activity, watermark, offset file, dup",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 40000,
	.run = run,
};
