/*
 * isolation/repair  a count is repaired while a row comes
 *
 * Claim      A repair that locks the parent and counts in a later statement is right beside a live writer. In one statement at
 *            Read Committed it waits for the writer and then stores what was true before it.
 * Method     All interleavings of a writer (the fourth child, the parent's count, its end) and a repair; 3 children, 5 stored.
 *            So the repair begins before the writer's count, after it, and in between. repair_locks_then_counts: the
 *            writer commits; ..._rollback: it rolls back; repair_one_statement: counting and storing are one statement;
 *            repair_repeatable_read: that statement at Repeatable Read, retried whole. Judged by the count, the
 *            right ones also by every serial order.
 * Expect     Locked, then counted: 4 of 4, and 3 of 3 after the rollback, always. One statement: 3 stored and 4 there, and
 *            nothing refused it. At Repeatable Read that way ends with 40001, and the whole again is right.
 * Not shown  A writer that changes rows and count in two transactions: no repair is right beside that.
 */
#include "lab.h"

static void
one_statement(Scene *scene)
{
	SpecReport *report = judge_spec(scene, "repair_one_statement.spec", NULL);

	check_broken(scene, report, "invariant drifted", 1, "wi wn ru we rc", "(id=1, expected=4, stored=3)");
	CHECK_EQ(scene, outcomes_with(report, " at "), 0, "interleavings in which the server refuses anything");
	spec_report_free(report);
}

static void
repeatable_read(Scene *scene)
{
	SpecReport *report = judge_spec(scene, "repair_repeatable_read.spec", NULL);

	check_all_hold(scene, report);
	CHECK_EQ(scene, outcomes_with(report, "repair 40001 at ru"), 1,
			 "interleavings in which the repair is refused and done again");
	CHECK_EQ(scene, report->retries_40001, 1, "whole transactions run again after 40001");
	spec_report_free(report);
}

static void
run(Scene *scene)
{
	step(scene, "lock, then count; the writer commits");
	judge_clean(scene, "repair_locks_then_counts.spec", NULL, 6);
	step(scene, "lock, then count; the writer rolls back");
	judge_clean(scene, "repair_locks_then_counts_rollback.spec", NULL, 6);
	step(scene, "one statement at Read Committed");
	one_statement(scene);
	step(scene, "one statement at Repeatable Read, retried whole");
	repeatable_read(scene);
}

const Scenario scenario_isolation_repair = {
	.suite = "isolation",
	.id = "isolation/repair",
	.title = "a count is repaired while a row comes",
	.claim =
		"lock, then count in a later statement is right beside a live writer; one statement at Read Committed is not",
	.kind = "every interleaving, negative control",
	.guarantee = "the count is the number of rows, serializable",
	.observed = "parent, child",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
