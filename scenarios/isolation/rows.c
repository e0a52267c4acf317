/*
 * isolation/rows  a check on every row does not see a rule about all of them
 *
 * Claim      A CHECK on each doctor's state is kept by every row in every interleaving, while nobody is left on call in most
 *            of them: the rule is about their number, which no row has.
 * Method     The doctors of isolation/skew at Repeatable Read, whose state has a CHECK (sql/isolation/row_checks.spec). Two
 *            invariants are asked of the same states: each row's, and the rule.
 * Expect     Of 14 interleavings none has a wrong row, and the 12 in which the two overlap end with nobody on call. The
 *            server refuses nothing, nobody waits.
 * Not shown  Constraints over several rows that PostgreSQL does keep: unique, exclusion, foreign keys.
 */
#include "lab.h"

static void
run(Scene *scene)
{
	SpecReport *report;

	step(scene, "Repeatable Read, and a CHECK on every row");
	report = judge_spec(scene, "row_checks.spec", NULL);
	check_always(scene, report, "invariant each_row");
	check_found(scene, report, "invariant somebody", "r1 r2 w1 c1 w2 c2");
	check_violations(scene, report, "invariant somebody", 12);
	check_cost(scene, report, 0, 0);
	spec_report_free(report);
}

const Scenario scenario_isolation_rows = {
	.suite = "isolation",
	.id = "isolation/rows",
	.title = "a check on every row does not see a rule about all of them",
	.claim = "each row is right in every interleaving, and nobody is on call in most of them",
	.kind = "every interleaving, negative control",
	.guarantee = "none: CHECK is about one row",
	.observed = "doctors",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
