/* Counts and violations of one file's run: all that is kept of its interleavings. Not safe for threads by itself. */
#ifndef COUNTERPROOF_SPEC_REPORT_H
#define COUNTERPROOF_SPEC_REPORT_H

#include "../spec.h"
#include "judge.h"
#include "serial.h"

/* An empty report with the checks that the file has. `permutation`: the only one that is run, or -1: all. */
extern SpecReport *report_new(const Spec *spec, SpecPart part, int permutation) MUST_CHECK;

/* One interleaving as it was judged. */
typedef struct
{
	const Trial *trial;
	const Judge *judge;
	const SerialVerdict *serial;        /* NULL: not asked */
	const SpecPermutation *permutation; /* NULL: explored */
	const char *missed;                 /* of its expectations; "" */
} Judged;

extern void report_add(SpecReport *report, const Spec *spec, const Judged *judged);

/* At the end: a step that is wrong by itself, for it never did anything but fail by an error in its words. */
extern void report_refuse_wrong(SpecReport *report, const Spec *spec, const char *path);

/* The first reason stays. */
extern void report_say(Text *reason, const char *words);

#endif
