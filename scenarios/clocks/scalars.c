/*
 * clocks/scalars  one number instead of a clock
 *
 * Claim      The sum of a clock, its largest counter and a wall clock put all events in a row; that a number is less does not show
 *            that anything happened before, and where nothing did there is no number that says so.
 * Method     [A:2, B:1] beside [A:1, B:2]; then all pairs of a seeded history of 12 participants, whose wall clocks are
 *            wrong by up to five seconds, ordered by each of the three and held against the truth.
 * Expect     Sums and largest counters of the two are equal, the clocks concurrent. Over the history sums and wall clocks order
 *            nine concurrent pairs of ten and more. The sum reverses no pair; the largest counter makes ordered pairs equal;
 *            wall clocks reverse some.
 * Not shown  How far wall clocks really are apart, and when anything happened (L30); clocks that combine both.
 */
#include "lab.h"

#include <inttypes.h>

#include "past.h"

enum
{
	PARTICIPANTS = 12,
	EVENTS = 600
};

typedef int64_t (*Scalar)(const PastEvent *event);

static int64_t
sum_of(const PastEvent *event)
{
	int64_t sum = 0;

	for (size_t i = 0; i < vclock_count(&event->clock); i++)
	{
		sum += vclock_entry(&event->clock, i).counter;
	}
	return sum;
}

static int64_t
largest_of(const PastEvent *event)
{
	int64_t largest = 0;

	for (size_t i = 0; i < vclock_count(&event->clock); i++)
	{
		int64_t counter = vclock_entry(&event->clock, i).counter;

		largest = largest < counter ? counter : largest;
	}
	return largest;
}

static int64_t
wall_of(const PastEvent *event)
{
	return event->wall_ms;
}

static void
two_clocks(Scene *scene)
{
	PastEvent c = {.clock = clock_of(scene, "[A:2, B:1]")};
	PastEvent d = {.clock = clock_of(scene, "[A:1, B:2]")};

	step(scene, "two clocks, neither of which knows the other");
	check_order(scene, "[A:2, B:1]", "[A:1, B:2]", "concurrent");
	CHECK_EQ(scene, sum_of(&c), sum_of(&d), "their sums");
	CHECK_EQ(scene, largest_of(&c), largest_of(&d), "their largest counters");
	vclock_free(&c.clock);
	vclock_free(&d.clock);
}

typedef struct
{
	int64_t ordered;    /* pairs of which one happened before the other */
	int64_t concurrent; /* pairs of which neither did */
	int64_t reversed;   /* of the ordered */
	int64_t equal;      /* of the ordered */
	int64_t invented;   /* of the concurrent: put in an order */
} Errors;

/* The first of two, of all pairs in an order in which they may have happened. */
static Errors
hold_against_truth(const Past *past, Scalar scalar)
{
	Errors errors = {0};

	for (int a = 0; a < past->count; a++)
	{
		for (int b = a + 1; b < past->count; b++)
		{
			int64_t first = scalar(&past->events[a]);
			int64_t second = scalar(&past->events[b]);
			bool ordered = past_order(past, a, b) == VCLOCK_BEFORE;

			errors.ordered += ordered;
			errors.concurrent += !ordered;
			errors.reversed += ordered && first > second;
			errors.equal += ordered && first == second;
			errors.invented += !ordered && first != second;
		}
	}
	return errors;
}

static Errors
judge(Scene *scene, const Past *past, const char *what, Scalar scalar)
{
	Errors errors = hold_against_truth(past, scalar);

	note(scene,
		 "%-16s reverses %" PRId64 " and makes equal %" PRId64 " of %" PRId64 " ordered pairs, orders %" PRId64
		 " of %" PRId64 " concurrent ones",
		 what, errors.reversed, errors.equal, errors.ordered, errors.invented, errors.concurrent);
	return errors;
}

static void
history(Scene *scene)
{
	Rng rng = rng_stream(scene_seed(scene), 0);
	Past past;
	Errors sum;
	Errors largest;
	Errors wall;

	step(scene, "all pairs of a history of %d participants and %d events", PARTICIPANTS, EVENTS);
	require(scene, past_draw(&rng, PARTICIPANTS, EVENTS, vclock_receive, &past));
	sum = judge(scene, &past, "the sum", sum_of);
	largest = judge(scene, &past, "the largest", largest_of);
	wall = judge(scene, &past, "the wall clock", wall_of);
	past_free(&past);
	check_at_least(scene, sum.concurrent, 10000, "concurrent pairs");
	CHECK_EQ(scene, sum.reversed + sum.equal, 0, "by the sum: ordered pairs reversed or made equal");
	check_at_least(scene, sum.invented, sum.concurrent * 9 / 10, "by the sum: concurrent pairs put in an order");
	check_at_least(scene, largest.equal, 100, "by the largest counter: ordered pairs made equal");
	check_at_least(scene, largest.invented, largest.concurrent / 2,
				   "by the largest counter: concurrent pairs put in an order");
	check_at_least(scene, wall.reversed, 100, "by wall clocks: ordered pairs reversed");
	check_at_least(scene, wall.invented, wall.concurrent * 9 / 10, "by wall clocks: concurrent pairs put in an order");
}

static void
run(Scene *scene)
{
	two_clocks(scene);
	history(scene);
}

const Scenario scenario_clocks_scalars = {
	.suite = "clocks",
	.id = "clocks/scalars",
	.title = "one number instead of a clock",
	.claim = "sum, largest counter and wall clock order everything, also what neither happened before the other",
	.kind = "seeded histories, negative control",
	.guarantee = "none: what is lost is counted",
	.observed = "pairs reversed, made equal and put in an order",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 60000,
	.run = run,
};
