/*
 * scale/sequencer  numbers given after the commit: what the sequencer's own guards are for
 *
 * Claim      Events that writers leave without a number get one each, whatever order they commit in; a pair's events in the
 *            order of its versions, and one acknowledged before another began the lower; a batch at once, by one sequencer at a time. A baseline holds exactly the numbered ones.
 *            A round does not walk over what was numbered before it.
 * Method     Fixed orders. A like draws its id first and commits last, around two rounds. A pair is changed from two sessions,
 *            and again so that its later event lies in front of the earlier one in the table. A rebuild's snapshot beside
 *            a like that has no number. Two sequencers at once, the first uncommitted. Two likes one after
 *            the other. 6,000 events are numbered
 *            while an old snapshot keeps their dead entries (manual 24.1.2), and the pages of a round are counted before and after.
 * Expect     No event without a number, versions 1 and 2 in that order, C(S) = the deltas of 1..S, a second sequencer that goes
 *            on from the first one's last number, and a round that looks at no more pages than before, 10 for chance.
 * Not shown  How fast it is (L1); a sequencer that is killed is in crashpoints/like-sequencer.yaml.
 */
#include "32/recovery_lab.h"

enum
{
	ITEMS = 2,
	MOST = 1000, /* events of a round */
	WAIT_MS = 10000,
	MANY = 6000,
	MORE_PAGES_MOST = 10 /* an index may have grown by a level */
};

static int64_t
number_round(Scene *scene, Session *session, int64_t most)
{
	int64_t numbered = 0;

	require(scene, like_number(session, most, &numbered));
	return numbered;
}

static int64_t
unnumbered(Scene *scene, Session *lab)
{
	return number_of(scene, lab, "SELECT count(*) FROM like_unnumbered", NO_ARGS);
}

/* 0: it has none. */
static int64_t
number_of_first(Scene *scene, Session *lab, int64_t user)
{
	return number_of(scene, lab, "SELECT coalesce(max(seq), 0) FROM like_outbox WHERE user_id = $1 AND version = 1",
					 ARGS(arg_int(user)));
}

/* Transaction numbers and ids are drawn in opposite orders: the late one has the higher number and the lower id. */
static void
late_commit(Scene *scene, Session *lab)
{
	Session *early = like_client(scene, "early"), *late = like_client(scene, "late");

	step(scene, "a like draws its id before another one's, and commits after that was numbered");
	require(scene, session_begin(early, READ_COMMITTED));
	require(scene, session_query(early, NULL, "SELECT pg_current_xact_id()", NO_ARGS));
	require(scene, session_begin(late, READ_COMMITTED));
	(void) set_like_within(scene, late, 1, 1, true);
	(void) set_like_within(scene, early, 2, 1, true);
	commit(scene, early);
	CHECK_EQ(scene, number_round(scene, lab, MOST), 1, "events numbered while the first is still open");
	CHECK_EQ(scene, number_round(scene, lab, MOST), 0, "events numbered by another round");
	commit(scene, late);
	(void) number_round(scene, lab, MOST);
	CHECK_EQ(scene, number_of_first(scene, lab, 2), 1, "number of the like that committed first");
	CHECK_EQ(scene, number_of_first(scene, lab, 1), 2, "number of the like that committed late");
	check_write_side(scene, lab, "after the late commit");
	scene_close_session(scene, early);
	scene_close_session(scene, late);
}

static void
check_pair_in_order(Scene *scene, Session *lab, int64_t user, const char *what)
{
	check_query(
		scene, lab,
		"SELECT string_agg(version::text, ' ' ORDER BY seq) FROM like_outbox WHERE user_id = $1 AND item_id = 1",
		ARGS(arg_int(user)), "1 2", "%s: versions of the pair in the order of their numbers", what);
	check_write_side(scene, lab, what);
}

static void
pair_from_two_sessions(Scene *scene, Session *lab)
{
	Session *one = like_client(scene, "one"), *other = like_client(scene, "other");

	step(scene, "a pair is liked from one session and unliked from another that was there before");
	(void) request_like(scene, other, 10, 2, true);
	(void) request_like(scene, one, 11, 1, true);
	(void) request_like(scene, other, 11, 1, false);
	number_events(scene, lab);
	check_pair_in_order(scene, lab, 11, "from two sessions");
	scene_close_session(scene, one);
	scene_close_session(scene, other);
}

static void
later_event_in_front(Scene *scene, Session *lab)
{
	step(scene, "a pair's later event takes a place in the table that has become free");
	(void) request_like(scene, lab, 20, 2, true);
	(void) request_like(scene, lab, 21, 2, true);
	(void) request_like(scene, lab, 22, 1, true);
	CHECK_EQ(scene, number_round(scene, lab, 2), 2, "events numbered in a round of two");
	require(scene, session_execute(lab, "VACUUM like_unnumbered"));
	(void) request_like(scene, lab, 22, 1, false);
	check_query(scene, lab, "SELECT string_agg(version::text, ' ' ORDER BY ctid) FROM like_unnumbered", NO_ARGS, "2 1",
				"the pair's versions in the order of the table");
	number_events(scene, lab);
	check_pair_in_order(scene, lab, 22, "the later event in front");
}

static void
snapshot_beside_unnumbered(Scene *scene, Session *lab)
{
	LikeSnapshot snapshot;
	LikeTotals totals;

	step(scene, "a rebuild reads its snapshot beside a like that has no number yet");
	totals = drain(scene, lab);
	(void) request_like(scene, lab, 30, 2, true);
	snapshot = take_snapshot(scene, lab, 2);
	CHECK_EQ(scene, snapshot.items[1].facts,
			 number_of(scene, lab, "SELECT sum(delta) FROM like_outbox WHERE item_id = 2 AND seq <= $1",
					   ARGS(arg_int(snapshot.seq))),
			 "beside a like without a number: C(S) = the deltas of events 1..S");
	(void) install_baseline(scene, lab, &snapshot, 2, READ_COMMITTED);
	like_snapshot_free(&snapshot);
	check_state(scene, lab, 2, facts_of(scene, lab, 2) - 1,
				"watermark=9 lag=1 unprocessed=1 exact_violations=0 bound_violations=0 watermark_violations=0",
				"installed, the like pending");
	CHECK_EQ(scene, totals.watermark, 9, "the watermark before it");
	totals = drain(scene, lab);
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=10", "the like, numbered and delivered");
	check_drained(scene, lab, "after the rebuild");
}

static void
two_sequencers(Scene *scene, Session *lab)
{
	Session *first = scene_session(scene, "first sequencer"), *second = scene_session(scene, "second sequencer");
	int64_t last = last_number(scene, lab);
	SqlResult *rows = NULL;
	SqlStatus status;

	step(scene, "a sequencer has numbered two events, uncommitted, when a third comes and another sequencer");
	(void) request_like(scene, lab, 40, 1, true);
	(void) request_like(scene, lab, 41, 1, true);
	require(scene, session_begin(first, READ_COMMITTED));
	CHECK_EQ(scene, number_round(scene, first, MOST), 2, "events that the first has numbered");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT last FROM like_seq", NO_ARGS), last,
			 "the last number, seen from outside: a batch appears at once");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT max(seq) FROM like_outbox", NO_ARGS), last,
			 "the last event, seen from outside");
	CHECK_EQ(scene, unnumbered(scene, lab), 2, "events without a number, seen from outside");
	(void) request_like(scene, lab, 42, 1, true);
	require(scene, session_send(second, "SELECT like_number($1) FROM like_seq", ARGS(arg_int(MOST))));
	check_waits(scene, lab, second, "the second sequencer waits");
	commit(scene, first);
	status = session_await(second, &rows, scene_deadline(scene, WAIT_MS));
	check_text(scene, session_error(second)->sqlstate, "", "the second sequencer is refused with");
	CHECK_EQ(scene, status == SQL_OK ? sql_int(rows, 0, 0) : 0, 1, "events that the second has numbered");
	sql_free(rows);
	CHECK_EQ(scene, number_of_first(scene, lab, 42), last + 3, "it went on from the first one's last number");
	check_write_side(scene, lab, "after both");
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}

/* One is acknowledged before the other begins, and both are numbered in one round. */
static void
one_after_the_other(Scene *scene, Session *lab)
{
	step(scene,
		 "a like of the last item is acknowledged, then one of the first item, and both are numbered in one round");
	(void) request_like(scene, lab, 45, 2, true);
	(void) request_like(scene, lab, 44, 1, true);
	CHECK_EQ(scene, number_round(scene, lab, MOST), 2, "events numbered in that round");
	CHECK_EQ(scene, number_of_first(scene, lab, 44) - number_of_first(scene, lab, 45), 1,
			 "the number of the later like less that of the earlier one");
}

#define ROUND "SELECT like_number(10)"

static void
many_numbered_before(Scene *scene, Session *lab)
{
	Session *reader = scene_session(scene, "reader");
	int64_t before, after;

	step(scene, "%d events are numbered while an old snapshot keeps their dead entries", MANY);
	(void) request_like(scene, lab, 50, 2, true);
	(void) pages_of(scene, lab, ROUND); /* the session makes its plans */
	before = pages_of(scene, lab, ROUND);
	require(scene, session_begin(reader, REPEATABLE_READ));
	require(scene, session_query(reader, NULL, "SELECT count(*) FROM like_seq", NO_ARGS));
	require(scene,
			session_query(lab, NULL,
						  "SELECT count(s.changed) FROM generate_series($1::bigint, $2) u, like_set(u, 1, true) s",
						  ARGS(arg_int(MANY), arg_int(2 * MANY - 1))));
	number_events(scene, lab);
	CHECK_EQ(scene, unnumbered(scene, lab), 0, "events without a number");
	(void) request_like(scene, lab, 51, 2, true);
	after = pages_of(scene, lab, ROUND);
	note(scene, "pages that a round for one event looks at: before=%lld after=%lld", (long long) before,
		 (long long) after);
	CHECK(scene, before > 0 && after <= before + MORE_PAGES_MOST, "a round looks at no more pages than before");
	session_rollback(reader);
	scene_close_session(scene, reader);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_of(scene, like_design_find("sequencer"), ITEMS);

	late_commit(scene, lab);
	pair_from_two_sessions(scene, lab);
	later_event_in_front(scene, lab);
	snapshot_beside_unnumbered(scene, lab);
	two_sequencers(scene, lab);
	one_after_the_other(scene, lab);
	many_numbered_before(scene, lab);
	(void) drain(scene, lab);
	check_drained(scene, lab, "in the end");
}

const Scenario scenario_scale_sequencer = {
	.suite = "scale",
	.id = "scale/sequencer",
	.title = "numbers given after the commit: what the sequencer's own guards are for",
	.claim =
		"each event gets one number, a pair's in the order of versions, a batch at once; rounds cost what they number",
	.kind = "real component, fixed interleaving",
	.guarantee = "late commits are not passed over; versions in order; C(S) without unnumbered events; one sequencer",
	.observed = "like_outbox, like_unnumbered, like_seq, pg_locks, EXPLAIN",
	.needs = NEEDS_CLUSTER, /* what other databases commit would move the transaction numbers on */
	.server_setting = "autovacuum = off\n",
	.deadline_ms = 40000,
	.run = run,
};
