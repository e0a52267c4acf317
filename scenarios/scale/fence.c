/*
 * scale/fence  the old primary comes back, and PostgreSQL lets it
 *
 * Claim      No connection to a primary that was left behind is handed out: it is of an older epoch than its successor.
 * Method     3 likes; the primary is stopped at once, the standby promoted, and a like written there. The old primary is
 *            started again as it is. PostgreSQL is asked what it is: no standby, on timeline 1, and it would take writes. The
 *            door asks for its epoch. Then the same without the fence: a client that was given a connection, and another on
 *            the new primary.
 * Expect     The old one is of epoch 1, the highest seen is 2: fenced, and nothing is written there. Without the fence both
 *            take likes, under one number, 5, and the facts part.
 * Not shown  Clients that hold a connection to a primary which still runs: only a synchronous standby keeps those from being
 *            acknowledged (scale/failover). Two standbys promoted beside each other come to one epoch (L43).
 */
#include "pair.h"

enum
{
	ITEMS = 1,
	LIKES = 3,
	START_MS = 30000,
	FENCED_USER = 50,
	OLD_USER = 60,
	NEW_USER = 70
};

static void
start_old_primary(Scene *scene, const Pair *pair)
{
	Session *observer;

	require(scene, cluster_start(pair->primary, scene_deadline(scene, START_MS)));
	observer = scene_session_on(scene, pair->primary, "observer");
	check_query(scene, observer,
				"SELECT format('standby=%s read_only=%s timeline=%s', pg_is_in_recovery(), "
				"current_setting('transaction_read_only'), (pg_control_checkpoint()).timeline_id)",
				NO_ARGS, "standby=f read_only=off timeline=1", "what PostgreSQL says of the old primary");
	scene_close_session(scene, observer);
}

/* A client asks for a connection; given one, it likes. Answers how many it was given. */
static int
knock(Scene *scene, Pair *pair)
{
	Session *session = pair_door(scene, pair, pair->primary, "client of the old primary");

	if (session == NULL)
	{
		return 0;
	}
	(void) set_like(scene, session, FENCED_USER, 1, true);
	scene_close_session(scene, session);
	return 1;
}

#define USERS "SELECT string_agg(user_id::text, ' ' ORDER BY user_id) FROM like_fact WHERE liked"

/* Past the trace, which is of one history. */
static void
check_like(Scene *scene, Session *session, int64_t user, const char *expected, const char *what)
{
	LikeResult result = {0};

	require(scene, like_set(session, user, 1, true, &result));
	check_answer(scene, &result, expected, "without the fence: %s", what);
}

/* What the fence keeps apart: sessions that were handed out by nobody's leave. */
static void
without_the_fence(Scene *scene, const Pair *pair)
{
	Session *old = scene_session_on(scene, pair->primary, "client of the old primary");
	Session *new = scene_session_on(scene, pair->standby, "client of the new primary");

	require(scene, like_prepare(old) && like_prepare(new));
	check_like(scene, old, OLD_USER, "CHANGED(liked, v1, seq=4)", "a like on the old primary");
	check_like(scene, old, OLD_USER + 1, "CHANGED(liked, v1, seq=5)", "another like on the old primary");
	check_like(scene, new, NEW_USER, "CHANGED(liked, v1, seq=5)", "a like on the new primary");
	check_query(scene, old, USERS, NO_ARGS, "1 2 3 60 61", "without the fence: who likes, on the old primary");
	check_query(scene, new, USERS, NO_ARGS, "1 2 3 4 70", "without the fence: who likes, on the new primary");
	check_write_side(scene, old, "of the old primary, by itself");
	check_write_side(scene, new, "of the new primary, by itself");
	scene_close_session(scene, old);
	scene_close_session(scene, new);
}

static void
run(Scene *scene)
{
	Pair pair = pair_make(scene, like_design_find(NULL), ITEMS);
	Fault *death = scene_fault(scene, "immediate stop of the primary, which comes back");
	uint64_t horizon;
	Session *lab;

	step(scene, "the primary is stopped at once, and its standby takes over");
	like_in_order(scene, pair.lab, 1, 1, LIKES);
	pair_await_replayed(scene, &pair);
	require(scene, fault_stop_immediate(death, scene_history(scene), pair.primary));
	lab = pair_promote(scene, &pair, &horizon);
	check_query(scene, lab, "SELECT format('epoch=%s timeline=%s', epoch, timeline) FROM server_epoch", NO_ARGS,
				"epoch=2 timeline=2", "epoch of the new primary");
	like_in_order(scene, lab, 1, LIKES + 1, LIKES + 1);

	step(scene, "the old primary is started again as it is");
	start_old_primary(scene, &pair);
	CHECK_EQ(scene, knock(scene, &pair), 0, "connections to the old primary that are handed out");
	CHECK_EQ(scene, pair.highest, 2, "the highest epoch seen");
	scene_close_session(scene, pair.lab);
	pair.lab = scene_session_on(scene, pair.primary, "lab on the old primary");
	check_query(scene, pair.lab, USERS, NO_ARGS, "1 2 3", "who likes, on the old primary: nothing was written there");

	step(scene, "the same without the fence");
	without_the_fence(scene, &pair);
}

const Scenario scenario_scale_fence = {
	.suite = "scale",
	.id = "scale/fence",
	.title = "the old primary comes back, and PostgreSQL lets it",
	.claim = "a connection to a primary that was left behind is not handed out: its epoch is older",
	.kind = "two servers, fixed interleaving, immediate stop, promotion, negative control",
	.guarantee = "one server takes writes; without the fence two do, and their facts part",
	.observed = "epoch and timeline of both, the facts of both",
	.needs = NEEDS_CLUSTER,
	.server_setting = "autovacuum = off\n",
	.deadline_ms = 60000,
	.run = run,
};
