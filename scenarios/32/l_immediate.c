/*
 * 32-L  the server is stopped at once while 6 writers and a consumer run
 *
 * Claim      What was acknowledged is there after recovery, fact and event together; what was unknown is decided by its
 *            transaction number; counts may lag and the identity holds; sent again, an unknown request takes effect once.
 * Method     `pg_ctl restart -m immediate` aborts every server process and the next start recovers from WAL (manual,
 *            pg_ctl; WAL before data pages: 30.3). Four times: right after 20 acknowledged likes; in a storm of requests;
 *            while a COMMIT is durable and unanswered (it waits for a synchronous standby that does not exist); while a
 *            COMMIT is not yet durable (it waits in a deferred trigger). Autovacuum is off, so that nothing draws a
 *            transaction number before the unknown ones are resolved, and the WAL writer is slow, so that what only a
 *            COMMIT makes durable is not so by chance. Every outbox row is matched with the one request that wrote it.
 * Expect     The 20 are there. 7 threads end with 08006, the first error. Outbox rows = acked CHANGED + unknown CHANGED that
 *            committed. The durable one is committed and answers NOOP when sent again; the other is not, its number is
 *            given out again, and it answers CHANGED. like-consumer refuses tables that a crash would empty.
 * Not shown  Power loss: pages that the kernel holds survive (L3). A server with a standby (scale/failover). How many requests the
 *            storm leaves unknown varies, and may be none (L7): the other two are made certain.
 */
#include "recovery_lab.h"
#include "trace_lab.h"
#include "unknown_lab.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
	ITEMS = 4,
	WRITERS = 6,
	CLIENTS = WRITERS + 1, /* the last is the consumer */
	USERS_EACH = 10,       /* a writer has users of its own: nothing comes between its unknown request and its repeat */
	DURABLE_USER = 101,
	UNDURABLE_USER = 102,
	VICTIM_ITEM = 1,
	ACKED_IDLE = 20, /* likes of as many users of their own */
	ACKED_USER = 200,
	BATCH = 50,
	ACKED_LEAST = 200,
	IDLE_MS = 5,
	WAIT_MS = 15000,
	CONSUMED_MS = 5000,
	RESTART_MS = 30000,
	TOGGLES_MAX = 100000
};

#define LOST_SQLSTATE "08006"
#define POLITE_STOP_SQLSTATE "57P01"
#define CONSUME                                                                                                        \
	"SELECT c.applied, c.covered, c.dup, c.watermark FROM like_watermark() w, like_consume(like_pull(w, $1)) c"

typedef struct
{
	History *history;
	uint64_t seed;
	Session *sessions[CLIENTS];
	char states[CLIENTS][6]; /* the first error of each, "" while it runs */
	atomic_llong acked;      /* CHANGED */
	atomic_llong consumed;   /* events, by its own watermark */
	atomic_llong refused;    /* by the server while it ran */
} Storm;

/* One client whose COMMIT is made to hang. */
typedef struct
{
	History *history;
	Session *session;
	int64_t user;
	LikeResult result;
} Victim;


static void
restart_at_once(Scene *scene, Fault *fault)
{
	require(scene, fault_restart_immediate(fault, scene_history(scene), scene_cluster(scene),
										   scene_deadline(scene, RESTART_MS)));
}

/* The horizon is the first thing that is read, before anything writes. */
static Session *
reconnect(Scene *scene, uint64_t *horizon)
{
	Session *session = scene_session(scene, "lab");

	require(scene, steps()->recovery_horizon(session, horizon));
	require(scene, steps()->prepare(session));
	return session;
}


/* --- what was acknowledged --- */

static void
tell_settings(Scene *scene, Session *session)
{
	SqlResult *settings;

	require(scene,
			session_query(session, &settings,
						  "SELECT string_agg(name || '=' || current_setting(name), ' ' ORDER BY name) FROM pg_settings "
						  "WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'wal_writer_delay')",
						  NO_ARGS));
	note(scene, "settings in force: %s", sql_text(settings, 0, 0));
	sql_free(settings);
}

/*
 * What is acknowledged before it is durable becomes durable by chance, when the WAL writer flushes: at once when it is
 * woken for the first time, and then not before its delay is over. So it is woken now, by some pages of WAL.
 */
static void
wake_wal_writer(Scene *scene, Session *lab)
{
	int64_t before = number_of(scene, lab, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", NO_ARGS);

	require(scene, session_execute(lab, "SET synchronous_commit = off"));
	require(scene,
			session_query(lab, NULL, "SELECT pg_logical_emit_message(true, 'lab', repeat('.', 16384))", NO_ARGS));
	require(scene, session_execute(lab, "RESET synchronous_commit"));
	scene_await_int(scene, lab, 1, "SELECT count(*) WHERE pg_current_wal_flush_lsn() - '0/0' > $1",
					ARGS(arg_int(before)));
}

/* One after another and nobody beside them, so that nothing which another client flushes makes them durable. */
static Session *
crash_acknowledged(Scene *scene, Session *lab)
{
	Fault *fault = scene_fault(scene, "pg_ctl restart -m immediate right after %d acknowledged likes", ACKED_IDLE);
	Session *writer = like_client(scene, "writer");
	int64_t changed = 0, found;
	uint64_t horizon;

	step(scene, "%d likes are acknowledged on an idle server, which is then stopped at once", ACKED_IDLE);
	tell_settings(scene, writer);
	wake_wal_writer(scene, lab);
	for (int i = 0; i < ACKED_IDLE; i++)
	{
		LikeResult result;

		require(scene, recorded_set(scene_history(scene), CLIENTS, writer, ACKED_USER + i, VICTIM_ITEM, true, &result));
		changed += result.outcome == LIKE_CHANGED;
	}
	restart_at_once(scene, fault);
	scene_close_session(scene, writer);
	scene_close_session(scene, lab);
	lab = reconnect(scene, &horizon);
	number_events(scene, lab);
	found = number_of(scene, lab, "SELECT count(*) FROM like_outbox", NO_ARGS);
	CHECK_EQ(scene, changed, ACKED_IDLE, "likes acknowledged");
	CHECK_EQ(scene, changed - found, 0, "acknowledged but gone");
	return lab;
}


/* --- the storm --- */

/* Until the connection is lost, which alone ends a client in order. */
static bool
write_until_lost(Storm *storm, int worker)
{
	Rng rng = rng_stream(storm->seed, (uint64_t) worker);
	Session *session = storm->sessions[worker];

	while (!session_is_lost(session))
	{
		int64_t user = 1 + worker * USERS_EACH + (int64_t) rng_below(&rng, USERS_EACH);
		int64_t item = 1 + (int64_t) rng_below(&rng, ITEMS);
		LikeResult result;

		if (!recorded_set(storm->history, worker, session, user, item, rng_below(&rng, 2) == 1, &result))
		{
			return false;
		}
		atomic_fetch_add(&storm->acked, result.outcome == LIKE_CHANGED);
		atomic_fetch_add(&storm->refused, result.outcome == LIKE_REJECTED && !session_is_lost(session));
	}
	return true;
}

/* Pull and deliver in one statement, tried without a report: the loss of the connection is the expected end. */
static bool
consume_until_lost(Storm *storm, Session *session)
{
	while (!session_is_lost(session))
	{
		SqlResult *rows;
		SqlStatus status = session_try(session, &rows, CONSUME, ARGS(arg_int(BATCH)));
		int64_t watermark = status == SQL_OK ? sql_int(rows, 0, 3) : 0;

		if (status == SQL_OK)
		{
			trace_consumed(session,
						   &(LikeTotals){sql_int(rows, 0, 0), sql_int(rows, 0, 1), sql_int(rows, 0, 2), watermark});
			atomic_store(&storm->consumed, watermark);
		}
		sql_free(rows);
		atomic_fetch_add(&storm->refused, status == SQL_ERROR);
		if (!session_is_lost(session) &&
			!await_counter("acked requests", &storm->acked, watermark + BATCH, deadline_in_ms(IDLE_MS)))
		{
			return false;
		}
	}
	return true;
}

static bool
client(int worker, void *context)
{
	Storm *storm = context;
	Session *session = storm->sessions[worker];
	bool done = worker < WRITERS ? write_until_lost(storm, worker) : consume_until_lost(storm, session);

	snprintf(storm->states[worker], sizeof(storm->states[worker]), "%s", session_error(session)->sqlstate);
	if (worker == WRITERS)
	{
		trace_lost(session);
	}
	return done;
}

static void
check_states(Scene *scene, Storm *storm)
{
	Text states = {0};
	int lost = 0;

	for (int i = 0; i < CLIENTS; i++)
	{
		if (strcmp(storm->states[i], POLITE_STOP_SQLSTATE) == 0)
		{
			scene_broken(scene, "client %d was stopped politely (57P01), not at once", i);
		}
		lost += strcmp(storm->states[i], LOST_SQLSTATE) == 0;
		if (i == WRITERS || strstr(text_get(&states), storm->states[i]) == NULL)
		{
			text_append(&states, "%s%s%s", i > 0 ? ", " : "", i == WRITERS ? "consumer:" : "", storm->states[i]);
		}
		scene_close_session(scene, storm->sessions[i]);
	}
	note(scene, "acked CHANGED before crash=%lld; threads ended=%d states=[%s]", (long long) atomic_load(&storm->acked),
		 CLIENTS, text_get(&states));
	text_free(&states);
	CHECK_EQ(scene, atomic_load(&storm->refused), 0, "requests and batches that the server refused while it ran");
	CHECK_EQ(scene, lost, CLIENTS, "threads that ended with the lost connection (08006) as their first error");
}

static void
storm_until_crash(Scene *scene)
{
	static Storm storm; /* outlives a case that ends early while clients run */
	Fault *fault = scene_fault(scene, "pg_ctl restart -m immediate under %d writers and a consumer", WRITERS);
	ActorGroup *group;

	storm.history = scene_history(scene);
	storm.seed = scene_seed(scene);
	for (int i = 0; i < CLIENTS; i++)
	{
		storm.sessions[i] = like_client(scene, i < WRITERS ? "writer" : "consumer");
	}
	group = actor_start("client", CLIENTS, client, &storm);
	require(scene, group != NULL);
	actor_open_gate(group);
	require(scene, await_counter("acked requests", &storm.acked, ACKED_LEAST, scene_deadline(scene, WAIT_MS)));
	require(scene, await_counter("a batch consumed", &storm.consumed, 1, deadline_in_ms(CONSUMED_MS)));
	restart_at_once(scene, fault);
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	check_at_least(scene, atomic_load(&storm.acked), ACKED_LEAST, "acked CHANGED before the crash");
	check_at_least(scene, atomic_load(&storm.consumed), 1, "events consumed before the crash");
	check_states(scene, &storm);
}


/* --- the two that are made certain --- */

/*
 * Toggles until an answer does not come. One hang is enough: the server learns of its standby a moment after it was
 * told, and the requests before that are answered.
 */
static bool
send_until_lost(int worker, void *context)
{
	Victim *victim = context;
	(void) worker;
	for (int i = 0; i < TOGGLES_MAX; i++)
	{
		bool want = i % 2 == 0;

		if (!recorded_set(victim->history, CLIENTS, victim->session, victim->user, VICTIM_ITEM, want, &victim->result))
		{
			return false;
		}
		if (victim->result.outcome != LIKE_CHANGED)
		{
			return true;
		}
	}
	report_error("%d requests were answered, none hung", TOGGLES_MAX);
	return false;
}

/* Crash the server while this user's COMMIT is seen waiting. */
static void
crash_in_commit(Scene *scene, Session *lab, int64_t user, const char *wait_event, const char *what)
{
	static Victim victims[2]; /* outlive a case that ends early while they hang */
	Victim *victim = &victims[user == UNDURABLE_USER];
	Fault *fault = scene_fault(scene, "pg_ctl restart -m immediate %s", what);
	ActorGroup *group;

	*victim = (Victim){.history = scene_history(scene), .session = like_client(scene, "victim"), .user = user};
	/* A COMMIT that answers before it is durable waits for no standby. */
	require(scene, session_execute(victim->session, "SET synchronous_commit = on"));
	group = actor_start("victim", 1, send_until_lost, victim);
	require(scene, group != NULL);
	actor_open_gate(group);
	scene_await_int(scene, lab, 1, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = $2",
					ARGS(arg_int(session_backend_pid(victim->session)), arg_text(wait_event)));
	note(scene, "its COMMIT is seen waiting: wait_event=%s", wait_event);
	trace_tell(trace_client(session_name(victim->session)), "wait", "its COMMIT is seen waiting: wait_event=%s",
			   wait_event);
	restart_at_once(scene, fault);
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	CHECK(scene, victim->result.outcome == LIKE_UNKNOWN, "the request is unknown to its client");
	CHECK(scene, victim->result.changed && victim->result.xid != 0,
		  "its row and xid had arrived before the COMMIT ended");
	check_text(scene, session_error(victim->session)->sqlstate, LOST_SQLSTATE, "its error is the lost connection");
	scene_close_session(scene, victim->session);
	scene_close_session(scene, lab);
}

static void
finish(Scene *scene, Session *lab)
{
	recover(scene, lab, false);
	check_drained(scene, lab, "after recovery");
}

static Session *
crash_durable(Scene *scene, Session *lab, Requests *requests)
{
	uint64_t horizon;
	Unknowns found;

	step(scene, "a COMMIT that is durable and never answered: it waits for a standby that does not exist");
	require(scene, session_execute(lab, "ALTER SYSTEM SET synchronous_standby_names = 'ghost'"));
	require(scene, session_execute(lab, "SELECT pg_reload_conf()"));
	crash_in_commit(scene, lab, DURABLE_USER, "SyncRep", "while a durable COMMIT waits for its standby");
	lab = reconnect(scene, &horizon);
	/* Neither of the two writes a transaction. What does, from here on, waits for no standby. */
	require(scene, session_execute(lab, "ALTER SYSTEM RESET synchronous_standby_names"));
	require(scene, session_execute(lab, "SELECT pg_reload_conf()"));
	found = look_after_crash(scene, lab, horizon, requests);
	CHECK_EQ(scene, found.unknown, 1, "one unknown request");
	CHECK_EQ(scene, found.committed_changed, 1, "it had committed");
	send_unknowns_again(scene, lab, requests, CLIENTS);
	finish(scene, lab);
	return lab;
}

static Session *
crash_not_durable(Scene *scene, Session *lab, Requests *requests)
{
	uint64_t horizon;
	Unknowns found;
	int64_t last;

	step(scene, "a COMMIT that is not durable yet: it waits in a deferred trigger for a lock");
	last = last_number(scene, lab);
	require(scene, session_execute_file(lab, scene_sql(scene, "lab/wait_in_commit.sql")));
	require(scene, session_execute(lab, "SELECT pg_advisory_lock(32)"));
	crash_in_commit(scene, lab, UNDURABLE_USER, "advisory", "while a COMMIT waits before its record is written");
	lab = reconnect(scene, &horizon);
	found = look_after_crash(scene, lab, horizon, requests);
	CHECK_EQ(scene, found.unknown, 1, "one unknown request");
	CHECK_EQ(scene, found.beyond_horizon, 1, "its transaction number reached no disk and will be given out again");
	CHECK_EQ(scene, found.not_committed, 1, "it had not committed");
	CHECK_EQ(scene, last_number(scene, lab), last, "the number it had taken was given back");
	send_unknowns_again(scene, lab, requests, CLIENTS);
	CHECK_EQ(scene, last_number(scene, lab), last + 1, "and is taken by its repeat");
	finish(scene, lab);
	return lab;
}

/* What it has delivered would be delivered again after a crash, and nothing would know it. */
static void
consumer_refuses_unlogged(Scene *scene, Session *lab)
{
	const char *argv[] = {scene_program(scene, "like-consumer"), "--conninfo", scene_conninfo(scene), "--offset-file",
						  scene_file(scene, "consumer.offset"),  NULL};
	ProcessEnd end = {0};
	Text output = {0};

	step(scene, "a table of the consumer's is unlogged: a crash would empty it");
	require(scene, session_execute(lab, "ALTER TABLE counter_watermark SET UNLOGGED"));
	require(scene, process_run(&(ProcessSpec){.argv = argv}, scene_deadline(scene, WAIT_MS), &output, &end));
	require(scene, session_execute(lab, "ALTER TABLE counter_watermark SET LOGGED"));
	note(scene, "like-consumer| %.*s", (int) strcspn(text_get(&output), "\n"), text_get(&output));
	CHECK(scene, end.how == ENDED_EXIT && end.code == EXIT_CODE_USAGE, "like-consumer refuses to start");
	CHECK(scene, strstr(text_get(&output), "counter_watermark") != NULL, "and names the table");
	text_free(&output);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, ITEMS);
	Requests requests = {0};
	uint64_t horizon;

	consumer_refuses_unlogged(scene, lab);
	lab = crash_acknowledged(scene, lab);

	step(scene, "%d writers and a consumer run until the server is stopped at once", WRITERS);
	storm_until_crash(scene);
	scene_close_session(scene, lab);
	lab = reconnect(scene, &horizon);
	look_after_crash(scene, lab, horizon, &requests);
	send_unknowns_again(scene, lab, &requests, CLIENTS);
	finish(scene, lab);

	lab = crash_durable(scene, lab, &requests);
	lab = crash_not_durable(scene, lab, &requests);

	step(scene, "all requests of the four crashes in one order");
	check_audits_clean(scene, lab, "in the end");
	judge_history(scene, "requests before, at and after four crashes");
	requests_free(&requests);
}

const Scenario scenario_32_l = {
	.suite = "32",
	.id = "32-L",
	.title = "the server is stopped at once under 6 writers and a consumer",
	.claim =
		"acked changes survive, fact with event; unknown ones are decided by xid and, sent again, take effect once",
	.kind = "real threads, immediate stop",
	.guarantee = "acked is durable; facts and events agree; unknown is resolved and safe to repeat",
	.observed = "states of the clients, audits before draining, outbox rows matched one by one",
	.needs = NEEDS_CLUSTER,
	.server_setting = "autovacuum = off\nwal_writer_delay = 10s",
	.deadline_ms = 90000,
	.run = run,
};
