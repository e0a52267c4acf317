/*
 * What the cases of the suite isolation share: a file of the scenario language below sql/isolation/, judged over all its
 * interleavings, and what was found as checks.
 */
#ifndef COUNTERPROOF_ISOLATION_LAB_H
#define COUNTERPROOF_ISOLATION_LAB_H

#include "scenario.h"
#include "spec.h"

/* Then a step is cancelled, and nothing can be said. */
#define SPEC_STEP_LIMIT_MS 30000

/*
 * Judge sql/isolation/FILE: all that it explores and writes. Each interleaving starts from a copy of the database
 * `prepared`, to which nobody is connected, or with NULL from an empty one. Notes how many were run, what they cost, and how
 * often each outcome occurred. Ends the case as BROKEN when the file is refused or the lab fails; what cannot be said for
 * certain makes it UNKNOWN. Free with spec_report_free().
 */
extern SpecReport *judge_spec(Scene *scene, const char *file, const char *prepared);

/*
 * The same in the case's own database, where what the file leaves behind can be looked at afterwards, and what was set for the
 * database before is in force. Says nothing; what is broken, refused or unknown is for the caller to look at.
 */
extern SpecReport *judge_spec_in_place(Scene *scene, const char *file);

/* Notes how many interleavings were run, what they cost, and how often each outcome occurred: as judge_spec() does. */
extern void note_spec(Scene *scene, const char *file, const SpecReport *report);

/* One check: the file is refused before anything runs, as "FILE:LINE:COLUMN: why". */
extern void check_unreadable(Scene *scene, const char *file, const char *words);

/* `what` is "invariant NAME", "serializable" or "expect of the permutation in line N"; BROKEN when the file has none such. */

/* One check: it holds in every interleaving. The shortest that breaks it is told. */
extern void check_always(Scene *scene, const SpecReport *report, const char *what);

/*
 * One check: interleavings were found that break it, and the shortest of them is `order`, which is told step by step.
 * `order` NULL: any.
 */
extern void check_found(Scene *scene, const SpecReport *report, const char *what, const char *order);

/* One check: so many interleavings break it. */
extern void check_violations(Scene *scene, const SpecReport *report, const char *what, int64_t violated);

/* One check of what all interleavings together cost: steps that waited, retries after 40001; and none after 40P01. */
extern void check_cost(Scene *scene, const SpecReport *report, int64_t waits, int64_t retries_40001);
/* Checks: that many interleavings, and no more, break it; the shortest is `order`, and `detail` is what was wrong there. */
extern void check_broken(Scene *scene, const SpecReport *report, const char *what, int64_t interleavings,
						 const char *order, const char *detail);

/* Checks: everything that the file says must hold does so in every interleaving. */
extern void check_all_hold(Scene *scene, const SpecReport *report);

/*
 * Checks: sessions a and b, retried, deadlock in some interleavings; in each of these either one is ended, once, and its
 * `what` is run again.
 */
extern void check_deadlocks(Scene *scene, const SpecReport *report, const char *what);

/* Judge, and check that so many interleavings were run, that all holds in each, and that no step of any ends in an error. */
extern void judge_clean(Scene *scene, const char *file, const char *prepared, int64_t interleavings);

/* How many interleavings ended in an outcome whose words contain `part`, e.g. "40001 at c2". */
extern int64_t outcomes_with(const SpecReport *report, const char *part);

#endif
