/*
 * What a file says that must hold, asked of the server after an interleaving, or after each of its steps.
 */
#ifndef COUNTERPROOF_SPEC_JUDGE_H
#define COUNTERPROOF_SPEC_JUDGE_H

#include "trial.h"

typedef struct Judge Judge;

/* What one invariant has shown in one interleaving. */
typedef struct
{
	bool violated;
	Text rows; /* the counterexample; the first few */
} Holding;

/* A connection of its own. NULL: reported. */
extern Judge *judge_open(const Spec *spec, const char *path, const char *conninfo, int64_t limit_ms) MUST_CHECK;
extern void judge_close(Judge *judge); /* NULL allowed */

extern void judge_forget(Judge *judge); /* before an interleaving */

/* After a step: the invariants that hold always. false: reported. */
extern bool judge_ask_always(Judge *judge, const Trial *trial) MUST_CHECK;

/* After an interleaving: all invariants, and the final state by `observe`, if the file has one. false: reported. */
extern bool judge_ask_all(Judge *judge, Text *state) MUST_CHECK;
extern const Holding *judge_holding(const Judge *judge, int invariant);

/* The final state alone, as text that can be compared. false: reported. */
extern bool judge_observe(Judge *judge, Text *state) MUST_CHECK;

/*
 * What the permutation expects against what its sessions got: of each expectation that was not met, a line is appended
 * to `missed`. An error that nobody expects is one, too, but for 25P02, which only follows from another.
 */
extern void judge_expects(const SpecPermutation *permutation, const Trial *trial, Text *missed);

#endif
