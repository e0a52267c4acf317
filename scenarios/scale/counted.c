/*
 * scale/counted  way B: the count in the transaction of the fact
 *
 * Claim      It is right at every commit, repeats change nothing, and whoever likes the same item waits.
 * Method     A like sent twice and an unlike of nothing; then writers at once while a sampler compares every count with its facts
 *            in one snapshot; then a like held before its commit beside another user's like of the same item, and of another.
 * Expect     No sample is off. The same item's like waits in pg_locks for the count row, the other's does not.
 * Not shown  What the waits cost: ./run.sh bench write.
 */
#include "way_lab.h"

static const Way counted = {"like/methods/counted_set.sql", "SELECT * FROM like_set_counted($1, $2, $3)",
							"SELECT count(*) FROM like_counted c WHERE c.n <> "
							"(SELECT count(*) FROM like_fact f WHERE f.item_id = c.item_id AND f.liked)"};

static void
run(Scene *scene)
{
	Session *lab = way_lab(scene, &counted);
	int64_t samples, off;

	step(scene, "a like that is sent twice, an unlike of what was never liked");
	set_by(scene, lab, &counted, 1, 1, true);
	set_by(scene, lab, &counted, 1, 1, true);
	set_by(scene, lab, &counted, 2, 2, false);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT n FROM like_counted WHERE item_id = 1", NO_ARGS), 1,
			 "one user likes it");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT n FROM like_counted WHERE item_id = 2", NO_ARGS), 0,
			 "nobody likes it");
	run_way_storm(scene, &counted, &samples, &off);
	check_at_least(scene, samples, WAY_SAMPLES_LEAST, "samples");
	CHECK_EQ(scene, off, 0, "samples in which a count is not that of its facts: right at every commit");
	check_second(scene, lab, &counted, 1, true, "another user's like of the same item");
	check_second(scene, lab, &counted, 2, false, "a like of another item");
	CHECK_EQ(scene, items_off(scene, lab, &counted), 0, "items that are off in the end");
}

const Scenario scenario_scale_counted = {
	.suite = "scale",
	.id = "scale/counted",
	.title = "way B: the count in the transaction of the fact",
	.claim = "right at every commit; whoever likes the same item waits, who likes another does not",
	.kind = "real threads, fixed interleaving",
	.guarantee = "in every snapshot each count is that of its facts",
	.observed = "like_counted, like_fact, pg_locks",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 20000,
	.run = run,
};
