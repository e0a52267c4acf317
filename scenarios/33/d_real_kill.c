/*
 * 33-D  the crash is a kill, not a polite stop
 *
 * Claim      What the lab calls a crash is signal 9 to a program that is seen at its point: what the program would do when
 *            asked to stop does not happen. Where the kill falls decides what is left, and a restart ends right from each.
 * Method     A consumer that flushes its work when SIGTERM comes, and commits never otherwise, is killed, and in a second
 *            run stopped politely, to show the difference that a polite stop would hide. Then a consumer is killed at each
 *            of six points and run again. Each says PAUSED and its pid first; it must be the pid that is killed, and the
 *            case reads on when the backend is gone. Last, a kill that comes too late.
 * Expect     Killed while it holds its work: n=0; asked politely: n=1, and the lab does not take that for a kill. At the
 *            points up to the COMMIT n=0, after it n=1, acknowledged only after the last; run again, n=1 from all. A
 *            program that had ended was not killed: the fault has not fired, and a case with such a fault is UNKNOWN.
 * Not shown  Power loss (L3). A backend busy in a statement outlives its client (L12): these are idle in transaction.
 */
#include "32/lab.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum
{
	EVENT_MS = 10000
};

#define BACKENDS                                                                                                       \
	"SELECT count(*) FROM pg_stat_activity "                                                                           \
	"WHERE datname = current_database() AND application_name = 'event-consumer'"

/* Where it is killed, and what is left. */
typedef struct
{
	const char *point;
	int64_t n, acknowledged;
} Stop;

static Process *
start(Scene *scene, const char *how)
{
	const char *argv[] = {scene_program(scene, "event-consumer"), scene_conninfo(scene), how, NULL};

	return scene_start(scene, &(ProcessSpec){.argv = argv});
}

/* It must name the pid that is about to be killed. */
static void
await_word(Scene *scene, Process *consumer, const char *word)
{
	char *line = string_format("%s pid=%d", word, (int) process_pid(consumer));

	require(scene, process_await_line(consumer, line, scene_deadline(scene, EVENT_MS)));
	note(scene, "event-consumer| %s", line);
	free(line);
}

static void
forget_all(Scene *scene, Session *lab)
{
	require(scene, session_execute(lab, "DELETE FROM registered; DELETE FROM consumer; UPDATE total SET n = 0"));
}

static void
check_left(Scene *scene, Session *lab, int64_t n, int64_t acknowledged, const char *when)
{
	scene_await_int(scene, lab, 0, BACKENDS, NO_ARGS);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT n FROM total", NO_ARGS), n, "%s: n", when);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM registered", NO_ARGS), n, "%s: events registered",
			 when);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM consumer WHERE acknowledged = 1", NO_ARGS),
			 acknowledged, "%s: events acknowledged", when);
}

static bool
kill_at_once(Scene *scene, Process *consumer, Fault *fault)
{
	ProcessEnd end;

	/* What had ended by itself was not killed: the fault stays unfired, and the case is not exercised. */
	return !process_poll(consumer, &end) &&
		   fault_kill(fault, scene_history(scene), consumer, scene_deadline(scene, EVENT_MS)) &&
		   CHECK_EQ(scene, fault->fired, 1, "the pid of that line ended by signal 9");
}

static void
polite_or_not(Scene *scene, Session *lab)
{
	Fault *fault = scene_fault(scene, "kill -9 event-consumer while it holds its work");
	Process *consumer = start(scene, "--flush-on-term");

	step(scene, "a consumer that commits when it is asked to stop, and never otherwise: killed");
	await_word(scene, consumer, "HOLDING");
	if (!kill_at_once(scene, consumer, fault))
	{
		return;
	}
	check_left(scene, lab, 0, 0, "killed");

	step(scene, "the same, asked politely");
	consumer = start(scene, "--flush-on-term");
	await_word(scene, consumer, "HOLDING");
	notice_expect_errors(true);
	CHECK(scene, !process_kill(consumer, SIGTERM, scene_deadline(scene, EVENT_MS)),
		  "asked by SIGTERM: not taken for a kill, for it exits by itself");
	notice_expect_errors(false);
	check_left(scene, lab, 1, 1, "asked by SIGTERM");
	forget_all(scene, lab);
}

static void
kill_and_run_again(Scene *scene, Session *lab, const Stop *stop)
{
	Fault *fault = scene_fault(scene, "kill -9 event-consumer at %s", stop->point);
	char *word = string_format("PAUSED %s", stop->point);
	Process *consumer = start(scene, stop->point);
	ProcessEnd end = {0};

	step(scene, "killed at %s", stop->point);
	await_word(scene, consumer, word);
	free(word);
	if (!kill_at_once(scene, consumer, fault))
	{
		return;
	}
	check_left(scene, lab, stop->n, stop->acknowledged, stop->point);
	require(scene, process_wait(start(scene, NULL), scene_deadline(scene, EVENT_MS), &end));
	CHECK(scene, end.how == ENDED_EXIT && end.code == EXIT_CODE_PASS, "run again, it ends by itself");
	check_left(scene, lab, 1, 1, "run again");
	forget_all(scene, lab);
}

static void
too_late(Scene *scene)
{
	Fault late = {.name = "kill -9 event-consumer when it has ended"};
	Process *consumer = start(scene, NULL);
	ProcessEnd end;

	step(scene, "a kill that comes when the program has ended");
	require(scene, process_wait(consumer, scene_deadline(scene, EVENT_MS), &end));
	notice_expect_errors(true);
	CHECK(scene, !fault_kill(&late, scene_history(scene), consumer, scene_deadline(scene, EVENT_MS)),
		  "it is told from a kill");
	notice_expect_errors(false);
	CHECK_EQ(scene, late.fired, 0, "and does not count as one");
}

static void
run(Scene *scene)
{
	static const Stop stops[] = {{"consumer.before_insert", 0, 0}, {"consumer.after_insert", 0, 0},
								 {"consumer.after_update", 0, 0},  {"consumer.before_commit", 0, 0},
								 {"consumer.after_commit", 1, 0},  {"consumer.after_ack", 1, 1}};
	Session *lab = scene_session(scene, "lab");

	require(scene, session_execute_file(lab, scene_sql(scene, "dedup/schema.sql")));
	require(scene, session_execute_file(lab, scene_sql(scene, "dedup/deliver.sql")));
	load_twin(scene, lab, "dedup");
	require(scene, session_execute(lab, "INSERT INTO event (seq, delta) VALUES (1, 1)"));
	polite_or_not(scene, lab);
	for (size_t i = 0; i < LENGTH_OF(stops); i++)
	{
		kill_and_run_again(scene, lab, &stops[i]);
	}
	too_late(scene);
}

const Scenario scenario_33_d = {
	.suite = "33",
	.id = "33-D",
	.title = "the crash is a kill, not a polite stop, at each of six points",
	.claim = "a crash is signal 9 at a point that was reached; what a program flushes when asked to stop is not there",
	.kind = "several processes, kill -9",
	.guarantee = "what is left follows from the point; run again, the event has taken effect once",
	.observed = "pid and point of each kill, pg_stat_activity, total, registered, consumer",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 40000,
	.run = run,
};
