/*
 * scale/bounded  way C: facts, an outbox and a consumer that counts each event once
 *
 * Claim      It is off until it is drained, by no more than it says.
 * Method     Likes, each sent twice, that nobody consumes; half of them delivered, one twice; then all.
 * Expect     n=0 with 6 pending and off by 6; n=3 with 3 pending; n=6 with none.
 * Not shown  Consumers, rebuilds and kills at once: suite 32.
 */
#include "way_lab.h"

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, WAY_ITEMS);
	LikeReadAudit seen;

	step(scene, "likes that nobody consumes yet");
	for (int64_t user = 1; user <= 6; user++)
	{
		(void) set_like(scene, lab, user, 1, true);
		(void) set_like(scene, lab, user, 1, true);
	}
	(void) set_like(scene, lab, 1, 2, false);
	check_count(scene, lab, 1, 0, "n=0 lag=6 pending=6 stale=true", "not right, and it says by how much it may be off");
	seen = audit_read_side(scene, lab);
	CHECK_EQ(scene, seen.max_abs_err, 6, "it is off by");
	CHECK_EQ(scene, seen.bound_violations, 0, "items that are off by more than they say");
	(void) deliver(scene, lab, SEQS(1, 2, 2, 3));
	check_count(scene, lab, 1, 0, "n=3 lag=3 pending=3 stale=true", "half of it consumed, one delivered twice");
	(void) drain(scene, lab);
	check_count(scene, lab, 1, 0, "n=6 lag=0 pending=0 stale=false", "drained");
	check_drained(scene, lab, "in the end");
}

const Scenario scenario_scale_bounded = {
	.suite = "scale",
	.id = "scale/bounded",
	.title = "way C: facts, an outbox and a consumer that counts each event once",
	.claim = "off until drained, by no more than it says; right then",
	.kind = "real component",
	.guarantee = "|n - facts| <= pending",
	.observed = "readCount, both audits",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 20000,
	.run = run,
};
