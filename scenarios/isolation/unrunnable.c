/*
 * isolation/unrunnable  files that cannot run as they are written
 *
 * Claim      A permutation that gives a session a step while it waits for another is refused the moment that shows, with step
 *            and line, and is not waited out; its teardown is run. An unknown step and an unused one are refused before
 *            anything runs.
 * Method     Three files below sql/isolation/: blocked_step.spec, run in the case's own database, then unknown_step.spec and
 *            unused_step.spec, which are only read.
 * Expect     The words of each refusal; one permutation judged before it, none after; no table and no backend left.
 * Not shown  The exit code: 2 (tests/spec.sh).
 */
#include "lab.h"

#include <string.h>

#define BLOCKED "blocked_step.spec"

static void
check_blocked(Scene *scene)
{
	Session *observer = scene_session(scene, "observer");
	SpecReport *report = judge_spec_in_place(scene, BLOCKED);
	const char *refused = strstr(text_get(&report->refused), BLOCKED);
	int64_t tables;

	note_spec(scene, BLOCKED, report);
	check_text(scene, refused != NULL ? refused : text_get(&report->refused),
			   BLOCKED ":22:19: step c2: its session t2 still waits in step w2, and cannot take it",
			   "the second permutation is refused");
	check_text(scene, text_get(&report->broken), "", "what else went wrong");
	CHECK(scene, report->duration_ns < SPEC_STEP_LIMIT_MS * INT64_C(1000000),
		  "all of it took less than the limit of one step");
	CHECK_EQ(scene, report->run, 1, "permutations judged: the one before it");
	CHECK_EQ(scene, report->waits, 1, "in which a step waited");
	spec_report_free(report);
	require(scene, session_query_int(observer, &tables, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
									 NO_ARGS));
	CHECK_EQ(scene, tables, 0, "tables left behind");
	scene_await_int(scene, observer, 1,
					"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
					" AND backend_type = 'client backend'",
					NO_ARGS);
}

static void
run(Scene *scene)
{
	step(scene, "a step for a session that waits");
	check_blocked(scene);

	step(scene, "an unknown step, and one that is not used");
	check_unreadable(scene, "unknown_step.spec",
					 "unknown_step.spec:11:16: undefined step \"r3\" specified in permutation");
	check_unreadable(scene, "unused_step.spec", "unused_step.spec:6:6: unused step: c1");
}

const Scenario scenario_isolation_unrunnable = {
	.suite = "isolation",
	.id = "isolation/unrunnable",
	.title = "files that cannot run as they are written",
	.claim =
		"a step for a session that waits is refused at once, with step and line, and torn down; unknown and unused "
		"steps before anything runs",
	.kind = "fixed interleaving",
	.guarantee = "what is wrong is said where it stands, and nothing is left",
	.observed = "the words of the refusals, pg_tables, pg_stat_activity",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
