/*
 * isolation/count-row  the number that the rule is about is a row
 *
 * Claim      Where everybody who decides writes one row that holds the number on call, the rule is that row's own condition,
 *            and holds at Read Committed and at Repeatable Read. The price is that they wait for each other there.
 * Method     UPDATE on_call SET n = n - 1 WHERE n > 1, and only who got a place leaves, in the same statement
 *            (sql/isolation/count_row_*.spec): all interleavings that the lock on the row leaves.
 * Expect     4 interleavings, somebody on call in all of them, each as a serial order, and n is the number of doctors on call.
 *            The 2 in which the two overlap cost one wait each; at Repeatable Read a retry, too.
 * Not shown  A path that moves a doctor and not the number. How much one row carries: see bench isolation.
 */
#include "lab.h"

static void
check_kept(Scene *scene, const char *file, int64_t retries_40001)
{
	SpecReport *report = judge_spec(scene, file, NULL);

	check_always(scene, report, "invariant somebody");
	check_always(scene, report, "invariant count_is_true");
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, report->run, 4, "interleavings that the lock on the row leaves");
	check_cost(scene, report, 2, retries_40001);
	spec_report_free(report);
}

static void
run(Scene *scene)
{
	step(scene, "Read Committed: the second waits, and looks at the row again");
	check_kept(scene, "count_row_read_committed.spec", 0);
	step(scene, "Repeatable Read: the second waits, and is refused");
	check_kept(scene, "count_row_repeatable_read.spec", 2);
}

const Scenario scenario_isolation_count_row = {
	.suite = "isolation",
	.id = "isolation/count-row",
	.title = "the number that the rule is about is a row",
	.claim = "the rule is the row's own condition: it holds at Read Committed and at Repeatable Read, for a wait",
	.kind = "every interleaving",
	.guarantee = "somebody is on call, the number is true, serializable",
	.observed = "doctors, on_call, waits and retries",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
