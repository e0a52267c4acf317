/*
 * What vector clocks cost. The yardstick for long ones is memcmp over two equal blocks, each as long as the identifiers
 * and counters of the clock b: what it would take merely to look at both.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"
#include "vclock.h"

#define CLOCK_PAIRS 15
#define SHORT_ENTRIES 16
#define QUARTER_ENTRIES 250
#define LONG_ENTRIES 1000
#define DRAWN 32 /* clocks with gaps drawn: a processor learns a thousand branches, but not so many thousand */
#define SHORT_BAR_NS 100
#define BATCH_NS 2000000 /* what a batch takes, about */
#define BATCHES 5        /* of which the quickest counts: the others were disturbed */

/* Clocks a, taken in turn, and a clock b that is after each of them, so that no look at one can be left out; what is compared with them. */
typedef struct
{
	VClock a[DRAWN];
	size_t count;
	size_t turn;
	VClock b;
	char *block;
	char *same;
	size_t block_bytes;
	int64_t answers; /* so that nothing is optimized away */
} Subject;

/* Which participants a lacks, and maybe b. */
typedef struct
{
	int one_of; /* 0: none */
	bool drawn; /* each with so much chance, and many clocks; else the first of so many, and one clock */
	bool both;
} Gaps;

typedef void (*Work)(Subject *subject);

static VClock *
next_a(Subject *subject)
{
	subject->turn = subject->turn + 1 < subject->count ? subject->turn + 1 : 0;
	return &subject->a[subject->turn];
}

static void
compare(Subject *subject)
{
	subject->answers += vclock_compare(next_a(subject), &subject->b);
}

static void
merge(Subject *subject)
{
	VClock merged = vclock_merge(next_a(subject), &subject->b);

	subject->answers += (int64_t) vclock_count(&merged);
	vclock_free(&merged);
}

/* Of clocks with the same participants: with others, a would have them all after the first call. */
static void
absorb(Subject *subject)
{
	vclock_absorb(next_a(subject), &subject->b);
	subject->answers++;
}

static void
look_at_all(Subject *subject)
{
	subject->answers += memcmp(subject->block, subject->same, subject->block_bytes);
}

static double
batch_ns(Subject *subject, Work work, int64_t calls)
{
	int64_t begin = time_now_ns();

	for (int64_t i = 0; i < calls; i++)
	{
		work(subject);
		__asm__ volatile("" ::: "memory"); /* each call looks again */
	}
	return (double) (time_now_ns() - begin) / (double) calls;
}

static double
call_ns(Subject *subject, Work work)
{
	double quickest = batch_ns(subject, work, 100);
	int64_t calls = 1 + (int64_t) (BATCH_NS / quickest);

	for (int i = 0; i < BATCHES; i++)
	{
		double ns = batch_ns(subject, work, calls);

		quickest = i == 0 || ns < quickest ? ns : quickest;
	}
	return quickest;
}

static bool
lacks(Gaps gaps, int participant, Rng *rng)
{
	return gaps.one_of > 0 &&
		   (gaps.drawn ? rng_below(rng, (uint64_t) gaps.one_of) == 0 : participant % gaps.one_of == 0);
}

static size_t
bytes_of(const VClock *clock)
{
	size_t bytes = 0;

	for (size_t i = 0; i < vclock_count(clock); i++)
	{
		bytes += 1 + vclock_entry(clock, i).id.length + sizeof(int64_t);
	}
	return bytes;
}

/* false: reported. */
static bool
make_clock(int entries, Gaps gaps, int64_t counter, Rng *rng, VClock *clock)
{
	bool done = true;

	for (int i = 0; i < entries && done; i++)
	{
		char name[32];

		snprintf(name, sizeof(name), "worker-%04d", i);
		done = lacks(gaps, i, rng) || vclock_set(clock, vclock_id(name), counter + i);
	}
	return done;
}

/* false: reported. */
static bool
make_subject(int entries, Gaps gaps, Subject *subject)
{
	Rng rng = rng_stream(6, 0);
	bool done;

	*subject = (Subject){.count = gaps.drawn ? DRAWN : 1};
	done = make_clock(entries, gaps.both ? gaps : (Gaps){0}, 100, &rng, &subject->b);
	subject->block_bytes = bytes_of(&subject->b);
	for (size_t i = 0; i < subject->count && done; i++)
	{
		done = make_clock(entries, gaps, 99, &rng, &subject->a[i]);
	}
	subject->block = memory_get(subject->block_bytes);
	subject->same = memory_get(subject->block_bytes);
	return done;
}

static void
free_subject(Subject *subject)
{
	for (size_t i = 0; i < subject->count; i++)
	{
		vclock_free(&subject->a[i]);
	}
	vclock_free(&subject->b);
	free(subject->block);
	free(subject->same);
}

static bool
bench_short(const char *what, Gaps gaps, Work work)
{
	double ns[CLOCK_PAIRS];
	Subject subject;
	bool done = make_subject(SHORT_ENTRIES, gaps, &subject);

	for (int i = 0; i < CLOCK_PAIRS && done; i++)
	{
		ns[i] = call_ns(&subject, work);
	}
	if (done)
	{
		bench_print_row(what, bench_median(ns, CLOCK_PAIRS), SHORT_BAR_NS, "ns",
						bench_median(ns, CLOCK_PAIRS) / SHORT_BAR_NS, "at most 1");
	}
	free_subject(&subject);
	return done;
}

static bool
bench_long(const char *what, Gaps gaps, Work work, const char *bar)
{
	double ns[CLOCK_PAIRS];
	double yardstick_ns[CLOCK_PAIRS];
	double ratios[CLOCK_PAIRS];
	Subject subject;
	bool done = make_subject(LONG_ENTRIES, gaps, &subject);

	for (int i = 0; i < CLOCK_PAIRS && done; i++)
	{
		ns[i] = call_ns(&subject, work);
		yardstick_ns[i] = call_ns(&subject, look_at_all);
		ratios[i] = ns[i] / yardstick_ns[i];
	}
	if (done)
	{
		bench_print_row(what, bench_median(ns, CLOCK_PAIRS), bench_median(yardstick_ns, CLOCK_PAIRS), "ns",
						bench_median(ratios, CLOCK_PAIRS), bar);
	}
	free_subject(&subject);
	return done;
}

/* Four times the entries, as many times the time as memcmp takes for as many times the bytes: a longer block leaves a cache. */
static bool
bench_linear(const char *what, Gaps gaps, Work work)
{
	double times[CLOCK_PAIRS];
	double yardstick_times[CLOCK_PAIRS];
	double ratios[CLOCK_PAIRS];
	Subject whole;
	Subject quarter = {0};
	bool done = make_subject(LONG_ENTRIES, gaps, &whole) && make_subject(QUARTER_ENTRIES, gaps, &quarter);

	for (int i = 0; i < CLOCK_PAIRS && done; i++)
	{
		times[i] = call_ns(&whole, work) / call_ns(&quarter, work);
		yardstick_times[i] = call_ns(&whole, look_at_all) / call_ns(&quarter, look_at_all);
		ratios[i] = times[i] / yardstick_times[i];
	}
	if (done)
	{
		bench_print_row(what, bench_median(times, CLOCK_PAIRS), bench_median(yardstick_times, CLOCK_PAIRS), "times",
						bench_median(ratios, CLOCK_PAIRS), "at most 1.3");
	}
	free_subject(&whole);
	free_subject(&quarter);
	return done;
}

bool
bench_clocks(const Bench *bench)
{
	const Gaps none = {0};
	const Gaps fourth = {.one_of = 4};
	const Gaps tenth = {.one_of = 10};
	const Gaps half = {.one_of = 2};
	const Gaps half_drawn = {.one_of = 2, .drawn = true};
	const Gaps tenth_of_both = {.one_of = 10, .drawn = true, .both = true};

	(void) bench;
	return bench_short("compare, 16 entries / 100 ns", none, compare) &&
		   bench_short("merge, 16 entries / 100 ns", none, merge) &&
		   bench_short("compare, 16, one of 4 missing / 100 ns", fourth, compare) &&
		   bench_short("merge, 16, one of 4 missing / 100 ns", fourth, merge) &&
		   bench_linear("compare, 250 to 1,000 / memcmp", none, compare) &&
		   bench_linear("merge, 250 to 1,000 / memcmp", none, merge) &&
		   bench_linear("merge, 1 of 10 missing, 250 to 1,000", tenth, merge) &&
		   bench_long("compare, 1,000 entries / memcmp", none, compare, "at most 2") &&
		   bench_long("merge in place, 1,000 / memcmp", none, absorb, "at most 2") &&
		   bench_long("merge, new clock, 1,000 / memcmp", none, merge, "at most 2") &&
		   bench_long("compare, one of 10 missing / memcmp", tenth, compare, "at most 10") &&
		   bench_long("merge, one of 10 missing / memcmp", tenth, merge, "at most 10") &&
		   bench_long("merge, both lack 1 of 10 / memcmp", tenth_of_both, merge, "at most 10") &&
		   bench_long("compare, every 2nd missing / memcmp", half, compare, "at most 10") &&
		   bench_long("merge, every 2nd missing / memcmp", half, merge, "at most 10") &&
		   bench_long("compare, a drawn half missing / memcmp", half_drawn, compare, "at most 10") &&
		   bench_long("merge, a drawn half missing / memcmp", half_drawn, merge, "at most 10");
}
