/*
 * What vector clocks cost. The yardstick for long ones is memcmp over two equal blocks, each as long as the identifiers
 * and counters of the longer clock: what it would take merely to look at both.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vclock.h"

#define CLOCK_PAIRS 15
#define SHORT_ENTRIES 16
#define QUARTER_ENTRIES 250
#define LONG_ENTRIES 1000
#define SHORT_BAR_NS 100
#define BATCH_NS 2000000 /* what a batch takes, about */
#define BATCHES 5        /* of which the quickest counts: the others were disturbed */

/* Two clocks of which b is after a, so that no look at one can be left out; and what is compared with them. */
typedef struct
{
	VClock a;
	VClock b;
	char *block;
	char *same;
	size_t block_bytes;
	int64_t answers; /* so that nothing is optimized away */
} Subject;

typedef void (*Work)(Subject *subject);

static void
compare(Subject *subject)
{
	subject->answers += vclock_compare(&subject->a, &subject->b);
}

static void
merge(Subject *subject)
{
	VClock merged = vclock_merge(&subject->a, &subject->b);

	subject->answers += (int64_t) vclock_count(&merged);
	vclock_free(&merged);
}

/* Of clocks with the same participants: with others, a would have them all after the first call. */
static void
absorb(Subject *subject)
{
	vclock_absorb(&subject->a, &subject->b);
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

/* Of `missing` participants a lacks one. false: reported. */
static bool
make_subject(int entries, int missing, Subject *subject)
{
	bool done = true;

	*subject = (Subject){0};
	for (int i = 0; i < entries && done; i++)
	{
		char name[32];

		snprintf(name, sizeof(name), "worker-%04d", i);
		done = vclock_set(&subject->b, vclock_id(name), 100 + i) &&
			   ((missing != 0 && i % missing == 0) || vclock_set(&subject->a, vclock_id(name), 99 + i));
	}
	subject->block_bytes = subject->b.id_bytes + subject->b.count * sizeof(*subject->b.counters);
	subject->block = memory_get(subject->block_bytes);
	subject->same = memory_get(subject->block_bytes);
	return done;
}

static void
free_subject(Subject *subject)
{
	vclock_free(&subject->a);
	vclock_free(&subject->b);
	free(subject->block);
	free(subject->same);
}

static bool
bench_short(const char *what, int missing, Work work)
{
	double ns[CLOCK_PAIRS];
	Subject subject;
	bool done = make_subject(SHORT_ENTRIES, missing, &subject);

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
bench_long(const char *what, int missing, Work work, const char *bar)
{
	double ns[CLOCK_PAIRS];
	double yardstick_ns[CLOCK_PAIRS];
	double ratios[CLOCK_PAIRS];
	Subject subject;
	bool done = make_subject(LONG_ENTRIES, missing, &subject);

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

static bool
bench_linear(const char *what, int missing, Work work)
{
	double long_ns[CLOCK_PAIRS];
	double quarter_ns[CLOCK_PAIRS];
	double ratios[CLOCK_PAIRS];
	Subject whole;
	Subject quarter = {0};
	bool done = make_subject(LONG_ENTRIES, missing, &whole) && make_subject(QUARTER_ENTRIES, missing, &quarter);

	for (int i = 0; i < CLOCK_PAIRS && done; i++)
	{
		long_ns[i] = call_ns(&whole, work);
		quarter_ns[i] = call_ns(&quarter, work) * LONG_ENTRIES / QUARTER_ENTRIES;
		ratios[i] = long_ns[i] / quarter_ns[i];
	}
	if (done)
	{
		bench_print_row(what, bench_median(long_ns, CLOCK_PAIRS), bench_median(quarter_ns, CLOCK_PAIRS), "ns",
						bench_median(ratios, CLOCK_PAIRS), "at most 1.3");
	}
	free_subject(&whole);
	free_subject(&quarter);
	return done;
}

bool
bench_clocks(const Bench *bench)
{
	(void) bench;
	return bench_short("compare, 16 entries / 100 ns", 0, compare) &&
		   bench_short("merge, 16 entries / 100 ns", 0, merge) &&
		   bench_short("compare, 16, one of 4 missing / 100 ns", 4, compare) &&
		   bench_short("merge, 16, one of 4 missing / 100 ns", 4, merge) &&
		   bench_linear("compare, 1,000 entries / 4 x 250", 0, compare) &&
		   bench_linear("merge, 1,000 entries / 4 x 250", 0, merge) &&
		   bench_linear("merge, 1 of 10 missing / 4 x 250", 10, merge) &&
		   bench_long("compare, 1,000 entries / memcmp", 0, compare, "at most 2") &&
		   bench_long("merge in place, 1,000 / memcmp", 0, absorb, "at most 2") &&
		   bench_long("merge, new clock, 1,000 / memcmp", 0, merge, "at most 2") &&
		   bench_long("compare, one of 10 missing / memcmp", 10, compare, "at most 10") &&
		   bench_long("merge, one of 10 missing / memcmp", 10, merge, "at most 10") &&
		   bench_long("compare, every 2nd missing / memcmp", 2, compare, "at most 10") &&
		   bench_long("merge, every 2nd missing / memcmp", 2, merge, "at most 10");
}
