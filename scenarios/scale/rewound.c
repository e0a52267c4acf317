/*
 * scale/rewound  facts and events were restored from an older backup than the counts
 *
 * Claim      A watermark or a baseline above the last number is refused by consumer, install and recovery, and named with both
 *            numbers, by an audit too; it makes no new event a duplicate or covered. There is a way back, which loses nothing.
 * Method     8 events, drained, with a baseline of S=7 on one item. Facts, events and number row are set back to what they were
 *            after event 5; then a new like gets number 6. Each part is asked, the consumer's program too. Then
 *            like_accept_log(), and another like is delivered.
 * Expect     LK003, "watermark 8 is ahead of the log, whose last event is 6" and "base_seq 7 ...", exit code 6 of the program; the
 *            derived side stays as it is meanwhile. Afterwards both new events are in the counts, which equal the facts.
 * Not shown  A log that has grown past the watermark again before anybody asked (L38): its numbers are in order. In scale/poison
 *            registrations know their events, and find that.
 */
#include "32/recovery_lab.h"
#include "32/trace_lab.h"

enum
{
	ITEM = 1,
	OTHER_ITEM = 2,
	ITEMS = 2,
	KEPT = 5,
	BATCH = 100
};

static void
write_and_rewind(Scene *scene, Session *lab)
{
	LikeSnapshot snapshot;

	step(scene, "8 events, then facts and events as they were after event %d, and one new like", KEPT);
	like_in_order(scene, lab, ITEM, 1, 4);
	like_in_order(scene, lab, OTHER_ITEM, 5, 6);
	like_in_order(scene, lab, ITEM, 7, 7);
	(void) drain(scene, lab);
	snapshot = take_snapshot(scene, lab, ITEM);
	(void) install_baseline(scene, lab, &snapshot, ITEM, READ_COMMITTED);
	like_snapshot_free(&snapshot);
	like_in_order(scene, lab, OTHER_ITEM, 8, 8);
	(void) drain(scene, lab);
	check_drained(scene, lab, "before");
	check_query(scene, lab, "SELECT count(*) FROM like_audit_log()", NO_ARGS, "0", "before: things ahead of the log");

	require(scene, session_query(lab, NULL, "DELETE FROM like_fact WHERE user_id > $1", ARGS(arg_int(KEPT))));
	require(scene, session_query(lab, NULL, "DELETE FROM like_outbox WHERE seq > $1", ARGS(arg_int(KEPT))));
	require(scene, session_query(lab, NULL, "UPDATE like_seq SET last = $1", ARGS(arg_int(KEPT))));
	trace_forget(lab, true, "the log is rewound");
	like_in_order(scene, lab, ITEM, 16, 16);
	check_write_side(scene, lab, "rewound");
}

static void
check_all_refuse(Scene *scene, Session *lab)
{
	step(scene, "whoever goes on is refused");
	check_query(scene, lab, "SELECT string_agg(line, '; ') FROM like_audit_log() line", NO_ARGS,
				"watermark 8 is ahead of the log, whose last event is 6; "
				"base_seq 7 of item-lab-01 is ahead of the log, whose last event is 6; "
				"2 registered events up to 8 are ahead of the log, whose last event is 6",
				"the audit of the log");
	check_statement_refused(scene, lab, "SELECT FROM like_consume('{6}')",
							"LK003 watermark 8 is ahead of the log, whose last event is 6",
							"a batch behind a rewound log is refused");
	check_statement_refused(scene, lab, "SELECT FROM like_install(1, 6, 5)",
							"LK003 base_seq 7 is ahead of the log, whose last event is 6",
							"an install over a baseline of a lost event is refused");
	check_statement_refused(scene, lab, "SELECT FROM like_install(2, 8, 3)",
							"LK003 base_seq 8 is ahead of the log, whose last event is 6",
							"an install of a snapshot of a lost event is refused");
	check_consumer_refused(scene, BATCH, "watermark 8 is ahead of the log, whose last event is 6", "rewound");
	check_query(scene, lab, "SELECT string_agg(n || '/' || base_seq, ' ' ORDER BY item_id) FROM like_count", NO_ARGS,
				"5/7 3/0", "n/base_seq of the items, left as they were");

	step(scene, "the watermark alone is set right, as somebody may try");
	require(scene, session_execute(lab, "UPDATE counter_watermark SET applied_upto = 5"));
	check_statement_refused(scene, lab, "SELECT FROM like_consume('{6}')",
							"LK003 a base_seq of the batch 7 is ahead of the log, whose last event is 6",
							"a batch of an item with a baseline of a lost event is refused");
}

static void
tell(void *context, const char *line)
{
	note(context, "%s", line);
}

static void
go_back(Scene *scene, Session *lab)
{
	LikeRecovery recovery;
	LikeTotals totals;

	step(scene, "recovery stops, and the derived side is taken back to the log");
	require(scene, like_recover(lab, BATCH, tell, scene, &recovery));
	CHECK_EQ(scene, recovery.outcome, RECOVERY_LOG_REWOUND, "what recovery ends with: the log was rewound");
	CHECK(scene, !recovery.rebuilt, "it rebuilt nothing");
	check_query(scene, lab, "SELECT last_seq || ' ' || watermark || ' ' || forgotten FROM like_accept_log()", NO_ARGS,
				"6 6 2", "like_accept_log(): last event, watermark, registrations forgotten");
	check_query(scene, lab, "SELECT count(*) FROM like_audit_log()", NO_ARGS, "0", "things ahead of the log");
	check_drained(scene, lab, "taken back");
	like_in_order(scene, lab, OTHER_ITEM, 17, 17);
	totals = deliver(scene, lab, SEQS(6, 7));
	check_totals(scene, &totals, "applied=1 covered=0 dup=1 watermark=7", "the events that were written since");
	check_drained(scene, lab, "and they are in the counts");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_of(scene, like_design_find(NULL), ITEMS);

	write_and_rewind(scene, lab);
	check_all_refuse(scene, lab);
	go_back(scene, lab);
}

const Scenario scenario_scale_rewound = {
	.suite = "scale",
	.id = "scale/rewound",
	.title = "facts and events were restored from an older backup than the counts",
	.claim =
		"a watermark or baseline ahead of the log is refused and named with both numbers; new events are not swallowed",
	.kind = "real component, fixed delivery order, several processes",
	.guarantee = "nothing derived may know an event that the log does not have",
	.observed = "SQLSTATE and words of the refusals, like_audit_log(), exit code, counts and facts",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 40000,
	.run = run,
};
