/*
 * 32-B  every arrow of the state diagram, and numbers that are given out again
 *
 * Claim      A repeated request is a NOOP and leaves no event; an unknown item leaves no row at all; a number belongs
 *            to whoever commits with it, so a rolled back or abandoned like leaves neither a trace nor a hole.
 * Method     One client walks the six arrows of the diagram. Then one like holds number k uncommitted while another
 *            is seen waiting for it in pg_locks (manual 54.12), the first one rolling back, committing, or losing its
 *            connection; a reader asks before, between and after for what is above its highest number. The number is a
 *            row under a lock held to the end of the transaction (13.3.2), not a sequence, whose values an abort does
 *            not give back (9.17); the end of a connection ends its transaction (55.2.9).
 * Expect     The waiting one gets k after a rollback or a lost connection, k+1 after a commit; the reader sees every event.
 * Not shown  What waiting for the number row costs (L2); the abandoned backend is idle in its transaction, one busy in
 *            a statement would outlive its client (L12).
 */
#include <stdlib.h>

#include "lab.h"

#define WAIT_MS 10000
#define READ_MOST 1000
#define NO_SUCH_ITEM 99

/* What is in the write side: rows of facts (placeholders included), events, and the last number. */
static void
check_trace(Scene *scene, Session *lab, const char *expected, const char *what)
{
	Text actual = {0};

	text_append(&actual, "rows=%lld events=%lld last=%lld",
				(long long) number_of(scene, lab, "SELECT count(*) FROM like_fact", NO_ARGS),
				(long long) number_of(scene, lab, "SELECT count(*) FROM like_outbox", NO_ARGS),
				(long long) last_number(scene, lab));
	check_text(scene, text_get(&actual), expected, "%s", what);
	text_free(&actual);
}

static void
check_fact(Scene *scene, Session *lab, int64_t user, int64_t item, const char *expected, const char *what)
{
	check_query(scene, lab,
				"SELECT max(format('liked=%s v%s', liked, version)) FROM like_fact WHERE user_id = $1 AND item_id = $2",
				ARGS(arg_int(user), arg_int(item)), expected, "%s", what);
}

static void
walk_rejections(Scene *scene, Session *lab)
{
	LikeResult answer;

	step(scene, "arrow 1: an item that does not exist is refused, with no row and no number");
	answer = set_like(scene, lab, 1, NO_SUCH_ITEM, true);
	check_answer(scene, &answer, "REJECTED(23503)", "like of an unknown item");
	answer = set_like(scene, lab, 1, NO_SUCH_ITEM, false);
	check_answer(scene, &answer, "REJECTED(23503)", "unlike of an unknown item");
	check_trace(scene, lab, "rows=0 events=0 last=0", "neither left anything");
}

static void
walk_states(Scene *scene, Session *lab)
{
	LikeResult answer;

	step(scene, "arrows 2 and 3: the first request leaves a placeholder, an unlike stays there");
	answer = set_like(scene, lab, 1, 1, false);
	check_answer(scene, &answer, "NOOP(unliked, v0, not liked)", "unlike of a pair that was never liked");
	check_fact(scene, lab, 1, 1, "liked=f v0", "the placeholder");
	check_trace(scene, lab, "rows=1 events=0 last=0", "a placeholder is no event and takes no number");

	step(scene, "arrow 4: unliked to liked");
	answer = set_like(scene, lab, 1, 1, true);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=1)", "like");
	check_trace(scene, lab, "rows=1 events=1 last=1", "one event");

	step(scene, "arrow 5: liked stays liked");
	answer = set_like(scene, lab, 1, 1, true);
	check_answer(scene, &answer, "NOOP(liked, v1, already liked)", "the same like again");
	check_trace(scene, lab, "rows=1 events=1 last=1", "still one event, and no number used");

	step(scene, "arrow 6: liked to unliked");
	answer = set_like(scene, lab, 1, 1, false);
	check_answer(scene, &answer, "CHANGED(unliked, v2, seq=2)", "unlike");
	answer = set_like(scene, lab, 1, 1, false);
	check_answer(scene, &answer, "NOOP(unliked, v2, not liked)", "the same unlike again");
	check_fact(scene, lab, 1, 1, "liked=f v2", "two changes");
	check_query(scene, lab, "SELECT string_agg(delta::text, ' ' ORDER BY number) FROM lab_event", NO_ARGS, "1 -1",
				"the deltas of two changes in five requests");
	check_audits_clean(scene, lab, "all arrows walked");
}

/* The second like waits for the first, which holds the next number in an open transaction. */
static void
wait_behind(Scene *scene, Session *lab, Session *first, Session *second, int64_t user, int64_t expected_number)
{
	LikeResult answer;
	SqlArg pid = arg_int(session_backend_pid(second));

	require(scene, session_begin(first, READ_COMMITTED));
	answer = set_like_within(scene, first, user, 1, true);
	CHECK_EQ(scene, answer.seq, expected_number, "the first like holds a number, uncommitted");
	send_like(scene, second, user + 1, 1, true);
	check_waits(scene, lab, second, "the second like waits in pg_locks");
	CHECK_EQ(scene,
			 number_of(scene, lab, "SELECT count(*) FROM unnest(pg_blocking_pids($1)) AS b WHERE b = $2",
					   ARGS(pid, arg_int(session_backend_pid(first)))),
			 1, "it waits for the first one's backend");
}

/* What is above the highest number that this reader has seen; it never looks back. Answers how many events it got. */
static int64_t
read_on(Scene *scene, Session *lab, int64_t *highest)
{
	int64_t *seqs;
	size_t count;

	require(scene, like_pull(lab, *highest, READ_MOST, &seqs, &count));
	if (count > 0)
	{
		*highest = seqs[count - 1];
	}
	free(seqs);
	return (int64_t) count;
}

static void
rolled_back_number(Scene *scene, Session *lab)
{
	Session *first = like_client(scene, "first"), *second = like_client(scene, "second");
	LikeResult answer;

	step(scene, "the first like rolls back: the second gets the same number");
	wait_behind(scene, lab, first, second, 10, 3);
	session_rollback(first);
	answer = await_like(scene, second);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=3)", "the second like, after the rollback");
	check_fact(scene, lab, 10, 1, "", "the rolled back like left no fact, not even a placeholder");
	check_trace(scene, lab, "rows=2 events=3 last=3", "nor an event or a number");
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}

static void
committed_number(Scene *scene, Session *lab)
{
	Session *first = like_client(scene, "first"), *second = like_client(scene, "second");
	LikeResult answer;
	int64_t highest = 0, seen;

	step(scene,
		 "the first like commits: the second gets the next number, and a reader that never looks back gets both");
	seen = read_on(scene, lab, &highest);
	wait_behind(scene, lab, first, second, 20, 4);
	seen += read_on(scene, lab, &highest);
	CHECK(scene, session_commit(first) == SQL_OK, "the first one's commit is confirmed");
	answer = await_like(scene, second);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=5)", "the second like, after the commit");
	check_trace(scene, lab, "rows=4 events=5 last=5", "both are there");
	seen += read_on(scene, lab, &highest);
	CHECK_EQ(scene, seen, number_of(scene, lab, "SELECT count(*) FROM like_outbox", NO_ARGS),
			 "events seen by the reader that asks for what is above its highest number");
	check_audits_clean(scene, lab, "one rolled back, one committed");
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}

static void
abandoned_number(Scene *scene, Session *lab)
{
	Session *victim = like_client(scene, "victim"), *second = like_client(scene, "after the victim");
	Fault *fault = scene_fault(scene, "drop the connection of a like that holds number 6");
	LikeResult answer;

	step(scene, "the first like loses its connection: its number is free again");
	wait_behind(scene, lab, victim, second, 30, 6);
	require(scene, fault_abandon(fault, scene_history(scene), lab, victim, scene_deadline(scene, WAIT_MS)));
	scene_forget_session(scene, victim);
	answer = await_like(scene, second);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=6)", "the second like, after the lost connection");
	check_fact(scene, lab, 30, 1, "", "the abandoned like left no fact");
	check_trace(scene, lab, "rows=5 events=6 last=6", "nor an event or a number");
	answer = set_like(scene, lab, 30, 1, true);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=7)", "the abandoned like, sent again");
	check_audits_clean(scene, lab, "one abandoned");
	scene_close_session(scene, second);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, 1);

	walk_rejections(scene, lab);
	walk_states(scene, lab);
	rolled_back_number(scene, lab);
	committed_number(scene, lab);
	abandoned_number(scene, lab);
	(void) drain(scene, lab);
	check_drained(scene, lab, "drained");
}

const Scenario scenario_32_b = {
	.suite = "32",
	.id = "32-B",
	.title = "every arrow of the state diagram, and numbers that are given out again",
	.claim = "a repeat is a NOOP, an unknown item leaves no row, an aborted like leaves neither a trace nor a hole",
	.kind = "real component, fixed interleaving",
	.guarantee = "NOOP and REJECTED write nothing; numbers have no hole and follow the commits",
	.observed = "like_fact, like_outbox, like_seq, pg_locks",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
