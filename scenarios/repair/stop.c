/*
 * repair/stop  a repair is asked to stop
 *
 * Claim      Ctrl-C ends a repair after its chunk, and it says how to go on; what is done stays done, and going on does
 *            the rest.
 * Method     Six wrong rows in chunks of two; the second chunk waits for a row that somebody holds when SIGINT comes.
 *            It is gone on with by the number that was printed.
 * Expect     Exit 130 and a line with --resume; two rows right, four wrong; then exit 0, nothing wrong, each key on
 *            record once.
 * Not shown  SIGTERM, which is treated alike; signal 9: repair/resume.
 */
#include "lab.h"

#include <signal.h>
#include <stdlib.h>

enum
{
	PARENTS = 8,
	WRONG = 6,
	STOP_MS = 20000
};

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql"), *holder = scene_session(scene, "holder");
	char *number, *how;
	Tool tool;
	Told told;

	step(scene, "asked to stop while its second chunk waits");
	add_parents(scene, lab, PARENTS, WRONG);
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, "SELECT FROM par WHERE id = 3 FOR UPDATE"));
	tool = tool_start(scene, "repair", "par.yaml", WORDS("--chunk", "2"));
	await_waiter(scene, lab, holder);
	notice_expect_errors(true);
	CHECK(scene, !process_kill(tool.process, SIGINT, scene_deadline(scene, STOP_MS)), "it ends by itself");
	notice_expect_errors(false);
	told = tool_end(scene, tool);
	number = string_format("%lld", (long long) last_run(scene, lab));
	how = string_format("--resume %s", number);
	check_exit(scene, &told, EXIT_CODE_INTERRUPTED, "asked to stop");
	check_says(scene, &told, how, "how to go on");
	told_free(&told);
	session_rollback(holder);
	check_wrong(scene, lab, "3:9/2 4:9/2 5:9/2 6:9/2", "stopped");

	step(scene, "it goes on");
	tool_does(scene, "repair", "par.yaml", WORDS("--resume", number), EXIT_CODE_PASS, "the rest");
	check_wrong(scene, lab, "", "gone on");
	check_record(scene, lab, last_run(scene, lab), WRONG, "gone on");
	free(number);
	free(how);
}

const Scenario scenario_repair_stop = {
	.suite = "repair",
	.id = "repair/stop",
	.title = "a repair is asked to stop, and goes on later",
	.claim = "Ctrl-C ends a repair after its chunk with a line that tells how to go on",
	.kind = "fixed interleaving",
	.guarantee = "what is done stays done, going on does the rest once",
	.observed = "par beside ch, exit codes, the records of the run",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
