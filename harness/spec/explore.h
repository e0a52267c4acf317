/*
 * Which interleavings are run: all, those with few preemptions, or a sample; and each fault at every place.
 *
 * An interleaving is a sequence of actors, found by running: whoever is not blocked may be next. What else could have been
 * chosen on the way is kept as the beginning of another interleaving, so that no more is held than one path has branches.
 * Steps that are marked `read` may change places when they are neighbours: of each such set of orders only that is run in
 * which the sessions come in the order of the file.
 */
#ifndef COUNTERPROOF_SPEC_EXPLORE_H
#define COUNTERPROOF_SPEC_EXPLORE_H

#include "trial.h"

typedef struct Explore Explore; /* what is left to run; used by several threads */
typedef struct Walk Walk;       /* one interleaving on its way */

typedef struct
{
	uint64_t planned;  /* before the run; blocked sessions make it fewer. UINT64_MAX: that many or more */
	bool cut;          /* planned is only a least number: counting took too long */
	uint64_t skipped;  /* for being the same as another but for the order of reads */
	uint64_t diverged; /* went another way than before: what is below them was not run */
} ExploreCount;

extern Explore *explore_new(const Spec *spec, uint64_t seed) MUST_CHECK;
extern void explore_free(Explore *explore); /* NULL allowed */

extern Walk *walk_new(void) MUST_CHECK;
extern void walk_free(Walk *walk); /* NULL allowed */

/* The next beginning. Waits while another thread is on its way, which may leave more. false: all are done, or stopped. */
extern bool explore_take(Explore *explore, Walk *walk) MUST_CHECK;
/* Walk it. */
extern TrialEnd explore_run(Explore *explore, Walk *walk, Trial *trial, bool (*after)(void *context, Trial *trial),
							void *context);
/* What it has passed by is left to be run. Each walk that was taken must be given back. */
extern void explore_give(Explore *explore, Walk *walk);

extern void explore_stop(Explore *explore); /* nothing more is taken */
extern ExploreCount explore_count(Explore *explore);

/*
 * The one order that these names give, of steps and faults; what is left of the sessions follows. TRIAL_GIVEN_UP: it cannot
 * be run like that; `why` says where.
 */
extern TrialEnd explore_replay(Trial *trial, const char *order, bool (*after)(void *context, Trial *trial),
							   void *context, Text *why);

#endif
