/*
 * clocks/pruned  a clock is cut to its size, and errs in both directions
 *
 * Claim      A component that was dropped is no component that was never known. Without it a true ancestor looks concurrent, and two
 *            versions in conflict can look as if one replaced the other. How often depends on what is kept.
 * Method     The smallest examples; a store that exchanges a pruned version again and again; all pairs of small clocks; a seeded
 *            history, its clocks cut to k entries: the k newest ones, and the k with the largest counters.
 * Expect     Each error by its name. Siblings of a false conflict stay two however often they are exchanged, and a write
 *            that has read both ends it; an exchange that writes what arrives doubles them. Cut to all 12 entries no pair
 *            errs. Who keeps the newest never loses a conflict here, since every event ticks; who keeps the largest does.
 * Not shown  A store's own rule of eviction, and when it is safe (L32).
 */
#include "lab.h"

#include <inttypes.h>
#include <stdlib.h>

#include "past.h"

enum
{
	SMALL_COUNTERS = 4, /* 0 to 3, of three participants */
	SMALL_CLOCKS = SMALL_COUNTERS * SMALL_COUNTERS * SMALL_COUNTERS,
	PARTICIPANTS = 12,
	EVENTS = 400
};

/* What the answer for pruned clocks makes of the truth. */
typedef enum
{
	RIGHT = 0,
	FALSE_CONCURRENCY,
	MISSED_CONFLICT,
	ORDER_LOST /* of two in order: reversed, or equal */
} Error;

static Error
error_of(VClockOrder truth, VClockOrder answer)
{
	return answer == truth               ? RIGHT
		   : answer == VCLOCK_CONCURRENT ? FALSE_CONCURRENCY
		   : truth == VCLOCK_CONCURRENT  ? MISSED_CONFLICT
										 : ORDER_LOST;
}

static void
check_error(Scene *scene, const char *a, const char *b, char pruned, const char *without, const char *expected)
{
	static const char *const names[] = {"right", "false concurrency", "missed conflict", "order lost"};
	VClock first = clock_of(scene, a);
	VClock second = clock_of(scene, b);
	VClock *cut = pruned == 'a' ? &first : &second;
	VClockOrder truth = vclock_compare(&first, &second);
	VClock less = clock_without(cut, without);
	VClockOrder answer;
	char *told;

	vclock_free(cut);
	*cut = less;
	answer = vclock_compare(&first, &second);
	told = string_format("%s for %s: %s (pruned: %s)", vclock_order_name(answer), vclock_order_name(truth),
						 names[error_of(truth, answer)], without);
	check_text(scene, told, expected, "%s, as seen from %s, once %s has lost %s", a, b, pruned == 'a' ? a : b, without);
	free(told);
	vclock_free(&first);
	vclock_free(&second);
}

static void
smallest(Scene *scene)
{
	step(scene, "an ancestor becomes concurrent");
	check_error(scene, "[A:2, C:4]", "[A:3, B:2, C:5]", 'b', "C",
				"concurrent for before: false concurrency (pruned: C)");
	check_error(scene, "[A:1, B:1]", "[A:1, B:1, C:1]", 'b', "A",
				"concurrent for before: false concurrency (pruned: A)");
	step(scene, "a conflict is missed: what is stored looks replaced");
	check_error(scene, "[A:1, B:2]", "[B:2, C:1]", 'a', "A", "before for concurrent: missed conflict (pruned: A)");
	check_error(scene, "[B:2, C:1]", "[A:1, B:2]", 'b', "A", "after for concurrent: missed conflict (pruned: A)");
}


/* --- the same in a store --- */

static void
write_once(Scene *scene, Store *store, int replica, const char *client, const char *value)
{
	put_seen(scene, store, replica, &(StoreClient){.name = client}, value);
}

/* n2 has the old value, n1 a new one that has read it, and whose clock was then cut. */
static Store *
pruned_store(Scene *scene)
{
	Store *store = store_new(STORE_CLIENT_CLOCKS, 2);

	write_once(scene, store, 1, "A", "first");
	write_once(scene, store, 1, "B", "old");
	replicate(scene, store, 1, 2);
	write_once(scene, store, 1, "C", "new");
	store_drop_slot(store, 1, STORE_KEY, "A");
	return store;
}

static void
exchanged(Scene *scene)
{
	Store *store = pruned_store(scene);

	step(scene, "a store in which the new version has lost A: both replicas exchange what they have, again and again");
	for (int i = 1; i <= 3; i++)
	{
		replicate(scene, store, 1, 2);
		replicate(scene, store, 2, 1);
		check_values(scene, store, 1, "new old", "after an exchange");
		check_values(scene, store, 2, "new old", "after an exchange");
	}
	write_once(scene, store, 2, "D", "newer");
	replicate(scene, store, 2, 1);
	check_values(scene, store, 1, "newer", "after a write that had read both");
	store_free(store);
}

/* An exchange for which every arrival is an event of its own, that has read nothing. */
static void
write_arrivals(Scene *scene, Store *store, int from, int to, int64_t *events)
{
	StoreReading reading = store_read(store, from, STORE_KEY);

	for (int i = 0; i < reading.count; i++)
	{
		char *name = string_format("exchange-%" PRId64, ++*events);

		put_blind(scene, store, to, &(StoreClient){.name = name}, reading.values[i]);
		free(name);
	}
	store_reading_free(&reading);
}

static void
written_again(Scene *scene)
{
	Store *store = pruned_store(scene);
	Text counts = {0};
	int64_t events = 0;

	step(scene, "the twin: an exchange that writes what arrives, as an event that has read nothing");
	for (int i = 1; i <= 4; i++)
	{
		StoreReading reading;

		write_arrivals(scene, store, 1, 2, &events);
		write_arrivals(scene, store, 2, 1, &events);
		reading = store_read(store, 1, STORE_KEY);
		text_append(&counts, i > 1 ? " %d" : "%d", reading.count);
		store_reading_free(&reading);
	}
	check_text(scene, text_get(&counts), "3 8 21 55", "siblings on n1, exchange by exchange");
	text_free(&counts);
	store_free(store);
}


/* --- all small clocks, and a history --- */

/* What is kept of a clock: the best entries, by this. */
typedef int64_t (*Worth)(const Past *past, VClockEntry entry);

static int64_t
by_newest(const Past *past, VClockEntry entry)
{
	return past_place(past, entry);
}

static int64_t
by_largest(const Past *past, VClockEntry entry)
{
	(void) past;
	return entry.counter;
}

/* The first of those worth least goes first. */
static VClock
cut(const Past *past, const VClock *clock, size_t entries, Worth worth)
{
	VClock kept = vclock_copy(clock);

	while (vclock_count(&kept) > entries)
	{
		size_t least = 0;
		char name[2] = {0};
		VClock less;

		for (size_t i = 1; i < vclock_count(&kept); i++)
		{
			if (worth(past, vclock_entry(&kept, i)) < worth(past, vclock_entry(&kept, least)))
			{
				least = i;
			}
		}
		name[0] = vclock_entry(&kept, least).id.bytes[0];
		less = clock_without(&kept, name);
		vclock_free(&kept);
		kept = less;
	}
	return kept;
}

typedef struct
{
	int64_t ordered;
	int64_t concurrent;
	int64_t of[ORDER_LOST + 1];
} Errors;

static void
count(Errors *errors, VClockOrder truth, VClockOrder answer)
{
	errors->ordered += truth != VCLOCK_CONCURRENT;
	errors->concurrent += truth == VCLOCK_CONCURRENT;
	errors->of[error_of(truth, answer)]++;
}

static void
all_small(Scene *scene)
{
	VClock clocks[SMALL_CLOCKS];
	VClock pruned[SMALL_CLOCKS];
	Errors errors = {0};

	step(scene,
		 "all pairs of clocks of three participants with counters from 0 to 3, of which the stored one is cut to two");
	for (int i = 0; i < SMALL_CLOCKS; i++)
	{
		char text[64];

		snprintf(text, sizeof(text), "[A:%d, B:%d, C:%d]", i % SMALL_COUNTERS, i / SMALL_COUNTERS % SMALL_COUNTERS,
				 i / SMALL_COUNTERS / SMALL_COUNTERS);
		clocks[i] = clock_of(scene, text);
		pruned[i] = cut(NULL, &clocks[i], 2, by_largest);
	}
	for (int a = 0; a < SMALL_CLOCKS; a++)
	{
		for (int b = 0; b < SMALL_CLOCKS; b++)
		{
			count(&errors, vclock_compare(&clocks[a], &clocks[b]), vclock_compare(&pruned[a], &clocks[b]));
		}
	}
	for (int i = 0; i < SMALL_CLOCKS; i++)
	{
		vclock_free(&clocks[i]);
		vclock_free(&pruned[i]);
	}
	CHECK_EQ(scene, errors.ordered, 1936, "pairs in order, or equal");
	CHECK_EQ(scene, errors.concurrent, 2160, "pairs in conflict");
	CHECK_EQ(scene, errors.of[FALSE_CONCURRENCY], 391, "of those in order, called concurrent");
	CHECK_EQ(scene, errors.of[ORDER_LOST], 63, "of those in order, reversed or made equal");
	CHECK_EQ(scene, errors.of[MISSED_CONFLICT], 56, "conflicts missed");
}

static Errors
errors_at(const Past *past, size_t entries, Worth worth)
{
	VClock *pruned = memory_get((size_t) past->count * sizeof(*pruned));
	Errors errors = {0};

	for (int i = 0; i < past->count; i++)
	{
		pruned[i] = cut(past, &past->events[i].clock, entries, worth);
	}
	for (int a = 0; a < past->count; a++)
	{
		for (int b = a + 1; b < past->count; b++)
		{
			count(&errors, past_order(past, a, b), vclock_compare(&pruned[a], &pruned[b]));
		}
	}
	for (int i = 0; i < past->count; i++)
	{
		vclock_free(&pruned[i]);
	}
	free(pruned);
	return errors;
}

static double
percent(int64_t part, int64_t whole)
{
	return 100.0 * (double) part / (double) whole;
}

static void
note_row(Scene *scene, size_t entries, const Errors *errors)
{
	int64_t apart = errors->of[FALSE_CONCURRENCY];
	int64_t lost = errors->of[ORDER_LOST];
	int64_t missed = errors->of[MISSED_CONFLICT];

	note(scene,
		 "k=%2zu  of those in order %5" PRId64 " (%4.1f %%) concurrent, %3" PRId64
		 " (%3.1f %%) reversed or equal; of those in conflict %4" PRId64 " (%3.1f %%) missed",
		 entries, apart, percent(apart, errors->ordered), lost, percent(lost, errors->ordered), missed,
		 percent(missed, errors->concurrent));
}

/* A row for each k. Answers those for a quarter of the participants. */
static Errors
table(Scene *scene, const Past *past, const char *kept, Worth worth)
{
	Errors errors = errors_at(past, PARTICIPANTS, worth);
	Errors quarter = {0};

	step(scene, "the k %s entries are kept: %" PRId64 " pairs in order, %" PRId64 " in conflict", kept, errors.ordered,
		 errors.concurrent);
	for (size_t k = 1; k <= PARTICIPANTS; k++)
	{
		errors = errors_at(past, k, worth);
		note_row(scene, k, &errors);
		quarter = k == PARTICIPANTS / 4 ? errors : quarter;
	}
	CHECK_EQ(scene, errors.of[FALSE_CONCURRENCY] + errors.of[ORDER_LOST] + errors.of[MISSED_CONFLICT], 0,
			 "errors where all %d are kept", PARTICIPANTS);
	check_at_least(scene, quarter.of[FALSE_CONCURRENCY], 1000, "where a quarter are: pairs in order called concurrent");
	return quarter;
}

static void
history(Scene *scene)
{
	Rng rng = rng_stream(scene_seed(scene), 0);
	Errors newest;
	Errors largest;
	Past past;

	require(scene, past_draw(&rng, PARTICIPANTS, EVENTS, vclock_receive, &past));
	newest = table(scene, &past, "newest", by_newest);
	CHECK_EQ(scene, newest.of[MISSED_CONFLICT], 0, "where a quarter are: conflicts missed");
	largest = table(scene, &past, "largest", by_largest);
	check_at_least(scene, largest.of[MISSED_CONFLICT], 10, "where a quarter are: conflicts missed");
	past_free(&past);
}

static void
run(Scene *scene)
{
	smallest(scene);
	exchanged(scene);
	written_again(scene);
	all_small(scene);
	history(scene);
}

const Scenario scenario_clocks_pruned = {
	.suite = "clocks",
	.id = "clocks/pruned",
	.title = "a clock is cut to its size, and errs in both directions",
	.claim = "without a dropped component an ancestor looks concurrent, and a conflict can look like a replacement",
	.kind = "small examples, seeded histories, negative control",
	.guarantee = "none: what is lost is counted",
	.observed = "answers beside the truth, siblings of a store, a table over what is kept",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 60000,
	.run = run,
};
