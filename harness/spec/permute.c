/*
 * Orders are sequences of session numbers, in the order of a dictionary; the next one is found in place.
 */
#include "permute.h"

#include <stdlib.h>

void
permute_begin(Permute *permute, const Spec *spec)
{
	int place = 0;

	*permute = (Permute){.spec = spec,
						 .whose = memory_get(sizeof(int) * ((size_t) spec->step_count + 1)),
						 .taken = memory_get(sizeof(int) * ((size_t) spec->session_count + 1))};
	for (int i = 0; i < spec->session_count; i++)
	{
		for (int k = 0; k < spec->sessions[i]->step_count; k++)
		{
			permute->whose[place++] = i;
		}
	}
}

void
permute_end(Permute *permute)
{
	free(permute->whose);
	free(permute->taken);
	*permute = (Permute){0};
}

static void
swap(int *a, int *b)
{
	int kept = *a;

	*a = *b;
	*b = kept;
}

/* The longest falling tail is the last of its kind: the number before it gives way to the next larger one of the tail. */
static bool
advance(int *whose, int count)
{
	int tail = count - 1;
	int larger;

	while (tail > 0 && whose[tail - 1] >= whose[tail])
	{
		tail--;
	}
	if (tail <= 0)
	{
		return false;
	}
	larger = count - 1;
	while (whose[larger] <= whose[tail - 1])
	{
		larger--;
	}
	swap(&whose[tail - 1], &whose[larger]);
	for (int right = count - 1; tail < right; tail++, right--)
	{
		swap(&whose[tail], &whose[right]);
	}
	return true;
}

bool
permute_next(Permute *permute, const SpecTurn **turns)
{
	const Spec *spec = permute->spec;

	if (permute->begun && !advance(permute->whose, spec->step_count))
	{
		return false;
	}
	permute->begun = true;
	for (int i = 0; i < spec->session_count; i++)
	{
		permute->taken[i] = 0;
	}
	for (int i = 0; i < spec->step_count; i++)
	{
		int session = permute->whose[i];

		turns[i] = &spec->sessions[session]->steps[permute->taken[session]++]->turn;
	}
	return true;
}

/* A product of binomials; each is built up so that every division comes out even. */
uint64_t
permute_count(const Spec *spec)
{
	unsigned __int128 product = 1;
	int places = 0;

	for (int i = 0; i < spec->session_count; i++)
	{
		for (int k = 1; k <= spec->sessions[i]->step_count; k++)
		{
			places++;
			product = product * (unsigned) places / (unsigned) k;
			if (product >= UINT64_MAX)
			{
				return UINT64_MAX;
			}
		}
	}
	return (uint64_t) product;
}
