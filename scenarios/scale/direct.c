/*
 * scale/direct  way A: a request adds or subtracts by its direction
 *
 * Claim      It drifts, by repeats and by unlikes of nothing, and its writers wait for one another on a hot item.
 * Method     A like that is sent twice, an unlike of what was never liked and one like, each through the facts and directly. Then a
 *            like is held before its commit beside another user's like of the same item, and beside one of another item.
 * Expect     2 for one, -1 for none, 1 for one. The same item's like waits in pg_locks, the other's does not.
 * Not shown  A storm of it (32-F), and what it costs: ./run.sh bench write.
 */
#include "way_lab.h"

static const Way direct = {
	"like/naive_set.sql", "SELECT FROM like_set_naive($1, $2, $3)",
	"SELECT count(*) FROM item i LEFT JOIN like_naive_count c USING (item_id) WHERE coalesce(c.n, 0) <> "
	"(SELECT count(*) FROM like_fact f WHERE f.item_id = i.item_id AND f.liked)"};

static int64_t
naive_count(Scene *scene, Session *lab, int64_t item)
{
	return number_of(scene, lab, "SELECT coalesce(max(n), 0) FROM like_naive_count WHERE item_id = $1",
					 ARGS(arg_int(item)));
}

static void
run(Scene *scene)
{
	Session *lab = way_lab(scene, &direct);

	step(scene, "the same requests through the facts and directly");
	for (int sending = 0; sending < 2; sending++)
	{
		(void) set_like(scene, lab, 1, 1, true);
		set_by(scene, lab, &direct, 1, 1, true);
	}
	(void) set_like(scene, lab, 2, 2, false);
	set_by(scene, lab, &direct, 2, 2, false);
	(void) set_like(scene, lab, 3, 3, true);
	set_by(scene, lab, &direct, 3, 3, true);
	CHECK_EQ(scene, naive_count(scene, lab, 1), 2, "a like that was sent twice, where one user likes it");
	CHECK_EQ(scene, naive_count(scene, lab, 2), -1, "an unlike of what was never liked");
	CHECK_EQ(scene, naive_count(scene, lab, 3), 1, "one like");
	CHECK_EQ(scene, items_off(scene, lab, &direct), 2, "items that are off, with nothing left to do: it drifts");
	check_second(scene, lab, &direct, 1, true, "another user's like of the same item");
	check_second(scene, lab, &direct, 2, false, "a like of another item");
}

const Scenario scenario_scale_direct = {
	.suite = "scale",
	.id = "scale/direct",
	.title = "way A: a request adds or subtracts by its direction",
	.claim = "it drifts, by repeats and by unlikes of nothing, and its writers wait for one another on a hot item",
	.kind = "negative control",
	.guarantee = "none: the count is off with nothing left to do",
	.observed = "like_naive_count, like_fact, pg_locks",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 20000,
	.run = run,
};
