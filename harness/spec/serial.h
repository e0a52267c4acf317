/*
 * Whether a serial order explains an interleaving: the committed sessions' steps are run in every order of the sessions,
 * once, and what each step answers and the final state are remembered. An interleaving that equals none of them is not
 * serializable.
 *
 * A session is what is serial here, with all that it committed, be it one transaction or several.
 */
#ifndef COUNTERPROOF_SPEC_SERIAL_H
#define COUNTERPROOF_SPEC_SERIAL_H

#include "judge.h"

/* So many sessions in effect are 720 orders. */
#define SERIAL_SESSIONS_MAX 6

typedef struct Serials Serials;     /* what is remembered; used by several threads */
typedef struct Testimony Testimony; /* what an interleaving's sessions did and saw, and its final state */

typedef struct
{
	bool explained;
	Text order;          /* that explains it; else the nearest. Names of sessions */
	Text difference;     /* from the nearest, the first one */
	const char *anomaly; /* its name in the literature; NULL: no known shape, or explained */
} SerialVerdict;

extern Serials *serials_new(const Spec *spec) MUST_CHECK;
extern void serials_free(Serials *serials); /* NULL allowed */

extern Testimony *testimony_new(const Spec *spec) MUST_CHECK;
extern void testimony_free(Testimony *testimony); /* NULL allowed */

/* Keep what the trial's sessions did, before it ends, and the final state; memory is used again. */
extern void testimony_take(Testimony *testimony, const Trial *trial, const char *state);

/*
 * Run the orders of all sessions with all their steps, which most interleavings will want. What cannot be run serially
 * is no failure here: it shows when it is wanted. false: the trial is of no more use, `why` says why.
 * `runner`, here and below: a trial of the same file and database, whose record is written over.
 */
extern bool serials_prepare(Serials *serials, Trial *runner, Judge *judge, Text *why) MUST_CHECK;

/*
 * After trial_end(); orders that are not known yet are run. TRIAL_DONE: *verdict is filled. TRIAL_REFUSED: too many
 * sessions, or a step that never ends; the reason is in `why`.
 */
extern TrialEnd serials_judge(Serials *serials, const Testimony *testimony, Trial *runner, Judge *judge,
							  SerialVerdict *verdict, Text *why);

#endif
