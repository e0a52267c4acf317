/*
 * Judges over a history, and nothing else: no database, no processes. The subject is a set of versioned two-state
 * registers with a global number per change; see HistoryOp.
 */
#ifndef COUNTERPROOF_ORACLE_H
#define COUNTERPROOF_ORACLE_H

#include "history.h"

typedef enum
{
	VERDICT_UNSET = 0,
	VERDICT_HOLDS,
	VERDICT_VIOLATED,
	VERDICT_UNKNOWN /* nothing was exercised: an empty history, or no change succeeded */
} Verdict;

typedef struct
{
	Verdict verdict;
	size_t operations; /* judged */
	size_t changes;    /* acked changes among them */
	size_t unknowns;   /* operations that may or may not have happened */
	size_t violations;
	Text first; /* the first violation, told with both operations; caller frees with text_free() */
} Judgement;

/*
 * Per register: the versions of acked changes are unique, are 1..k but for holes that unknown operations can fill, and
 * alternate (odd = on, even = off, from off at version 0); each acked answer agrees with the one order that the versions
 * give; and that order respects real time: an operation that ended before another began comes first. An unknown or open
 * operation may have taken effect at any time after it began, also after its client gave up; one whose answer is known
 * can only be what it answered.
 * Across registers: numbers are unique, and a change acked before another began has the lower number.
 */
extern Judgement oracle_judge_registers(const HistoryOp *ops, size_t count);

extern const char *verdict_name(Verdict verdict);

#endif
