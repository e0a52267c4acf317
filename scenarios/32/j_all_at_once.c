/*
 * 32-J  writers, consumers, redelivery, rebuilds and a sampler, all at once
 *
 * Claim      While all of them run, every snapshot keeps the identity (n + unprocessed deltas above base_seq = facts),
 *            the error bound of each item, and unprocessed <= lag; each event ends APPLIED or COVERED, once.
 * Method     8 writers x 300 requests on 6 items, half of them on item-lab-01; 3 competing consumers; a redeliverer that
 *            draws from the run's seed; a full rebuild every 100 ms; a sampler that runs the proof audit without a pause
 *            until it has 50 samples and the writers have ended. Both outcomes are made certain: rebuild 1 takes its
 *            snapshot after 100 events and is in place before a consumer starts (those 100 end COVERED), and the writers
 *            hold before their last third until the last rebuild has ended (what they write then ends APPLIED, and the
 *            drained counts judge the consumers and not the repair). Last, each event's commit is looked up in the WAL.
 * Expect     0 violations over all samples; CHANGED = events = APPLIED + COVERED; drained counts equal facts; the
 *            independent judge finds one order for the requests; numbers go up with the positions of their commits.
 * Not shown  A proof: this is a search, samples are spot checks (L8); each race it could meet also has a fixed
 *            interleaving (32-C, 32-E, 32-G, 32-H, 32-I). Numbers vary (L7) and are no performance data (L1).
 */
#include "recovery_lab.h"
#include "storm.h"

/* Where the WAL stands; what follows is kept for as long as the session lives, by a slot of its own. */
#define HOLD_WAL                                                                                                       \
	"SELECT lsn FROM pg_create_physical_replication_slot(format('positions_%s', pg_backend_pid()), true, true)"

/* NULL where this role or this server does not let WAL be kept and read, which is said. The caller frees it. */
static SqlResult *
wal_position(Scene *scene, Session *lab)
{
	SqlResult *position = NULL;

	if (session_try(lab, NULL, "CREATE EXTENSION IF NOT EXISTS pg_walinspect", NO_ARGS) != SQL_OK ||
		session_try(lab, &position, HOLD_WAL, NO_ARGS) != SQL_OK)
	{
		note(scene, "positions of commits in the WAL are not looked at: %s", session_error(lab)->message);
		return NULL;
	}
	require(scene, session_execute_file(lab, scene_sql(scene, "lab/commit_positions.sql")));
	return position;
}

/* The clocks of the trace are held against the numbers, which here are held against what the server wrote down. */
static void
check_commit_positions(Scene *scene, Session *lab, const SqlResult *since)
{
	SqlResult *row;

	require(scene,
			session_query(lab, &row, "SELECT * FROM commit_positions($1)", ARGS(arg_text(sql_text(since, 0, 0)))));
	CHECK_EQ(scene, sql_int(row, 0, 1), sql_int(row, 0, 0), "events whose commit is found in the WAL");
	CHECK_EQ(scene, sql_int(row, 0, 2), 0, "events that committed before one with a smaller number, by the WAL");
	sql_free(row);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, STORM_ITEMS);
	SqlResult *since =
		design()->own_events ? NULL : wal_position(scene, lab); /* else there is no one order of numbers */

	storm_run(scene, lab, NULL);
	if (since != NULL)
	{
		step(scene, "numbers beside the positions of commits in the WAL");
		check_commit_positions(scene, lab, since);
	}
	sql_free(since);
}

const Scenario scenario_32_j = {
	.suite = "32",
	.id = "32-J",
	.title = "writers, consumers, redelivery, rebuilds and a sampler at once",
	.claim = "every snapshot keeps identity, error bound and lag while all run; each event takes effect once",
	.kind = "real component, real threads",
	.guarantee = "the identity holds in every sample; drained counts equal facts; numbers follow commits",
	.observed = "read-side audit of every sample, processed_event, the judge's verdict, the WAL",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 90000,
	.run = run,
};
