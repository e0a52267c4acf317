/*
 * repair/restart  the server is stopped at once under a repair
 *
 * Claim      A repair whose server goes away says so, and is taken up when the server is back: committed chunks are
 *            there, the open one is not, and nothing is done twice.
 * Method     Six wrong rows in chunks of two; the second chunk waits for a row that somebody holds. `pg_ctl restart -m
 *            immediate`, crash recovery, and the run is resumed.
 * Expect     Exit 3 and a line that tells how to resume. After recovery 1 and 2 are right and 3 to 6 wrong; resumed,
 *            nothing is wrong, and each key is in the records once.
 * Not shown  Power loss (L3).
 */
#include "lab.h"

#include <stdlib.h>

enum
{
	PARENTS = 8,
	WRONG = 6,
	RESTART_MS = 30000
};

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql"), *holder = scene_session(scene, "holder");
	Fault *fault = scene_fault(scene, "restart -m immediate under a repair");
	int64_t run_number;
	char *number;
	Tool tool;
	Told told;

	step(scene, "the server is stopped while the second chunk waits");
	add_parents(scene, lab, PARENTS, WRONG);
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, "SELECT FROM par WHERE id = 3 FOR UPDATE"));
	tool = tool_start(scene, "repair", "par.yaml", WORDS("--chunk", "2"));
	await_waiter(scene, lab, holder);
	scene_close_session(scene, lab);
	require(scene, fault_restart_immediate(fault, scene_history(scene), scene_cluster(scene),
										   scene_deadline(scene, RESTART_MS)));
	CHECK_EQ(scene, fault->fired, 1, "another postmaster runs");
	told = tool_end(scene, tool);
	check_exit(scene, &told, EXIT_CODE_BROKEN, "the repair has lost its server");
	check_says(scene, &told, "--resume", "how to take it up");
	told_free(&told);

	step(scene, "recovered and resumed");
	lab = scene_session(scene, "lab");
	check_wrong(scene, lab, "3:9/2 4:9/2 5:9/2 6:9/2", "recovered");
	run_number = last_run(scene, lab);
	number = string_format("%lld", (long long) run_number);
	tool_does(scene, "repair", "par.yaml", WORDS("--resume", number), EXIT_CODE_PASS, "resumed");
	free(number);
	check_wrong(scene, lab, "", "resumed");
	check_record(scene, lab, run_number, WRONG, "resumed");
	tool_does(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "check finds nothing");
}

const Scenario scenario_repair_restart = {
	.suite = "repair",
	.id = "repair/restart",
	.title = "the server is stopped at once under a repair, which is then resumed",
	.claim = "a repair whose server is stopped at once says how to take it up; nothing is lost and nothing done twice",
	.kind = "fixed interleaving, immediate stop",
	.guarantee = "what was committed is there, the open chunk is not, a resumed run ends right",
	.observed = "par beside ch after recovery, the records of the run",
	.needs = NEEDS_CLUSTER,
	.deadline_ms = 60000,
	.run = run,
};
