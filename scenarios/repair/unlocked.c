/*
 * repair/unlocked  a recount that does not lock, and one that locks too late
 *
 * Claim      Counting and writing in two statements writes a count that a writer has overtaken. One statement narrows
 *            the window and does not close it: it waits for the writer, and then writes what it had counted before.
 *            Right is to lock, and to count in a later statement.
 * Method     A parent with 5 where 3 is right, and a writer that adds a child and counts up in one transaction, always
 *            at the same place: after the recount has counted and before it has written. In Read Committed (manual
 *            13.2.1).
 * Expect     Two statements: 3 where 4 is right. One statement: the same, when the writer has not committed yet as it
 *            starts; right when it has. Lock first: 4. The tool finds what the wrong ones left, and mends it.
 * Not shown  How often this happens in life. The tool itself at these places: repair/race.
 */
#include "lab.h"

enum
{
	ANSWER_MS = 10000
};

#define COUNT "SELECT count(*) FROM ch WHERE par_id = 1"
#define ONE_STATEMENT "UPDATE par SET n = (SELECT count(*) FROM ch WHERE par_id = 1) WHERE id = 1"

static void
start_over(Scene *scene, Session *lab)
{
	require(scene, session_execute(lab, "TRUNCATE par, ch"));
	add_parent(scene, lab, 1, "5", 3);
}

/* What was sent waits for the writer, who then commits; it must go through. */
static void
let_wait_and_commit(Scene *scene, Session *lab, Session *recount, Session *writer)
{
	await_waiter(scene, lab, writer);
	CHECK(scene, session_commit(writer) == SQL_OK, "the recount waits; the writer commits");
	CHECK(scene, session_await(recount, NULL, scene_deadline(scene, ANSWER_MS)) == SQL_OK, "the recount goes on");
}

static void
add_child_and_stay(Scene *scene, Session *writer)
{
	require(scene, session_begin(writer, READ_COMMITTED));
	require(scene, session_execute(writer, "SELECT add_child(1)"));
}

static void
tool_mends(Scene *scene, Session *lab)
{
	tool_does(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds what is left");
	tool_does(scene, "repair", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "repair mends it");
	check_wrong(scene, lab, "", "mended");
}

static void
two_statements(Scene *scene, Session *lab, Session *recount, Session *writer)
{
	int64_t count;

	step(scene, "two statements: count, then write");
	start_over(scene, lab);
	count = number_of(scene, recount, COUNT, NO_ARGS);
	require(scene, session_execute(writer, "SELECT add_child(1)"));
	require(scene, session_query(recount, NULL, "UPDATE par SET n = $1 WHERE id = 1", ARGS(arg_int(count))));
	check_wrong(scene, lab, "1:3/4", "two statements, required");
	tool_mends(scene, lab);
}

static void
one_statement(Scene *scene, Session *lab, Session *recount, Session *writer)
{
	step(scene, "one statement: between two transactions it has no window");
	start_over(scene, lab);
	require(scene, session_execute(writer, "SELECT add_child(1)"));
	require(scene, session_execute(recount, ONE_STATEMENT));
	check_wrong(scene, lab, "", "one statement, the writer has committed");

	step(scene, "one statement: it waits for a writer, and writes what it had counted before");
	start_over(scene, lab);
	add_child_and_stay(scene, writer);
	require(scene, session_send(recount, ONE_STATEMENT, NO_ARGS));
	let_wait_and_commit(scene, lab, recount, writer);
	check_wrong(scene, lab, "1:3/4", "one statement, required");
	tool_mends(scene, lab);
}

static void
lock_first(Scene *scene, Session *lab, Session *recount, Session *writer)
{
	step(scene, "lock, count in a later statement, write");
	start_over(scene, lab);
	add_child_and_stay(scene, writer);
	require(scene, session_begin(recount, READ_COMMITTED));
	require(scene, session_send(recount, "SELECT FROM par WHERE id = 1 FOR NO KEY UPDATE", NO_ARGS));
	let_wait_and_commit(scene, lab, recount, writer);
	require(scene, session_execute(recount, ONE_STATEMENT));
	CHECK(scene, session_commit(recount) == SQL_OK, "the recount commits");
	check_wrong(scene, lab, "", "locked first");
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");
	Session *recount = scene_session(scene, "recount");
	Session *writer = scene_session(scene, "writer");

	two_statements(scene, lab, recount, writer);
	one_statement(scene, lab, recount, writer);
	lock_first(scene, lab, recount, writer);
}

const Scenario scenario_repair_unlocked = {
	.suite = "repair",
	.id = "repair/unlocked",
	.title = "a recount that does not lock, and one that locks too late",
	.claim =
		"counting before the lock writes a count that is overtaken; one statement narrows the window, and does not close it",
	.kind = "fixed interleaving, negative control",
	.guarantee = "locked first and counted in a later statement, the count is right",
	.observed = "par beside ch, pg_locks",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
