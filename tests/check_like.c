/*
 * The like system against a real server, which the environment names: COUNTERPROOF_TEST_CONNINFO, a superuser of a
 * private server, and COUNTERPROOF_SQL, the folder sql/. Each test has a database of its own.
 */
#include "like.h"
#include "point.h"
#include "served_suite.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 20000
#define TEST_SECONDS 60
#define DATABASE "check_like"
#define TEMPLATE "check_like_template"
#define GATE "4711" /* the advisory lock on which commits are made to wait */

static char *database;
static char *like_folder;
static Session *lab;
static Session *other;


/* --- fixtures --- */

static void
setup(void)
{
	server_execute("DROP DATABASE IF EXISTS " DATABASE " WITH (FORCE)");
	server_execute("CREATE DATABASE " DATABASE " TEMPLATE " TEMPLATE);
	lab = must_open(database, "check_like");
	other = must_open(database, "check_like");
	ck_assert(like_prepare(lab));
	ck_assert(like_prepare(other));
}

static void
teardown(void)
{
	session_close(lab);
	session_close(other);
	server_execute("DROP DATABASE " DATABASE " WITH (FORCE)");
}

static void
load(const char *file)
{
	char *path = string_format("%s/%s", like_folder, file);

	ck_assert(session_execute_file(lab, path));
	free(path);
}

static int64_t
number(const char *sql)
{
	int64_t value;

	ck_assert(session_query_int(lab, &value, sql, NO_ARGS));
	return value;
}

static LikeResult
set(int64_t user, int64_t item, bool want)
{
	LikeResult result;

	ck_assert(like_set(lab, user, item, want, &result));
	return result;
}

/* Users 1..count like the item: as many events. */
static void
likes(int64_t item, int64_t first_user, int64_t count)
{
	for (int64_t user = first_user; user < first_user + count; user++)
	{
		ck_assert_int_eq(set(user, item, true).outcome, LIKE_CHANGED);
	}
}

#define DELIVER(totals, ...)                                                                                           \
	deliver((int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), totals)

static void
deliver(const int64_t *seqs, size_t count, const char *totals)
{
	LikeTotals delivered;
	Text text = {0};

	ck_assert(like_deliver(lab, seqs, count, 1, &delivered));
	ck_assert_int_eq(delivered.applied + delivered.covered + delivered.dup, (int64_t) count);
	like_totals_describe(&delivered, &text);
	ck_assert_str_eq(text_get(&text), totals);
	text_free(&text);
}

static void
assert_described(const LikeResult *result, const char *expected)
{
	Text text = {0};

	like_describe(result, &text);
	ck_assert_str_eq(text_get(&text), expected);
	text_free(&text);
}

static void
assert_write_side(const char *expected, bool clean)
{
	LikeWriteAudit audit;
	Text text = {0};

	ck_assert(like_audit_write_side(lab, &audit));
	like_write_audit_describe(&audit, &text);
	ck_assert_str_eq(text_get(&text), expected);
	ck_assert_int_eq(like_write_side_clean(&audit), clean);
	text_free(&text);
}

static void
assert_read_side(const char *expected, bool holds)
{
	LikeReadAudit audit;
	Text text = {0};

	ck_assert(like_audit_read_side(lab, &audit));
	like_read_audit_describe(&audit, &text);
	ck_assert_str_eq(text_get(&text), expected);
	ck_assert_int_eq(like_read_side_holds(&audit), holds);
	text_free(&text);
}

static void
assert_last_error(const char *expected)
{
	char error[512];

	notice_last_error(error, sizeof(error));
	ck_assert_msg(strstr(error, expected) != NULL, "\"%s\" does not contain \"%s\"", error, expected);
}


/* --- the write path --- */

START_TEST(a_request_ends_changed_noop_or_rejected)
{
	LikeResult result = set(1, 2, false);

	assert_described(&result, "NOOP(unliked, v0, not liked)");
	ck_assert_int_eq(number("SELECT last FROM like_seq"), 0);
	result = set(1, 1, true);
	assert_described(&result, "CHANGED(liked, v1, seq=1)");
	ck_assert_uint_gt(result.xid, 0);
	result = set(1, 1, true);
	assert_described(&result, "NOOP(liked, v1, already liked)");
	ck_assert_int_eq(result.seq, 0);
	result = set(1, 1, false);
	assert_described(&result, "CHANGED(unliked, v2, seq=2)");
	result = set(1, 2, true);
	assert_described(&result, "CHANGED(liked, v1, seq=3)");
	ck_assert_int_eq(number("SELECT sum(seq * 100 + version * 10 + delta) FROM like_outbox"), 600 + 40 + 1);
	for (int want = 0; want <= 1; want++)
	{
		result = set(1, 99, want == 1);
		assert_described(&result, "REJECTED(23503)");
	}
	ck_assert_int_eq(number("SELECT count(*) FROM like_fact WHERE item_id = 99"), 0);
	assert_write_side("last_seq=3 outbox_rows=3 gap_violations=0 version_mismatch_pairs=0 delta_sum_mismatch_items=0",
					  true);
}
END_TEST

START_TEST(a_rollback_gives_the_number_back)
{
	LikeResult result;

	likes(1, 1, 2);
	ck_assert(session_begin(lab, READ_COMMITTED));
	ck_assert(like_set_within(lab, 7, 1, true, &result));
	assert_described(&result, "CHANGED(liked, v1, seq=3)");
	session_rollback(lab);
	ck_assert_int_eq(number("SELECT count(*) FROM like_fact WHERE user_id = 7"), 0);
	result = set(8, 1, true);
	assert_described(&result, "CHANGED(liked, v1, seq=3)");
}
END_TEST

START_TEST(the_schema_refuses_by_itself)
{
	static const char *const refused[] = {
		"INSERT INTO like_outbox VALUES (2, 1, 1, 1, 1)", "INSERT INTO like_outbox VALUES (1, 5, 1, 1, 1)",
		"INSERT INTO processed_event VALUES (1, 'COVERED')", "INSERT INTO like_fact VALUES (1, 1, false, 0)"};

	likes(1, 1, 1);
	DELIVER("applied=1 covered=0 dup=0 watermark=1", 1);
	for (size_t i = 0; i < LENGTH_OF(refused); i++)
	{
		ck_assert_int_eq(session_try(lab, NULL, refused[i], NO_ARGS), SQL_ERROR);
		ck_assert_str_eq(session_error(lab)->sqlstate, "23505");
	}
	ck_assert_int_eq(session_try(lab, NULL, "INSERT INTO like_outbox VALUES (2, 1, 1, 2, 2)", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(lab)->sqlstate, "23514");
	ck_assert_int_eq(session_try(lab, NULL, "INSERT INTO counter_watermark VALUES (2, 0)", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(lab)->sqlstate, "23514");
}
END_TEST

/* A sequence counts the attempts: it is not rolled back with them. */
static void
fail_attempts(int64_t failing)
{
	char *sql = string_format(
		"CREATE SEQUENCE attempts;"
		"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
		" IF nextval('attempts') <= %d THEN RAISE EXCEPTION 'planned' USING ERRCODE = '40001'; END IF; RETURN new; END $$;"
		"CREATE TRIGGER fail BEFORE INSERT ON like_outbox FOR EACH ROW EXECUTE FUNCTION fail()",
		(int) failing);

	ck_assert(session_execute(lab, sql));
	free(sql);
}

START_TEST(a_serialization_failure_is_retried_whole)
{
	LikeResult result;

	fail_attempts(2);
	result = set(1, 1, true);
	assert_described(&result, "CHANGED(liked, v1, seq=1)");
	ck_assert_int_eq(session_retries_40001(), 2);
	ck_assert_int_eq(session_retries_40p01(), 0);
}
END_TEST

START_TEST(retries_have_a_bound)
{
	LikeResult result;

	fail_attempts(1000);
	result = set(1, 1, true);
	assert_described(&result, "REJECTED(40001)");
	ck_assert_int_eq(number("SELECT last_value FROM attempts"), RETRY_ATTEMPTS_MAX);
	ck_assert_int_eq(session_retries_40001(), RETRY_ATTEMPTS_MAX - 1);
	ck_assert_int_eq(number("SELECT count(*) FROM like_fact"), 0);
}
END_TEST

static void
terminate(const Session *victim)
{
	ck_assert(session_query(lab, NULL, "SELECT pg_terminate_backend($1::int, 10000)",
							ARGS(arg_int(session_backend_pid(victim)))));
}

START_TEST(a_request_on_a_lost_connection_was_not_carried_out)
{
	LikeResult result;

	terminate(other);
	ck_assert(like_set(other, 1, 1, true, &result));
	ck_assert_int_eq(result.outcome, LIKE_REJECTED);
	ck_assert_str_eq(result.sqlstate, "57P01");
	ck_assert(!like_set(other, 1, 1, true, &result));
	ck_assert_int_eq(number("SELECT count(*) FROM like_fact"), 0);
}
END_TEST


/* --- in another thread --- */

typedef struct
{
	LikeResult result;
	LikeBaseline baseline;
	Isolation isolation;
	LikeInstall install;
	bool want, ok;
} Call;

static void *
call_set(void *context)
{
	Call *call = context;

	call->ok = like_set(other, 1, 1, true, &call->result);
	return NULL;
}

static void *
call_install(void *context)
{
	Call *call = context;

	call->ok = like_install(other, 4, &call->baseline, call->isolation, &call->install);
	return NULL;
}

static ProbeAnswer
probe_blocked(void *context, Text *seen)
{
	int64_t waiting;

	(void) context;
	if (!session_query_int(lab, &waiting, "SELECT count(*) FROM pg_locks WHERE pid = $1::int AND NOT granted",
						   ARGS(arg_int(session_backend_pid(other)))))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "waiting=%d", (int) waiting);
	return waiting > 0 ? PROBE_DONE : PROBE_AGAIN;
}

static pthread_t
start_blocked(void *(*body)(void *), Call *call)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, body, call), 0);
	ck_assert(wait_until("the other session waits for a lock", deadline_in_ms(WAIT_MS), probe_blocked, NULL));
	return thread;
}

/* Its answer arrives, its commit waits behind a deferred trigger, and there the connection is cut. */
START_TEST(a_request_cut_in_its_commit_is_unknown_and_resolved)
{
	Call call = {0};
	uint64_t horizon;
	Resolved resolved;
	LikeResult acked;
	pthread_t thread;

	ck_assert(session_execute(lab,
							  "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
							  " PERFORM pg_advisory_xact_lock(" GATE "); RETURN NULL; END $$;"
							  "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON like_outbox DEFERRABLE INITIALLY DEFERRED"
							  " FOR EACH ROW EXECUTE FUNCTION wait(); SELECT pg_advisory_lock(" GATE ")"));
	thread = start_blocked(call_set, &call);
	terminate(other);
	pthread_join(thread, NULL);
	ck_assert(call.ok);
	ck_assert_int_eq(call.result.outcome, LIKE_UNKNOWN);
	ck_assert(call.result.changed);
	ck_assert_int_eq(call.result.seq, 1);
	ck_assert_uint_gt(call.result.xid, 0);
	ck_assert_str_eq(call.result.sqlstate, "57P01");

	ck_assert(like_recovery_horizon(lab, &horizon));
	ck_assert_uint_gt(horizon, call.result.xid);
	ck_assert(like_resolve(lab, call.result.xid, horizon, &resolved));
	ck_assert_int_eq(resolved, RESOLVED_NOT_COMMITTED);
	acked = set(1, 1, true);
	assert_described(&acked, "CHANGED(liked, v1, seq=1)");
}
END_TEST

/* The server learns of its standby a moment after it was told: the requests before that are answered. */
static void *
call_until_unanswered(void *context)
{
	Call *call = context;

	do
	{
		call->want = !call->want;
		call->ok = like_set(other, 1, 1, call->want, &call->result);
	} while (call->ok && call->result.outcome == LIKE_CHANGED);
	return NULL;
}

static ProbeAnswer
probe_cancelled(void *context, Text *seen)
{
	int64_t cancelled;

	(void) context;
	if (!session_query_int(lab, &cancelled,
						   "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity"
						   " WHERE pid = $1::int AND wait_event = 'SyncRep'",
						   ARGS(arg_int(session_backend_pid(other)))))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "cancelled=%d", (int) cancelled);
	return cancelled > 0 ? PROBE_DONE : PROBE_AGAIN;
}

/* The server says COMMIT, with a warning; only that server knows of it. */
START_TEST(a_request_whose_standby_did_not_confirm_is_unknown)
{
	Call call = {0};
	LikeResult again;
	uint64_t horizon;
	Resolved resolved;
	pthread_t thread;

	ck_assert(session_execute(lab, "SET synchronous_commit = local"));
	standby_is_missing(true);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_until_unanswered, &call), 0);
	ck_assert(wait_until("its commit waits for a standby", deadline_in_ms(WAIT_MS), probe_cancelled, NULL));
	pthread_join(thread, NULL);
	standby_is_missing(false);
	ck_assert(call.ok);
	ck_assert_int_eq(call.result.outcome, LIKE_UNKNOWN);
	ck_assert_str_eq(call.result.sqlstate, "01000");
	ck_assert(call.result.changed);
	ck_assert_uint_gt(call.result.xid, 0);
	ck_assert_int_eq(call.result.seq, call.result.version);

	ck_assert(!session_is_lost(other));
	ck_assert(like_recovery_horizon(lab, &horizon));
	ck_assert(like_resolve(lab, call.result.xid, horizon, &resolved));
	ck_assert_int_eq(resolved, RESOLVED_COMMITTED);
	ck_assert(like_set(other, 1, 1, call.want, &again));
	ck_assert_int_eq(again.outcome, LIKE_NOOP);
	ck_assert_int_eq(again.version, call.result.version);
}
END_TEST

START_TEST(the_horizon_outranks_the_status)
{
	LikeResult result = set(1, 1, true);
	uint64_t horizon;
	Resolved resolved = RESOLVED_UNSET;

	ck_assert(like_recovery_horizon(lab, &horizon));
	ck_assert_uint_gt(horizon, result.xid);
	ck_assert(like_resolve(lab, result.xid, horizon, &resolved));
	ck_assert_int_eq(resolved, RESOLVED_COMMITTED);
	ck_assert(like_resolve(lab, result.xid, result.xid, &resolved));
	ck_assert_int_eq(resolved, RESOLVED_NOT_COMMITTED);
	ck_assert(!like_resolve(lab, 0, horizon, &resolved));

	ck_assert(session_begin(other, READ_COMMITTED));
	ck_assert(like_set_within(other, 2, 1, true, &result));
	ck_assert(!like_resolve(lab, result.xid, result.xid + 1, &resolved));
	assert_last_error("in progress");
}
END_TEST


/* --- the consumer --- */

START_TEST(any_list_is_a_batch)
{
	likes(1, 1, 3);
	likes(2, 1, 2);
	ck_assert_int_eq(set(1, 1, false).seq, 6);
	deliver(NULL, 0, "applied=0 covered=0 dup=0 watermark=0");
	DELIVER("applied=1 covered=0 dup=1 watermark=0", 6, 6);
	ck_assert_int_eq(number("SELECT n FROM like_count WHERE item_id = 1"), -1);
	DELIVER("applied=2 covered=0 dup=2 watermark=0", 3, 6, 2, 3);
	DELIVER("applied=1 covered=0 dup=0 watermark=3", 1);
	DELIVER("applied=2 covered=0 dup=3 watermark=6", 5, 1, 4, 5, 4);
	DELIVER("applied=0 covered=0 dup=6 watermark=6", 6, 5, 4, 3, 2, 1);
	assert_read_side("last_seq=6 watermark=6 lag=0 unprocessed=0 count_mismatch_items=0 max_abs_err=0 "
					 "exact_violations=0 bound_violations=0 watermark_violations=0",
					 true);
}
END_TEST

/* Longer than the stride in which the watermark follows what was processed before. */
START_TEST(the_watermark_follows_a_long_run)
{
	int64_t seqs[350];
	char *sql = string_format("INSERT INTO like_outbox SELECT g, g, 1, 1, 1 FROM generate_series(1, %d) g;"
							  "UPDATE like_seq SET last = %d",
							  (int) LENGTH_OF(seqs), (int) LENGTH_OF(seqs));

	ck_assert(session_execute(lab, sql));
	free(sql);
	for (size_t i = 0; i < LENGTH_OF(seqs); i++)
	{
		seqs[i] = (int64_t) i + 1;
	}
	deliver(seqs + 301, 49, "applied=49 covered=0 dup=0 watermark=0");
	deliver(seqs + 1, 299, "applied=299 covered=0 dup=0 watermark=0");
	DELIVER("applied=1 covered=0 dup=0 watermark=300", 1);
	DELIVER("applied=1 covered=0 dup=0 watermark=350", 301);
}
END_TEST

START_TEST(an_event_that_cannot_be_counted_fails_its_batch)
{
	const int64_t unknown[] = {1, 99};
	const int64_t uncounted[] = {1, 2, 2};
	LikeTotals totals;

	likes(1, 1, 1);
	likes(2, 1, 1);
	ck_assert(!like_deliver(lab, unknown, LENGTH_OF(unknown), 1, &totals));
	assert_last_error("event 99 is not in the outbox");
	ck_assert(session_execute(lab, "DELETE FROM like_count WHERE item_id = 2"));
	ck_assert(!like_deliver(lab, uncounted, LENGTH_OF(uncounted), 1, &totals));
	assert_last_error("event 2: item 2 has no count row");
	ck_assert_int_eq(number("SELECT count(*) FROM processed_event"), 0);
	ck_assert_int_eq(number("SELECT n FROM like_count WHERE item_id = 1"), 0);
	ck_assert_int_eq(session_try(lab, NULL, "SELECT like_consume('{1,NULL}')", NO_ARGS), SQL_ERROR);
	ck_assert_str_eq(session_error(lab)->sqlstate, "22004");
}
END_TEST

START_TEST(draining_ends_behind_a_hole_too)
{
	LikeTotals totals = {0};
	int64_t *seqs;
	size_t count;

	likes(1, 1, 9);
	ck_assert(like_pull(lab, 3, 4, &seqs, &count));
	ck_assert_uint_eq(count, 4);
	ck_assert_int_eq(seqs[0], 4);
	ck_assert_int_eq(seqs[3], 7);
	free(seqs);
	ck_assert(like_pull(lab, 9, 4, &seqs, &count));
	ck_assert_uint_eq(count, 0);
	free(seqs);
	ck_assert(session_execute(lab, "DELETE FROM like_outbox WHERE seq BETWEEN 3 AND 6"));
	ck_assert(like_drain(lab, 2, &totals));
	ck_assert_int_eq(totals.applied, 5);
	ck_assert_int_eq(totals.watermark, 2);
}
END_TEST

static void
point_note(void *context, const char *name, const char *detail)
{
	text_append(context, "%s %s;", name, detail);
}

START_TEST(a_batch_reaches_its_points)
{
	LikeTotals totals = {0};
	Text seen = {0};

	likes(1, 1, 8);
	point_arm_call("consumer.before_commit", 2, point_note, &seen);
	point_arm_call("consumer.after_commit", 3, point_note, &seen);
	ck_assert(like_drain(lab, 3, &totals));
	ck_assert_str_eq(text_get(&seen),
					 "consumer.before_commit batch=2 seq=4..6;consumer.after_commit batch=3 seq=7..8;");
	point_disarm_all();
	text_free(&seen);
}
END_TEST

/* Rows that this session has lately read from the tables that grow. */
static int64_t
rows_read(void)
{
	return number("SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
				  "WHERE relname IN ('like_outbox', 'processed_event', 'like_fact', 'like_count')");
}

START_TEST(no_work_is_in_proportion_to_history)
{
	static const char *const calls[] = {"SELECT like_consume('{7, 19999, 3}')", "SELECT like_pull(19990, 5)",
										"SELECT n FROM like_read_count(1, 0)", "SELECT like_install(1, 19990, 3)"};

	/* Nobody has analysed the log, the counts were when they were few, and the session's plans were made then. */
	ck_assert(session_execute(lab, "VACUUM ANALYZE like_count"));
	DELIVER("applied=0 covered=0 dup=0 watermark=0");
	ck_assert(session_execute(lab,
							  "INSERT INTO item SELECT g, 'grown-' || g FROM generate_series(100, 20000) g;"
							  "INSERT INTO like_count SELECT g, 0, 0 FROM generate_series(100, 20000) g;"
							  "INSERT INTO like_outbox SELECT g, g, 1 + g % 2, 1, 1 FROM generate_series(1, 20000) g;"
							  "INSERT INTO processed_event SELECT g, 'APPLIED' FROM generate_series(1, 19998) g;"
							  "UPDATE like_seq SET last = 20000;"
							  "UPDATE counter_watermark SET applied_upto = 19998"));
	for (size_t i = 0; i < LENGTH_OF(calls); i++)
	{
		int64_t before, after;

		ck_assert(session_begin(lab, READ_COMMITTED));
		before = rows_read();
		ck_assert(session_query(lab, NULL, calls[i], NO_ARGS));
		after = rows_read();
		ck_assert_msg(after - before < 40, "%s read %d rows", calls[i], (int) (after - before));
		session_rollback(lab);
	}
}
END_TEST


/* --- the rebuild --- */

static LikeInstall
install(int64_t seq, int64_t item, int64_t facts)
{
	LikeBaseline baseline = {.item = item, .facts = facts};
	LikeInstall result;

	ck_assert(like_install(lab, seq, &baseline, READ_COMMITTED, &result));
	return result;
}

static void
assert_installed(LikeInstall actual, LikeInstall expected)
{
	ck_assert_int_eq(actual.outcome, expected.outcome);
	ck_assert_int_eq(actual.row_missing, expected.row_missing);
	ck_assert_int_eq(actual.old_n, expected.old_n);
	ck_assert_int_eq(actual.new_n, expected.new_n);
	ck_assert_int_eq(actual.base_seq, expected.base_seq);
	ck_assert_int_eq(actual.applied_after_base, expected.applied_after_base);
}

START_TEST(a_snapshot_has_every_item)
{
	LikeSnapshot snapshot;

	likes(1, 1, 3);
	ck_assert_int_eq(set(2, 1, false).seq, 4);
	ck_assert_int_eq(set(1, 2, false).outcome, LIKE_NOOP);
	ck_assert(like_snapshot(lab, &snapshot));
	ck_assert_int_eq(snapshot.seq, 4);
	ck_assert_uint_eq(snapshot.count, 3);
	ck_assert_str_eq(snapshot.items[0].label, "item-lab-01");
	ck_assert_int_eq(snapshot.items[0].facts, 2);
	ck_assert_int_eq(snapshot.items[1].facts, 0);
	ck_assert_int_eq(snapshot.items[2].item, 3);
	ck_assert_int_eq(snapshot.items[2].facts, 0);
	like_snapshot_free(&snapshot);
	ck_assert(session_execute(lab, "TRUNCATE item CASCADE"));
	ck_assert(like_snapshot(lab, &snapshot));
	ck_assert_int_eq(snapshot.seq, 4);
	ck_assert_uint_eq(snapshot.count, 0);
	like_snapshot_free(&snapshot);
}
END_TEST

/* The interleaving in which an overwrite counts 4..6 twice and loses 7. */
START_TEST(a_baseline_meets_a_consumer_half_way)
{
	likes(1, 1, 6);
	DELIVER("applied=3 covered=0 dup=0 watermark=3", 1, 2, 3);
	likes(1, 7, 2);
	DELIVER("applied=1 covered=0 dup=0 watermark=3", 7);
	assert_installed(
		install(6, 1, 6),
		(LikeInstall){.outcome = INSTALL_DONE, .old_n = 4, .new_n = 7, .base_seq = 6, .applied_after_base = 1});
	DELIVER("applied=1 covered=3 dup=0 watermark=8", 4, 5, 6, 8);
	/* older: nothing changes, though it would give 5 */
	assert_installed(install(3, 1, 3),
					 (LikeInstall){.outcome = INSTALL_SKIPPED, .old_n = 8, .new_n = 8, .base_seq = 6});
	/* equal: the same number again, and a damaged one is mended */
	assert_installed(
		install(6, 1, 6),
		(LikeInstall){.outcome = INSTALL_DONE, .old_n = 8, .new_n = 8, .base_seq = 6, .applied_after_base = 2});
	ck_assert(session_execute(lab, "UPDATE like_count SET n = 5 WHERE item_id = 1"));
	assert_installed(
		install(6, 1, 6),
		(LikeInstall){.outcome = INSTALL_DONE, .old_n = 5, .new_n = 8, .base_seq = 6, .applied_after_base = 2});
	DELIVER("applied=0 covered=0 dup=8 watermark=8", 1, 2, 3, 4, 5, 6, 7, 8);
}
END_TEST

START_TEST(a_missing_count_row_is_inserted)
{
	likes(2, 1, 2);
	ck_assert(session_execute(lab, "DELETE FROM like_count WHERE item_id = 2"));
	assert_installed(install(2, 2, 2),
					 (LikeInstall){.outcome = INSTALL_DONE, .row_missing = true, .new_n = 2, .base_seq = 2});
	DELIVER("applied=0 covered=2 dup=0 watermark=2", 1, 2);
}
END_TEST

/* A consumer that has applied event 5 holds the count row; the install of S=4 waits and must then see it. */
static void
install_behind_consumer(Isolation isolation, int64_t retries)
{
	Call call = {.baseline = {.item = 1, .facts = 4}, .isolation = isolation};
	pthread_t thread;

	likes(1, 1, 5);
	ck_assert(session_begin(lab, READ_COMMITTED));
	ck_assert(session_query(lab, NULL, "SELECT like_consume('{5}')", NO_ARGS));
	thread = start_blocked(call_install, &call);
	ck_assert_int_eq(session_commit(lab), SQL_OK);
	pthread_join(thread, NULL);
	ck_assert(call.ok);
	assert_installed(
		call.install,
		(LikeInstall){.outcome = INSTALL_DONE, .old_n = 1, .new_n = 5, .base_seq = 4, .applied_after_base = 1});
	ck_assert_int_eq(session_retries_40001(), retries);
	DELIVER("applied=0 covered=4 dup=0 watermark=5", 1, 2, 3, 4);
}

START_TEST(an_install_waits_for_the_consumer)
{
	install_behind_consumer(READ_COMMITTED, 0);
}
END_TEST

START_TEST(an_install_in_repeatable_read_is_retried)
{
	install_behind_consumer(REPEATABLE_READ, 1);
}
END_TEST


/* --- reading and auditing --- */

static void
assert_count(int64_t item, int64_t allowed_lag, LikeCount expected)
{
	LikeCount actual;
	bool found;

	ck_assert(like_read_count(lab, item, allowed_lag, &found, &actual));
	ck_assert(found);
	ck_assert_int_eq(actual.n, expected.n);
	ck_assert_int_eq(actual.lag, expected.lag);
	ck_assert_int_eq(actual.pending, expected.pending);
	ck_assert_int_eq(actual.stale, expected.stale);
}

START_TEST(a_count_is_read_with_its_bound)
{
	LikeCount count;
	SqlResult *plan;
	bool found;

	likes(1, 1, 3);
	likes(2, 1, 2);
	assert_count(1, 5, (LikeCount){.n = 0, .lag = 5, .pending = 3});
	assert_count(1, 4, (LikeCount){.n = 0, .lag = 5, .pending = 3, .stale = true});
	DELIVER("applied=2 covered=0 dup=0 watermark=1", 1, 3);
	assert_count(1, 4, (LikeCount){.n = 2, .lag = 4, .pending = 1});
	assert_count(2, 3, (LikeCount){.n = 0, .lag = 4, .pending = 2, .stale = true});
	ck_assert(like_read_count(lab, 99, 0, &found, &count));
	ck_assert(!found);
	ck_assert(session_query(lab, &plan, "EXPLAIN SELECT * FROM like_read_count(1, 16)", NO_ARGS));
	ck_assert_int_gt(sql_rows(plan), 5);
	for (int row = 0; row < sql_rows(plan); row++)
	{
		ck_assert_ptr_null(strstr(sql_text(plan, row, 0), "like_fact"));
		ck_assert_ptr_null(strstr(sql_text(plan, row, 0), "Function Scan"));
	}
	sql_free(plan);
}
END_TEST

START_TEST(the_write_side_audit_sees_each_damage)
{
	likes(1, 1, 3);
	ck_assert(session_execute(lab, "UPDATE like_fact SET version = 3 WHERE user_id = 1"));
	assert_write_side("last_seq=3 outbox_rows=3 gap_violations=0 version_mismatch_pairs=1 delta_sum_mismatch_items=0",
					  false);
	ck_assert(session_execute(lab, "UPDATE like_fact SET version = 1, liked = false WHERE user_id = 1"));
	assert_write_side("last_seq=3 outbox_rows=3 gap_violations=0 version_mismatch_pairs=0 delta_sum_mismatch_items=1",
					  false);
	ck_assert(session_execute(lab, "UPDATE like_fact SET liked = true WHERE user_id = 1;"
								   "UPDATE like_outbox SET seq = 7 WHERE seq = 2"));
	assert_write_side("last_seq=3 outbox_rows=3 gap_violations=2 version_mismatch_pairs=0 delta_sum_mismatch_items=0",
					  false);
	ck_assert(session_execute(lab, "DELETE FROM like_outbox WHERE seq = 7"));
	assert_write_side("last_seq=3 outbox_rows=2 gap_violations=1 version_mismatch_pairs=1 delta_sum_mismatch_items=1",
					  false);
	ck_assert(session_execute(lab, "DELETE FROM like_fact"));
	assert_write_side("last_seq=3 outbox_rows=2 gap_violations=1 version_mismatch_pairs=2 delta_sum_mismatch_items=1",
					  false);
}
END_TEST

START_TEST(the_read_side_audit_sees_each_damage)
{
	likes(1, 1, 4);
	likes(2, 1, 1);
	DELIVER("applied=2 covered=0 dup=0 watermark=1", 1, 3);
	assert_read_side("last_seq=5 watermark=1 lag=4 unprocessed=3 count_mismatch_items=2 max_abs_err=2 "
					 "exact_violations=0 bound_violations=0 watermark_violations=0",
					 true);
	ck_assert(session_execute(lab, "UPDATE like_count SET n = n + 1 WHERE item_id = 1"));
	assert_read_side("last_seq=5 watermark=1 lag=4 unprocessed=3 count_mismatch_items=2 max_abs_err=1 "
					 "exact_violations=1 bound_violations=0 watermark_violations=0",
					 false);
	ck_assert(session_execute(
		lab, "UPDATE like_count SET n = 9 WHERE item_id = 1; DELETE FROM like_count WHERE item_id = 3"));
	assert_read_side("last_seq=5 watermark=1 lag=4 unprocessed=3 count_mismatch_items=3 max_abs_err=5 "
					 "exact_violations=2 bound_violations=2 watermark_violations=0",
					 false);
	ck_assert(
		session_execute(lab, "UPDATE like_count SET n = 2 WHERE item_id = 1; INSERT INTO like_count VALUES (3, 0, 0)"));
	for (int upto = 0; upto <= 3; upto++)
	{
		LikeReadAudit audit;

		ck_assert(session_query(lab, NULL, "UPDATE counter_watermark SET applied_upto = $1", ARGS(arg_int(upto))));
		ck_assert(like_audit_read_side(lab, &audit));
		ck_assert_int_eq(audit.watermark_violations, upto == 1 ? 0 : 1);
		ck_assert_int_eq(like_read_side_holds(&audit), upto == 1);
	}
}
END_TEST


/* --- recovery --- */

static void
recovery_tell(void *context, const char *line)
{
	text_append(context, "%s\n", line);
}

/* Recovers, and looks for lines among those told. */
static LikeRecovery
recover(LikeRecoveryOutcome outcome, bool rebuilt, const char *const *lines, size_t count)
{
	LikeRecovery recovery;
	Text told = {0};

	ck_assert(like_recover(lab, 10, recovery_tell, &told, &recovery));
	ck_assert_int_eq(recovery.outcome, outcome);
	ck_assert_int_eq(recovery.rebuilt, rebuilt);
	for (size_t i = 0; i < count; i++)
	{
		ck_assert_msg(strstr(text_get(&told), lines[i]) != NULL, "\"%s\" is not among:\n%s", lines[i], text_get(&told));
	}
	text_free(&told);
	return recovery;
}

#define RECOVER(outcome, rebuilt, ...)                                                                                 \
	recover(outcome, rebuilt, (const char *const[]){__VA_ARGS__},                                                      \
			sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

START_TEST(recovery_drains_what_is_right)
{
	LikeRecovery recovery;

	likes(1, 1, 25);
	DELIVER("applied=2 covered=0 dup=0 watermark=2", 1, 2);
	recovery = RECOVER(
		RECOVERY_DONE, false,
		"recovery 1/4 consumer started from watermark=2, first batch: applied=10 covered=0 dup=0 watermark=12\n"
		"recovery 2/4 write side clean: last_seq=25 outbox_rows=25 ",
		"recovery 3/4 read side holds: last_seq=25 watermark=12 lag=13 ",
		"recovery 4/4 drained, recovered: applied=23 covered=0 dup=0 watermark=25 lag=0 count_mismatch_items=0\n");
	ck_assert_int_eq(recovery.before.lag, 13);
	ck_assert_int_eq(recovery.after.lag, 0);
}
END_TEST

START_TEST(recovery_rebuilds_after_a_consumer_without_dedup)
{
	likes(1, 1, 4);
	load("mutants/M07/consume.sql");
	DELIVER("applied=7 covered=0 dup=0 watermark=4", 1, 2, 3, 4, 2, 3, 3);
	assert_read_side("last_seq=4 watermark=4 lag=0 unprocessed=0 count_mismatch_items=1 max_abs_err=3 "
					 "exact_violations=1 bound_violations=1 watermark_violations=0",
					 false);
	load("consume.sql");
	ck_assert(session_execute(
		lab, "UPDATE like_count SET n = 5 WHERE item_id = 3; DELETE FROM like_count WHERE item_id = 2"));
	(void) RECOVER(RECOVERY_DONE, true, "recovery 3/4 read side written wrongly, rebuilding: last_seq=4 ",
				   "recovery 3/4 item-lab-01 7 -> 4\n"
				   "recovery 3/4 item-lab-02 0 -> 0 (its count row was missing)\n"
				   "recovery 3/4 item-lab-03 5 -> 0\n"
				   "recovery 3/4 rebuilt 3 items, 1 count rows were missing\n");
	likes(2, 1, 2);
	DELIVER("applied=2 covered=0 dup=0 watermark=6", 5, 6);
	assert_read_side("last_seq=6 watermark=6 lag=0 unprocessed=0 count_mismatch_items=0 max_abs_err=0 "
					 "exact_violations=0 bound_violations=0 watermark_violations=0",
					 true);
}
END_TEST

START_TEST(recovery_stops_at_a_damaged_write_side)
{
	likes(1, 1, 2);
	ck_assert(session_execute(lab, "INSERT INTO like_fact VALUES (9, 1, true, 1)"));
	(void) RECOVER(RECOVERY_WRITE_SIDE_DAMAGED, false, "recovery 2/4 write side damaged: ", "\nwrite side damaged\n");
	ck_assert_int_eq(number("SELECT n FROM like_count WHERE item_id = 1"), 2);
}
END_TEST

/* Its first batch is refused for want of a count row, which the rebuild inserts. */
START_TEST(recovery_survives_a_refused_batch)
{
	likes(2, 1, 2);
	ck_assert(session_execute(lab, "DELETE FROM like_count WHERE item_id = 2"));
	(void) RECOVER(RECOVERY_DONE, true, "and was refused: event 1: item 2 has no count row\n",
				   "recovery 4/4 drained, recovered: applied=0 covered=2 dup=0 watermark=2 ");
}
END_TEST

/* Registrations are gone, the watermark stands: an alarm on lag sees nothing. */
START_TEST(recovery_does_not_trust_a_wrong_watermark)
{
	likes(1, 1, 30);
	ck_assert(like_drain(lab, 7, &(LikeTotals){0}));
	ck_assert(session_execute(lab, "TRUNCATE processed_event"));
	(void) RECOVER(RECOVERY_DONE, true, "unprocessed=30 count_mismatch_items=0 max_abs_err=0 exact_violations=1 ",
				   "recovery 4/4 drained, recovered: applied=0 covered=30 dup=0 watermark=30 ");
}
END_TEST


/* --- negative controls --- */

START_TEST(an_overwrite_is_wrong_in_both_directions)
{
	load("mutants/M17/rebuild_install.sql");
	likes(1, 1, 6);
	DELIVER("applied=3 covered=0 dup=0 watermark=3", 1, 2, 3);
	likes(1, 7, 2);
	DELIVER("applied=1 covered=0 dup=0 watermark=3", 7);
	assert_installed(install(6, 1, 6), (LikeInstall){.outcome = INSTALL_DONE, .old_n = 4, .new_n = 6});
	assert_read_side("last_seq=8 watermark=3 lag=5 unprocessed=4 count_mismatch_items=1 max_abs_err=2 "
					 "exact_violations=1 bound_violations=0 watermark_violations=0",
					 false);
	DELIVER("applied=4 covered=0 dup=0 watermark=8", 4, 5, 6, 8);
	ck_assert_int_eq(number("SELECT n FROM like_count WHERE item_id = 1"), 10);
}
END_TEST

START_TEST(a_naive_count_drifts)
{
	load("naive_set.sql");
	for (int i = 0; i < 2; i++)
	{
		ck_assert(session_query(lab, NULL, "SELECT like_set_naive(1, 1, true)", NO_ARGS));
		ck_assert(session_query(lab, NULL, "SELECT like_set_naive(1, 2, false)", NO_ARGS));
		(void) set(1, 1, true);
		(void) set(1, 2, false);
	}
	ck_assert_int_eq(number("SELECT n FROM like_naive_count WHERE item_id = 1"), 2);
	ck_assert_int_eq(number("SELECT n FROM like_naive_count WHERE item_id = 2"), -2);
	ck_assert_int_eq(number("SELECT count(*) FROM like_fact WHERE liked"), 1);
}
END_TEST

static Suite *
like_suite(void)
{
	const TTest *const tests[] = {a_request_ends_changed_noop_or_rejected,
								  a_rollback_gives_the_number_back,
								  the_schema_refuses_by_itself,
								  a_serialization_failure_is_retried_whole,
								  retries_have_a_bound,
								  a_request_on_a_lost_connection_was_not_carried_out,
								  a_request_cut_in_its_commit_is_unknown_and_resolved,
								  a_request_whose_standby_did_not_confirm_is_unknown,
								  the_horizon_outranks_the_status,
								  any_list_is_a_batch,
								  the_watermark_follows_a_long_run,
								  an_event_that_cannot_be_counted_fails_its_batch,
								  draining_ends_behind_a_hole_too,
								  a_batch_reaches_its_points,
								  no_work_is_in_proportion_to_history,
								  a_snapshot_has_every_item,
								  a_baseline_meets_a_consumer_half_way,
								  a_missing_count_row_is_inserted,
								  an_install_waits_for_the_consumer,
								  an_install_in_repeatable_read_is_retried,
								  a_count_is_read_with_its_bound,
								  the_write_side_audit_sees_each_damage,
								  the_read_side_audit_sees_each_damage,
								  recovery_drains_what_is_right,
								  recovery_rebuilds_after_a_consumer_without_dedup,
								  recovery_stops_at_a_damaged_write_side,
								  recovery_survives_a_refused_batch,
								  recovery_does_not_trust_a_wrong_watermark,
								  an_overwrite_is_wrong_in_both_directions,
								  a_naive_count_drifts};
	Suite *suite = suite_create("like");
	TCase *tcase = tcase_create("like");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, TEST_SECONDS);
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
	{
		tcase_add_test(tcase, tests[i]);
	}
	suite_add_tcase(suite, tcase);
	return suite;
}

/* The test's own, too, which a test that failed has left. */
static bool
databases_drop(void)
{
	Session *session = session_open(server, "check_like");
	bool ok = session != NULL && session_execute(session, "SET client_min_messages = warning") &&
			  session_execute(session, "DROP DATABASE IF EXISTS " DATABASE " WITH (FORCE)") &&
			  session_execute(session, "DROP DATABASE IF EXISTS " TEMPLATE);

	session_close(session);
	return ok;
}

/* Every test's database is a copy of this one: the schema and three items. */
static bool
template_create(void)
{
	char *conninfo = string_format("%s dbname=" TEMPLATE, server);
	Session *session = databases_drop() ? session_open(server, "check_like") : NULL;
	bool ok = session != NULL && session_execute(session, "CREATE DATABASE " TEMPLATE);

	session_close(session);
	session = ok ? session_open(conninfo, "check_like") : NULL;
	ok = session != NULL && like_create(session, like_folder) && like_add_item(session, 1, "item-lab-01") &&
		 like_add_item(session, 2, "item-lab-02") && like_add_item(session, 3, "item-lab-03");
	session_close(session);
	free(conninfo);
	return ok;
}

int
main(void)
{
	const char *sql = getenv("COUNTERPROOF_SQL");
	int failed = 1;

	if (!suite_has_server((const char *const[]){WITH_SQL, NULL}))
	{
		return EXIT_FAILURE;
	}
	database = string_format("%s dbname=" DATABASE, server);
	like_folder = string_format("%s/like", sql);
	if (template_create())
	{
		failed = suite_run(like_suite());
		failed += !databases_drop();
	}
	free(database);
	free(like_folder);
	return failed;
}
