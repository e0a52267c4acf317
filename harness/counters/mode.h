/* The ways to repair, what each needs of the writers, and what it costs: one table for repair, its refusals and explain. */
#ifndef COUNTERPROOF_COUNTERS_MODE_H
#define COUNTERPROOF_COUNTERS_MODE_H

#include "config.h"

typedef enum
{
	MODE_DEFAULT = 0,
	MODE_LOCK,
	MODE_SNAPSHOT,
	MODE_RELATIVE,
	MODE_OUTBOX,
	MODE_MAINTENANCE
} CounterMode;

typedef struct
{
	CounterMode mode;
	const char *name;
	const char *does;
	const char *costs;
	bool right[WRITERS_OUTBOX + 1]; /* by CounterWriters */
	const char *wrong;              /* what happens with the writers that it is not right for */
} CounterModeRow;

extern const CounterModeRow counter_modes[]; /* ended by a row without a name */

extern const CounterModeRow *counter_mode_find(const char *name); /* NULL: none has this name */
extern const CounterModeRow *
counter_mode_default(CounterWriters writers); /* NULL: there is none, one has to be chosen */

#endif
