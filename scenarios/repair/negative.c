/*
 * repair/negative  two deletes of one row, and a clamp that hides what went wrong
 *
 * Claim      A decrement belongs to a row that was really removed. Where it does not, the count sinks below zero, which
 *            is told apart; a clamp at zero only makes the error invisible until the next increment.
 * Method     R-04: one child; two sessions see it, the first deletes it and counts down, the second deletes nothing and
 *            counts down all the same. The same with the decrement tied to the row. Then -1 delivered before its +1,
 *            with and without greatest(n - 1, 0).
 * Expect     -1, found with actual 0 and named negative; 0 when tied to the row. With the clamp 1 where 0 is right,
 *            without it 0.
 * Not shown  Who sent the second delete.
 */
#include "lab.h"

#include <stdlib.h>

/* Both have read the child; `second` is what the later of the two does. */
static void
both_delete(Scene *scene, Session *lab, const char *second)
{
	Session *other = scene_session(scene, "other");
	int64_t child = number_of(scene, lab, "SELECT id FROM ch WHERE par_id = 1", NO_ARGS);

	CHECK_EQ(scene, number_of(scene, other, "SELECT id FROM ch WHERE par_id = 1", NO_ARGS), child, "both see it");
	require(scene, session_query(lab, NULL, "WITH gone AS (DELETE FROM ch WHERE id = $1) UPDATE par SET n = n - 1",
								 ARGS(arg_int(child))));
	require(scene, session_query(other, NULL, second, ARGS(arg_int(child))));
	scene_close_session(scene, other);
}

static void
start_over(Scene *scene, Session *lab, int64_t children)
{
	require(scene, session_execute(lab, "TRUNCATE par, ch"));
	add_parent(scene, lab, 1, children == 0 ? "0" : "1", children);
}

static void
double_delete(Scene *scene, Session *lab)
{
	char *wrong;
	Told told;

	step(scene, "two delete one row, both count down");
	start_over(scene, lab, 1);
	both_delete(scene, lab, "WITH gone AS (DELETE FROM ch WHERE id = $1) UPDATE par SET n = n - 1");
	check_wrong(scene, lab, "1:-1/0", "required: one row, minus two");
	wrong = read_wrong_rows(scene, lab);
	told = tool_run(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds it");
	CHECK_EQ(scene, told_number(&told, "Drifted"), 1, "Drifted");
	check_rows(scene, &told, wrong, "check");
	CHECK_EQ(scene, told_number(&told, "negative"), 1, "negatives are told apart");
	told_free(&told);
	tool_does(scene, "repair", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "repair mends it");
	check_wrong(scene, lab, "", "repaired");
	free(wrong);

	step(scene, "the same, and who removes nothing counts nothing");
	start_over(scene, lab, 1);
	both_delete(scene, lab,
				"WITH gone AS (DELETE FROM ch WHERE id = $1 RETURNING par_id) "
				"UPDATE par SET n = n - 1 FROM gone WHERE par.id = gone.par_id");
	check_wrong(scene, lab, "", "tied to the row");
}

static void
clamp(Scene *scene, Session *lab)
{
	step(scene, "-1 before its +1, clamped at zero");
	start_over(scene, lab, 0);
	require(scene, session_execute(lab, "UPDATE par SET n = greatest(n - 1, 0); UPDATE par SET n = n + 1"));
	check_wrong(scene, lab, "1:1/0", "required: the clamp has lost the decrement");
	tool_does(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds it");
	tool_does(scene, "repair", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "repair mends it");
	check_wrong(scene, lab, "", "repaired");

	step(scene, "the same without a clamp");
	require(scene, session_execute(lab, "UPDATE par SET n = n - 1; UPDATE par SET n = n + 1"));
	check_wrong(scene, lab, "", "without a clamp");
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");

	double_delete(scene, lab);
	clamp(scene, lab);
}

const Scenario scenario_repair_negative = {
	.suite = "repair",
	.id = "repair/negative",
	.title = "two deletes of one row, and a clamp that hides what went wrong",
	.claim = "a count below zero is found and told apart; a clamp only hides the error until the next increment",
	.kind = "fixed interleaving, negative control",
	.guarantee = "negative counts are reported as such and repaired",
	.observed = "par beside ch, rows printed",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
