#include "recovery_lab.h"
#include "trace_lab.h"

#include <stdlib.h>
#include <string.h>

#define RECOVERY_BATCH 100
/* Enough for a batch that waits for a lock which the case is about to release. */
#define BATCH_MS 10000
#define CONSUMER_MS 20000

#define CONSUME "SELECT applied, covered, dup, watermark FROM like_consume(lab_events($1))"

bool
deliver_in_batches(Session *session, const int64_t *seqs, size_t count, size_t size, LikeTotals *totals,
				   int64_t *refused)
{
	int batch = 0;

	for (size_t from = 0; from < count; from += size)
	{
		LikeTotals part = {0};
		size_t length = count - from < size ? count - from : size;

		if (steps()->deliver(session, seqs + from, length, ++batch, &part))
		{
			like_totals_add(totals, &part);
		}
		else if (session_is_lost(session))
		{
			return false;
		}
		else
		{
			(*refused)++;
		}
	}
	return true;
}

void
load_variant(Scene *scene, Session *session, const char *path)
{
	char *file = like_design_file(design(), scene_sql(scene, "like"), strchr(path, '/') + 1);

	if (file == NULL)
	{
		scene_broken(scene, "design %s has no %s", design()->name, path);
	}
	require(scene, session_execute_file(session, file));
	free(file);
	if (strstr(path, "/mutants/") == NULL)
	{
		load_twin_file(scene, session, path);
	}
}

void
clear_all(Scene *scene, Session *session)
{
	number_events(scene, session);
	clear_derived(scene, session);
	require(scene, session_execute(session, "DELETE FROM like_outbox; DELETE FROM like_fact; "
											"UPDATE like_seq SET last = 0"));
	trace_forget(session, true, "the facts and events are cleared");
}

void
commit(Scene *scene, Session *session)
{
	SqlStatus status = session_commit(session);

	require(scene, !session_is_lost(session));
	if (status == SQL_OK)
	{
		trace_event(
			&(TraceEvent){.actor = trace_client(session_name(session)), .kind = "commit", .outcome = TRACE_CLOSES},
			"COMMIT");
	}
	if (status != SQL_OK)
	{
		check_text(scene, session_error(session)->message, "", "what keeps a COMMIT from being accepted");
	}
}

static LikeTotals
totals_read(Scene *scene, const Session *session, SqlStatus status, SqlResult *rows)
{
	LikeTotals totals = {0};

	if (status == SQL_ERROR)
	{
		check_text(scene, session_error(session)->message, "", "what keeps the consumer from taking a batch");
		return totals;
	}
	if (status != SQL_OK)
	{
		scene_broken(scene, "a batch ended as %s", sql_status_name(status));
	}
	totals = (LikeTotals){.applied = sql_int(rows, 0, 0),
						  .covered = sql_int(rows, 0, 1),
						  .dup = sql_int(rows, 0, 2),
						  .watermark = sql_int(rows, 0, 3)};
	sql_free(rows);
	return totals;
}

LikeTotals
deliver_within(Scene *scene, Session *session, const char *list)
{
	SqlResult *rows = NULL;
	SqlStatus status = session_try(session, &rows, CONSUME, ARGS(arg_text(list)));
	LikeTotals totals = totals_read(scene, session, status, rows);

	if (status == SQL_OK)
	{
		tell_watermark(scene, session, &totals);
	}
	return totals;
}

void
send_batch(Scene *scene, Session *session, const char *list)
{
	require(scene, session_begin(session, READ_COMMITTED));
	trace_tell(trace_client(session_name(session)), "begin", "batch of seq %s", list);
	require(scene, session_send(session, CONSUME, ARGS(arg_text(list))));
}

LikeTotals
await_batch(Scene *scene, Session *session)
{
	SqlResult *rows = NULL;
	SqlStatus status = session_await(session, &rows, scene_deadline(scene, BATCH_MS));
	LikeTotals totals = totals_read(scene, session, status, rows);

	if (status == SQL_OK)
	{
		commit(scene, session);
		tell_watermark(scene, session, &totals);
	}
	session_rollback(session);
	return totals;
}

void
check_count_row_free(Scene *scene, Session *observer, int64_t item, const char *what)
{
	CHECK_EQ(scene,
			 number_of(scene, observer,
					   "SELECT count(*) FROM (SELECT FROM like_count WHERE item_id = $1 FOR UPDATE SKIP LOCKED) free",
					   ARGS(arg_int(item))),
			 1, "%s", what);
}

int64_t
count_of(Scene *scene, Session *session, int64_t item)
{
	return number_of(scene, session, "SELECT sum(n)::bigint FROM like_count WHERE item_id = $1", ARGS(arg_int(item)));
}

void
expect_changed(Scene *scene, const LikeResult *result, int64_t user)
{
	if (result->outcome != LIKE_CHANGED)
	{
		check_answer(scene, result, "CHANGED", "the like of user %lld", (long long) user);
	}
}

void
like_in_order(Scene *scene, Session *session, int64_t item, int64_t first, int64_t last)
{
	for (int64_t user = first; user <= last; user++)
	{
		LikeResult result = set_like(scene, session, user, item, true);

		expect_changed(scene, &result, user);
	}
}

/* The snapshot holds all rows of item, in order. */
static const LikeBaseline *
baseline_of(Scene *scene, const LikeSnapshot *snapshot, int64_t item)
{
	for (size_t i = 0; i < snapshot->count; i++)
	{
		if (snapshot->items[i].item == item)
		{
			return &snapshot->items[i];
		}
	}
	scene_broken(scene, "item %lld is not in the snapshot", (long long) item);
}

LikeInstall
install_baseline(Scene *scene, Session *session, const LikeSnapshot *snapshot, int64_t item, Isolation isolation)
{
	const LikeBaseline *baseline = baseline_of(scene, snapshot, item);
	LikeInstall install = {0};

	require(scene, steps()->install(session, baseline->seq, baseline, isolation, &install));
	if (install.outcome == INSTALL_SKIPPED)
	{
		note(scene, "%s: skipped: newer baseline (snapshot S=%lld, base_seq=%lld, n=%lld)", baseline->label,
			 (long long) baseline->seq, (long long) install.base_seq, (long long) install.new_n);
	}
	else
	{
		note(scene, "%s: installed(n %lld->%lld, base_seq=%lld, applied_after_base=%lld)", baseline->label,
			 (long long) install.old_n, (long long) install.new_n, (long long) install.base_seq,
			 (long long) install.applied_after_base);
	}
	return install;
}

LikeSnapshot
take_snapshot(Scene *scene, Session *session, int64_t item)
{
	LikeSnapshot snapshot = {0};
	const LikeBaseline *baseline;

	require(scene, steps()->snapshot(session, &snapshot));
	baseline = baseline_of(scene, &snapshot, item);
	note(scene, "rebuild snapshot: S=%lld, %s C(S)=%lld", (long long) baseline->seq, baseline->label,
		 (long long) baseline->facts);
	return snapshot;
}

void
check_state(Scene *scene, Session *session, int64_t item, int64_t n, const char *read_side, const char *when)
{
	LikeWriteAudit facts = audit_write_side(scene, session);
	LikeReadAudit counts = audit_read_side(scene, session);
	Text actual = {0};

	text_append(&actual,
				"watermark=%lld lag=%lld unprocessed=%lld exact_violations=%lld bound_violations=%lld "
				"watermark_violations=%lld",
				(long long) counts.watermark, (long long) counts.lag, (long long) counts.unprocessed,
				(long long) counts.exact_violations, (long long) counts.bound_violations,
				(long long) counts.watermark_violations);
	CHECK_EQ(scene, count_of(scene, session, item), n, "%s: n", when);
	check_text(scene, text_get(&actual), read_side, "%s: read side", when);
	CHECK(scene, like_write_side_clean(&facts), "%s: write side clean", when);
	text_free(&actual);
}

static void
tell_recovery(void *context, const char *line)
{
	note(context, "%s", line);
	trace_tell("recovery", "recovery", "%s", line);
}

/*
 * What its steps read and wrote is not told number by number: after a rebuild nothing more is stated by baselines. The thread
 * that runs the case waited for it.
 */
static void
trace_recovered(const Session *session, const LikeRecovery *recovery)
{
	if (recovery->rebuilt)
	{
		trace_forget(session, false, "all items are rebuilt by recovery");
	}
}

LikeRecovery
recover(Scene *scene, Session *session, bool rebuild_expected)
{
	LikeRecovery recovery = {0};

	require(scene, like_recover(session, RECOVERY_BATCH, tell_recovery, scene, &recovery));
	trace_recovered(session, &recovery);
	CHECK(scene, recovery.outcome == RECOVERY_DONE, "recovery ended with lag 0 and every count right");
	CHECK_EQ(scene, recovery.rebuilt, rebuild_expected, "recovery %s",
			 rebuild_expected ? "found the read side damaged and rebuilt it" : "found nothing to rebuild");
	return recovery;
}

void
check_recovery_stops(Scene *scene, Session *session)
{
	LikeRecovery recovery = {0};

	require(scene, like_recover(session, RECOVERY_BATCH, tell_recovery, scene, &recovery));
	CHECK(scene, recovery.outcome == RECOVERY_WRITE_SIDE_DAMAGED && !recovery.rebuilt,
		  "recovery stopped at the damaged write side and rebuilt nothing");
}

void
check_statement_refused(Scene *scene, Session *session, const char *sql, const char *expected, const char *what)
{
	SqlStatus status = session_try(session, NULL, sql, NO_ARGS);
	const SqlError *error = session_error(session);
	char *actual = string_format("%s %s", error->sqlstate, error->message);

	require(scene, status == SQL_OK || status == SQL_ERROR);
	check_text(scene, status == SQL_OK ? "accepted" : actual, expected, "%s", what);
	free(actual);
}

void
check_consumer_refused(Scene *scene, int batch, const char *words, const char *what)
{
	static int runs;
	char *size = string_format("%d", batch), *offset = string_format("refused-%d.offset", ++runs);
	const char *argv[] = {scene_program(scene, "like-consumer"),
						  "--conninfo",
						  scene_conninfo(scene),
						  "--offset-file",
						  scene_file(scene, offset),
						  "--batch",
						  size,
						  NULL};
	ProcessEnd end = {0};
	Text output = {0};

	require(scene, process_run(&(ProcessSpec){.argv = argv}, scene_deadline(scene, CONSUMER_MS), &output, &end));
	note(scene, "like-consumer| %.*s", (int) strcspn(text_get(&output), "\n"), text_get(&output));
	CHECK(scene, end.how == ENDED_EXIT && end.code == EXIT_CODE_REFUSED, "%s: the consumer's program ends as refused",
		  what);
	CHECK(scene, strstr(text_get(&output), words) != NULL, "%s: and says \"%s\"", what, words);
	text_free(&output);
	free(offset);
	free(size);
}
