/*
 * repair/one-key  one record, and what a mode cannot do
 *
 * Claim      `--id` recounts one record by the same modes, as often as one likes, and leaves all others. The mode that
 *            starts from the old value has nothing to start from where that is NULL, and says so.
 * Method     Three wrong rows, one of them NULL. One is repaired by its key three times; then a key that is not there.
 *            Then all are repaired in mode relative, then in the default mode.
 * Expect     The one is right after the first time and not written again, the others are wrong as before. Relative: the
 *            NULL is left, exit 1; the default mode repairs it.
 * Not shown  Keys of several columns and of other types: the tests of the tool.
 */
#include "lab.h"

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");
	Told told;

	require(scene, session_execute_file(lab, scene_sql(scene, "counters/cases/written.sql")));
	add_parent(scene, lab, 1, "7", 2);
	add_parent(scene, lab, 2, "0", 2);
	add_parent(scene, lab, 3, NULL, 2);

	step(scene, "one record, three times");
	for (int i = 0; i < 3; i++)
	{
		tool_does(scene, "repair", "par.yaml", WORDS("--id", "2"), EXIT_CODE_PASS, "one record");
		check_wrong(scene, lab, "1:7/2 3:NULL/2", "one record");
	}
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM written", NO_ARGS), 1, "rows written");
	told = tool_run(scene, "check", "par.yaml", WORDS("--id", "1"), EXIT_CODE_FAIL, "another record");
	CHECK_EQ(scene, told_number(&told, "Scanned"), 1, "Scanned");
	told_free(&told);
	told = tool_run(scene, "repair", "par.yaml", WORDS("--id", "99"), EXIT_CODE_PASS, "no such record");
	CHECK_EQ(scene, told_number(&told, "Scanned"), 0, "Scanned");
	told_free(&told);

	step(scene, "relative has nothing to start from");
	told = tool_run(scene, "repair", "par.yaml", WORDS("--mode", "relative"), EXIT_CODE_FAIL, "one is left");
	CHECK_EQ(scene, told_number(&told, "Updated"), 1, "Updated");
	CHECK_EQ(scene, told_number(&told, "Still drifted"), 1, "Still drifted");
	told_free(&told);
	check_wrong(scene, lab, "3:NULL/2", "relative");
	tool_does(scene, "repair", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "the default mode");
	check_wrong(scene, lab, "", "the default mode");
}

const Scenario scenario_repair_one_key = {
	.suite = "repair",
	.id = "repair/one-key",
	.title = "one record, and what a mode cannot do",
	.claim = "one record is repaired as often as one likes and no other with it; relative refuses NULL",
	.kind = "real component",
	.guarantee = "a row is written when it is wrong, and only then",
	.observed = "par beside ch, a row for each write",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
