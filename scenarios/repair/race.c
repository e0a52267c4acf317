/*
 * repair/race  one writer beside the repair, at each place that matters, in each mode
 *
 * Claim      Wherever a writer's transaction falls that changes rows and count together, the repair neither writes an
 *            overtaken count nor loses an increment, whether the writer commits or rolls back.
 * Method     R-01: a parent with 5 where 3 is right; the writer adds a child and counts up, the tool repairs. Orders:
 *            the writer has written both and is open when the repair comes to the row, then commits (1) or rolls back
 *            (2); it has written the child alone (3); the repair has written the row and is open when the writer comes
 *            (4). Modes: lock, snapshot, relative, maintenance. The places are held by the row's lock and by a trigger
 *            that waits (sql/counters/cases/hold.sql).
 * Expect     4 and four rows, after a rollback 3 and three; a second check finds nothing.
 * Not shown  Writers that count up in a transaction of their own: repair/pairing. Many writers: repair/writers.
 */
#include "lab.h"

enum
{
	ANSWER_MS = 10000,
	PARENT = 1
};

static const char *const modes[] = {"lock", "snapshot", "relative", "maintenance"};

typedef struct
{
	Session *lab, *writer;
	const char *mode;
} Race;

static void
start_over(Scene *scene, Race *race, const char *order)
{
	step(scene, "%s: %s", race->mode, order);
	require(scene, session_execute(race->lab, "TRUNCATE par, ch"));
	add_parent(scene, race->lab, PARENT, "5", 3);
}

static Tool
start_repair(Scene *scene, const Race *race)
{
	return tool_start(scene, "repair", "par.yaml", WORDS("--mode", race->mode));
}

static void
check_repaired(Scene *scene, const Race *race, Tool repair, int64_t rows)
{
	Told told = tool_end(scene, repair);

	check_exit(scene, &told, EXIT_CODE_PASS, "%s: the repair", race->mode);
	told_free(&told);
	CHECK_EQ(scene, number_of(scene, race->lab, "SELECT count(*) FROM ch", NO_ARGS), rows, "%s: rows", race->mode);
	CHECK_EQ(scene, number_of(scene, race->lab, "SELECT n FROM par", NO_ARGS), rows, "%s: n", race->mode);
	tool_does(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_PASS, "a second check");
}

static void
writer_is_open(Scene *scene, Race *race, bool commits)
{
	Tool repair;

	start_over(scene, race, commits ? "the writer has written both, then commits" : "the same, and it rolls back");
	require(scene, session_begin(race->writer, READ_COMMITTED));
	require(scene, session_execute(race->writer, "SELECT add_child(1)"));
	repair = start_repair(scene, race);
	await_waiter(scene, race->lab, race->writer);
	if (commits)
	{
		CHECK(scene, session_commit(race->writer) == SQL_OK, "%s: the repair waits, the writer commits", race->mode);
	}
	else
	{
		session_rollback(race->writer);
	}
	check_repaired(scene, race, repair, commits ? 4 : 3);
}

/* The child's foreign key holds the parent against changes of its key alone: no reason for a repair to wait. */
static void
writer_has_the_child(Scene *scene, Race *race)
{
	Tool repair;

	start_over(scene, race, "the writer has written the child alone");
	require(scene, session_begin(race->writer, READ_COMMITTED));
	require(scene, session_execute(race->writer, "INSERT INTO ch (par_id) VALUES (1)"));
	repair = start_repair(scene, race);
	CHECK(scene, await_beside(scene, race->lab, repair, 3, "SELECT n FROM par"), "%s: the repair waits for nobody",
		  race->mode);
	CHECK(scene, session_try(race->writer, NULL, "UPDATE par SET n = n + 1 WHERE id = 1", NO_ARGS) == SQL_OK,
		  "%s: the writer counts up", race->mode);
	CHECK(scene, session_commit(race->writer) == SQL_OK, "%s: the writer commits", race->mode);
	check_repaired(scene, race, repair, 4);
}

static void
repair_is_open(Scene *scene, Race *race)
{
	Tool repair;

	start_over(scene, race, "the repair has written, and the writer comes");
	require(scene, session_query(race->lab, NULL, "SELECT pg_advisory_lock($1)", ARGS(arg_int(PARENT))));
	repair = start_repair(scene, race);
	await_waiter(scene, race->lab, race->lab);
	require(scene, session_send(race->writer, "SELECT add_child(1)", NO_ARGS));
	scene_await_blocked(scene, race->lab, session_backend_pid(race->writer));
	require(scene, session_query(race->lab, NULL, "SELECT pg_advisory_unlock($1)", ARGS(arg_int(PARENT))));
	CHECK(scene, session_await(race->writer, NULL, scene_deadline(scene, ANSWER_MS)) == SQL_OK,
		  "%s: the writer waits for the repair, then goes on", race->mode);
	check_repaired(scene, race, repair, 4);
}

static void
run(Scene *scene)
{
	Race race = {.lab = counters_lab(scene, "par.sql"), .writer = scene_session(scene, "writer")};

	require(scene, session_execute_file(race.lab, scene_sql(scene, "counters/cases/hold.sql")));
	for (size_t i = 0; i < LENGTH_OF(modes); i++)
	{
		race.mode = modes[i];
		writer_is_open(scene, &race, true);
		writer_is_open(scene, &race, false);
		repair_is_open(scene, &race);
		writer_has_the_child(scene, &race);
	}
}

const Scenario scenario_repair_race = {
	.suite = "repair",
	.id = "repair/race",
	.title = "one writer beside the repair, at each place that matters, in each mode",
	.claim =
		"a repair beside a writer that changes rows and count together writes no overtaken count and loses no increment",
	.kind = "fixed interleaving",
	.guarantee = "count equals rows after both have ended",
	.observed = "par beside ch, pg_locks, exit codes",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 90000,
	.run = run,
};
