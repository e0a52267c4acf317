/*
 * isolation/lock-all  whoever decides locks all rows that the rule reads
 *
 * Claim      SELECT count(*) FROM (SELECT ... FOR UPDATE) x keeps the rule below Serializable: the second waits for the first.
 *            At Read Committed it then reads again what it has waited for, and finds one doctor; at Repeatable Read its
 *            snapshot is overtaken, and it gets 40001 after the wait.
 * Method     The doctors of isolation/skew, who lock while they count (sql/isolation/lock_all_*.spec): all interleavings that
 *            the locks leave, judged by the rule and by every serial order. What it cost is counted.
 * Expect     6 interleavings, somebody on call in all of them, each as a serial order. The 4 in which the two overlap cost
 *            one wait each; at Repeatable Read a retry, too.
 * Not shown  Rows that come to be on call meanwhile: a row lock holds what is there. Rows locked in two orders, which may end
 *            in 40P01. How long waits are: see bench isolation.
 */
#include "lab.h"

static void
run(Scene *scene)
{
	SpecReport *report;

	step(scene, "Read Committed: the second waits, and reads again");
	report = judge_spec(scene, "lock_all_read_committed.spec", NULL);
	check_always(scene, report, "invariant somebody");
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, report->run, 6, "interleavings that the locks leave");
	check_cost(scene, report, 4, 0);
	spec_report_free(report);

	step(scene, "Repeatable Read: the second waits, and is refused");
	report = judge_spec(scene, "lock_all_repeatable_read.spec", NULL);
	check_always(scene, report, "invariant somebody");
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, report->run, 6, "interleavings that the locks leave");
	CHECK_EQ(scene,
			 outcomes_with(report, "40001 at r1 after a wait") + outcomes_with(report, "40001 at r2 after a wait"), 4,
			 "interleavings in which it is the lock that is refused, after the wait");
	check_cost(scene, report, 4, 4);
	spec_report_free(report);
}

const Scenario scenario_isolation_lock_all = {
	.suite = "isolation",
	.id = "isolation/lock-all",
	.title = "whoever decides locks all rows that the rule reads",
	.claim = "the second waits: at Read Committed it reads again, at Repeatable Read it gets 40001 after the wait",
	.kind = "every interleaving",
	.guarantee = "somebody is on call, serializable",
	.observed = "doctors, waits and retries",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
