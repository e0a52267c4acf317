/*
 * repair/lag  lag is no drift, and lag that is not known is not 0
 *
 * Claim      Of a counter fed by an outbox, a count that is wrong by exactly the events still to be applied is behind
 *            and not drifted; where the progress cannot be read, or lies ahead of the log, check does not end as if all
 *            were right.
 * Method     The like counter. Six events not yet delivered; then a count changed by hand as well. R-37: the progress
 *            row is missing; it is ahead of the last number; the server is down.
 * Expect     Behind: exit 0 and lag told. Drift beside lag: exit 1 with the one row. Missing: exit 4 and "unknown".
 *            Ahead: exit 1, and by how much. Down: exit 3. Lag is told as 0 only when both numbers were read and are
 *            equal.
 * Not shown  Lag as a time (L9).
 */
#include "lab.h"

#include <string.h>

enum
{
	ITEMS = 3,
	EVENTS = 6
};

static void
behind(Scene *scene, Session *lab)
{
	Told told;

	step(scene, "%d events are not delivered yet", EVENTS);
	for (int i = 0; i < EVENTS; i++)
	{
		(void) set_like(scene, lab, 100 + i, 1 + i % 2, true);
	}
	told = tool_run(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_PASS, "behind is not drifted");
	CHECK_EQ(scene, told_number(&told, "Drifted"), 0, "Drifted");
	CHECK_EQ(scene, told_number(&told, "Correct"), ITEMS, "Correct");
	check_says(scene, &told, "lag  6 events: last 6, watermark 0; 2 keys lag by exactly what is pending",
			   "what is behind");
	told_free(&told);

	step(scene, "one of the counts is changed by hand as well");
	require(scene, session_execute(lab, "UPDATE like_count SET n = n + 5 WHERE item_id = 1"));
	told = tool_run(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_FAIL, "drift beside lag");
	CHECK_EQ(scene, told_number(&told, "Drifted"), 1, "Drifted");
	told_free(&told);
	tool_does(scene, "repair", "like.yaml", NO_WORDS, EXIT_CODE_PASS, "repair");
	CHECK_EQ(scene, audit_read_side(scene, lab).exact_violations, 0, "items that are wrong and not behind");
	(void) drain(scene, lab);
	check_drained(scene, lab, "delivered");
	tool_does(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_PASS, "both numbers read and equal");
}

static void
not_known(Scene *scene, Session *lab)
{
	Told told;

	step(scene, "the progress row is missing");
	require(scene, session_execute(lab, "DELETE FROM counter_watermark"));
	told = tool_run(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_INCONCLUSIVE, "not checkable");
	check_says(scene, &told, "lag  unknown", "lag");
	told_free(&told);

	step(scene, "the progress is ahead of the log");
	require(scene, session_execute(lab, "INSERT INTO counter_watermark SELECT 1, last + 3 FROM like_seq"));
	told = tool_run(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_FAIL, "one of the two numbers is wrong");
	check_says(scene, &told, "is ahead of the log, which ends at 6, by 3", "lag");
	told_free(&told);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_of(scene, like_design_find(NULL), ITEMS);

	behind(scene, lab);
	not_known(scene, lab);

	step(scene, "the server is down");
	scene_close_session(scene, lab);
	require(scene, cluster_stop_immediate(scene_cluster(scene)));
	tool_does(scene, "check", "like.yaml", NO_WORDS, EXIT_CODE_BROKEN, "cannot connect");
}

const Scenario scenario_repair_lag = {
	.suite = "repair",
	.id = "repair/lag",
	.title = "lag is no drift, and lag that is not known is not 0",
	.claim = "a count that is behind by its pending events is not drifted; unknown progress is called unknown, never 0",
	.kind = "real component",
	.guarantee = "drift, lag and unknown are three things",
	.observed = "exit codes, lines printed, read-side audit",
	.needs = NEEDS_CLUSTER,
	.deadline_ms = 60000,
	.run = run,
};
