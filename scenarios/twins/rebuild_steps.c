/*
 * Wrong steps of a rebuild and of whoever settles unknown requests. The right ones are in systems/like/rebuild.c and
 * write.c; what each lacks stands at its head.
 */
#include "wrong_steps.h"

#include <stdio.h>

#define OTHER_WRITERS 8

/*
 * M19a, M19b: the snapshot is read in Read Committed. Their like_snapshot() reads in two statements; in a Repeatable Read
 * transaction, or in one statement, S and C(S) would still be of one snapshot.
 */
static bool
snapshot_in_read_committed(Session *session, LikeSnapshot *snapshot)
{
	SqlResult *rows;

	/* A statement outside of a transaction block is a Read Committed transaction of its own. */
	if (!session_query(session, &rows, "SELECT seq, item_id, label, facts FROM like_snapshot()", NO_ARGS))
	{
		return false;
	}
	*snapshot = (LikeSnapshot){.seq = sql_int(rows, 0, 0), .count = (size_t) sql_rows(rows)};
	snapshot->items = memory_get(snapshot->count * sizeof(*snapshot->items));
	for (size_t i = 0; i < snapshot->count; i++)
	{
		LikeBaseline *item = &snapshot->items[i];

		item->seq = sql_int(rows, (int) i, 0);
		item->item = sql_int(rows, (int) i, 1);
		snprintf(item->label, sizeof(item->label), "%s", sql_text(rows, (int) i, 2));
		item->facts = sql_int(rows, (int) i, 3);
	}
	sql_free(rows);
	return true;
}

/*
 * M22: the install runs in Repeatable Read and once. A count row that a consumer has changed since its snapshot is 40001,
 * and the item is passed over: the next rebuild will see to it.
 */
static bool
install_once(Session *session, int64_t snapshot_seq, const LikeBaseline *baseline, Isolation isolation,
			 LikeInstall *install)
{
	SqlResult *rows = NULL;
	SqlStatus status;

	(void) isolation;
	*install = (LikeInstall){0};
	if (!session_begin(session, REPEATABLE_READ))
	{
		return false;
	}
	status = session_try(
		session, &rows,
		"SELECT skipped, row_missing, old_n, new_n, base_seq, applied_after_base FROM like_install($1, $2, $3)",
		ARGS(arg_int(baseline->item), arg_int(snapshot_seq), arg_int(baseline->facts)));
	if (status == SQL_OK && session_commit(session) == SQL_OK)
	{
		*install = (LikeInstall){.outcome = sql_bool(rows, 0, 0) ? INSTALL_SKIPPED : INSTALL_DONE,
								 .row_missing = sql_bool(rows, 0, 1),
								 .old_n = sql_int(rows, 0, 2),
								 .new_n = sql_int(rows, 0, 3),
								 .base_seq = sql_int(rows, 0, 4),
								 .applied_after_base = sql_int(rows, 0, 5)};
	}
	session_rollback(session);
	sql_free(rows);
	return !session_is_lost(session);
}

/* H01: a transaction for each shard. */
static bool
install_by_shard(Session *session, int64_t snapshot_seq, const LikeBaseline *baseline, Isolation isolation,
				 LikeInstall *install)
{
	int64_t shards;

	(void) isolation;
	*install = (LikeInstall){.outcome = INSTALL_DONE, .base_seq = snapshot_seq};
	if (!session_query_int(session, &shards, "SELECT count(*) FROM like_count WHERE item_id = $1",
						   ARGS(arg_int(baseline->item))))
	{
		return false;
	}
	for (int64_t shard = 0; shard < shards; shard++)
	{
		SqlResult *rows;

		if (!session_query(
				session, &rows, "SELECT old_n, new_n, applied_after_base FROM like_install_shard($1, $2, $3, $4)",
				ARGS(arg_int(baseline->item), arg_int(shard), arg_int(snapshot_seq), arg_int(baseline->facts))))
		{
			return false;
		}
		install->old_n += sql_int(rows, 0, 0);
		install->new_n += sql_int(rows, 0, 1);
		install->applied_after_base += sql_int(rows, 0, 2);
		sql_free(rows);
	}
	return true;
}

/*
 * M37: the horizon is asked for when others write again. Numbers that reached no disk before the crash have been given out
 * a second time by then, and have the fate of their new owners.
 */
static bool
horizon_after_writes(Session *session, uint64_t *horizon)
{
	for (int writer = 0; writer < OTHER_WRITERS; writer++)
	{
		/* A transaction that draws a number and commits; what else it writes makes no difference here. */
		if (!session_query(session, NULL, "SELECT pg_current_xact_id()", NO_ARGS))
		{
			return false;
		}
	}
	return like_recovery_horizon(session, horizon);
}

const ClientSteps snapshot_in_read_committed_steps = {.snapshot = snapshot_in_read_committed};
const ClientSteps install_once_steps = {.install = install_once};
const ClientSteps install_by_shard_steps = {.install = install_by_shard};
const ClientSteps horizon_after_writes_steps = {.recovery_horizon = horizon_after_writes};
