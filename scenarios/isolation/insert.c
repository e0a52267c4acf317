/*
 * isolation/insert  two count the rows that are on, and each adds one
 *
 * Claim      Write skew needs no row that both have read and one changes: new rows do it. Repeatable Read lets both add theirs;
 *            Serializable refuses one, although the row it had not seen was not there when it looked.
 * Method     Two doctors are on call, three may be. Two more each count, add a row if there is room, and commit
 *            (sql/isolation/insert_*.spec): all interleavings, judged by the number of rows and by every serial order.
 * Expect     Repeatable Read: 4 rows in the 12 of 14 in which the two overlap. Serializable: exactly one 40001 in each of
 *            these, 3 rows in all of them; nobody waits.
 * Not shown  A table so large that the count goes through an index, and locks less than the whole of it.
 */
#include "lab.h"

static void
run(Scene *scene)
{
	SpecReport *report;
	const char *rows;

	step(scene, "Repeatable Read: nobody has changed what the other has read");
	report = judge_spec(scene, "insert_repeatable_read.spec", NULL);
	check_found(scene, report, "invariant three", "r1 r2 w1 c1 w2 c2");
	rows = text_get(&spec_report_find(report, "invariant three")->detail);
	check_text(scene, rows, "(on_call=4)", "rows on call there");
	check_violations(scene, report, "invariant three", 12);
	check_violations(scene, report, "serializable", 12);
	check_cost(scene, report, 0, 0);
	spec_report_free(report);

	step(scene, "Serializable: who is refused counts again");
	report = judge_spec(scene, "insert_serializable.spec", NULL);
	check_always(scene, report, "invariant three");
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, outcomes_with(report, "40001"), 12, "interleavings in which one is refused");
	check_cost(scene, report, 0, 12);
	spec_report_free(report);
}

const Scenario scenario_isolation_insert = {
	.suite = "isolation",
	.id = "isolation/insert",
	.title = "two count the rows that are on, and each adds one",
	.claim = "Repeatable Read lets both add a row where there is room for one; Serializable refuses one of them",
	.kind = "every interleaving, negative control",
	.guarantee = "three rows, serializable",
	.observed = "doctors",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
