/*
 * repair/missing  a row is made beside a writer that found none
 *
 * Claim      A writer that counts up where a row is, and goes on where none is, has counted nothing when the repair
 *            makes the row meanwhile. The repair waits for all who wrote to the table before the row was there, and
 *            reads again.
 * Method     A post with three comments and no row of its count. The writer's UPDATE has met no row; the repair makes
 *            it; then the writer adds its comment and commits.
 * Expect     The repair makes the row with 3, waits, and ends with 4; exit 0, nothing wrong for check.
 * Not shown  A writer that looked for the row longer than a minute ago and is still open: the repair says that it has
 *            not waited.
 */
#include "lab.h"

#define STORED "SELECT coalesce(sum(comments), 0) FROM post_stat WHERE post_id = 1"

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "shapes.sql");
	Session *writer = scene_session(scene, "writer");
	Tool tool;
	Told told;

	step(scene, "the writer has met no row, the repair makes it");
	require(scene, session_begin(writer, READ_COMMITTED));
	require(scene, session_execute(writer, "UPDATE post_stat SET comments = comments + 1 WHERE post_id = 1"));
	tool = tool_start(scene, "repair", "shapes.yaml", WORDS("post_stat.comments"));
	CHECK(scene, await_beside(scene, lab, tool, 3, STORED), "the row is there");

	step(scene, "the writer adds its comment");
	require(scene,
			session_execute(writer, "INSERT INTO comment (subject_type, subject_id, author_id) VALUES ('post', 1, 5)"));
	CHECK(scene, await_beside(scene, lab, tool, 1, TOOLS_WAITING), "the repair waits for the writer");
	CHECK(scene, session_commit(writer) == SQL_OK, "the writer commits");
	told = tool_end(scene, tool);
	check_exit(scene, &told, EXIT_CODE_PASS, "the repair");
	CHECK_EQ(scene, told_number(&told, "Still drifted"), 0, "Still drifted");
	told_free(&told);
	CHECK_EQ(scene, number_of(scene, lab, STORED, NO_ARGS), 4, "comments counted");
	tool_does(scene, "check", "shapes.yaml", WORDS("post_stat.comments"), EXIT_CODE_PASS, "check finds nothing");
}

const Scenario scenario_repair_missing = {
	.suite = "repair",
	.id = "repair/missing",
	.title = "a row is made beside a writer that found none",
	.claim = "a row that the repair makes is read again when all have ended who wrote to the table before it was there",
	.kind = "fixed interleaving",
	.guarantee = "the count of an inserted row equals its rows when writers have ended",
	.observed = "post_stat beside comment, pg_locks",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
