/*
 * repair/bulk  rows that change by the hundred: bulk moves, cascades, TRUNCATE
 *
 * Claim      A flow that knows one row at a time does not hear of a bulk move, of rows that go with another row by a
 *            cascade, nor of TRUNCATE; the comparison finds all of them, and tells rows apart that no count can hold.
 * Method     Three albums of four photos, kept by photo_add(). All photos of one are moved to another; an owner is
 *            deleted, and half of the photos with it; rows come in with an album that does not exist and with none; the
 *            table is truncated.
 * Expect     The keys of the case's own truth, exactly. Orphans are reported, counted nowhere, and by themselves no
 *            drift. After TRUNCATE all counts are wrong, and repaired: three rows are too few for the guard of
 *            repair/column.
 * Not shown  Foreign keys that forbid orphans.
 */
#include "lab.h"

#include <stdlib.h>

static void
change_and_repair(Scene *scene, Session *lab, const char *what, const char *change, const char *expected, int drifted)
{
	char *wrong;
	Told told;

	step(scene, "%s", what);
	require(scene, session_execute(lab, change));
	check_wrong(scene, lab, expected, "%s", what);
	wrong = read_wrong_rows(scene, lab);
	told = tool_run(scene, "check", "album.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds it");
	CHECK_EQ(scene, told_number(&told, "Scanned"), 3, "Scanned");
	CHECK_EQ(scene, told_number(&told, "Drifted"), drifted, "Drifted");
	check_rows(scene, &told, wrong, "check");
	told_free(&told);
	tool_does(scene, "repair", "album.yaml", NO_WORDS, EXIT_CODE_PASS, "repair mends it");
	check_wrong(scene, lab, "", "repaired");
	free(wrong);
}

static void
orphans(Scene *scene, Session *lab)
{
	Told told;

	step(scene, "photos of an album that does not exist, and of none");
	require(scene,
			session_execute(lab, "INSERT INTO photo (album_id, owner_id) VALUES (99, 2), (99, 2), (98, 2), (NULL, 2)"));
	check_wrong(scene, lab, "", "no album has one more");
	told = tool_run(scene, "check", "album.yaml", NO_WORDS, EXIT_CODE_PASS, "orphans alone are no drift");
	CHECK_EQ(scene, told_number(&told, "Scanned"), 3, "Scanned");
	CHECK_EQ(scene, told_number(&told, "Orphans"), 3, "Orphans");
	check_says(scene, &told, "orphan  id=99", "an orphan is named");
	check_says(scene, &told, "source rows with NULL in their key: 1", "the photo of no album");
	told_free(&told);
	tool_does(scene, "repair", "album.yaml", NO_WORDS, EXIT_CODE_PASS, "nothing to repair");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM album", NO_ARGS), 3, "albums");
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "album.sql");

	check_wrong(scene, lab, "", "by the flow");
	change_and_repair(scene, lab, "a bulk move", "UPDATE photo SET album_id = 2 WHERE album_id = 1", "1:4/0 2:4/8", 2);
	change_and_repair(scene, lab, "an owner goes, and half of all photos", "DELETE FROM owner WHERE id = 1",
					  "2:8/4 3:4/2", 2);
	orphans(scene, lab);
	change_and_repair(scene, lab, "TRUNCATE", "TRUNCATE photo", "2:4/0 3:2/0", 2);
}

const Scenario scenario_repair_bulk = {
	.suite = "repair",
	.id = "repair/bulk",
	.title = "rows that change by the hundred: bulk moves, cascades, TRUNCATE",
	.claim = "what a flow of single rows does not hear of is found; orphans are told, and never counted",
	.kind = "real component",
	.guarantee = "the rows reported are exactly the wrong ones",
	.observed = "album beside photo, rows printed",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
