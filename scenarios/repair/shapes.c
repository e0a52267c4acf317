/*
 * repair/shapes  types, joins, NULLs in keys, rows that are missing
 *
 * Claim      A count is what its definition says: of one type only, each row once however many it is joined to, each
 *            author once. A row that is missing is made; of two rows with one key none is taken for the right one.
 * Method     Six counters over a few rows (sql/counters/cases/shapes.sql), all right but for a missing row and for two
 *            rows under one key with NULL, which a unique constraint lets in and ON CONFLICT misses. Then two of the
 *            counters defined wrong: without the type, and counting a comment once for each of the post's tags.
 * Expect     Right definitions: nothing drifted, one row missing, which is inserted with 3, as the dry run said; the
 *            doubled key is not checkable, exit 4, and untouched. Wrong definitions: "drift" where there is none, 5 and
 *            6 for 3.
 * Not shown  Whether a definition is the intended one: no tool can know.
 */
#include "lab.h"

#include <stdlib.h>

static void
check_counter(Scene *scene, const char *name, const char *summary, int code)
{
	Told told = tool_run(scene, "check", "shapes.yaml", WORDS(name), code, name);
	char *line = string_format("%s  %s", name, summary);

	check_line(scene, &told, "Scanned", line, name);
	free(line);
	told_free(&told);
}

static void
right_definitions(Scene *scene)
{
	static const char *const names[] = {"post.comments", "picture.comments", "post.commenters", "post.tagged_comments"};

	step(scene, "types, distinct authors, a join that multiplies");
	for (size_t i = 0; i < LENGTH_OF(names); i++)
	{
		check_counter(scene, names[i], "Scanned: 2  Correct: 2  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0",
					  EXIT_CODE_PASS);
	}
}

static void
missing_row(Scene *scene, Session *lab)
{
	Told told;

	step(scene, "a row that is missing");
	check_counter(scene, "post_stat.comments",
				  "Scanned: 2  Correct: 1  Drifted: 0  Missing: 1  Orphans: 0  Not checkable: 0", EXIT_CODE_FAIL);
	told =
		tool_run(scene, "repair", "shapes.yaml", WORDS("post_stat.comments", "--dry-run"), EXIT_CODE_FAIL, "dry run");
	check_line(scene, &told, "Would insert",
			   "post_stat.comments  Scanned: 2  Correct: 1  Drifted: 0  Missing: 1  Would update: 0  Would insert: 1",
			   "dry run");
	told_free(&told);
	told = tool_run(scene, "repair", "shapes.yaml", WORDS("post_stat.comments"), EXIT_CODE_PASS, "repair");
	CHECK_EQ(scene, told_number(&told, "Updated"), 0, "Updated");
	CHECK_EQ(scene, told_number(&told, "Inserted"), 1, "Inserted, as Would insert had said");
	told_free(&told);
	check_query(scene, lab, "SELECT string_agg(s::text, ' ' ORDER BY post_id) FROM post_stat s", NO_ARGS, "(1,3) (2,0)",
				"rows");
}

static void
doubled_key(Scene *scene, Session *lab)
{
	static const char rows[] = "SELECT string_agg(v::text, ' ' ORDER BY v::text) FROM post_views v";

	step(scene, "two rows under one key with NULL");
	check_query(scene, lab, rows, NO_ARGS, "(1,,1) (1,,1) (1,en,2) (2,en,1)", "required: ON CONFLICT missed the NULL");
	check_counter(scene, "post_views.views",
				  "Scanned: 4  Correct: 2  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 2",
				  EXIT_CODE_INCONCLUSIVE);
	tool_does(scene, "repair", "shapes.yaml", WORDS("post_views.views"), EXIT_CODE_INCONCLUSIVE, "nor is it repaired");
	check_query(scene, lab, rows, NO_ARGS, "(1,,1) (1,,1) (1,en,2) (2,en,1)", "untouched");
}

static void
wrong_definitions(Scene *scene)
{
	Told told;

	step(scene, "without the type, and with a join that multiplies: right counts are called wrong");
	told = tool_run(scene, "check", "shapes_wrong.yaml", WORDS("post.comments"), EXIT_CODE_FAIL,
					"required: without the type");
	check_rows(scene, &told, "id=1 stored=3 actual=5 diff=-2\nid=2 stored=0 actual=1 diff=-1",
			   "without the type, required");
	told_free(&told);
	told = tool_run(scene, "check", "shapes_wrong.yaml", WORDS("post.tagged_comments"), EXIT_CODE_FAIL,
					"required: counted once for each tag");
	check_rows(scene, &told, "id=1 stored=3 actual=6 diff=-3", "counted once for each tag, required");
	told_free(&told);
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "shapes.sql");

	right_definitions(scene);
	missing_row(scene, lab);
	doubled_key(scene, lab);
	wrong_definitions(scene);
}

const Scenario scenario_repair_shapes = {
	.suite = "repair",
	.id = "repair/shapes",
	.title = "types, joins, NULLs in keys, rows that are missing",
	.claim =
		"a count is what its definition says; a missing row is made, and of two rows under one key none is touched",
	.kind = "real component, negative control",
	.guarantee = "right counts are called right, what cannot be told is not checkable",
	.observed = "lines and rows printed, post_stat, post_views",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
