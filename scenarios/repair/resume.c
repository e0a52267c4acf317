/*
 * repair/resume  a repair is killed before and after a chunk's commit, and taken up again
 *
 * Claim      A chunk is whole or not there, and its progress with it: a repair killed at any place is taken up by its
 *            run's number, writes no row a second time and leaves none out.
 * Method     Six wrong rows and two right ones, chunks of two. Killed by signal 9 (1) in its second chunk, with the
 *            rows written and not committed, held by a trigger that waits; (2) behind the commit of its first chunk,
 *            where the second waits for a row's lock. Each time what is left is looked at when its backend is gone,
 *            then resumed.
 * Expect     Both times 1 and 2 are repaired and the rest is not; resumed, nothing is wrong, 1 and 2 and the right rows
 *            are the versions that they were, and each wrong row is in the records once.
 * Not shown  A kill at every message: the crash-point files of the repair command. Power loss (L3).
 */
#include "lab.h"

#include <signal.h>
#include <stdlib.h>

enum
{
	PARENTS = 8,
	WRONG = 6,
	KILL_MS = 10000
};

#define KEPT "SELECT string_agg(format('%s %s', ctid, xmin), ' ' ORDER BY id) FROM par WHERE id IN (1, 2, 7, 8)"
#define LEFT "3:9/2 4:9/2 5:9/2 6:9/2"

static void
start_over(Scene *scene, Session *lab)
{
	require(scene, session_execute(lab, "TRUNCATE par, ch"));
	add_parents(scene, lab, PARENTS, WRONG);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM lab.wrong", NO_ARGS), WRONG, "wrong counts");
}

/* false: it has ended by itself, so that nothing was exercised. */
static bool
kill_there(Scene *scene, Tool tool, const char *place)
{
	Fault *fault = scene_fault(scene, "kill -9 counters repair %s", place);
	ProcessEnd end;

	return !process_poll(tool.process, &end) &&
		   fault_kill(fault, scene_history(scene), tool.process, scene_deadline(scene, KILL_MS)) &&
		   CHECK_EQ(scene, fault->fired, 1, "killed by signal 9 %s", place);
}

static void
resume(Scene *scene, Session *lab)
{
	SqlResult *result = NULL;
	char *kept, *number;
	int64_t run_number;

	check_wrong(scene, lab, LEFT, "one chunk is repaired, no other");
	require(scene, session_query(lab, &result, KEPT, NO_ARGS));
	kept = string_copy(sql_text(result, 0, 0));
	sql_free(result);
	run_number = last_run(scene, lab);
	number = string_format("%lld", (long long) run_number);
	tool_does(scene, "repair", "par.yaml", WORDS("--resume", number), EXIT_CODE_PASS, "resumed");
	check_wrong(scene, lab, "", "resumed");
	check_query(scene, lab, KEPT, NO_ARGS, kept, "rows that were right or repaired before");
	check_record(scene, lab, run_number, WRONG, "resumed");
	tool_does(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "check finds nothing");
	free(kept);
	free(number);
}

/* Let the tool run into what `hold` holds, kill it there, let go, and take the run up again. */
static void
kill_and_resume(Scene *scene, Session *lab, const char *hold, const char *place)
{
	Session *holder = scene_session(scene, "holder");
	Tool tool;

	step(scene, "killed %s", place);
	start_over(scene, lab);
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, hold));
	tool = tool_start(scene, "repair", "par.yaml", WORDS("--chunk", "2"));
	await_waiter(scene, lab, holder);
	if (kill_there(scene, tool, place))
	{
		scene_close_session(scene, holder);
		await_tool_gone(scene, lab);
		resume(scene, lab);
	}
	tool_free(scene, tool);
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");

	require(scene, session_execute_file(lab, scene_sql(scene, "counters/cases/hold.sql")));
	kill_and_resume(scene, lab, "SELECT pg_advisory_xact_lock(4)", "with a chunk written and not committed");
	kill_and_resume(scene, lab, "SELECT FROM par WHERE id = 3 FOR UPDATE", "behind a chunk's commit");
}

const Scenario scenario_repair_resume = {
	.suite = "repair",
	.id = "repair/resume",
	.title = "a repair is killed before and after a chunk's commit, and taken up again",
	.claim = "a killed repair is taken up by its run's number; it writes no row twice and leaves none out",
	.kind = "fixed interleaving, several processes, kill -9",
	.guarantee = "chunk and progress are in one transaction",
	.observed = "par with ctid and xmin, the records of the run",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
