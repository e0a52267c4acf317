/*
 * scale/failover  the primary dies under its writers, and its synchronous standby takes over
 *
 * Claim      With synchronous_standby_names every change that was acknowledged is on the standby, fact with event. A request
 *            whose wait for the standby was cancelled is not acknowledged, though the server says COMMIT. What is unknown is
 *            decided by its transaction number on the new timeline; sent again, it takes effect once.
 * Method     4 writers and a standby that streams. Once 200 changes are acknowledged the standby is cut off, by which every
 *            writer hangs; seven of the waits are cancelled, one after another. The primary is stopped at once and the
 *            standby promoted. The horizon is read before anything writes there, every outbox row is matched with the one
 *            request that wrote it, the unknown ones are sent again, and the consumer goes on from the watermark it finds.
 * Expect     Acked but gone: none. The cancelled ones are answered with a warning (01000) and unknown to their clients; at
 *            least three are gone, those that began after the cut. Of the others some may be on the standby, whose confirmation
 *            was lost. Audits clean; requests before and after in one order.
 * Not shown  A standby that is promoted while its primary still runs, a third server, and who decides to promote (L43). How many
 *            requests are unknown, and how many of them have committed, varies (L7).
 */
#include "pair.h"

#include <stdatomic.h>
#include <string.h>

enum
{
	ITEMS = 4,
	WRITERS = 4,
	USERS_EACH = 50, /* of a writer's own */
	ACKED_LEAST = 200,
	GONE_LEAST = 3,
	CANCELLED = WRITERS + GONE_LEAST, /* a wait of each writer may have begun before the standby was cut off */
	WAIT_MS = 20000,
	WORKER = WRITERS /* who sends again, on record */
};

#define WARNED_SQLSTATE "01000"
#define CANCELLED_SQLSTATE "57014"
#define WAITING "backend_type = 'client backend' AND wait_event = 'SyncRep'"

typedef struct
{
	History *history;
	Session *sessions[WRITERS];
	atomic_llong acked;  /* CHANGED */
	atomic_llong warned; /* COMMIT, with a warning */
	atomic_llong refused;
} Storm;

/* Each request changes something: the users are the writer's own, and what is unknown stands as long as this server does. */
static bool
write_until_lost(int worker, void *context)
{
	Storm *storm = context;
	Session *session = storm->sessions[worker];

	for (int64_t i = 0; !session_is_lost(session); i++)
	{
		int64_t user = 1 + worker * USERS_EACH + i % USERS_EACH;
		bool want = i / USERS_EACH % 2 == 0;
		LikeResult result;

		if (!recorded_set(storm->history, worker, session, user, 1 + user % ITEMS, want, &result))
		{
			return false;
		}
		atomic_fetch_add(&storm->acked, result.outcome == LIKE_CHANGED);
		atomic_fetch_add(&storm->warned, strcmp(session_warning(session), WARNED_SQLSTATE) == 0);
		atomic_fetch_add(&storm->refused, result.outcome == LIKE_REJECTED && !session_is_lost(session) &&
											  strcmp(result.sqlstate, CANCELLED_SQLSTATE) != 0);
	}
	return true;
}

typedef struct
{
	Session *lab;
	Storm *storm;
	int64_t pid, xid; /* whose commit was seen waiting last */
} Cancel;

/*
 * Cancel the one that is seen waiting twice. One that the standby has confirmed may still look so, until it is given the
 * processor; the cancel then comes too late for it, and refuses the statement after it (57014).
 */
static ProbeAnswer
probe_warned(void *context, Text *seen)
{
	Cancel *cancel = context;
	SqlResult *rows;
	bool again;

	if (atomic_load(&cancel->storm->warned) >= CANCELLED)
	{
		return PROBE_DONE;
	}
	if (!session_query(cancel->lab, &rows, "SELECT pid, backend_xid FROM pg_stat_activity WHERE " WAITING " LIMIT 1",
					   NO_ARGS))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "%lld warned, %d seen waiting", atomic_load(&cancel->storm->warned), sql_rows(rows));
	again = sql_rows(rows) == 1 && sql_int(rows, 0, 0) == cancel->pid && sql_int(rows, 0, 1) == cancel->xid;
	cancel->pid = sql_rows(rows) == 1 ? sql_int(rows, 0, 0) : 0;
	cancel->xid = sql_rows(rows) == 1 ? sql_int(rows, 0, 1) : 0;
	sql_free(rows);
	return again && !session_query(cancel->lab, NULL, "SELECT pg_cancel_backend($1)", ARGS(arg_int(cancel->pid)))
			   ? PROBE_FAILED
			   : PROBE_AGAIN;
}

static void
storm_until_death(Scene *scene, Pair *pair)
{
	static Storm storm; /* outlives a case that ends early while writers run */
	Fault *death = scene_fault(scene, "immediate stop of the primary under %d writers", WRITERS);
	ActorGroup *group;
	LikeTotals totals;
	Cancel cancel;

	storm.history = scene_history(scene);
	for (int i = 0; i < WRITERS; i++)
	{
		storm.sessions[i] = like_client(scene, "writer");
	}
	group = actor_start("writer", WRITERS, write_until_lost, &storm);
	require(scene, group != NULL);
	actor_open_gate(group);
	scene_await_int(scene, pair->lab, 1, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE " WAITING ")::int",
					NO_ARGS);
	require(scene, await_counter("acked changes", &storm.acked, ACKED_LEAST, scene_deadline(scene, WAIT_MS)));
	totals = drain(scene, pair->lab);
	check_at_least(scene, totals.applied, 1, "events that the consumer takes on the old primary");

	step(scene, "the standby is cut off, and waits for it are cancelled");
	pair_cut(scene, pair);
	cancel = (Cancel){.lab = pair->lab, .storm = &storm};
	require(scene,
			wait_until("commits answered with a warning", scene_deadline(scene, WAIT_MS), probe_warned, &cancel));
	check_at_least(scene, atomic_load(&storm.warned), CANCELLED, "commits answered with a warning (01000)");
	require(scene, fault_stop_immediate(death, scene_history(scene), pair->primary));
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	note(scene, "acked CHANGED before the death=%lld", (long long) atomic_load(&storm.acked));
	CHECK_EQ(scene, atomic_load(&storm.refused), 0, "requests that the server refused while it ran");
	check_at_least(scene, atomic_load(&storm.acked), ACKED_LEAST, "acked CHANGED before the death");
	for (int i = 0; i < WRITERS; i++)
	{
		scene_close_session(scene, storm.sessions[i]);
	}
}

/* Those that the server confirmed with a warning. A commit may be on the standby though its confirmation did not come back. */
static void
check_cancelled(Scene *scene, const Requests *requests)
{
	int64_t acked = 0, gone = 0;

	for (size_t i = 0; i < requests->count; i++)
	{
		const HistoryOp *op = &requests->ops[i];

		if (strcmp(op->sqlstate, WARNED_SQLSTATE) == 0)
		{
			acked += op->outcome != OP_UNKNOWN;
			gone += requests->resolved[i] == RESOLVED_NOT_COMMITTED;
		}
	}
	CHECK_EQ(scene, acked, 0, "requests answered with a warning that are not unknown to their clients");
	check_at_least(scene, gone, GONE_LEAST, "requests answered with a warning that are not on the new primary");
}

static void
run(Scene *scene)
{
	Pair pair = pair_make(scene, like_design_find(scene_design(scene)), ITEMS);
	Requests requests = {0};
	LikeTotals totals;
	uint64_t horizon;
	Session *lab;

	step(scene, "%d writers, whose commits wait for the standby", WRITERS);
	pair_make_synchronous(scene, &pair);
	storm_until_death(scene, &pair);

	step(scene, "the standby is promoted");
	lab = pair_promote(scene, &pair, &horizon);
	(void) look_after_crash(scene, lab, horizon, &requests);
	CHECK_EQ(scene, pair_count_gone(scene, lab, &requests), 0, "acked but gone");
	check_cancelled(scene, &requests);

	step(scene, "what is unknown is sent again, and the consumer goes on from the watermark that it finds");
	send_unknowns_again(scene, lab, &requests, WORKER);
	totals = drain(scene, lab);
	check_at_least(scene, totals.applied, 1, "events that the consumer takes on the new primary");
	check_write_side(scene, lab, "after the failover");
	check_drained(scene, lab, "after the failover");
	judge_history_by(scene, lab, "requests before and after the failover");
	requests_free(&requests);
}

const Scenario scenario_scale_failover = {
	.suite = "scale",
	.id = "scale/failover",
	.title = "the primary dies under its writers, and its synchronous standby takes over",
	.claim =
		"with a synchronous standby every acked change survives; a cancelled wait is not acked; unknown is decided",
	.kind = "two servers, real threads, immediate stop, promotion",
	.guarantee = "acked is on the standby, fact with event; unknown is resolved on the new timeline and safe to repeat",
	.observed = "the clients' answers and warnings, outbox rows matched one by one, audits, the judged history",
	.needs = NEEDS_CLUSTER,
	.server_setting = "autovacuum = off\n",
	.deadline_ms = 90000,
	.run = run,
};
