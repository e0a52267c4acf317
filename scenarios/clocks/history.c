/*
 * clocks/history  a million pairs of events, and the truth about each
 *
 * Claim      Of any two events of a history, clocks that lost nothing say what happened before what, or that neither did. Merging
 *            does not depend on order, grouping or repetition.
 * Method     Eight seeded histories of 2 to 26 participants whose messages come late, out of order and repeatedly. The
 *            truth is followed along the messages, as sets of events, without a clock. Every pair is compared both ways.
 *            The same histories run with receipts without the tick, and without the merge.
 * Expect     No pair of 1,079,520 is answered wrongly. Without tick or merge thousands are. Of 20,000 drawn triples
 *            none is merged differently in another order or grouping, or twice.
 * Not shown  Clocks that forget (clocks/pruned), participants that lose theirs (clocks/reused), membership that changes (L32).
 *            Two events without a message between them: that neither is before the other is all there is to say (L30).
 */
#include "lab.h"

#include <inttypes.h>

#include "past.h"

enum
{
	HISTORIES = 8,
	EVENTS = 520,
	PAIRS = HISTORIES * EVENTS * (EVENTS - 1) / 2,
	TRIPLES = 20000
};

/* What was answered for pairs of each kind of truth. */
typedef struct
{
	int64_t pairs;
	int64_t wrong;
	int64_t of[VCLOCK_CONCURRENT + 1];
} Tally;

static void
compare_pair(const Past *past, int a, int b, Tally *tally)
{
	VClockOrder truth = past_order(past, a, b);
	VClockOrder order = vclock_compare(&past->events[a].clock, &past->events[b].clock);
	VClockOrder back = vclock_compare(&past->events[b].clock, &past->events[a].clock);

	tally->pairs++;
	tally->of[truth]++;
	tally->wrong += order != truth || back != past_order(past, b, a);
}

static Tally
compare_all(Scene *scene, PastReceive receive)
{
	static const int participants[HISTORIES] = {2, 3, 4, 6, 9, 14, 20, 26};
	Tally tally = {0};

	for (int i = 0; i < HISTORIES; i++)
	{
		Rng rng = rng_stream(scene_seed(scene), (uint64_t) i);
		Past past;

		require(scene, past_draw(&rng, participants[i], EVENTS, receive, &past));
		for (int a = 0; a < EVENTS; a++)
		{
			for (int b = a + 1; b < EVENTS; b++)
			{
				compare_pair(&past, a, b, &tally);
			}
		}
		past_free(&past);
	}
	return tally;
}

static void
pairs(Scene *scene)
{
	Tally tally;

	step(scene, "all pairs of %d histories of %d events", HISTORIES, EVENTS);
	tally = compare_all(scene, vclock_receive);
	note(scene, "of %" PRId64 " pairs %" PRId64 " are in order, %" PRId64 " concurrent", tally.pairs,
		 tally.of[VCLOCK_BEFORE], tally.of[VCLOCK_CONCURRENT]);
	CHECK_EQ(scene, tally.pairs, PAIRS, "pairs compared, both ways");
	check_at_least(scene, tally.of[VCLOCK_BEFORE], PAIRS / 10, "of which in order");
	check_at_least(scene, tally.of[VCLOCK_CONCURRENT], PAIRS / 10, "of which concurrent");
	CHECK_EQ(scene, tally.wrong, 0, "pairs that the clocks answer wrongly");

	step(scene, "the same with receipts that are not quite that");
	tally = compare_all(scene, past_receive_without_tick);
	check_at_least(scene, tally.wrong, 1000, "pairs answered wrongly without the tick");
	note(scene, "%" PRId64 " of %" PRId64 " without the tick", tally.wrong, tally.pairs);
	tally = compare_all(scene, past_receive_without_merge);
	check_at_least(scene, tally.wrong, 1000, "pairs answered wrongly without the merge");
	note(scene, "%" PRId64 " of %" PRId64 " without the merge", tally.wrong, tally.pairs);
}

static VClock
draw_clock(Scene *scene, Rng *rng)
{
	VClock clock = {0};

	for (int i = 0; i < 26; i++)
	{
		if (rng_below(rng, 3) == 0)
		{
			require(scene, vclock_set(&clock, past_participant(i), (int64_t) rng_below(rng, 4)));
		}
	}
	return clock;
}

static bool
same(VClock a, VClock b)
{
	bool equal = vclock_compare(&a, &b) == VCLOCK_EQUAL;

	vclock_free(&a);
	vclock_free(&b);
	return equal;
}

/* (a b) c against a (b c). */
static bool
groups_alike(const VClock *a, const VClock *b, const VClock *c)
{
	VClock first = vclock_merge(a, b);
	VClock last = vclock_merge(b, c);
	bool alike = same(vclock_merge(&first, c), vclock_merge(a, &last));

	vclock_free(&first);
	vclock_free(&last);
	return alike;
}

static void
merging(Scene *scene)
{
	Rng rng = rng_stream(scene_seed(scene), HISTORIES);
	int64_t commutes = 0;
	int64_t associates = 0;
	int64_t repeats = 0;

	step(scene, "merging drawn clocks in another order, in other groups, and twice");
	for (int i = 0; i < TRIPLES; i++)
	{
		VClock a = draw_clock(scene, &rng);
		VClock b = draw_clock(scene, &rng);
		VClock c = draw_clock(scene, &rng);

		commutes += same(vclock_merge(&a, &b), vclock_merge(&b, &a));
		associates += groups_alike(&a, &b, &c);
		repeats += same(vclock_merge(&a, &a), vclock_copy(&a));
		vclock_free(&a);
		vclock_free(&b);
		vclock_free(&c);
	}
	CHECK_EQ(scene, commutes, TRIPLES, "merged the same in the other order");
	CHECK_EQ(scene, associates, TRIPLES, "merged the same in other groups");
	CHECK_EQ(scene, repeats, TRIPLES, "the same merged with itself");
}

static void
run(Scene *scene)
{
	pairs(scene);
	merging(scene);
}

const Scenario scenario_clocks_history = {
	.suite = "clocks",
	.id = "clocks/history",
	.title = "a million pairs of events, and the truth about each",
	.claim = "clocks that lost nothing say of any two events which happened before the other, or that neither did",
	.kind = "seeded histories, negative control",
	.guarantee = "compare is the truth; merge commutes, associates, repeats",
	.observed = "answers beside what is known to have happened",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 120000,
	.run = run,
};
