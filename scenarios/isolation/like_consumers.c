/*
 * isolation/like-consumers  two consumers over overlapping and disjoint batches
 *
 * Claim      Two consumers deliver what they will, the same events or others: each takes effect once, and the watermark is
 *            the end of the run of processed numbers, in every snapshot.
 * Method     All interleavings, judged after each step by the invariants of the like system, in the end by the counts being
 *            drained and by every serial order of the two. like_consumers_overlapping, like_consumers_disjoint:
 *            like_consume() as it is, one call in its transaction. like_consumers_statements: what it does inside, a step
 *            each. The twin without the lock on the watermark row (M13) over the disjoint batches.
 * Expect     Everything holds. Nobody gets past the watermark row before the other has committed, so that nothing
 *            inside a batch meets the other; without that lock the watermark stays behind what is processed.
 * Not shown  More than two consumers, and redelivery (32-E, 32-G). Interleavings are of whole statements (L22).
 */
#include "like_specs.h"

static void
without_watermark_lock(Scene *scene, const char *prepared)
{
	SpecReport *report = judge_twin(scene, "like_consumers_disjoint.spec", prepared, "M13", "consume.sql");

	check_broken(scene, report, "invariant watermark", 4, "a b ac bc", "(applied_upto=3, run_end=6, last=6) after bc");
	check_always(scene, report, "invariant effects");
	check_always(scene, report, "invariant counts");
	CHECK_EQ(scene, report->waits, 0, "times that anybody waited");
	spec_report_free(report);
}

static void
run(Scene *scene)
{
	const char *prepared = like_prepared(scene);

	step(scene, "batches that share events");
	judge_clean(scene, "like_consumers_overlapping.spec", prepared, 4);
	step(scene, "batches that share nothing");
	judge_clean(scene, "like_consumers_disjoint.spec", prepared, 4);
	step(scene, "batches that share nothing, statement by statement");
	judge_clean(scene, "like_consumers_statements.spec", prepared, 10);
	step(scene, "M13: no lock on the watermark row");
	without_watermark_lock(scene, prepared);
}

const Scenario scenario_isolation_like_consumers = {
	.suite = "isolation",
	.id = "isolation/like-consumers",
	.title = "two consumers over overlapping and disjoint batches",
	.claim = "each event takes effect once, and the watermark is right, in every interleaving of two consumers",
	.kind = "every interleaving, twin",
	.guarantee = "invariants 1 to 5 in every snapshot, serializable",
	.observed = "registrations, counts and watermark after each step",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
