/*
 * repair/workers  several programs work on one run, and one of them is killed
 *
 * Claim      Workers share a run through its table alone: no key is repaired twice, and what a killed worker had taken
 *            goes back to the others.
 * Method     40 wrong rows in chunks of two. The first program stands in its first chunk, which it has written and not
 *            committed (key 1, held by a trigger that waits). A second program joins the run, repairs what is left and
 *            stands at nothing; then the first is killed. Then a run by --jobs 4, and one by --jobs 2, of which one
 *            loses its session.
 * Expect     The second, beside the first: 38 keys repaired and 2 not. The first killed: its two are repaired by who is
 *            left. Every key is in the records once, every row was written once.
 * Not shown  Machines: they are programs here, which meet in the database just the same.
 */
#include "lab.h"

#include <signal.h>
#include <stdlib.h>

enum
{
	PARENTS = 40,
	KILL_MS = 10000
};

static void
start_over(Scene *scene, Session *lab)
{
	require(scene, session_execute(lab, "TRUNCATE par, ch, written"));
	require(scene, session_query(lab, NULL, "INSERT INTO par SELECT id, 9 FROM generate_series(1, $1) id",
								 ARGS(arg_int(PARENTS))));
	require(scene, session_execute(lab, "INSERT INTO ch (par_id) SELECT id FROM par; TRUNCATE written"));
}

/* Each row written by a transaction that committed. */
static void
check_written_once(Scene *scene, Session *lab, const char *when)
{
	check_query(scene, lab, "SELECT format('%s times, %s rows', count(*), count(DISTINCT par_id)) FROM written",
				NO_ARGS, "40 times, 40 rows", "%s: how often rows were written", when);
}

static void
one_is_killed(Scene *scene, Session *lab)
{
	Session *holder = scene_session(scene, "holder");
	Fault *fault = scene_fault(scene, "kill -9 the first of two workers");
	Tool first, second;
	int64_t run_number;
	ProcessEnd end;
	char *number;
	Told told;

	step(scene, "the first stands in its chunk, the second repairs what is left");
	start_over(scene, lab);
	require(scene, session_execute(holder, "SELECT pg_advisory_lock(1)"));
	first = tool_start(scene, "repair", "par.yaml", WORDS("--chunk", "2"));
	await_waiter(scene, lab, holder);
	run_number = last_run(scene, lab);
	number = string_format("%lld", (long long) run_number);
	second = tool_start(scene, "repair", "par.yaml", WORDS("--chunk", "2", "--resume", number));
	CHECK(scene, await_beside(scene, lab, second, 2, "SELECT count(*) FROM lab.wrong"),
		  "the second repairs what the first has not taken");
	check_wrong(scene, lab, "1:9/1 2:9/1", "the second went past the chunk of the first");

	step(scene, "the first is killed");
	if (process_poll(first.process, &end))
	{
		scene_broken(scene, "the first worker ended while its chunk was held");
	}
	require(scene, fault_kill(fault, scene_history(scene), first.process, scene_deadline(scene, KILL_MS)));
	tool_free(scene, first);
	scene_close_session(scene, holder);
	told = tool_end(scene, second);
	check_exit(scene, &told, EXIT_CODE_PASS, "the second repairs the chunk that was given back");
	told_free(&told);
	await_tool_gone(scene, lab);
	check_wrong(scene, lab, "", "one killed");
	check_record(scene, lab, run_number, PARENTS, "one killed");
	check_written_once(scene, lab, "one killed");
	free(number);
}

static void
jobs(Scene *scene, Session *lab)
{
	int64_t before = last_run(scene, lab);

	step(scene, "four at once");
	start_over(scene, lab);
	tool_does(scene, "repair", "par.yaml", WORDS("--chunk", "2", "--jobs", "4"), EXIT_CODE_PASS, "four workers");
	check_wrong(scene, lab, "", "four workers");
	CHECK_EQ(scene, last_run(scene, lab), before + 1, "four workers: the number of their run");
	check_record(scene, lab, last_run(scene, lab), PARENTS, "four workers");
	check_written_once(scene, lab, "four workers");
}

/* The one that stands in the chunk of key 1 loses its session; the other takes the chunk. */
static void
one_loses_its_session(Scene *scene, Session *lab)
{
	Session *holder = scene_session(scene, "holder");
	Tool tool;
	Told told;

	step(scene, "of two at once, one loses its session");
	start_over(scene, lab);
	require(scene, session_execute(holder, "SELECT pg_advisory_lock(1)"));
	tool = tool_start(scene, "repair", "par.yaml", WORDS("--chunk", "2", "--jobs", "2"));
	await_waiter(scene, lab, holder);
	CHECK(scene, await_beside(scene, lab, tool, 2, "SELECT count(*) FROM lab.wrong"), "the other repairs the rest");
	CHECK_EQ(
		scene,
		number_of(
			scene, lab,
			"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))",
			ARGS(arg_int(session_backend_pid(holder)))),
		1, "sessions that are ended");
	scene_close_session(scene, holder);
	told = tool_end(scene, tool);
	check_exit(scene, &told, EXIT_CODE_PASS, "the other repairs what was given back");
	told_free(&told);
	check_wrong(scene, lab, "", "one lost its session");
	check_record(scene, lab, last_run(scene, lab), PARENTS, "one lost its session");
	check_written_once(scene, lab, "one lost its session");
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");

	require(scene, session_execute_file(lab, scene_sql(scene, "counters/cases/hold.sql")));
	require(scene, session_execute_file(lab, scene_sql(scene, "counters/cases/written.sql")));
	one_is_killed(scene, lab);
	jobs(scene, lab);
	one_loses_its_session(scene, lab);
}

const Scenario scenario_repair_workers = {
	.suite = "repair",
	.id = "repair/workers",
	.title = "several programs work on one run, and one of them is killed",
	.claim =
		"workers share a run through its table; what a killed one had taken is repaired by the others, nothing twice",
	.kind = "fixed interleaving, several processes, kill -9",
	.guarantee = "each wrong row is written once",
	.observed = "par beside ch, a row for each write, the records of the run",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
