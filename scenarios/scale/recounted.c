/*
 * scale/recounted  way D: all facts counted anew on a schedule
 *
 * Claim      It is right in the snapshot of its last recount and off after the next commit, and nothing tells; writers wait for nobody.
 * Method     Likes, a recount, one more like. A recount beside a like that is held before its commit. Writers at once while a sampler
 *            compares every count with its facts. A like of the same item while another is held.
 * Expect     No item is off when it was counted, one after the next like, and none tells. What is uncommitted is counted by the next
 *            recount only. The second like does not wait.
 * Not shown  What a recount of many facts costs: ./run.sh bench write.
 */
#include "way_lab.h"

static const Way recounted = {"like/methods/recount.sql", "SELECT * FROM like_set_fact($1, $2, $3)",
							  "SELECT count(*) FROM like_recounted c WHERE c.n <> "
							  "(SELECT count(*) FROM like_fact f WHERE f.item_id = c.item_id AND f.liked)"};

static void
recount(Scene *scene, Session *session)
{
	require(scene, session_query(session, NULL, "SELECT like_recount()", NO_ARGS));
}

static void
run(Scene *scene)
{
	Session *lab = way_lab(scene, &recounted), *open = scene_session(scene, "open");
	int64_t samples, off;

	step(scene, "likes, counted, and one more");
	set_by(scene, lab, &recounted, 1, 1, true);
	set_by(scene, lab, &recounted, 1, 1, true);
	set_by(scene, lab, &recounted, 2, 1, true);
	set_by(scene, lab, &recounted, 2, 2, false);
	recount(scene, lab);
	CHECK_EQ(scene, items_off(scene, lab, &recounted), 0, "items that are off when they have just been counted");
	set_by(scene, lab, &recounted, 3, 1, true);
	CHECK_EQ(scene, items_off(scene, lab, &recounted), 1, "items that are off after the next like");
	require(scene, session_begin(open, READ_COMMITTED));
	set_by(scene, open, &recounted, 4, 1, true);
	recount(scene, lab);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT n FROM like_recounted WHERE item_id = 1", NO_ARGS), 3,
			 "counted beside an open like: without it");
	commit(scene, open);
	CHECK_EQ(scene, items_off(scene, lab, &recounted), 1, "items that are off once it has committed");
	recount(scene, lab);
	run_way_storm(scene, &recounted, &samples, &off);
	check_at_least(scene, off, 1, "samples in which a count is not that of its facts: required");
	recount(scene, lab);
	CHECK_EQ(scene, items_off(scene, lab, &recounted), 0, "items that are off when they have been counted again");
	check_second(scene, lab, &recounted, 1, false, "another user's like of the same item");
}

const Scenario scenario_scale_recounted = {
	.suite = "scale",
	.id = "scale/recounted",
	.title = "way D: all facts counted anew on a schedule",
	.claim = "right when it was counted, off after the next commit, and nothing tells; writers wait for nobody",
	.kind = "real threads, fixed interleaving",
	.guarantee = "right in the snapshot of the last recount",
	.observed = "like_recounted, like_fact, pg_locks",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 20000,
	.run = run,
};
