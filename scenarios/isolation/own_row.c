/*
 * isolation/own-row  whoever decides locks the own row only
 *
 * Claim      FOR UPDATE on the row that is changed anyway protects nothing: two who leave lock different rows, never meet, and
 *            nobody is left, at Read Committed as at Repeatable Read. It is isolation/lock-all without the other rows.
 * Method     The doctors of isolation/skew, each of whom locks the own row while counting (sql/isolation/own_row_*.spec): all
 *            interleavings.
 * Expect     Nobody waits. Read Committed: nobody on call in the 12 of 20 in which both write before either commits; in 6
 *            more a doctor who was told "two" is refused by the rule, which reads anew (read skew). Repeatable Read: nobody on
 *            call in all 18 in which the two overlap.
 * Not shown  More than two doctors.
 */
#include "lab.h"

static void
run(Scene *scene)
{
	SpecReport *report;

	step(scene, "Read Committed: each statement sees what is committed");
	report = judge_spec(scene, "own_row_read_committed.spec", NULL);
	check_found(scene, report, "invariant somebody", "r1 r2 w1 w2 c1 c2");
	check_violations(scene, report, "invariant somebody", 12);
	CHECK_EQ(scene, outcomes_with(report, "read skew"), 6, "interleavings in which only the answers contradict");
	check_cost(scene, report, 0, 0);
	spec_report_free(report);

	step(scene, "Repeatable Read: each sees its own snapshot");
	report = judge_spec(scene, "own_row_repeatable_read.spec", NULL);
	check_found(scene, report, "invariant somebody", "r1 r2 w1 c1 w2 c2");
	check_violations(scene, report, "invariant somebody", 18);
	check_cost(scene, report, 0, 0);
	spec_report_free(report);
}

const Scenario scenario_isolation_own_row = {
	.suite = "isolation",
	.id = "isolation/own-row",
	.title = "whoever decides locks the own row only",
	.claim = "two who leave lock different rows and never meet: nobody is left, at Read Committed and Repeatable Read",
	.kind = "every interleaving, negative control",
	.guarantee = "none: the rule reads more rows than are locked",
	.observed = "doctors",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
