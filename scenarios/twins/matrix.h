/*
 * Every twin against the cases: is each caught, by the check that it names?
 *
 * Cases are run by programs of their own, one for the system as it is and one for each twin, and what they recorded is
 * read back. A matrix that could not report a survivor would prove nothing: the canary is a twin whose case is switched
 * off, and it must survive.
 */
#ifndef COUNTERPROOF_MATRIX_H
#define COUNTERPROOF_MATRIX_H

#include "runner.h"
#include "twins.h"

typedef struct
{
	const RunnerConfig *run; /* jobs: programs side by side */
	bool brief;              /* each twin only in the case that must catch it */
	const Twin *const *twins;
	int twin_count;
} MatrixConfig;

/*
 * EXIT_CODE_FAIL: a twin survived, or the canary did not, or the system as it is is red. EXIT_CODE_BROKEN: a program did not
 * record what it found.
 */
extern ExitCode matrix_run(const MatrixConfig *config);

#endif
