/*
 * isolation/two-deletes  two requests delete one row, and the count goes down twice
 *
 * Claim      A count goes down only when a row was really removed; decided by what was read before, it ends at -1.
 * Method     All interleavings of two requests that both look at the one child, delete it, and count down; 1 stored.
 *            two_deletes: by as many as the DELETE has removed. two_deletes_unguarded: by 1.
 * Expect     Guarded: 0 always. Unguarded: -1 in every interleaving, with expected 0, and listed as negative, too: even one
 *            request after the other, so that no isolation level mends it.
 * Not shown  Counts kept by triggers.
 */
#include "lab.h"

static void
unguarded(Scene *scene)
{
	SpecReport *report = judge_spec(scene, "two_deletes_unguarded.spec", NULL);

	check_broken(scene, report, "invariant drifted", (int64_t) report->run, "ar ad an ac br bd bn bc",
				 "(id=1, expected=0, stored=-1)");
	check_broken(scene, report, "invariant negative", (int64_t) report->run, "ar ad an ac br bd bn bc", "(id=1, n=-1)");
	CHECK_EQ(scene, outcomes_with(report, "as in the serial order"), 2, "of these, interleavings one after the other");
	CHECK_EQ(scene, outcomes_with(report, " at "), 0, "interleavings in which the server refuses anything");
	spec_report_free(report);
}

static void
run(Scene *scene)
{
	step(scene, "down by what was removed");
	judge_clean(scene, "two_deletes.spec", NULL, 18);
	step(scene, "down by one");
	unguarded(scene);
}

const Scenario scenario_isolation_two_deletes = {
	.suite = "isolation",
	.id = "isolation/two-deletes",
	.title = "two requests delete one row",
	.claim = "a count goes down only when a row was really removed; decided by an earlier read it ends at -1",
	.kind = "every interleaving, negative control",
	.guarantee = "the count is the number of rows and not negative",
	.observed = "parent, child",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
