#include "mode.h"

#include <string.h>

/* What is right for whom; see the header for what a mode does in detail. */
const CounterModeRow counter_modes[] = {
	{.mode = MODE_LOCK,
	 .name = "lock",
	 .does =
		 "locks the chunk's rows of the target in the order of their keys, counts in a later statement, writes the absolute value",
	 .costs = "writers of these rows wait for one chunk, under 1 s at the default size",
	 .right = {[WRITERS_SAME_TRANSACTION] = true},
	 .wrong =
		 "a writer that has changed the source and not yet the count is counted, and then adds its change a second time"},
	{.mode = MODE_SNAPSHOT,
	 .name = "snapshot",
	 .does =
		 "counts and writes the absolute value in one Repeatable Read transaction; a chunk that meets a writer (40001) is done again",
	 .costs = "writers wait only while a chunk is written; busy rows make chunks be done again",
	 .right = {[WRITERS_SAME_TRANSACTION] = true},
	 .wrong =
		 "a writer that has changed the source and not yet the count is counted, and then adds its change a second time"},
	{.mode = MODE_RELATIVE,
	 .name = "relative",
	 .does = "measures the drift in one snapshot and adds its opposite, once for each run and key",
	 .costs = "writers wait for the update alone; the result starts from the old value, which is what is not trusted",
	 .right = {[WRITERS_SAME_TRANSACTION] = true},
	 .wrong = "a change that is under way counts as drift, and is then made a second time"},
	{.mode = MODE_OUTBOX,
	 .name = "outbox",
	 .does =
		 "installs the count of one snapshot as a baseline, with the number of the last event in it; later events are added, "
		 "earlier ones are not",
	 .costs = "the consumer waits for one chunk, writers of the source never do",
	 .right = {[WRITERS_OUTBOX] = true},
	 .wrong = "there are no events to tell what is inside the baseline"},
	{.mode = MODE_MAINTENANCE,
	 .name = "maintenance",
	 .does = "locks source and target against writers, then counts and writes everything in one transaction",
	 .costs =
		 "all writers wait until it ends; changes that were under way between two transactions must have arrived before",
	 .right = {[WRITERS_SAME_TRANSACTION] = true, [WRITERS_SEPARATE_TRANSACTION] = true},
	 .wrong = "events that wait in the outbox are added afterwards to a count that has them already"},
	{.name = NULL},
};

const CounterModeRow *
counter_mode_find(const char *name)
{
	for (const CounterModeRow *row = counter_modes; row->name != NULL; row++)
	{
		if (strcmp(row->name, name) == 0)
		{
			return row;
		}
	}
	return NULL;
}

const CounterModeRow *
counter_mode_default(CounterWriters writers)
{
	for (const CounterModeRow *row = counter_modes; row->name != NULL; row++)
	{
		if (row->right[writers] && row->mode != MODE_MAINTENANCE)
		{
			return row;
		}
	}
	return NULL;
}
