/*
 * repair/storm  a repair under eight writers that never rest, in each mode
 *
 * Claim      Beside writers that insert, delete, move and soft-delete for the whole run, the repair ends with every
 *            count right, in each of its modes; no writer sees an error that a retry does not mend.
 * Method     120 media, a third of them wrong by +7, a third by -3, of which two are NULL; eight threads write by the
 *            flow of media.sql from before the repair begins until it has ended. First check, where nothing is wrong.
 *            Modes: lock, snapshot, relative, maintenance, in small chunks, lock by four workers as well. Then mode
 *            relative, in which a key repaired twice is wrong, one key a chunk, killed by signal 9 four times on its
 *            way and resumed each time.
 * Expect     Check never calls anything wrong. Exit 0; when the writers have stopped, no count is wrong by the case's
 *            own truth; the longest wait of a writer is told.
 * Not shown  Each race by itself: repair/race and repair/unlocked, whose wrong repairs end with drift every time. This
 *            is a search and no proof (L8). Writers by an outbox: repair/outbox.
 */
#include "writers.h"

#include <stdlib.h>

enum
{
	MEDIA = 120,
	CHECKS = 6,
	KILLS = 4,
	KILL_EVERY = 15, /* keys */
	KILL_MS = 10000
};

typedef struct
{
	const char *name;
	const char *const *words;
	bool nulls; /* relative refuses them */
} Way;

static void
start_over(Scene *scene, Session *lab, const Way *way)
{
	require(scene, session_execute(lab, "TRUNCATE media, media_usages"));
	require(scene, session_query(lab, NULL, "INSERT INTO media SELECT generate_series(1, $1)", ARGS(arg_int(MEDIA))));
	require(scene, session_execute(lab, "SELECT media_use(id) FROM media, generate_series(1, 5)"));
	require(scene, session_execute(lab, "UPDATE media SET usage_count = usage_count + 7 WHERE id % 3 = 1; "
										"UPDATE media SET usage_count = usage_count - 3 WHERE id % 3 = 2"));
	if (way->nulls)
	{
		require(scene, session_execute(lab, "UPDATE media SET usage_count = NULL WHERE id IN (1, 2)"));
	}
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM lab.wrong", NO_ARGS), MEDIA / 3 * 2, "%s: wrong counts",
			 way->name);
}

static void
repair_beside_writers(Scene *scene, Session *lab, const Way *way)
{
	Writers *writers;
	int64_t before;
	Told told;

	step(scene, "%s", way->name);
	start_over(scene, lab, way);
	writers = writers_start(scene, MEDIA);
	before = writers_done(writers);
	told = tool_end(scene, tool_start(scene, "repair", "media.yaml", way->words));
	writers_stop(scene, writers, before, way->name);
	check_exit(scene, &told, EXIT_CODE_PASS, "%s: the repair", way->name);
	CHECK_EQ(scene, told_number(&told, "Still drifted"), 0, "%s: Still drifted", way->name);
	told_free(&told);
	check_wrong(scene, lab, "", "%s: when the writers have stopped", way->name);
}

/* Nothing is wrong, and nothing is called so: each key is read in one snapshot, in one pass and in chunks. */
static void
check_beside_writers(Scene *scene, Session *lab)
{
	const char *const *const ways[] = {NO_WORDS, WORDS("--chunk", "7")};
	Writers *writers;
	int64_t before;

	step(scene, "check, where nothing is wrong");
	start_over(scene, lab, &(Way){"check", NULL, false});
	tool_does(scene, "repair", "media.yaml", NO_WORDS, EXIT_CODE_PASS, "everything is right");
	writers = writers_start(scene, MEDIA);
	before = writers_done(writers);
	for (int i = 0; i < CHECKS; i++)
	{
		Told told = tool_run(scene, "check", "media.yaml", ways[i % 2], EXIT_CODE_PASS, "check beside writers");

		CHECK_EQ(scene, told_number(&told, "Correct"), MEDIA, "Correct");
		told_free(&told);
	}
	writers_stop(scene, writers, before, "check");
	check_wrong(scene, lab, "", "check: when the writers have stopped");
}

/* false: it ended by itself before it had done so many keys, or between that look and the kill: not exercised. */
static bool
kill_after(Scene *scene, Session *lab, Tool tool, int64_t run_number, int keys)
{
	Fault *fault = scene_fault(scene, "kill -9 the repair when it has done %d keys", keys);
	char *sql =
		string_format("SELECT (count(*) >= %d)::int FROM counterproof.drift WHERE outcome IS NOT NULL AND run = %lld",
					  keys, (long long) run_number);
	ProcessEnd end;
	bool killed = await_beside(scene, lab, tool, 1, sql) && !process_poll(tool.process, &end) &&
				  fault_kill(fault, scene_history(scene), tool.process, scene_deadline(scene, KILL_MS));

	free(sql);
	tool_free(scene, tool);
	return killed;
}

/* In the mode in which a key that is repaired twice is wrong: it adds. */
static void
killed_beside_writers(Scene *scene, Session *lab)
{
	const Way way = {"relative, killed", WORDS("--mode", "relative", "--chunk", "1"), false};
	int64_t run_number = last_run(scene, lab) + 1;
	char *number = string_format("%lld", (long long) run_number);
	Writers *writers;
	int64_t before;
	bool killed;

	step(scene, "%s", way.name);
	start_over(scene, lab, &way);
	writers = writers_start(scene, MEDIA);
	before = writers_done(writers);
	killed = kill_after(scene, lab, tool_start(scene, "repair", "media.yaml", way.words), run_number, KILL_EVERY);
	for (int i = 2; killed && i <= KILLS; i++)
	{
		killed =
			kill_after(scene, lab, tool_start(scene, "repair", "media.yaml", WORDS("--chunk", "1", "--resume", number)),
					   run_number, i * KILL_EVERY);
	}
	tool_does(scene, "repair", "media.yaml", WORDS("--resume", number), EXIT_CODE_PASS, "resumed to the end");
	writers_stop(scene, writers, before, way.name);
	CHECK_EQ(scene, last_run(scene, lab), run_number, "all of it is one run");
	check_wrong(scene, lab, "", "%s: when the writers have stopped", way.name);
	free(number);
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "media.sql");
	const Way ways[] = {
		{"lock", WORDS("--mode", "lock", "--chunk", "5"), true},
		{"lock, four workers", WORDS("--mode", "lock", "--chunk", "5", "--jobs", "4"), true},
		{"snapshot", WORDS("--mode", "snapshot", "--chunk", "1"), true},
		{"relative", WORDS("--mode", "relative", "--chunk", "5"), false},
		{"maintenance", WORDS("--mode", "maintenance"), true},
	};

	check_beside_writers(scene, lab);
	for (size_t i = 0; i < LENGTH_OF(ways); i++)
	{
		repair_beside_writers(scene, lab, &ways[i]);
	}
	killed_beside_writers(scene, lab);
}

const Scenario scenario_repair_storm = {
	.suite = "repair",
	.id = "repair/storm",
	.title = "a repair under eight writers that never rest, in each mode",
	.claim = "beside writers that insert, delete, move and soft-delete for the whole run, every mode ends with drift 0",
	.kind = "real threads",
	.guarantee = "drift 0 when all have stopped; no writer sees an error that a retry does not mend",
	.observed = "media beside media_usages, SQLSTATEs and waits of the writers",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 150000,
	.run = run,
};
