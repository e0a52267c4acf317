/*
 * scale/wal  no number at all: what a replication slot, a snapshot as baseline and a floor that is a snapshot are for
 *
 * Claim      Events reach the consumer in the order of their commits and are confirmed behind its commit; a baseline contains
 *            what its snapshot saw, wherever the log stands; lag is known without walking over history. A slot that is left
 *            behind holds back log, and one that is lost costs no event.
 * Method     Fixed orders on a server of its own. Ids drawn in one order and committed in the other. A COMMIT that is in the log and
 *            not visible, because it waits for a standby that does not exist (manual 27.2.8), beside a rebuild. A consumer whose
 *            connection is dropped before its COMMIT, one that has committed and not confirmed, a server stopped at once. A
 *            reader that is held up inside the slot, and a second one. A transaction that stays open over 2,000 events, a commit
 *            that comes late. A database in which nothing happens; at last nobody pulls, max_slot_wal_keep_size is
 *            passed, and the slot is invalidated (manual 20.6.1).
 * Expect     Each event takes effect once; a read looks at no more pages than before, 10 for chance; the slot's status and
 *            what it holds back are printed; `lost` is answered by a new slot and the outbox, with nothing to rebuild.
 * Not shown  What decoding costs: each pull decodes what is behind the slot's restart_lsn again (L36). A transport other than the slot's
 *            SQL functions, two_phase, a slot on a standby.
 */
#include <stdlib.h>
#include <string.h>

#include "32/recovery_lab.h"

enum
{
	ITEMS = 2,
	WAIT_MS = 10000,
	RESTART_MS = 30000,
	MANY = 2000,          /* events */
	MORE_PAGES_MOST = 10, /* an index may have grown by a level */
	BALLAST_ROUNDS_MOST = 8,
	MEGABYTE = 1048576,
	HELD_BACK_MOST = 16 /* megabytes, one file of the log */
};

#define HIT "shared hit="
#define SLOT "pg_replication_slots s JOIN like_feed f ON s.slot_name = like_slot(f.opened)"
#define OFFERED                                                                                                        \
	"SELECT count(*) FROM like_feed f, pg_logical_slot_peek_binary_changes(like_slot(f.opened), NULL, NULL, "          \
	"'proto_version', '1', 'publication_names', 'like_events') c WHERE get_byte(c.data, 0) = ascii('I')"
#define PULL "SELECT FROM like_pull(0, 1000)"
/* Some 20 MB of log that no event is in. */
#define BALLAST "INSERT INTO ballast SELECT repeat(md5(k::text), 60) FROM generate_series(1, 9500) k"

/* The users of the events that a pull answers, in its order; "?" is one that nobody can see. */
static void
check_pull(Scene *scene, Session *session, const char *expected, const char *what)
{
	check_query(scene, session,
				"SELECT string_agg(coalesce(o.user_id::text, '?'), ' ' ORDER BY p.k) "
				"FROM unnest(like_pull(0, 1000)) WITH ORDINALITY p (seq, k) LEFT JOIN like_outbox o USING (seq)",
				NO_ARGS, expected, "%s", what);
}

/* Pulled and delivered in one transaction, and not confirmed. */
static void
consume_all(Scene *scene, Session *session)
{
	SqlResult *rows;

	require(scene, session_query(session, &rows, "SELECT applied FROM like_consume(like_pull(0, 1000))", NO_ARGS));
	sql_free(rows);
}

static void
set_server(Scene *scene, Session *session, const char *setting)
{
	char *sql = string_format("ALTER SYSTEM SET %s", setting);

	require(scene, session_execute(session, sql));
	require(scene, session_execute(session, "SELECT pg_reload_conf()"));
	free(sql);
}

static void
order_of_commits(Scene *scene, Session *lab)
{
	Session *early = like_client(scene, "early"), *late = like_client(scene, "late");

	step(scene, "a like draws its id before another one's, and commits behind it");
	require(scene, session_begin(late, READ_COMMITTED));
	(void) set_like_within(scene, late, 1, 1, true);
	(void) request_like(scene, early, 2, 1, true);
	check_pull(scene, lab, "2", "pulled while the first is open");
	commit(scene, late);
	check_pull(scene, lab, "2 1", "pulled again: in the order of the commits");
	check_query(scene, lab, "SELECT string_agg(user_id::text, ' ' ORDER BY seq) FROM like_outbox", NO_ARGS, "1 2",
				"in the order of the ids");
	(void) drain(scene, lab);
	check_drained(scene, lab, "after both");
	scene_close_session(scene, early);
	scene_close_session(scene, late);
}

/*
 * Between its record in the log and the moment from which snapshots see it, a commit waits for its standby. All other sessions
 * wait for none.
 */
static void
logged_and_invisible(Scene *scene, Session *lab)
{
	Session *writer = like_client(scene, "writer");
	LikeSnapshot snapshot;
	LikeResult answer;

	step(scene, "a rebuild reads its snapshot while a COMMIT is in the log and not visible");
	require(scene, session_execute(writer, "SET synchronous_commit = on"));
	send_like(scene, writer, 3, 1, true);
	scene_await_int(scene, lab, 1, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'",
					ARGS(arg_int(session_backend_pid(writer))));
	(void) request_like(scene, lab, 4, 1, true);
	CHECK_EQ(scene, number_of(scene, lab, OFFERED, NO_ARGS), 2, "events that the slot has");
	check_pull(scene, lab, "4", "pulled: what can be seen");
	snapshot = take_snapshot(scene, lab, 1);
	CHECK_EQ(scene, snapshot.items[0].facts, 3, "facts in the snapshot");
	(void) install_baseline(scene, lab, &snapshot, 1, READ_COMMITTED);
	like_snapshot_free(&snapshot);
	consume_all(scene, lab);
	check_query(scene, lab,
				"SELECT string_agg(how, ' ') FROM processed_event JOIN like_outbox USING (seq) WHERE user_id = 4",
				NO_ARGS, "COVERED", "the event that the snapshot saw");

	set_server(scene, lab, "synchronous_standby_names = ''");
	answer = await_like(scene, writer);
	CHECK(scene, answer.outcome == LIKE_CHANGED, "the COMMIT is answered");
	check_pull(scene, lab, "3", "pulled: its event");
	(void) drain(scene, lab);
	CHECK_EQ(scene, count_of(scene, lab, 1), facts_of(scene, lab, 1), "after the rebuild beside that commit: n");
	check_drained(scene, lab, "after that commit");
	scene_close_session(scene, writer);
}

static void
killed_consumer(Scene *scene, Session *lab)
{
	Session *victim = like_client(scene, "victim");
	Fault *fault = scene_fault(scene, "drop the connection of a consumer inside its transaction");
	char *list;

	step(scene, "a consumer has pulled and delivered, and loses its connection before its COMMIT");
	(void) request_like(scene, lab, 5, 1, true);
	require(scene, session_begin(victim, READ_COMMITTED));
	consume_all(scene, victim);
	require(scene, fault_abandon(fault, scene_history(scene), lab, victim, scene_deadline(scene, WAIT_MS)));
	scene_forget_session(scene, victim);
	check_pull(scene, lab, "5", "pulled by the next one: the same event");

	step(scene, "another one commits, and does not come to confirm it");
	list = string_format("{%lld}", (long long) number_of(scene, lab, "SELECT max(seq) FROM like_outbox", NO_ARGS));
	consume_all(scene, lab);
	CHECK_EQ(scene, number_of(scene, lab, OFFERED, NO_ARGS), 1, "events that the slot would bring again");
	check_query(scene, lab, "SELECT dup FROM like_consume($1)", ARGS(arg_text(list)), "1",
				"brought again, it is a dup");
	check_pull(scene, lab, "", "pulled: what is registered is left out");
	CHECK_EQ(scene, number_of(scene, lab, OFFERED, NO_ARGS), 0, "and confirmed");
	check_drained(scene, lab, "after both consumers");
	free(list);
}

/* What a slot knows is written at checkpoints: after a crash it brings again what was confirmed since. */
static Session *
stopped_at_once(Scene *scene, Session *lab)
{
	Fault *fault = scene_fault(scene, "pg_ctl restart -m immediate behind what was confirmed");

	step(scene, "the server is stopped at once after three events were consumed and confirmed");
	require(scene, session_execute(lab, "CHECKPOINT"));
	like_in_order(scene, lab, 2, 6, 8);
	(void) drain(scene, lab);
	CHECK_EQ(scene, number_of(scene, lab, OFFERED, NO_ARGS), 0, "events that the slot has, before");
	scene_close_session(scene, lab);
	require(scene, fault_restart_immediate(fault, scene_history(scene), scene_cluster(scene),
										   scene_deadline(scene, RESTART_MS)));
	lab = like_client(scene, "lab");
	note(scene, "events that the slot brings again (what it writes between checkpoints varies): %lld",
		 (long long) number_of(scene, lab, OFFERED, NO_ARGS));
	check_audits_clean(scene, lab, "after the crash");
	check_pull(scene, lab, "", "pulled: nothing that is registered");
	CHECK_EQ(scene, number_of(scene, lab, OFFERED, NO_ARGS), 0, "events that the slot has, after");
	check_drained(scene, lab, "after the crash");
	return lab;
}

/* Decoding reads the publication, and is held up there with the slot in its hands. */
static void
second_reader(Scene *scene, Session *lab)
{
	Session *holder = scene_session(scene, "holder");
	Session *first = scene_session(scene, "first reader"), *second = scene_session(scene, "second reader");

	step(scene, "a consumer pulls while another one is inside the slot");
	(void) request_like(scene, lab, 9, 1, true);
	require(scene, session_begin(holder, READ_COMMITTED));
	require(scene, session_execute(holder, "LOCK TABLE pg_publication IN ACCESS EXCLUSIVE MODE"));
	require(scene, session_send(first, PULL, NO_ARGS));
	scene_await_blocked(scene, lab, session_backend_pid(first));
	(void) session_try(lab, NULL, OFFERED, NO_ARGS);
	check_text(scene, session_error(lab)->sqlstate, "55006", "a reader that asks the slot itself is refused with");
	require(scene, session_send(second, PULL, NO_ARGS));
	check_waits(scene, lab, second, "the second consumer waits");
	session_rollback(holder);
	require(scene, session_await(first, NULL, scene_deadline(scene, WAIT_MS)) == SQL_OK);
	(void) session_await(second, NULL, scene_deadline(scene, WAIT_MS));
	check_text(scene, session_error(second)->sqlstate, "", "the second consumer is refused with");
	require(scene, session_begin(first, READ_COMMITTED));
	require(scene, session_query(first, NULL, "SELECT pg_current_xact_id()", NO_ARGS));
	(void) session_try(first, NULL, PULL, NO_ARGS);
	check_text(scene, session_error(first)->sqlstate, "25001",
			   "a pull in a transaction that has written is refused with");
	session_rollback(first);
	(void) drain(scene, lab);
	check_drained(scene, lab, "after two readers");
	scene_close_session(scene, holder);
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}

static void
late_commit(Scene *scene, Session *lab)
{
	Session *late = like_client(scene, "late");

	step(scene, "a like commits after a later one was processed");
	require(scene, session_begin(late, READ_COMMITTED));
	(void) set_like_within(scene, late, 20, 2, true);
	(void) request_like(scene, lab, 21, 2, true);
	(void) drain(scene, lab);
	check_count(scene, lab, 2, 0, "n=4 lag=0 pending=0 stale=false", "before it commits");
	commit(scene, late);
	check_count(scene, lab, 2, 0, "n=4 lag=1 pending=1 stale=true", "after it has committed late");
	check_audits_clean(scene, lab, "after the late commit");
	(void) drain(scene, lab);
	check_drained(scene, lab, "after the late commit");
	scene_close_session(scene, late);
}

/* As EXPLAIN counts them. -1: it does not say. */
static int64_t
pages_of_read(Scene *scene, Session *lab)
{
	SqlResult *plan = NULL;
	int64_t pages = -1;

	require(scene,
			session_query(lab, &plan, "EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM like_read_count(1, 16)", NO_ARGS));
	for (int row = 0; pages < 0 && row < sql_rows(plan); row++)
	{
		const char *hit = strstr(sql_text(plan, row, 0), HIT);

		pages = hit == NULL ? -1 : strtoll(hit + strlen(HIT), NULL, 10);
	}
	sql_free(plan);
	return pages;
}

static void
old_transaction(Scene *scene, Session *lab)
{
	Session *old = scene_session(scene, "old");
	int64_t before, after;

	step(scene, "a transaction stays open while %d events are written and processed", MANY);
	require(scene, session_begin(old, READ_COMMITTED));
	require(scene, session_query(old, NULL, "SELECT pg_current_xact_id()", NO_ARGS));
	(void) pages_of_read(scene, lab); /* the session fills its caches */
	before = pages_of_read(scene, lab);
	require(scene,
			session_query(lab, NULL,
						  "SELECT count(s.changed) FROM generate_series($1::bigint, $2) u, like_set(u, 1, true) s",
						  ARGS(arg_int(MANY), arg_int(2 * MANY - 1))));
	(void) drain(scene, lab);
	after = pages_of_read(scene, lab);
	note(scene, "pages that a read looks at: before=%lld after=%lld", (long long) before, (long long) after);
	CHECK(scene, before > 0 && after <= before + MORE_PAGES_MOST, "a read looks at no more pages than before");
	check_drained(scene, lab, "beside the old transaction");
	session_rollback(old);
	scene_close_session(scene, old);
}

/* In megabytes of log, from what the slot has confirmed to the end. */
static int64_t
unconfirmed(Scene *scene, Session *lab)
{
	return number_of(scene, lab,
					 "SELECT (pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn) / $1)::bigint FROM " SLOT,
					 ARGS(arg_int(MEGABYTE)));
}

static void
nothing_happens(Scene *scene, Session *lab)
{
	int64_t before, after;

	step(scene, "no event is written, while others write log on the same server");
	require(scene, session_execute(lab, "CREATE TABLE ballast (t text STORAGE PLAIN)"));
	require(scene, session_execute(lab, BALLAST));
	before = unconfirmed(scene, lab);
	(void) drain(scene, lab);
	(void) drain(scene, lab);
	after = unconfirmed(scene, lab);
	note(scene, "megabytes of log that the slot has not confirmed: before=%lld after two pulls=%lld",
		 (long long) before, (long long) after);
	check_at_least(scene, before, HELD_BACK_MOST, "megabytes written beside it");
	CHECK(scene, after < HELD_BACK_MOST, "the slot follows although no event comes");
}

/* The slot's line for whoever is on call. Answers whether it is lost. */
static bool
slot_told(Scene *scene, Session *lab, const char *when)
{
	SqlResult *row;
	bool lost;

	require(scene,
			session_query(
				lab, &row,
				"SELECT s.wal_status, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) / $1, 0)::bigint, "
				"coalesce((s.safe_wal_size::bigint / $1::bigint)::text, '-'), "
				"(SELECT (sum(size) / $1)::bigint FROM pg_ls_waldir()) FROM " SLOT,
				ARGS(arg_int(MEGABYTE))));
	note(scene, "%s: wal_status=%s holds back=%s MB safe_wal_size=%s MB, pg_wal=%s MB", when, sql_text(row, 0, 0),
		 sql_text(row, 0, 1), sql_text(row, 0, 2), sql_text(row, 0, 3));
	lost = strcmp(sql_text(row, 0, 0), "lost") == 0;
	sql_free(row);
	return lost;
}

static void
left_behind(Scene *scene, Session *lab)
{
	bool lost = false;

	step(scene, "nobody pulls any more: the slot holds back log, until it is lost");
	like_in_order(scene, lab, 2, 30, 32);
	(void) slot_told(scene, lab, "no limit");
	require(scene, session_execute(lab, BALLAST));
	(void) slot_told(scene, lab, "no limit, later");
	check_at_least(scene,
				   number_of(scene, lab,
							 "SELECT (pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) / $1)::bigint FROM " SLOT,
							 ARGS(arg_int(MEGABYTE))),
				   HELD_BACK_MOST, "megabytes of log that the slot holds back");
	set_server(scene, lab, "max_slot_wal_keep_size = '32MB'");
	for (int round = 1; round <= BALLAST_ROUNDS_MOST && !lost; round++)
	{
		require(scene, session_execute(lab, BALLAST));
		(void) slot_told(scene, lab, "max_slot_wal_keep_size = 32MB");
		require(scene, session_execute(lab, "CHECKPOINT"));
		lost = slot_told(scene, lab, "behind a checkpoint");
	}
	CHECK(scene, lost, "the slot is lost (pg_replication_slots.wal_status)");
	check_count(scene, lab, 2, 0, "n=5 lag=3 pending=3 stale=true", "a reader sees what is not processed");

	step(scene, "the consumer comes back");
	check_pull(scene, lab, "30 31 32", "pulled: what the lost slot had");
	CHECK(scene, !slot_told(scene, lab, "opened anew"), "there is a new slot");
	(void) drain(scene, lab);
	recover(scene, lab, false);
	(void) request_like(scene, lab, 33, 2, true);
	CHECK_EQ(scene, number_of(scene, lab, OFFERED, NO_ARGS), 1, "events that the new slot has");
	(void) drain(scene, lab);
	check_drained(scene, lab, "in the end");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_of(scene, like_design_find("wal"), ITEMS);

	order_of_commits(scene, lab);
	logged_and_invisible(scene, lab);
	killed_consumer(scene, lab);
	lab = stopped_at_once(scene, lab);
	second_reader(scene, lab);
	late_commit(scene, lab);
	old_transaction(scene, lab);
	nothing_happens(scene, lab);
	left_behind(scene, lab);
}

const Scenario scenario_scale_wal = {
	.suite = "scale",
	.id = "scale/wal",
	.title = "no number at all: events from a replication slot, a snapshot as baseline",
	.claim = "events come in commit order and are confirmed behind the commit; a baseline holds what its snapshot saw",
	.kind = "real component, fixed interleaving, immediate stop",
	.guarantee = "no event is lost to a position in the log, a killed consumer or a lost slot; lag without history",
	.observed = "pg_replication_slots, like_pull(), processed_event, pg_locks, EXPLAIN",
	.needs = NEEDS_CLUSTER,
	.server_setting =
		LIKE_WAL_SETTINGS "\nautovacuum = off\nsynchronous_commit = local\nsynchronous_standby_names = ghost\n",
	.deadline_ms = 60000,
	.run = run,
};
