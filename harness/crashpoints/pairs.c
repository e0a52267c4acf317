#include "pairs.h"

#include <stdlib.h>

#include "../rng.h"

#define SAMPLE_STREAM 0xc4a5 /* of the run's seed; nobody else draws from it */

/* What may be tried at all. */
typedef struct
{
	int first; /* points from here, from 0 ... */
	int points;
	CrashFault faults[CRASH_FAULTS];
	int fault_count;
} Field;

static Field
field_of(const CrashSelection *selection, const CrashPlan *plan, int point_count)
{
	int last = selection->first_point == 0 || selection->last_point > point_count ? point_count : selection->last_point;
	Field field = {.first = selection->first_point == 0 ? 0 : selection->first_point - 1};

	field.points = last > field.first ? last - field.first : 0;
	for (int i = 0; i < plan->fault_count; i++)
	{
		if (selection->fault == 0 || selection->fault == plan->faults[i])
		{
			field.faults[field.fault_count++] = plan->faults[i];
		}
	}
	return field;
}

/* How many of the sample fall on each point: as many on all, one more on some that lie evenly apart. */
static int *
shares_draw(const Field *field, int sample, Rng *rng)
{
	int *shares = memory_get(sizeof(int) * (size_t) field->points);
	int more = sample % field->points;

	for (int i = 0; i < field->points; i++)
	{
		shares[i] = sample / field->points;
	}
	for (int i = 0; i < more; i++)
	{
		int64_t from = (int64_t) i * field->points / more;
		int64_t to = (int64_t) (i + 1) * field->points / more;

		shares[from + (int64_t) rng_below(rng, (uint64_t) (to - from))]++;
	}
	return shares;
}

/* Marks pairs as taken: one after another of the faults, round and round over the points. */
static void
sample_take(const Field *field, const CrashSelection *selection, bool *taken)
{
	Rng rng = rng_stream(selection->run->seed, SAMPLE_STREAM);
	int *shares = shares_draw(field, selection->sample, &rng);
	int next = (int) rng_below(&rng, (uint64_t) field->fault_count);

	for (int i = 0; i < field->points; i++)
	{
		for (int j = 0; j < shares[i]; j++)
		{
			taken[i * field->fault_count + next] = true;
			next = (next + 1) % field->fault_count;
		}
	}
	free(shares);
}

CrashPair *
crash_pairs_select(const CrashSelection *selection, const CrashPlan *plan, int point_count, int *count)
{
	Field field = field_of(selection, plan, point_count);
	int all = field.points * field.fault_count;
	CrashPair *pairs = memory_get(sizeof(CrashPair) * (size_t) all);
	bool *taken = memory_get(sizeof(bool) * (size_t) all);
	bool sampled = selection->sample > 0 && selection->sample < all;
	int seen = 0;

	if (sampled)
	{
		sample_take(&field, selection, taken);
	}
	*count = 0;
	for (int i = 0; i < all; i++)
	{
		if ((!sampled || taken[i]) && seen++ % selection->shard_count == selection->shard_index - 1)
		{
			pairs[(*count)++] = (CrashPair){field.first + i / field.fault_count, field.faults[i % field.fault_count]};
		}
	}
	free(taken);
	return pairs;
}
