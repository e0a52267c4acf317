#include "pair.h"

#include <string.h>

#include "32/trace_lab.h"

#define PROMOTE_MS 20000
#define NOBODY_STREAMS "SELECT count(*) FROM pg_stat_replication"

Pair
pair_make(Scene *scene, const LikeDesign *design, int items)
{
	Pair pair = {.primary = scene_cluster(scene)};
	Session *admitted;

	pair.lab = like_lab_of(scene, design, items);
	load_part(scene, pair.lab, "failover");
	pair.standby = scene_add_standby(scene, pair.primary, STANDBY);
	pair.standby_lab = scene_session_on(scene, pair.standby, "lab on the standby");
	pair_await_replayed(scene, &pair);
	admitted = pair_door(scene, &pair, pair.primary, "door");
	scene_close_session(scene, admitted);
	return pair;
}

void
pair_make_synchronous(Scene *scene, Pair *pair)
{
	require(scene, session_execute(pair->lab, "SET synchronous_commit = local"));
	require(scene, session_execute(pair->lab, "ALTER SYSTEM SET synchronous_standby_names = '" STANDBY "'"));
	require(scene, session_execute(pair->lab, "SELECT pg_reload_conf()"));
	/* A walsender says so once it has read the setting; a commit heeds it when the checkpointer has told of it, and is tried. */
	scene_await_int(scene, pair->lab, 1, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", NO_ARGS);
}

void
pair_await_replayed(Scene *scene, const Pair *pair)
{
	scene_await_int(scene, pair->lab, 1,
					"SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()", NO_ARGS);
}

/* Its own doing, so that no message is left on the way that it might still read. */
void
pair_cut(Scene *scene, Pair *pair)
{
	require(scene, session_execute(pair->standby_lab, "ALTER SYSTEM SET primary_conninfo = ''"));
	require(scene, session_execute(pair->standby_lab, "SELECT pg_reload_conf()"));
	scene_await_int(scene, pair->standby_lab, 0, "SELECT count(*) FROM pg_stat_wal_receiver", NO_ARGS);
	scene_await_int(scene, pair->lab, 0, NOBODY_STREAMS, NO_ARGS);
	CHECK_EQ(scene, number_of(scene, pair->lab, NOBODY_STREAMS, NO_ARGS), 0, "the standby is cut off: who streams");
}

Session *
pair_promote(Scene *scene, Pair *pair, uint64_t *horizon)
{
	Session *session;

	require(scene, cluster_promote(pair->standby, scene_deadline(scene, PROMOTE_MS)));
	require(scene, steps()->recovery_horizon(pair->standby_lab, horizon));
	trace_forget(pair->standby_lab, true, "the standby is promoted");
	scene_close_session(scene, pair->standby_lab);
	session = pair_door(scene, pair, pair->standby, "lab on the new primary");
	CHECK(scene, session != NULL, "the promoted standby is let through the door");
	if (session == NULL)
	{
		scene_broken(scene, "there is no server to go on with");
	}
	pair->standby_lab = session;
	return session;
}

Session *
pair_door(Scene *scene, Pair *pair, Cluster *cluster, const char *name)
{
	Session *session = scene_session_on(scene, cluster, name);
	ServerEpoch epoch = {0};

	require(scene, server_admit(session, pair->highest, &epoch));
	note(scene, "%s is of epoch %lld, timeline %lld; the highest seen is %lld: %s",
		 cluster == pair->standby ? "the standby that was promoted" : "the first primary", (long long) epoch.epoch,
		 (long long) epoch.timeline, (long long) pair->highest, epoch.admitted ? "let through" : "fenced");
	if (!epoch.admitted)
	{
		scene_close_session(scene, session);
		return NULL;
	}
	pair->highest = epoch.epoch > pair->highest ? epoch.epoch : pair->highest;
	require(scene, steps()->prepare(session));
	return session;
}

int64_t
pair_count_gone(Scene *scene, Session *lab, const Requests *requests)
{
	int64_t gone = 0;

	for (size_t i = 0; i < requests->count; i++)
	{
		const HistoryOp *op = &requests->ops[i];

		if (op->outcome == OP_OK && op->changed &&
			number_of(scene, lab,
					  "SELECT count(*) FROM lab_event WHERE user_id = $1 AND item_id = $2 AND version = $3 "
					  "AND number = coalesce(nullif($4, 0), number)",
					  ARGS(arg_int(op->key[0]), arg_int(op->key[1]), arg_int(op->version), arg_int(op->number))) == 0)
		{
			gone++;
			note(scene, "acked but gone: user %lld item %lld v%lld seq %lld", (long long) op->key[0],
				 (long long) op->key[1], (long long) op->version, (long long) op->number);
		}
	}
	note(scene, "acked but gone: %lld", (long long) gone);
	return gone;
}
