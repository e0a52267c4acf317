/*
 * repair/late  what goes wrong behind the cursor
 *
 * Claim      A repair ends with what was written behind its reading: rows inserted before the keys that it has done,
 *            and rows that somebody made wrong meanwhile, are read once more, repaired, and told of.
 * Method     Six wrong rows (10 to 60) and two right ones, chunks of two. While the second chunk waits for a row, a
 *            wrong row is inserted before all others, a right one behind them, and a right one is made wrong past the
 *            flow.
 * Expect     Exit 0, nothing wrong; "Found late: 2" beside 8 rows updated; the right ones are not written.
 * Not shown  A source row that changes past the flow meanwhile and leaves the row of its count untouched, and what goes
 *            wrong behind the last reading: the next check sees both.
 */
#include "lab.h"

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");
	Session *holder = scene_session(scene, "holder");
	Tool tool;
	Told told;

	require(scene, session_execute_file(lab, scene_sql(scene, "counters/cases/written.sql")));
	for (int id = 10; id <= 80; id += 10)
	{
		add_parent(scene, lab, id, id <= 60 ? "9" : "2", 2);
	}

	step(scene, "two rows go wrong behind the cursor");
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, "SELECT FROM par WHERE id = 30 FOR UPDATE"));
	tool = tool_start(scene, "repair", "par.yaml", WORDS("--chunk", "2"));
	await_waiter(scene, lab, holder);
	check_wrong(scene, lab, "30:9/2 40:9/2 50:9/2 60:9/2", "the first chunk is done");
	add_parent(scene, lab, 5, "9", 1);
	add_parent(scene, lab, 90, "1", 1);
	require(scene, session_execute(lab, "UPDATE par SET n = 9 WHERE id = 70; DELETE FROM written WHERE par_id = 70"));
	session_rollback(holder);

	step(scene, "the repair goes on, and reads again");
	told = tool_end(scene, tool);
	check_exit(scene, &told, EXIT_CODE_PASS, "the repair");
	check_wrong(scene, lab, "", "repaired");
	CHECK_EQ(scene, told_number(&told, "Updated"), 8, "Updated");
	CHECK_EQ(scene, told_number(&told, "Found late"), 2, "Found late");
	told_free(&told);
	check_query(scene, lab, "SELECT string_agg(par_id::text, ' ' ORDER BY par_id) FROM written", NO_ARGS,
				"5 10 20 30 40 50 60 70", "rows written, each once");
}

const Scenario scenario_repair_late = {
	.suite = "repair",
	.id = "repair/late",
	.title = "what goes wrong behind the cursor",
	.claim = "rows inserted or made wrong behind the reading of a repair are read once more, repaired, and told of",
	.kind = "fixed interleaving",
	.guarantee = "a repair that ends with 0 has read what was written meanwhile",
	.observed = "par beside ch, a row for each write, Found late",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
