/*
 * isolation/counter-rows  two batches meet at the same counter rows
 *
 * Claim      Batches that take counter rows in the order in which they came deadlock; who is ended runs again whole, and
 *            nothing is lost. Sorted, or summed and locked in order, they only wait.
 * Method     All interleavings of two batches on posts 1, 2 and 2, 1. counter_rows_unordered: one UPDATE each, as they came,
 *            retried after 40P01. counter_rows_sorted: the same in the order of posts. counter_rows_summed: each row locked
 *            in order, then one UPDATE that adds the sum of each post (posts 1, 2, 2 and 2, 1, 1).
 * Expect     Unordered: in a deadlock one of the two is ended with 40P01, the one or the other, and both posts end with 2.
 *            Sorted and summed: no error in any interleaving.
 * Not shown  Rows that one statement takes in an order of its own, an INSERT .. SELECT .. ON CONFLICT without ORDER BY: an
 *            interleaving is of whole statements (L22). The like system's own batches, many times (32-G).
 */
#include "lab.h"

static void
unordered(Scene *scene)
{
	SpecReport *report = judge_spec(scene, "counter_rows_unordered.spec", NULL);

	check_all_hold(scene, report);
	check_deadlocks(scene, report, "whole batches");
	spec_report_free(report);
}

static void
run(Scene *scene)
{
	step(scene, "as they came");
	unordered(scene);
	step(scene, "sorted by post");
	judge_clean(scene, "counter_rows_sorted.spec", NULL, 6);
	step(scene, "locked in order, one sum a post");
	judge_clean(scene, "counter_rows_summed.spec", NULL, 6);
}

const Scenario scenario_isolation_counter_rows = {
	.suite = "isolation",
	.id = "isolation/counter-rows",
	.title = "two batches meet at the same counter rows",
	.claim = "in the order in which they came batches deadlock, and run again whole; sorted or summed they only wait",
	.kind = "every interleaving, negative control",
	.guarantee = "no batch is lost; sorted, none is ended",
	.observed = "post, SQLSTATEs",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
