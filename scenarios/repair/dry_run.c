/*
 * repair/dry-run  a look that writes nothing, a repair that does what the look said, again and again
 *
 * Claim      A dry run says what the run then does, writes nothing and waits for nobody; the run rewrites the wrong
 *            rows alone; run twice or ten times it is as if run once.
 * Method     R-07: five rows, three right, two wrong (one +4, one -1). Looked at ten times over, and while somebody
 *            holds every row locked. Then R-30: the run after the dry run, nobody writing in between. Then nine runs
 *            more. Last, no rows.
 * Expect     Scanned 5, Correct 3, Drifted 2, Would update 2 = Updated 2; every row's place and transaction (ctid,
 *            xmin, xmax) as before the dry runs, those of the right rows as before the run, all of them as before the
 *            repeats.
 * Not shown  What others change between the two runs.
 */
#include "lab.h"

#include <stdlib.h>

enum
{
	TIMES = 10
};

/* Who wrote each row, where it lies, who locked it, what is in it. */
#define ROWS "SELECT string_agg(format('%s %s %s %s', p.xmin, p.xmax, p.ctid, p), ' ' ORDER BY id) FROM par p"
#define RIGHT_ROWS ROWS " WHERE id IN (1, 2, 5)"

static char *
text_of(Scene *scene, Session *lab, const char *sql)
{
	SqlResult *result = NULL;
	char *text;

	require(scene, session_query(lab, &result, sql, NO_ARGS));
	text = string_copy(sql_text(result, 0, 0));
	sql_free(result);
	return text;
}

static void
look_past_locks(Scene *scene, Session *lab)
{
	Session *holder = scene_session(scene, "holder");

	step(scene, "looked at while somebody holds every row");
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, "SELECT FROM par FOR UPDATE"));
	tool_does(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_FAIL, "check waits for nobody");
	tool_does(scene, "repair", "par.yaml", WORDS("--dry-run"), EXIT_CODE_FAIL, "nor does the dry run");
	session_rollback(holder);
	check_wrong(scene, lab, "3:7/3 4:1/2", "looked at");
}

static void
look_ten_times(Scene *scene, Session *lab)
{
	char *before = text_of(scene, lab, ROWS);
	char *wrong = read_wrong_rows(scene, lab);
	Told told;

	step(scene, "looked at %d times over", TIMES);
	for (int i = 0; i < TIMES; i++)
	{
		told = tool_run(scene, "repair", "par.yaml", WORDS("--dry-run"), EXIT_CODE_FAIL, "a dry run that finds drift");
		check_line(scene, &told, "Would update",
				   "par.n  Scanned: 5  Correct: 3  Drifted: 2  Missing: 0  Would update: 2  Would insert: 0",
				   "dry run");
		check_rows(scene, &told, wrong, "dry run");
		told_free(&told);
	}
	check_query(scene, lab, ROWS, NO_ARGS, before, "rows after %d dry runs", TIMES);
	free(before);
	free(wrong);
}

static void
repair_once_then_more(Scene *scene, Session *lab)
{
	char *right = text_of(scene, lab, RIGHT_ROWS), *repaired;
	char *wrong = read_wrong_rows(scene, lab);
	Told told;

	step(scene, "the run");
	told = tool_run(scene, "repair", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "repaired and verified");
	check_rows(scene, &told, wrong, "the run, before it writes");
	CHECK_EQ(scene, told_number(&told, "Updated"), 2, "Updated, as Would update had said");
	CHECK_EQ(scene, told_number(&told, "Inserted"), 0, "Inserted, as Would insert had said");
	CHECK_EQ(scene, told_number(&told, "Still drifted"), 0, "Still drifted");
	CHECK_EQ(scene, told_number(&told, "Changed meanwhile"), 0, "Changed meanwhile");
	told_free(&told);
	check_wrong(scene, lab, "", "repaired");
	check_query(scene, lab, RIGHT_ROWS, NO_ARGS, right, "rows that were right");

	step(scene, "%d times in all", TIMES);
	repaired = text_of(scene, lab, ROWS);
	for (int i = 1; i < TIMES; i++)
	{
		told = tool_run(scene, "repair", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "nothing to repair");
		CHECK_EQ(scene, told_number(&told, "Drifted"), 0, "Drifted");
		told_free(&told);
	}
	check_query(scene, lab, ROWS, NO_ARGS, repaired, "rows after %d runs", TIMES);
	free(right);
	free(repaired);
	free(wrong);
}

static void
no_rows(Scene *scene, Session *lab)
{
	Told told;

	step(scene, "no rows at all");
	require(scene, session_execute(lab, "TRUNCATE par, ch"));
	told = tool_run(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "nothing drifted");
	check_line(scene, &told, "Scanned",
			   "par.n  Scanned: 0  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0", "check");
	told_free(&told);
	told = tool_run(scene, "repair", "par.yaml", WORDS("--dry-run"), EXIT_CODE_PASS, "nothing would be done");
	check_line(scene, &told, "Would update",
			   "par.n  Scanned: 0  Correct: 0  Drifted: 0  Missing: 0  Would update: 0  Would insert: 0", "dry run");
	told_free(&told);
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");

	add_parent(scene, lab, 1, "2", 2);
	add_parent(scene, lab, 2, "0", 0);
	add_parent(scene, lab, 3, "7", 3);
	add_parent(scene, lab, 4, "1", 2);
	add_parent(scene, lab, 5, "5", 5);
	check_wrong(scene, lab, "3:7/3 4:1/2", "five rows");
	look_ten_times(scene, lab);
	look_past_locks(scene, lab);
	repair_once_then_more(scene, lab);
	no_rows(scene, lab);
}

const Scenario scenario_repair_dry_run = {
	.suite = "repair",
	.id = "repair/dry-run",
	.title = "a look writes nothing, the run does what the look said, again and again",
	.claim = "a dry run equals the run that follows, writes nothing and waits for nobody; the run is idempotent",
	.kind = "real component",
	.guarantee = "Would update = Updated; rows that are right are not written",
	.observed = "rows with xmin, xmax and ctid; exit codes; lines printed",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
