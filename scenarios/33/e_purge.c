/*
 * 33-E  registrations are purged while an event can still be delivered again
 *
 * Claim      Deduplication lasts as long as its rows. Purged at or below the position of every consumer, and with
 *            deliveries at or below that line refused, no event takes effect twice; purged by age, one does.
 * Method     Two consumers of one stream of three events. Registrations are made old by hand. Each event is delivered
 *            again after each purge, by the consumer that is behind; and a delivery waits for a purge under way.
 * Expect     While one consumer is behind nothing of what it may ask for goes, and its repeats are absorbed. Then the rows
 *            go and a repeat is refused: n stays. A window of zero or less is refused. By age alone n is 6 for 3 events (M39).
 * Not shown  Registrations of the like counter itself, which are kept for ever (L5).
 */
#include "32/lab.h"

#include <string.h>

enum
{
	EVENTS = 3,
	ANSWER_MS = 10000
};

#define WINDOW "1 hour"

static int64_t
total(Scene *scene, Session *lab)
{
	return number_of(scene, lab, "SELECT n FROM total", NO_ARGS);
}

/* "applied", "dup", or the SQLSTATE of a refusal. */
static const char *
delivered(Scene *scene, Session *session, int64_t seq)
{
	SqlResult *rows = NULL;
	SqlStatus status = session_try(session, &rows, "SELECT applied FROM dedup_deliver($1)", ARGS(arg_int(seq)));
	bool applied = status == SQL_OK && sql_bool(rows, 0, 0);

	sql_free(rows);
	require(scene, !session_is_lost(session));
	return status != SQL_OK ? session_error(session)->sqlstate : applied ? "applied" : "dup";
}

static void
acknowledge(Scene *scene, Session *session, const char *consumer, int64_t seq)
{
	require(scene,
			session_query(session, NULL, "SELECT dedup_acknowledge($1, $2)", ARGS(arg_text(consumer), arg_int(seq))));
}

/* How many rows went, or the SQLSTATE of a refusal. */
static void
check_purge(Scene *scene, Session *session, const char *window, const char *expected, const char *what)
{
	SqlResult *rows = NULL;
	SqlStatus status =
		session_try(session, &rows, "SELECT deleted FROM dedup_purge($1::interval)", ARGS(arg_text(window)));

	require(scene, !session_is_lost(session));
	check_text(scene, status == SQL_OK ? sql_text(rows, 0, 0) : session_error(session)->sqlstate, expected, "%s", what);
	sql_free(rows);
}

static void
deliver_all(Scene *scene, Session *lab)
{
	step(scene, "%d events, applied once; one consumer has acknowledged all, the other the first", EVENTS);
	require(scene, session_execute(lab, "INSERT INTO event (seq, delta) VALUES (1, 1), (2, 1), (3, 1)"));
	for (int64_t seq = 1; seq <= EVENTS; seq++)
	{
		check_text(scene, delivered(scene, lab, seq), "applied", "event %lld", (long long) seq);
	}
	check_purge(scene, lab, WINDOW, "0", "rows purged while no consumer is known");
	acknowledge(scene, lab, "ahead", EVENTS);
	acknowledge(scene, lab, "behind", 1);
	check_purge(scene, lab, WINDOW, "0", "rows purged while all are young");
	require(scene, session_execute(lab, "UPDATE registered SET at = now() - interval '1 day'"));
}

static void
window_refused(Scene *scene, Session *lab)
{
	step(scene, "a window that keeps nothing is refused");
	check_purge(scene, lab, "0", "22023", "a window of zero");
	check_purge(scene, lab, "-1 hour", "22023", "a window below zero");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM registered", NO_ARGS), EVENTS,
			 "registrations after both");
}

static void
one_is_behind(Scene *scene, Session *lab)
{
	step(scene, "all are old, and one consumer is behind: it may be sent events 2 and 3 again");
	check_purge(scene, lab, WINDOW, "1", "rows purged: what both have acknowledged");
	check_text(scene, delivered(scene, lab, 2), "dup", "event 2 again, to the consumer that is behind");
	check_text(scene, delivered(scene, lab, 3), "dup", "event 3 again, to the consumer that is behind");
	check_text(scene, delivered(scene, lab, 1), "55000", "event 1 again, from before the line");
	CHECK_EQ(scene, total(scene, lab), EVENTS, "n after old events were delivered again");
}

static void
all_are_through(Scene *scene, Session *lab)
{
	step(scene, "both have acknowledged all");
	acknowledge(scene, lab, "behind", EVENTS);
	check_purge(scene, lab, WINDOW, "2", "rows purged: the rest");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT upto FROM purged", NO_ARGS), EVENTS, "the line of the purged");
	for (int64_t seq = 1; seq <= EVENTS; seq++)
	{
		check_text(scene, delivered(scene, lab, seq), "55000", "event %lld again, after the purge", (long long) seq);
	}
	CHECK_EQ(scene, total(scene, lab), EVENTS, "n after all were delivered again");
}

/* The delivery looks at the line after the purge has ended, not before. */
static void
delivery_waits(Scene *scene, Session *lab, Session *purger, Session *consumer)
{
	SqlStatus status;

	step(scene, "a delivery that comes while a purge is under way waits for its line");
	require(scene, session_execute(lab, "INSERT INTO event (seq, delta) VALUES (4, 1)"));
	check_text(scene, delivered(scene, lab, EVENTS + 1), "applied", "event 4");
	acknowledge(scene, lab, "ahead", EVENTS + 1);
	acknowledge(scene, lab, "behind", EVENTS + 1);
	require(scene, session_execute(lab, "UPDATE registered SET at = now() - interval '1 day'"));
	require(scene, session_begin(purger, READ_COMMITTED));
	check_purge(scene, purger, WINDOW, "1", "rows purged, not committed");
	require(scene, session_send(consumer, "SELECT applied FROM dedup_deliver($1)", ARGS(arg_int(EVENTS + 1))));
	scene_await_int(scene, lab, 1,
					"SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND query LIKE '%dedup_deliver%' "
					"AND (state <> 'active' OR wait_event_type = 'Lock')",
					ARGS(arg_int(session_backend_pid(consumer))));
	CHECK(scene, session_commit(purger) == SQL_OK, "the purge commits");
	status = session_await(consumer, NULL, scene_deadline(scene, ANSWER_MS));
	require(scene, status == SQL_OK || status == SQL_ERROR);
	check_text(scene, session_error(consumer)->sqlstate, "55000", "the delivery that waited");
	CHECK_EQ(scene, total(scene, lab), EVENTS + 1, "n after it");
}

static void
run(Scene *scene)
{
	Session *lab = scene_session(scene, "lab");

	require(scene, session_execute_file(lab, scene_sql(scene, "dedup/schema.sql")));
	require(scene, session_execute_file(lab, scene_sql(scene, "dedup/deliver.sql")));
	require(scene, session_execute_file(lab, scene_sql(scene, "dedup/purge.sql")));
	load_twin(scene, lab, "dedup");
	deliver_all(scene, lab);
	window_refused(scene, lab);
	one_is_behind(scene, lab);
	all_are_through(scene, lab);
	delivery_waits(scene, lab, scene_session(scene, "purger"), scene_session(scene, "consumer"));
}

const Scenario scenario_33_e = {
	.suite = "33",
	.id = "33-E",
	.title = "registrations are purged while an event can be delivered again",
	.claim = "purged at or below every consumer's position, with repeats from there refused, no event counts twice",
	.kind = "fixed interleaving",
	.guarantee = "an event takes effect once, before and after its registration is purged",
	.observed = "registered, purged, total, SQLSTATE of the refusals",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
