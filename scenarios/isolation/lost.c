/*
 * isolation/lost  a session is lost in the middle of a permutation
 *
 * Claim      What a session had not committed when its backend ended, or its client vanished, is not there. The permutation
 *            has its verdict, the teardown is run, the session has a connection again, and the next permutation runs.
 * Method     Four permutations (sql/isolation/lost_session.spec) in the case's own database: a session that inserts and then
 *            ends its own backend, one that is ended from outside, one whose client vanishes, and one that nothing happens to.
 * Expect     In the first three the other session finds no row, as if the lost one had never been; in the last both commit.
 *            Every setup makes the same table, which only a teardown can have made possible; none is left at the end.
 * Not shown  A server that goes (specs with `restart immediate`; 32-L), and a loss while committing (33-C).
 */
#include "lab.h"

#define FILE_NAME "lost_session.spec"

static void
check_outcome(Scene *scene, const SpecReport *report, int64_t times, const char *outcome)
{
	CHECK_EQ(scene, outcomes_with(report, outcome), times, "permutations that end so: %s", outcome);
}

static void
run(Scene *scene)
{
	Session *observer = scene_session(scene, "observer");
	SpecReport *report = judge_spec_in_place(scene, FILE_NAME);
	int64_t tables;

	note_spec(scene, FILE_NAME, report);
	check_text(scene, text_get(&report->broken), "", "what the lab could not do");
	check_text(scene, text_get(&report->unknown), "", "what cannot be said for certain");
	CHECK_EQ(scene, report->run, 4, "permutations that have a verdict");
	check_always(scene, report, "invariant committed");
	check_always(scene, report, "serializable");
	check_outcome(scene, report, 1, "t1 57P01 at ends, lost; t2 committed; as in the serial order t2");
	check_outcome(scene, report, 2, "t1 lost; t2 committed; as in the serial order t2");
	check_outcome(scene, report, 1, "t1 committed; t2 committed; as in the serial order t1 t2");
	for (int i = 0; i < report->fault_count; i++)
	{
		CHECK_EQ(scene, report->fired[i], 1, "%s: permutations in which it met its session", report->fault_names[i]);
	}
	spec_report_free(report);
	require(scene, session_query_int(observer, &tables, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
									 NO_ARGS));
	CHECK_EQ(scene, tables, 0, "tables left behind");
}

const Scenario scenario_isolation_lost = {
	.suite = "isolation",
	.id = "isolation/lost",
	.title = "a session is lost in the middle of a permutation",
	.claim =
		"what it had not committed is not there; the verdict is given, the teardown run, and the next permutation has its "
		"connection",
	.kind = "fixed interleaving, kill, terminate",
	.guarantee = "no trace of a lost transaction, serializable",
	.observed = "note, outcomes of each permutation, pg_tables",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
