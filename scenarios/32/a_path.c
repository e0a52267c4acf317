/*
 * 32-A  the normal path: a like, its event, its count, and back
 *
 * Claim      Each state change writes one fact version and one event, numbered without a hole; consuming the events
 *            makes the counts equal the facts; and the tables themselves refuse what must not exist twice.
 * Method     One client likes, takes it back and likes again; another user and another item follow. Each event is
 *            consumed by itself, and both sides are audited before and after; that a fact and its event are of one
 *            transaction is seen in their xmin (5.5). Then duplicate rows are inserted past
 *            the write path and the consumer (unique constraints: PostgreSQL 16 manual, 5.4.3 and 5.4.4), and what no
 *            constraint refuses is put before the write-side audit.
 * Expect     Versions 1, 2, 3 with deltas +1, -1, +1; numbers 1..5; counts 2 and 1; 23505 for each duplicate; each damage
 *            in a field of its own.
 * Not shown  Any concurrency (32-C on), nor counts of other inputs (L1); the consumer is called by the lab (L6).
 */
#include <stdlib.h>

#include "lab.h"

#define ALLOWED_LAG 16

static const char *const log_sql =
	"SELECT string_agg(format('%s:%s v%s', number, delta, version), ', ' ORDER BY number) FROM lab_event";

static void
check_written_together(Scene *scene, Session *lab)
{
	char *sql = string_format("SELECT f.xmin = e.xmin FROM like_fact f JOIN %s e USING (user_id, item_id, version)",
							  design()->left_in);

	check_query(scene, lab, sql, NO_ARGS, "t", "written by the transaction that wrote its fact");
	free(sql);
}

static void
like_reaches_count(Scene *scene, Session *lab)
{
	LikeResult answer;
	LikeTotals totals;

	step(scene, "user 7 likes item-lab-01");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=0 lag=0 pending=0 stale=false", "nothing has happened yet");
	answer = request_like(scene, lab, 7, 1, true);
	check_written_together(scene, lab);
	learn_number(scene, lab, 7, 1, &answer);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=1)", "the first like");
	check_query(scene, lab, log_sql, NO_ARGS, "1:1 v1", "its event");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=0 lag=1 pending=1 stale=false", "the count is one event behind");
	check_audits_clean(scene, lab, "liked, not consumed");

	totals = deliver(scene, lab, SEQS(1));
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=1", "event 1 is consumed");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=1 lag=0 pending=0 stale=false", "the count has followed");
	check_audits_clean(scene, lab, "liked and consumed");
}

static void
unlike_reaches_count(Scene *scene, Session *lab)
{
	LikeResult answer;
	LikeTotals totals;

	step(scene, "user 7 takes it back, and likes it again");
	answer = set_like(scene, lab, 7, 1, false);
	check_answer(scene, &answer, "CHANGED(unliked, v2, seq=2)", "the unlike");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=1 lag=1 pending=1 stale=false",
				"the count still tells the state before");
	totals = deliver(scene, lab, SEQS(2));
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=2", "event 2 is consumed");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=0 lag=0 pending=0 stale=false", "nobody likes it");
	check_audits_clean(scene, lab, "taken back and consumed");

	answer = set_like(scene, lab, 7, 1, true);
	check_answer(scene, &answer, "CHANGED(liked, v3, seq=3)", "the second like");
	totals = deliver(scene, lab, SEQS(3));
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=3", "event 3 is consumed");
	check_audits_clean(scene, lab, "liked again and consumed");
}

static void
others_like_too(Scene *scene, Session *lab)
{
	LikeResult answer;
	LikeTotals totals;

	step(scene, "versions count per pair, numbers over all");
	answer = set_like(scene, lab, 8, 1, true);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=4)", "another user");
	answer = set_like(scene, lab, 7, 2, true);
	check_answer(scene, &answer, "CHANGED(liked, v1, seq=5)", "another item");
	check_query(scene, lab, log_sql, NO_ARGS, "1:1 v1, 2:-1 v2, 3:1 v3, 4:1 v1, 5:1 v1", "the whole log");
	totals = drain(scene, lab);
	check_totals(scene, &totals, "applied=2 covered=0 dup=0 watermark=5", "the rest is consumed");
	check_count(scene, lab, 1, ALLOWED_LAG, "n=2 lag=0 pending=0 stale=false", "item-lab-01");
	check_count(scene, lab, 2, ALLOWED_LAG, "n=1 lag=0 pending=0 stale=false", "item-lab-02");
	check_drained(scene, lab, "all consumed");
}

/* Inserts one row past the code that owns the table, and takes it back when the schema lets it in. */
static void
check_insert(Scene *scene, Session *lab, const char *sql, const char *expected, const char *what)
{
	require(scene, session_begin(lab, READ_COMMITTED));
	(void) session_try(lab, NULL, sql, NO_ARGS);
	check_text(scene, session_error(lab)->sqlstate, expected, "%s", what);
	session_rollback(lab);
}

static void
schema_refuses_duplicates(Scene *scene, Session *lab)
{
	step(scene, "the schema refuses duplicates by itself");
	check_insert(scene, lab, "INSERT INTO like_outbox (seq, user_id, item_id, delta, version) VALUES (6, 7, 1, -1, 4)",
				 "", "an event with a new number and a new version would be let in");
	check_insert(scene, lab, "INSERT INTO like_outbox (seq, user_id, item_id, delta, version) VALUES (6, 7, 1, 1, 3)",
				 "23505", "a second event for the same (user, item, version)");
	check_insert(scene, lab,
				 "INSERT INTO like_outbox (seq, user_id, item_id, delta, version) "
				 "SELECT seq, 7, item_id, -1, 4 FROM like_outbox WHERE user_id = 8",
				 "23505", "a second event under the same number");
	check_insert(scene, lab, "INSERT INTO processed_event SELECT * FROM processed_event LIMIT 1", "23505",
				 "an event registered as processed a second time");
	check_insert(scene, lab, "INSERT INTO like_fact (user_id, item_id, liked, version) VALUES (7, 1, false, 0)",
				 "23505", "a second fact for the same (user, item)");
	check_query(scene, lab, log_sql, NO_ARGS, "1:1 v1, 2:-1 v2, 3:1 v3, 4:1 v1, 5:1 v1", "the log is as it was");
	check_audits_clean(scene, lab, "after the refusals");
}

/* Damages the write side past the code that owns it, looks, and takes it back. */
static void
check_damage_seen(Scene *scene, Session *lab, const char *sql, const char *expected, const char *what)
{
	LikeWriteAudit write_side;
	Text fields = {0};

	require(scene, session_begin(lab, READ_COMMITTED));
	require(scene, session_execute(lab, sql));
	write_side = audit_write_side(scene, lab);
	session_rollback(lab);
	like_write_audit_describe(&write_side, &fields);
	check_text(scene, text_get(&fields), expected, "%s", what);
	text_free(&fields);
}

static void
audit_sees_damage(Scene *scene, Session *lab)
{
	step(scene, "what the schema lets in, the write-side audit sees");
	check_damage_seen(scene, lab, "UPDATE like_fact SET liked = false WHERE user_id = 8",
					  "last_seq=5 outbox_rows=5 gap_violations=0 version_mismatch_pairs=0 delta_sum_mismatch_items=1",
					  "a fact changed without an event");
	check_damage_seen(scene, lab, "UPDATE like_fact SET version = version + 1 WHERE user_id = 8",
					  "last_seq=5 outbox_rows=5 gap_violations=0 version_mismatch_pairs=1 delta_sum_mismatch_items=0",
					  "a version without an event");
	check_damage_seen(scene, lab, "UPDATE like_outbox SET seq = 7 WHERE item_id = 2",
					  "last_seq=5 outbox_rows=5 gap_violations=2 version_mismatch_pairs=0 delta_sum_mismatch_items=0",
					  "an event under another number: 5 is missing, 7 is too many");
	check_damage_seen(scene, lab, "DELETE FROM like_outbox WHERE user_id = 7 AND version = 2",
					  "last_seq=5 outbox_rows=4 gap_violations=1 version_mismatch_pairs=1 delta_sum_mismatch_items=1",
					  "an event that is gone");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, 2);

	like_reaches_count(scene, lab);
	unlike_reaches_count(scene, lab);
	others_like_too(scene, lab);
	schema_refuses_duplicates(scene, lab);
	audit_sees_damage(scene, lab);
}

const Scenario scenario_32_a = {
	.suite = "32",
	.id = "32-A",
	.title = "the normal path: a like, its event, its count, and back",
	.claim = "each state change is one version and one event, numbered without a hole; consumed, counts equal facts",
	.kind = "real component",
	.guarantee = "versions, deltas and numbers of the normal path; duplicates refused by the schema",
	.observed = "like_fact, like_outbox, like_count, both audits",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 20000,
	.run = run,
};
