/* One run of a program: without a fault, for the record, or with one fault at one point; then recovered and judged. */
#ifndef COUNTERPROOF_CRASHPOINTS_TRIAL_H
#define COUNTERPROOF_CRASHPOINTS_TRIAL_H

#include "points.h"
#include "site.h"

typedef enum
{
	TRIAL_UNSET = 0,
	TRIAL_HELD,
	TRIAL_VIOLATED,
	TRIAL_UNKNOWN, /* the point was not reached, or nobody can say what came of it: `reason` */
} TrialVerdict;

/* How often each fault-free reference is run, and so what "stable" rests on. */
#define TRIAL_REFERENCES 3

#define TRIAL_RECOVERIES_MAX 5

/* The name of the invariant that every file has: recovery comes to an end with success. */
#define TRIAL_RECOVERS "recovers"

typedef struct
{
	TrialVerdict verdict;
	Text reason;         /* of TRIAL_UNKNOWN, one line */
	Text failures;       /* a line for each violated invariant: name, what was expected, what came; a tab between */
	Text notes;          /* what belongs to it, line by line: rows, last words of the programs */
	int64_t waited_ms;   /* for backends of connections that were gone */
	int64_t duration_ns; /* a reference: of the program alone; else of all */
} TrialOutcome;

/*
 * Run fault-free TRIAL_REFERENCES times and derive the points. An invariant may be violated already: the verdict says.
 * false: reported; also when the program does not end with 0, or an invariant cannot be asked.
 */
extern bool trial_reference(Site *site, CrashPoints *points, TrialOutcome *outcome) MUST_CHECK;

/* false: reported, the lab could not do its work. An interrupt is such a case, and not reported. */
extern bool trial_run(Site *site, const CrashPoint *point, bool by_kind, CrashFault fault,
					  TrialOutcome *outcome) MUST_CHECK;

extern void trial_outcome_free(TrialOutcome *outcome);

#endif
