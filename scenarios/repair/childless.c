/*
 * repair/childless  parents without children, and counts that are NULL
 *
 * Claim      Keys come from the table that holds the counts: a parent none of whose rows is left is found, and so is a
 *            count that is NULL, which no comparison by <> finds and no increment ends.
 * Method     R-14: a parent with 1 and no children, one with 0 and none, one with 2 and three. R-24: one with NULL and
 *            two, whose next child leaves NULL behind. First the repair that many write: a join to the counted
 *            children, and <>.
 * Expect     That repair leaves 1 and NULL where 0 and 3 are right. Scanned 4, Correct 1, Drifted 3, the NULL apart;
 *            afterwards 0, 0, 3, 3.
 * Not shown  Counts in a table of their own, where the row itself may be missing: repair/shapes.
 */
#include "lab.h"

#include <stdlib.h>

#define INNER_JOIN                                                                                                     \
	"UPDATE par SET n = c.n FROM (SELECT par_id, count(*) AS n FROM ch GROUP BY par_id) c "                            \
	"WHERE c.par_id = id AND par.n <> c.n"

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");
	char *wrong;
	Told told;

	add_parent(scene, lab, 1, "1", 0);
	add_parent(scene, lab, 2, "0", 0);
	add_parent(scene, lab, 3, "2", 3);
	add_parent(scene, lab, 4, NULL, 2);
	require(scene, session_execute(lab, "SELECT add_child(4)"));
	check_wrong(scene, lab, "1:1/0 3:2/3 4:NULL/3", "an increment leaves NULL");

	step(scene, "the join to counted children, compared by <>");
	require(scene, session_begin(lab, READ_COMMITTED));
	require(scene, session_execute(lab, INNER_JOIN));
	check_wrong(scene, lab, "1:1/0 4:NULL/3", "required: it sees neither the childless nor the NULL");
	session_rollback(lab);

	step(scene, "the tool");
	wrong = read_wrong_rows(scene, lab);
	told = tool_run(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds them");
	CHECK_EQ(scene, told_number(&told, "Scanned"), 4, "Scanned");
	CHECK_EQ(scene, told_number(&told, "Correct"), 1, "Correct");
	CHECK_EQ(scene, told_number(&told, "Drifted"), 3, "Drifted");
	check_rows(scene, &told, wrong, "check");
	told_free(&told);
	told = tool_run(scene, "repair", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "repair mends them");
	CHECK_EQ(scene, told_number(&told, "Updated"), 3, "Updated");
	told_free(&told);
	check_query(scene, lab, "SELECT string_agg(n::text, ' ' ORDER BY id) FROM par", NO_ARGS, "0 0 3 3", "counts");
	check_wrong(scene, lab, "", "repaired");
	free(wrong);
}

const Scenario scenario_repair_childless = {
	.suite = "repair",
	.id = "repair/childless",
	.title = "parents without children, and counts that are NULL",
	.claim = "a parent without children and a count that is NULL are found and repaired like any other",
	.kind = "real component, negative control",
	.guarantee = "every key of the table that holds the counts is looked at",
	.observed = "par beside ch, rows printed",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
