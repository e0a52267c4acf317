/*
 * isolation/like-wrapped  several likes in one transaction, and likes in Repeatable Read: the whole is run again
 *
 * Claim      Two likes wrapped in one transaction may meet their reverse in a deadlock; two unrelated likes in Repeatable Read
 *            meet at the number row. One of the two is ended each time; run again whole, both have happened.
 * Method     All interleavings, with retries: after 40P01 or 40001 a session rolls back and begins again with its first step,
 *            and others may do anything in between. Judged by the invariants of the like system, and by every
 *            serial order. like_wrapped_reverse: pairs 1, 2 against 2, 1 at Read Committed. like_unrelated_repeatable_read:
 *            users, items and pairs have nothing in common; each looks first, which takes its snapshot.
 * Expect     Both always end committed, nobody gives up. In a deadlock one session is ended with 40P01 and the other is not,
 *            be it the one or the other; in Repeatable Read whoever is second at like_seq is ended with 40001.
 * Not shown  A client whose retry repeats only part (33-A). Which of two is the victim when both timeouts are alike.
 */
#include "like_specs.h"

static void
wrapped_reverse(Scene *scene, const char *prepared)
{
	SpecReport *report = judge_spec(scene, "like_wrapped_reverse.spec", prepared);

	check_all_hold(scene, report);
	check_deadlocks(scene, report, "whole transactions");
	CHECK_EQ(scene, report->retries_40001, 0, "and after 40001");
	spec_report_free(report);
}

static void
unrelated(Scene *scene, const char *prepared)
{
	SpecReport *report = judge_spec(scene, "like_unrelated_repeatable_read.spec", prepared);

	CHECK_EQ(scene, report->run, 10, "interleavings");
	check_all_hold(scene, report);
	CHECK_EQ(scene, outcomes_with(report, "a 40001 at a"), 4, "interleavings in which the one is ended at its like");
	CHECK_EQ(scene, outcomes_with(report, "b 40001 at b"), 4, "and the other");
	CHECK_EQ(scene, report->retries_40001, 8, "whole transactions run again after 40001");
	CHECK_EQ(scene, report->retries_40p01, 0, "and after 40P01");
	spec_report_free(report);
}

static void
run(Scene *scene)
{
	const char *prepared = like_prepared(scene);

	step(scene, "Read Committed: two likes in one transaction against the same in reverse");
	wrapped_reverse(scene, prepared);
	step(scene, "Repeatable Read: two likes that have nothing in common");
	unrelated(scene, prepared);
}

const Scenario scenario_isolation_like_wrapped = {
	.suite = "isolation",
	.id = "isolation/like-wrapped",
	.title = "likes wrapped in one transaction, and likes in Repeatable Read, retried whole",
	.claim = "40P01 and 40001 end one of the two; run again whole, both have happened, in every interleaving",
	.kind = "every interleaving, retries",
	.guarantee = "invariants 1 to 5 in every snapshot, serializable",
	.observed = "answers, facts and events, SQLSTATEs",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 180000,
	.run = run,
};
