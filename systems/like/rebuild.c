/* The rebuild: one snapshot, then one short transaction per item. */
#include "like_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static SqlStatus
snapshot_body(Session *session, void *context)
{
	return session_try(session, context, "SELECT seq, item_id, label, facts FROM like_snapshot()", NO_ARGS);
}

static void
snapshot_read(const SqlResult *rows, LikeSnapshot *snapshot)
{
	/* Without any item there is one row that has only S. */
	bool empty = sql_is_null(rows, 0, 1);

	snapshot->seq = sql_int(rows, 0, 0);
	snapshot->count = empty ? 0 : (size_t) sql_rows(rows);
	snapshot->items = memory_get((snapshot->count + 1) * sizeof(*snapshot->items));
	for (size_t i = 0; i < snapshot->count; i++)
	{
		LikeBaseline *item = &snapshot->items[i];

		item->seq = sql_int(rows, (int) i, 0);
		item->item = sql_int(rows, (int) i, 1);
		snprintf(item->label, sizeof(item->label), "%s", sql_text(rows, (int) i, 2));
		item->facts = sql_int(rows, (int) i, 3);
	}
}

bool
like_snapshot(Session *session, LikeSnapshot *snapshot)
{
	SqlResult *rows = NULL;
	SqlStatus status = session_transaction(session, REPEATABLE_READ, snapshot_body, &rows);

	if (status != SQL_OK)
	{
		like_report(session, status, "cannot take the snapshot of a rebuild");
		sql_free(rows); /* read, but its transaction did not end well */
		return false;
	}
	snapshot_read(rows, snapshot);
	sql_free(rows);
	return true;
}

void
like_snapshot_free(LikeSnapshot *snapshot)
{
	free(snapshot->items);
	*snapshot = (LikeSnapshot){0};
}

typedef struct
{
	int64_t snapshot_seq;
	const LikeBaseline *baseline;
	LikeInstall *install; /* out */
} Installation;

static SqlStatus
install_body(Session *session, void *context)
{
	const Installation *this = context;
	SqlResult *rows;
	SqlStatus status = session_try(
		session, &rows,
		"SELECT skipped, row_missing, old_n, new_n, base_seq, applied_after_base FROM like_install($1, $2, $3)",
		ARGS(arg_int(this->baseline->item), arg_int(this->snapshot_seq), arg_int(this->baseline->facts)));

	if (status == SQL_OK)
	{
		*this->install = (LikeInstall){.outcome = sql_bool(rows, 0, 0) ? INSTALL_SKIPPED : INSTALL_DONE,
									   .row_missing = sql_bool(rows, 0, 1),
									   .old_n = sql_int(rows, 0, 2),
									   .new_n = sql_int(rows, 0, 3),
									   .base_seq = sql_int(rows, 0, 4),
									   .applied_after_base = sql_int(rows, 0, 5)};
		sql_free(rows);
	}
	return status;
}

bool
like_install(Session *session, int64_t snapshot_seq, const LikeBaseline *baseline, Isolation isolation,
			 LikeInstall *install)
{
	Installation this = {.snapshot_seq = snapshot_seq, .baseline = baseline, .install = install};
	SqlStatus status = session_transaction(session, isolation, install_body, &this);

	if (status != SQL_OK)
	{
		char *what = string_format("cannot install S=%" PRId64 " of %s", snapshot_seq, baseline->label);

		like_report(session, status, what);
		free(what);
		return false;
	}
	return true;
}

bool
like_rebuild_all(Session *session, LikeInstallReport report, void *context)
{
	LikeSnapshot snapshot;
	bool ok = true;

	if (!like_snapshot(session, &snapshot))
	{
		return false;
	}
	for (size_t i = 0; ok && i < snapshot.count; i++)
	{
		LikeInstall install;

		ok = like_install(session, snapshot.items[i].seq, &snapshot.items[i], READ_COMMITTED, &install);
		if (ok && report != NULL)
		{
			report(context, &snapshot.items[i], &install);
		}
	}
	like_snapshot_free(&snapshot);
	return ok;
}


/* --- many items --- */

typedef struct
{
	int64_t from, to;  /* places */
	int64_t installed; /* out */
} Chunk;

static SqlStatus
chunk_body(Session *session, void *context)
{
	Chunk *chunk = context;
	SqlResult *rows = NULL;
	SqlStatus status = session_try(session, &rows, "SELECT like_install_wrong($1, $2)",
								   ARGS(arg_int(chunk->from), arg_int(chunk->to)));

	chunk->installed = status == SQL_OK ? sql_int(rows, 0, 0) : 0;
	sql_free(rows);
	return status;
}

bool
like_rebuild_wrong(Session *session, int64_t chunk, LikeMended *mended)
{
	*mended = (LikeMended){0};
	if (!session_query_int(session, &mended->wrong, "SELECT like_find_wrong()", NO_ARGS))
	{
		return false;
	}
	for (int64_t from = 1; from <= mended->wrong; from += chunk)
	{
		Chunk part = {.from = from, .to = from + chunk - 1};
		int64_t begin = time_now_ns();
		SqlStatus status = session_transaction(session, READ_COMMITTED, chunk_body, &part);
		int64_t took = time_now_ns() - begin;

		if (status != SQL_OK)
		{
			like_report(session, status, "cannot install a chunk of baselines");
			return false;
		}
		mended->installed += part.installed;
		mended->longest_ns = took > mended->longest_ns ? took : mended->longest_ns;
	}
	return true;
}
