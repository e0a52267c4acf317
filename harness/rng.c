/*
 * SplitMix64: a counter that steps by an odd constant, and a mixer that makes each step look random. Any state is a
 * good one, so streams need no warming up.
 */
#include "rng.h"

#include <sys/random.h>

#include "base.h"

#define STEP UINT64_C(0x9e3779b97f4a7c15) /* 2^64 divided by the golden ratio, made odd */

static uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/*
 * seed + stream would start stream 1 of a seed where stream 0 of the next seed starts, and seed + stream * STEP would
 * make every stream the same sequence one draw later. Mixing both apart does neither.
 */
Rng
rng_stream(uint64_t seed, uint64_t stream)
{
	return (Rng){.state = mix(mix(seed + STEP) ^ (stream * UINT64_C(0xd1342543de82ef95) + 1))};
}

uint64_t
rng_next(Rng *rng)
{
	rng->state += STEP;
	return mix(rng->state);
}

uint64_t
rng_below(Rng *rng, uint64_t bound)
{
	uint64_t excess = -bound % bound; /* 2^64 mod bound: so many of the lowest draws would favour small numbers */
	uint64_t draw;

	do
	{
		draw = rng_next(rng);
	} while (draw < excess);
	return draw % bound;
}

void
rng_shuffle(Rng *rng, int64_t *values, size_t count)
{
	for (size_t left = count; left > 1; left--)
	{
		size_t pick = (size_t) rng_below(rng, left);
		int64_t value = values[left - 1];

		values[left - 1] = values[pick];
		values[pick] = value;
	}
}

uint64_t
rng_random_seed(void)
{
	uint64_t seed;

	/* so few bytes never come in part, and the kernel's pool is long full when a program runs */
	while (getrandom(&seed, sizeof(seed), 0) != (ssize_t) sizeof(seed))
	{
		backoff_us(100);
	}
	return seed >> 1;
}
