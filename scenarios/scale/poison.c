/*
 * scale/poison  an event that breaks a constraint, and a number with two payloads
 *
 * Claim      An event that cannot be applied stops the consumer, with lag and the event named, or is parked in the transaction of
 *            its batch; then the audit says how much is missing of which item, and that nothing else is. Nothing is dropped. A
 *            number that comes with another payload is a conflict and never a duplicate.
 * Method     An operator's CHECK (n <= 2) meets the third like of an item; CHECK (n >= 0) an unlike that comes before its like. In
 *            mode stop by a batch, and by the consumer's program; in mode park, looked at from outside before and after the
 *            commit, read, delivered again, tried again under the CHECK and without it. A baseline is installed over a parked event.
 *            An event's row is changed after it was processed, a log is rewound and grows past the watermark.
 * Expect     LK001 with number, item and constraint, 3 attempts, exit code 6, lag as it was. Parked: known difference 1, within the
 *            bound that is read, no violation; afterwards 0. LK002 with number and item.
 * Not shown  Constraints that are checked at the commit (deferred): they fail the batch without a name. Two different payloads with
 *            one digest (L38).
 */
#include "32/recovery_lab.h"
#include "32/trace_lab.h"

enum
{
	ITEM = 1,
	OTHER_ITEM = 2,
	ODD_ITEM = 3,
	ITEMS = 3,
	BATCH = 100
};

#define CLEAN "exact_violations=0 bound_violations=0 watermark_violations=0"
#define BROKEN_BY_3                                                                                                     \
	"event 3 of item 1 cannot be applied: new row for relation \"like_count\" violates check constraint \"at_most_2\" " \
	"(23514 at_most_2)"

static void
check_known(Scene *scene, Session *lab, const char *expected, const char *when)
{
	check_query(scene, lab,
				"SELECT coalesce(string_agg(format('item %s known difference %s of %s', item_id, known_difference, "
				"difference), '; '), 'none') FROM like_audit_parked()",
				NO_ARGS, expected, "%s: known difference", when);
}

static void
stops(Scene *scene, Session *lab)
{
	step(scene, "mode stop: the third like breaks CHECK (n <= 2)");
	require(scene,
			session_execute(lab, "ALTER TABLE like_count ADD CONSTRAINT at_most_2 CHECK (item_id <> 1 OR n <= 2)"));
	like_in_order(scene, lab, ITEM, 1, 3);
	like_in_order(scene, lab, OTHER_ITEM, 4, 4);
	check_statement_refused(scene, lab, "SELECT FROM like_consume('{1,2,3,4}')", "LK001 " BROKEN_BY_3,
							"a batch with an event that breaks a constraint");
	check_state(scene, lab, ITEM, 0, "watermark=0 lag=4 unprocessed=4 " CLEAN, "refused");
	check_consumer_refused(scene, 2, BROKEN_BY_3, "in batches of two");
	check_consumer_refused(scene, 2, "by LK001 after 3 attempts", "started again");
	check_state(scene, lab, ITEM, 2, "watermark=2 lag=2 unprocessed=2 " CLEAN, "stopped before the event");
}

/* From another session, what of the parked event is committed. */
typedef struct
{
	Scene *scene;
	Session *observer;
	const char *expected;
	int looks;
} Look;

static void
look(void *context, const char *name, const char *detail)
{
	Look *this = context;

	(void) detail;
	this->looks++;
	check_query(
		this->scene, this->observer,
		"SELECT (SELECT count(*) FROM processed_event WHERE how = 'PARKED') || ' ' || count(*) FROM like_parked",
		NO_ARGS, this->expected, "%s: registered as parked, rows of what is parked", name);
}

static void
parks(Scene *scene, Session *lab)
{
	Look before = {scene, scene_session(scene, "observer"), "0 0", 0}, after = {scene, before.observer, "1 1", 0};
	LikeTotals totals;

	step(scene, "mode park: it is parked in the transaction of its batch");
	require(scene, session_execute(lab, "UPDATE like_poison SET mode = 'park'"));
	point_arm_call("consumer.before_commit", 1, look, &before);
	point_arm_call("consumer.after_commit", 1, look, &after);
	totals = deliver(scene, lab, SEQS(1, 3, 4));
	point_disarm_all();
	CHECK_EQ(scene, before.looks + after.looks, 2, "looked at from outside");
	check_totals(scene, &totals, "applied=1 covered=0 dup=1 watermark=4", "the batch, without what was parked");
	check_state(scene, lab, ITEM, 2, "watermark=4 lag=0 unprocessed=0 " CLEAN, "parked");
	check_known(scene, lab, "item 1 known difference 1 of 1", "parked");
	check_query(
		scene, lab,
		"SELECT concat_ws(' ', seq, user_id, item_id, delta, version, error, broken, attempts) FROM like_parked",
		NO_ARGS, "3 3 1 1 1 23514 at_most_2 1", "what is known of the parked event");
	(void) check_count(scene, lab, ITEM, 0, "n=2 lag=0 pending=1 stale=false", "read, with what it may be off by");
	totals = deliver(scene, lab, SEQS(3));
	check_totals(scene, &totals, "applied=0 covered=0 dup=1 watermark=4", "the parked event, delivered again");

	check_query(scene, lab, "SELECT like_unpark(3)", NO_ARGS, "PARKED", "tried again under the constraint");
	check_query(scene, lab, "SELECT attempts FROM like_parked", NO_ARGS, "2", "its attempts");
	require(scene, session_execute(lab, "ALTER TABLE like_count DROP CONSTRAINT at_most_2"));
	check_query(scene, lab, "SELECT like_unpark(3)", NO_ARGS, "APPLIED", "tried again without it");
	check_statement_refused(scene, lab, "SELECT like_unpark(3)", "P0002 event 3 is not parked", "and once more");
	check_known(scene, lab, "none", "no longer parked");
	check_drained(scene, lab, "no longer parked");
	scene_close_session(scene, before.observer);
}

/* Events 5 and 6; 6 cannot be applied without 5, and can after it. */
static void
early_unlike(Scene *scene, Session *lab)
{
	LikeTotals totals;

	step(scene, "an unlike comes before its like and breaks CHECK (n >= 0)");
	require(scene, session_execute(lab, "ALTER TABLE like_count ADD CONSTRAINT not_below_0 CHECK (n >= 0)"));
	like_in_order(scene, lab, ODD_ITEM, 5, 5);
	(void) set_like(scene, lab, 5, ODD_ITEM, false);
	(void) deliver(scene, lab, SEQS(6));
	check_known(scene, lab, "item 3 known difference -1 of -1", "the unlike alone");
	check_audits_clean(scene, lab, "the unlike alone");
	totals = deliver(scene, lab, SEQS(5));
	check_totals(scene, &totals, "applied=1 covered=0 dup=0 watermark=6", "its like");
	check_query(scene, lab, "SELECT like_unpark(6)", NO_ARGS, "APPLIED", "the unlike, tried after its like");
	check_drained(scene, lab, "an early unlike");
	require(scene, session_execute(lab, "ALTER TABLE like_count DROP CONSTRAINT not_below_0"));
}

static void
baseline_over_parked(Scene *scene, Session *lab)
{
	LikeSnapshot snapshot;

	step(scene, "a baseline is installed that contains a parked event");
	require(scene,
			session_execute(lab, "ALTER TABLE like_count ADD CONSTRAINT at_most_1 CHECK (item_id <> 2 OR n <= 1)"));
	like_in_order(scene, lab, OTHER_ITEM, 7, 7);
	(void) drain(scene, lab);
	check_known(scene, lab, "item 2 known difference 1 of 1", "before the baseline");
	require(scene, session_execute(lab, "ALTER TABLE like_count DROP CONSTRAINT at_most_1"));
	snapshot = take_snapshot(scene, lab, OTHER_ITEM);
	(void) install_baseline(scene, lab, &snapshot, OTHER_ITEM, READ_COMMITTED);
	like_snapshot_free(&snapshot);
	check_known(scene, lab, "none", "inside the baseline");
	check_drained(scene, lab, "inside the baseline");
	check_query(scene, lab, "SELECT like_unpark(7)", NO_ARGS, "COVERED", "the parked event, tried again");
	check_drained(scene, lab, "tried again");
}

static void
other_payload(Scene *scene, Session *lab)
{
	LikeTotals totals;

	step(scene, "a number comes with another payload");
	require(scene, session_execute(lab, "UPDATE like_outbox SET user_id = 99 WHERE seq = 2"));
	check_statement_refused(scene, lab, "SELECT FROM like_consume('{1,2,3}')",
							"LK002 event 2 of item 1 is not the event that was processed under this number",
							"an event with another payload");
	check_consumer_refused(scene, BATCH, "by LK002 after 1 attempts", "another payload");
	require(scene, session_execute(lab, "UPDATE like_outbox SET user_id = 2 WHERE seq = 2"));
	totals = deliver(scene, lab, SEQS(1, 2, 3));
	check_totals(scene, &totals, "applied=0 covered=0 dup=3 watermark=7", "with its own again");

	step(scene, "a log is rewound to event 6 and grows past the watermark");
	require(scene,
			session_execute(lab, "DELETE FROM like_fact WHERE user_id = 7; DELETE FROM like_outbox WHERE seq > 6; "
								 "UPDATE like_seq SET last = 6"));
	trace_forget(lab, true, "the log is rewound");
	like_in_order(scene, lab, ITEM, 17, 18);
	check_query(scene, lab, "SELECT count(*) FROM like_audit_log()", NO_ARGS, "0",
				"things ahead of the log, by their numbers");
	check_statement_refused(scene, lab, "SELECT FROM like_consume('{8}')",
							"LK002 event 7 of item 1 is not the event that was processed under this number",
							"a batch above the watermark, whose own event is another one");
	check_query(scene, lab, "SELECT last_seq || ' ' || watermark || ' ' || forgotten FROM like_accept_log()", NO_ARGS,
				"8 6 1", "like_accept_log(): last event, watermark, registrations forgotten");
	totals = deliver(scene, lab, SEQS(7, 8));
	check_totals(scene, &totals, "applied=0 covered=2 dup=0 watermark=8", "the events that were written since");
	check_drained(scene, lab, "and they are in the counts");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_with(scene, "poison", ITEMS);

	stops(scene, lab);
	parks(scene, lab);
	early_unlike(scene, lab);
	baseline_over_parked(scene, lab);
	other_payload(scene, lab);
}

const Scenario scenario_scale_poison = {
	.suite = "scale",
	.id = "scale/poison",
	.title = "an event that breaks a constraint, and a number with two payloads",
	.claim = "such an event stops the consumer and is named, or is parked with its batch and its difference known",
	.kind = "real component, fixed delivery order, several processes",
	.guarantee =
		"nothing is dropped: what is missing of a count is in like_parked, exactly; a conflict is no duplicate",
	.observed = "SQLSTATE and words of the refusals, exit code, like_parked, read-side audit, known difference",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 40000,
	.run = run,
};
