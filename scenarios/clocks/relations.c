/*
 * clocks/relations  the four answers, and what is none of them
 *
 * Claim      Of two clocks one is before, after or equal to the other, or they are concurrent. An absent participant is zero.
 *            That a clock is not before another leaves three answers open, so no function says just that.
 * Method     Small clocks of two or three participants, compared both ways, merged and ticked; what was given is looked at again.
 * Expect     [A:2] is before [A:2, B:1]. Not before can be after, equal or concurrent. Equal sums are no equal history. The merged
 *            clock of two concurrent ones is after both; ticked, it is after itself. Nothing that was given has changed.
 * Not shown  How the clocks came about (clocks/history), and whether what they stand for is the same (clocks/payloads, L31).
 */
#include "lab.h"

static void
four_answers(Scene *scene)
{
	step(scene, "every component counts, an absent one as zero");
	check_order(scene, "[A:1]", "[A:1, B:1]", "before");
	check_order(scene, "[A:1, B:1]", "[A:1]", "after");
	check_order(scene, "[A:1]", "[A:1]", "equal");
	check_order(scene, "[A:2, B:1]", "[A:1, B:2]", "concurrent");
	check_order(scene, "[A:1, B:2]", "[A:2, B:1]", "concurrent");

	step(scene, "one slot that is the same makes no history the same");
	check_order(scene, "[A:2]", "[A:2, B:1]", "before");
	check_order(scene, "[A:2, B:1]", "[A:2]", "after");

	step(scene, "a zero that is said is a zero that is not");
	check_order(scene, "[A:1]", "[A:1, B:0]", "equal");
	check_order(scene, "[A:1, B:0]", "[A:1]", "equal");
	check_order(scene, "[A:0]", "[]", "equal");
}

static void
not_before(Scene *scene)
{
	step(scene, "three clocks that are not before [A:2, B:1], for three reasons");
	check_order(scene, "[A:2, B:2]", "[A:2, B:1]", "after");
	check_order(scene, "[A:2, B:1]", "[A:2, B:1]", "equal");
	check_order(scene, "[A:1, B:2]", "[A:2, B:1]", "concurrent");
}

static int64_t
sum_of(const VClock *clock)
{
	int64_t sum = 0;

	for (size_t i = 0; i < vclock_count(clock); i++)
	{
		sum += vclock_entry(clock, i).counter;
	}
	return sum;
}

static void
check_between(Scene *scene, const VClock *a, const VClock *b, const char *expected, const char *what)
{
	check_text(scene, vclock_order_name(vclock_compare(a, b)), expected, "%s", what);
}

static void
merged_and_ticked(Scene *scene)
{
	VClock c = clock_of(scene, "[A:2, B:1]");
	VClock d = clock_of(scene, "[A:1, B:2]");
	VClock merged = vclock_merge(&c, &d);
	VClock received;

	step(scene, "two concurrent clocks are merged, and the receipt is an event of B");
	CHECK_EQ(scene, sum_of(&c), sum_of(&d), "the sum of [A:2, B:1] is that of [A:1, B:2]");
	check_clock(scene, &merged, "[A:2, B:2]", "merged");
	check_between(scene, &c, &merged, "before", "[A:2, B:1], as seen from the merged clock");
	check_between(scene, &d, &merged, "before", "[A:1, B:2], as seen from the merged clock");
	require(scene, vclock_tick(&merged, vclock_id("B"), &received));
	check_clock(scene, &received, "[A:2, B:3]", "merged, then ticked by B");
	check_between(scene, &merged, &received, "before", "merged, as seen from the receipt");
	check_clock(scene, &merged, "[A:2, B:2]", "merged, after it was ticked");
	check_clock(scene, &c, "[A:2, B:1]", "the first clock, after all of it");
	check_clock(scene, &d, "[A:1, B:2]", "the second clock, after all of it");
	vclock_free(&c);
	vclock_free(&d);
	vclock_free(&merged);
	vclock_free(&received);
}

static void
ticked(Scene *scene)
{
	VClock a = clock_of(scene, "[A:1]");
	VClock b;

	step(scene, "a participant that was absent ticks");
	require(scene, vclock_tick(&a, vclock_id("B"), &b));
	check_clock(scene, &b, "[A:1, B:1]", "[A:1], ticked by B");
	check_clock(scene, &a, "[A:1]", "what was ticked, after it");
	check_between(scene, &a, &b, "before", "it, as seen from its tick");
	check_between(scene, &b, &a, "after", "its tick, as seen from it");
	vclock_free(&a);
	vclock_free(&b);
}

/* C is dropped from the descendant, and the ancestor is no longer seen to be one; more of that in clocks/pruned. */
static void
forgotten(Scene *scene)
{
	step(scene, "a slot that was dropped is no zero");
	check_order(scene, "[A:2, C:4]", "[A:3, B:2, C:5]", "before");
	check_order(scene, "[A:2, C:4]", "[A:3, B:2]", "concurrent");
}

static void
run(Scene *scene)
{
	four_answers(scene);
	not_before(scene);
	ticked(scene);
	merged_and_ticked(scene);
	forgotten(scene);
}

const Scenario scenario_clocks_relations = {
	.suite = "clocks",
	.id = "clocks/relations",
	.title = "the four answers, and what is none of them",
	.claim = "of two clocks one is before, after or equal to the other, or they are concurrent; absent is zero",
	.kind = "small examples",
	.guarantee = "four answers, inputs unchanged",
	.observed = "vclock_compare, merged and ticked clocks",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
