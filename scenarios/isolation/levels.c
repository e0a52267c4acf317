/*
 * isolation/levels  what PostgreSQL makes of the levels' names
 *
 * Claim      Repeatable Read prevents phantoms, which the SQL standard allows it. Read Uncommitted is Read Committed: it
 *            shows nothing that is not committed, and lets a second count differ from the first.
 * Method     One counts twice, another adds a row in between and commits, or takes it back (sql/isolation/phantom_*.spec,
 *            dirty_read_uncommitted.spec): all interleavings, judged by every serial order.
 * Expect     10 interleavings. Read Committed: the second count differs in the 2 in which the other commits between the two.
 *            Read Uncommitted: the same outcomes, number by number; where the other rolls back, nothing was ever seen.
 *            Repeatable Read: both counts agree in all 10, by nothing but the snapshot: no wait, no 40001.
 * Not shown  That Repeatable Read were serializable: isolation/skew. Other databases, where these names mean other things.
 */
#include "lab.h"

#include <inttypes.h>
#include <stdlib.h>

/* All outcomes of a file, each with how often it occurred and an order that leads there. */
static char *
outcomes(const SpecReport *report)
{
	Text text = {0};

	for (int i = 0; i < report->outcome_count; i++)
	{
		const SpecOutcome *outcome = &report->outcomes[i];

		text_append(&text, "%s%" PRIu64 " x %s: %s", i > 0 ? " | " : "", outcome->count, outcome->text,
					text_get(&outcome->order));
	}
	return text.data;
}

static SpecReport *
judge_phantoms(Scene *scene, const char *file)
{
	SpecReport *report = judge_spec(scene, file, NULL);

	check_found(scene, report, "serializable", "r1 w1 w2 r2 r3");
	check_violations(scene, report, "serializable", 2);
	check_cost(scene, report, 0, 0);
	return report;
}

static void
read_uncommitted(Scene *scene)
{
	SpecReport *committed, *uncommitted;
	char *expected, *actual;

	step(scene, "Read Committed: the second count sees what was committed since");
	committed = judge_phantoms(scene, "phantom_read_committed.spec");
	step(scene, "Read Uncommitted: the same");
	uncommitted = judge_phantoms(scene, "phantom_read_uncommitted.spec");
	expected = outcomes(committed);
	actual = outcomes(uncommitted);
	check_text(scene, actual, expected, "outcomes at Read Uncommitted are those at Read Committed");
	free(expected);
	free(actual);
	spec_report_free(committed);
	spec_report_free(uncommitted);
}

static void
run(Scene *scene)
{
	SpecReport *report;

	read_uncommitted(scene);

	step(scene, "Read Uncommitted: the other takes its row back");
	report = judge_spec(scene, "dirty_read_uncommitted.spec", NULL);
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, outcomes_with(report, "writer rolled back"), 10, "interleavings in which it does");
	spec_report_free(report);

	step(scene, "Repeatable Read: no phantom");
	report = judge_spec(scene, "phantom_repeatable_read.spec", NULL);
	check_always(scene, report, "serializable");
	CHECK_EQ(scene, report->run, 10, "interleavings");
	check_cost(scene, report, 0, 0);
	spec_report_free(report);
}

const Scenario scenario_isolation_levels = {
	.suite = "isolation",
	.id = "isolation/levels",
	.title = "what PostgreSQL makes of the levels' names",
	.claim = "Repeatable Read prevents phantoms, Read Uncommitted behaves as Read Committed",
	.kind = "every interleaving",
	.guarantee = "two counts of one transaction agree; nothing uncommitted is seen",
	.observed = "what the counts answered",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
