/*
 * isolation/skew  two doctors on call, each of whom leaves when two are there
 *
 * Claim      At Repeatable Read both may leave: write skew. At Serializable one leaves; the other is refused with 40001, and
 *            its whole decision, run again, finds one doctor and moves nobody.
 * Method     All interleavings of two sessions that read, update under the rule and commit (sql/isolation/doctors_*.spec),
 *            judged by the rule itself and by every serial order of the two.
 * Expect     Repeatable Read: nobody on call in the 12 of 14 in which the two overlap; the same are not serializable, write skew.
 *            Serializable with retries: somebody on call in all of them, each explained by a serial order; where the two
 *            overlap one is refused, 4 times while it writes, 8 times at COMMIT, and nobody ever waits.
 * Not shown  More than two doctors, and how often the two meet in life. Interleavings are of whole statements (L22).
 */
#include "lab.h"

#include <string.h>

static void
run(Scene *scene)
{
	SpecReport *report;
	const SpecCheck *serializable;

	step(scene, "Repeatable Read: each decides from its own snapshot");
	report = judge_spec(scene, "doctors_repeatable_read.spec", NULL);
	check_found(scene, report, "invariant somebody", "r1 r2 w1 c1 w2 c2");
	check_found(scene, report, "serializable", "r1 r2 w1 c1 w2 c2");
	check_violations(scene, report, "invariant somebody", 12);
	serializable = spec_report_find(report, "serializable");
	CHECK_EQ(scene, serializable->violated, spec_report_find(report, "invariant somebody")->violated,
			 "interleavings that no serial order explains and that break the rule");
	CHECK(scene, strstr(text_get(&serializable->detail), "write skew") != NULL, "it is named write skew");
	CHECK_EQ(scene, outcomes_with(report, "40001"), 0, "interleavings in which the server refuses anything");
	spec_report_free(report);

	step(scene, "Serializable: who is refused decides again");
	report = judge_spec(scene, "doctors_serializable.spec", NULL);
	check_always(scene, report, "invariant somebody");
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, outcomes_with(report, "40001 at w"), 4, "interleavings in which an update is refused");
	CHECK_EQ(scene, outcomes_with(report, "40001 at c"), 8, "interleavings in which a COMMIT is refused");
	check_cost(scene, report, 0, 12);
	spec_report_free(report);
}

const Scenario scenario_isolation_skew = {
	.suite = "isolation",
	.id = "isolation/skew",
	.title = "two doctors on call, each of whom leaves when two are there",
	.claim = "Repeatable Read lets both leave; Serializable refuses one, whose decision, run again, lets it stay",
	.kind = "every interleaving",
	.guarantee = "somebody is on call, serializable",
	.observed = "doctors",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
