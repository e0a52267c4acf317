/*
 * All orders of a file's steps that keep each session's own, one after another: sessions in the order of the file, at
 * every place, so that the first order runs them one by one and the last one backwards.
 */
#ifndef COUNTERPROOF_SPEC_PERMUTE_H
#define COUNTERPROOF_SPEC_PERMUTE_H

#include "tree.h"

typedef struct
{
	const Spec *spec;
	int *whose; /* session of each place */
	int *taken; /* steps of each session that the order has used */
	bool begun;
} Permute;

extern void permute_begin(Permute *permute, const Spec *spec);
extern void permute_end(Permute *permute);

/* Fill turns with the next order, spec->step_count of them. false: that was the last one. */
extern bool permute_next(Permute *permute, const SpecTurn **turns) MUST_CHECK;

/* How many there are; UINT64_MAX for that many or more. */
extern uint64_t permute_count(const Spec *spec);

#endif
