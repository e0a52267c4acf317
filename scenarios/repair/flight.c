/*
 * repair/flight  work that is under way is no drift, and what stays is
 *
 * Claim      Where the count follows the rows in a transaction of its own, a comparison between the two sees a
 *            difference that mends itself. Only a second look, when all that was running at the first has ended, tells
 *            it from drift.
 * Method     A writer adds a child and commits; its second transaction has counted up and is still open when check
 *            begins, and commits when check has looked and waits. Then the same beside a count that is really wrong.
 *            Then one look alone: by a file that says same_transaction.
 * Expect     In flight 1 and exit 0; then the drifted row alone and exit 1; one look calls the work drift.
 * Not shown  A second transaction that has not begun at the first look and is later than --settle: it counts as drift.
 */
#include "lab.h"

#include <stdlib.h>

/* The file's condition on the source leaves a lock behind when a look begins (sql/counters/cases/flight.sql). */
#define LOOKED "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND granted"

/* The child is committed; what counts it is written and open. */
static void
be_between(Scene *scene, Session *writer)
{
	require(scene, session_execute(writer, "INSERT INTO ch (par_id) VALUES (1)"));
	require(scene, session_begin(writer, READ_COMMITTED));
	require(scene, session_execute(writer, "UPDATE par SET n = n + 1 WHERE id = 1"));
}

/* Check looks, waits for the writer, who commits, and looks again. */
static Told
look_twice(Scene *scene, Session *lab, Session *writer)
{
	Tool tool = tool_start(scene, "check", "flight.yaml", WORDS("--settle", "0s"));

	CHECK(scene, await_beside(scene, lab, tool, 1, LOOKED), "check looks");
	CHECK(scene, await_beside(scene, lab, tool, 1, TOOLS_WAITING), "it waits for the writer");
	CHECK(scene, session_commit(writer) == SQL_OK, "the writer commits");
	return tool_end(scene, tool);
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");
	Session *writer = scene_session(scene, "writer");
	Told told;

	require(scene, session_execute_file(lab, scene_sql(scene, "counters/cases/flight.sql")));
	add_parent(scene, lab, 1, "3", 3);
	add_parent(scene, lab, 2, "2", 2);

	step(scene, "under way");
	be_between(scene, writer);
	check_wrong(scene, lab, "1:3/4", "between the two transactions");
	told = look_twice(scene, lab, writer);
	check_exit(scene, &told, EXIT_CODE_PASS, "work under way is no drift");
	CHECK_EQ(scene, told_number(&told, "Drifted"), 0, "Drifted");
	check_says(scene, &told, "in flight  1, of which 1 are right and 0 differ otherwise", "what was under way");
	told_free(&told);
	check_wrong(scene, lab, "", "it has arrived");

	step(scene, "under way, beside drift");
	require(scene, session_execute(lab, "UPDATE par SET n = 7 WHERE id = 2"));
	be_between(scene, writer);
	told = look_twice(scene, lab, writer);
	check_exit(scene, &told, EXIT_CODE_FAIL, "what stays is drift");
	CHECK_EQ(scene, told_number(&told, "Drifted"), 1, "Drifted");
	check_rows(scene, &told, "id=2 stored=7 actual=2 diff=+5", "check");
	told_free(&told);

	step(scene, "one look alone");
	be_between(scene, writer);
	told = tool_run(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_FAIL, "one look");
	CHECK_EQ(scene, told_number(&told, "Drifted"), 2, "required: one look cannot tell them apart");
	told_free(&told);
	CHECK(scene, session_commit(writer) == SQL_OK, "the writer commits");
}

const Scenario scenario_repair_flight = {
	.suite = "repair",
	.id = "repair/flight",
	.title = "work that is under way is no drift, and what stays is",
	.claim = "a second look, when all that was running at the first has ended, tells work under way from drift",
	.kind = "fixed interleaving, negative control",
	.guarantee = "drift is what two looks see alike",
	.observed = "lines and rows printed, exit codes",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
