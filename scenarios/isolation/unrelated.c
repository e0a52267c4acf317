/*
 * isolation/unrelated  two keys that have nothing to do with each other, and 40001
 *
 * Claim      Serializable may refuse a transaction that conflicts with nobody: what is locked by looking is a page or a whole
 *            relation, not a key. That is no error. Its whole decision, run again, is stored; and where the keys lie on
 *            pages of their own, nobody is refused.
 * Method     All interleavings of two sessions that look for a key, insert it and commit (sql/isolation/unrelated_keys*.spec):
 *            in an empty table, and in one whose index has a page for each of the two. Before, one looks
 *            (sql/isolation/unrelated_look.sql), and what it has locked is read from pg_locks.
 * Expect     Empty table: whoever commits or writes second is refused once where the two overlap, finds again just what it had
 *            found before, and both rows are there. Apart: no refusal in any interleaving.
 * Not shown  Larger tables that a sequential scan reads (a lock of the whole table); that a refusal was for nothing is
 *            concluded from equal answers, and is called possible.
 */
#include "lab.h"

#include <string.h>

#define BOTH "t1 committed; t2 committed; as in the serial order t1 t2"

/* By that session, of the kind that shows what a Serializable transaction has read. */
#define LOCKS "SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() AND "

static void
check_locks(Scene *scene)
{
	Session *session = scene_session(scene, "looks");
	int64_t coarse;
	int64_t rows;

	require(scene, session_execute_file(session, scene_sql(scene, "isolation/unrelated_table.sql")) &&
					   session_begin(session, SERIALIZABLE) &&
					   session_execute_file(session, scene_sql(scene, "isolation/unrelated_look.sql")) &&
					   session_query_int(session, &coarse, LOCKS "locktype IN ('page', 'relation')", NO_ARGS) &&
					   session_query_int(session, &rows, LOCKS "locktype = 'tuple'", NO_ARGS));
	check_at_least(scene, coarse, 1, "locks of a page or a relation, after a look for one key that is not there");
	CHECK_EQ(scene, rows, 0, "locks of a row");
	session_rollback(session);
	scene_close_session(scene, session);
}

static void
run(Scene *scene)
{
	SpecReport *report;

	step(scene, "what looking for a key locks");
	check_locks(scene);

	step(scene, "an empty table");
	report = judge_spec(scene, "unrelated_keys.spec", NULL);
	check_always(scene, report, "invariant both");
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, outcomes_with(report, "t1 committed; t2 40001 at c2, committed in attempt 2"), 2,
			 "interleavings in which the second COMMIT is refused, and all of it run again is stored");
	CHECK_EQ(scene, report->retries_40001, 6, "decisions run again, of 14 interleavings");
	CHECK_EQ(
		scene, report->false_conflicts, report->retries_40001,
		"false conflict possible, sequential scan / page lock: of these, those that met just what had been refused");
	spec_report_free(report);

	step(scene, "two keys on pages of their own");
	report = judge_spec(scene, "unrelated_keys_apart.spec", NULL);
	check_always(scene, report, "invariant both");
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, report->retries_40001, 0, "decisions run again");
	CHECK_EQ(scene, outcomes_with(report, BOTH), report->run, "interleavings in which nobody is refused anything");
	spec_report_free(report);

	step(scene, "a conflict that is one");
	report = judge_spec(scene, "doctors_serializable.spec", NULL);
	CHECK_EQ(scene, report->retries_40001, 12, "decisions run again, of 14 interleavings");
	CHECK_EQ(scene, report->false_conflicts, 0, "of these, those that met just what had been refused");
	spec_report_free(report);
}

const Scenario scenario_isolation_unrelated = {
	.suite = "isolation",
	.id = "isolation/unrelated",
	.title = "two keys that have nothing to do with each other, and 40001",
	.claim =
		"Serializable may refuse what conflicts with nobody; the whole decision run again is stored, and is told as a "
		"false conflict",
	.kind = "every interleaving",
	.guarantee = "both rows, serializable; each refusal told from a true one",
	.observed = "item, pg_locks, answers before and after a retry",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
