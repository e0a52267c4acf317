/*
 * A seeded generator (SplitMix64). One seed drives a run; each user draws from a stream of its own, so that one
 * thread's draws do not depend on another's pace.
 */
#ifndef COUNTERPROOF_RNG_H
#define COUNTERPROOF_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct
{
	uint64_t state;
} Rng;

/* The generator for `stream` (a worker number, say) of the run with this seed. Different streams are independent. */
extern Rng rng_stream(uint64_t seed, uint64_t stream);
extern uint64_t rng_next(Rng *rng);
extern uint64_t rng_below(Rng *rng, uint64_t bound); /* uniform in [0, bound), without modulo bias; bound > 0 */
extern void rng_shuffle(Rng *rng, int64_t *values, size_t count);
extern uint64_t rng_random_seed(void); /* from the kernel, for --seed random; below 2^63 */

#endif
