/*
 * repair/column  a new count for rows that are there, a count that was emptied, and rows that were
 *
 * Claim      A count is made from its rows alone: one command fills a column that was added with DEFAULT 0 or NULL, and
 *            one that was emptied gets back what it had. The other way round nothing can be rebuilt, and emptied rows
 *            are not taken for truth without being told to.
 * Method     30 media, 27 of them used. Two columns are added, and filled by one call. Then one is emptied and filled
 *            again. Then all usages are deleted, and the repair is asked to set all counts to zero, first without and
 *            then with --yes.
 * Expect     By DEFAULT 0 27 are wrong (the others happen to be right), by NULL all 30. Filled: none. Emptied and
 *            filled: the same as before, row by row. Without --yes exit 1 and no count changed; with it all counts 0.
 * Not shown  A column that is added to a large table under load: repair/writers has the writers.
 */
#include "lab.h"

#include <stdlib.h>

enum
{
	MEDIA = 30,
	USED = 27
};

#define COUNTS "SELECT string_agg(format('%s=%s/%s', id, by_default, by_null), ' ' ORDER BY id) FROM media"
#define WRONG "SELECT count(*) FROM lab.wrong"

static void
check_counter(Scene *scene, const char *name, int64_t drifted, const char *what)
{
	Told told =
		tool_run(scene, "check", "column.yaml", WORDS(name), drifted > 0 ? EXIT_CODE_FAIL : EXIT_CODE_PASS, what);

	CHECK_EQ(scene, told_number(&told, "Scanned"), MEDIA, "%s: Scanned", name);
	CHECK_EQ(scene, told_number(&told, "Drifted"), drifted, "%s: Drifted", name);
	told_free(&told);
}

static void
fill(Scene *scene, Session *lab)
{
	step(scene, "two columns are added; nobody has counted for the rows that are there");
	require(scene, session_execute_file(lab, scene_sql(scene, "counters/cases/column.sql")));
	CHECK_EQ(scene, number_of(scene, lab, WRONG, NO_ARGS), USED + MEDIA, "wrong counts");
	check_counter(scene, "media.by_default", USED, "DEFAULT 0 is wrong for those that are used");
	check_counter(scene, "media.by_null", MEDIA, "NULL is wrong for all");
	tool_does(scene, "repair", "column.yaml", NO_WORDS, EXIT_CODE_PASS, "one command fills both");
	check_wrong(scene, lab, "", "filled");
	check_counter(scene, "media.by_default", 0, "filled");
	check_counter(scene, "media.by_null", 0, "filled");
}

static void
empty_counts(Scene *scene, Session *lab, const char *counts)
{
	step(scene, "the counts are lost");
	require(scene, session_execute(lab, "UPDATE media SET by_default = NULL, by_null = NULL"));
	CHECK_EQ(scene, number_of(scene, lab, WRONG, NO_ARGS), 2 * MEDIA, "wrong counts");
	tool_does(scene, "repair", "column.yaml", NO_WORDS, EXIT_CODE_PASS, "the same command");
	check_query(scene, lab, COUNTS, NO_ARGS, counts, "the counts are what they were");
}

static void
empty_rows(Scene *scene, Session *lab, const char *counts)
{
	Told told;

	step(scene, "the rows are lost");
	require(scene, session_execute(lab, "DELETE FROM media_usages"));
	told = tool_run(scene, "repair", "column.yaml", WORDS("media.by_null"), EXIT_CODE_FAIL, "refused without --yes");
	check_says(scene, &told, "--yes", "the refusal");
	told_free(&told);
	check_query(scene, lab, COUNTS, NO_ARGS, counts, "refused: the counts are what they were");
	tool_does(scene, "repair", "column.yaml", WORDS("--yes"), EXIT_CODE_PASS, "with --yes");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT sum(by_default + by_null) FROM media", NO_ARGS), 0,
			 "counts of no rows");
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "media.sql");
	SqlResult *result = NULL;
	char *counts;

	require(scene, session_query(lab, NULL, "INSERT INTO media SELECT generate_series(1, $1)", ARGS(arg_int(MEDIA))));
	require(scene, session_query(lab, NULL,
								 "SELECT media_use(id) FROM media, generate_series(1, 3) WHERE id <= $1 "
								 "AND generate_series <= 1 + id % 3",
								 ARGS(arg_int(USED))));
	fill(scene, lab);
	require(scene, session_query(lab, &result, COUNTS, NO_ARGS));
	counts = string_copy(sql_text(result, 0, 0));
	sql_free(result);
	empty_counts(scene, lab, counts);
	empty_rows(scene, lab, counts);
	free(counts);
}

const Scenario scenario_repair_column = {
	.suite = "repair",
	.id = "repair/column",
	.title = "a new count for rows that are there, emptied counts, emptied rows",
	.claim =
		"one command fills a column added with DEFAULT 0 or NULL and rebuilds one that was emptied; emptied rows it refuses",
	.kind = "real component",
	.guarantee = "counts follow from rows alone; most counts are not set to zero without --yes",
	.observed = "media beside media_usages, exit codes",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
