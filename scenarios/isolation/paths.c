/*
 * isolation/paths  one path that does not keep the contract is enough
 *
 * Claim      Serializable protects transactions from each other that are all Serializable: beside a path at Repeatable Read
 *            it sees nothing. And it makes the result that of some serial order, no more: a path that lacks the rule breaks it
 *            alone.
 * Method     The doctors of isolation/skew, of whom alice is right and bob's path is not (sql/isolation/paths_*.spec). First
 *            he has the rule at Repeatable Read. Then he is Serializable and leaves without asking. All interleavings.
 * Expect     Repeatable Read beside Serializable: no 40001 at all, nobody on call in the 12 of 14 in which the two overlap. The
 *            rule missing on one path: all 14 interleavings are serial orders, one 40001 for each overlap, and nobody is on
 *            call in the 7 that equal "alice, then bob"; the shortest is that order itself. Nobody waits.
 * Not shown  How such a path is found in a program. A role's or a database's default_transaction_isolation helps only those who
 *            do not name a level.
 */
#include "lab.h"

static void
run(Scene *scene)
{
	SpecReport *report;

	step(scene, "alice at Serializable, bob at Repeatable Read");
	report = judge_spec(scene, "paths_one_serializable.spec", NULL);
	check_found(scene, report, "invariant somebody", "r1 r2 w1 c1 w2 c2");
	check_violations(scene, report, "invariant somebody", 12);
	CHECK_EQ(scene, outcomes_with(report, "40001"), 0, "interleavings in which the server refuses anything");
	check_cost(scene, report, 0, 0);
	spec_report_free(report);

	step(scene, "both at Serializable, bob without the rule");
	report = judge_spec(scene, "paths_rule_missing.spec", NULL);
	check_always(scene, report, "serializable");
	check_found(scene, report, "invariant somebody", "r1 w1 c1 r2 w2 c2");
	check_violations(scene, report, "invariant somebody", 7);
	CHECK_EQ(scene, outcomes_with(report, "as in the serial order alice bob; violates somebody"), 7,
			 "interleavings that break it and equal \"alice, then bob\"");
	check_cost(scene, report, 0, 12);
	spec_report_free(report);
}

const Scenario scenario_isolation_paths = {
	.suite = "isolation",
	.id = "isolation/paths",
	.title = "one path that does not keep the contract is enough",
	.claim = "Serializable beside Repeatable Read sees nothing, and does not mend a rule that is missing on one path",
	.kind = "every interleaving, negative control",
	.guarantee = "none: every path has to keep the rule and the level",
	.observed = "doctors",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
