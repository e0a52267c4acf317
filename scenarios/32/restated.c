/*
 * The list of checks that are stated differently, by design and case, each with the reason. What is not in it holds on
 * every design as it stands in the case. A check that is listed must be made.
 */
#include <string.h>

#include "restated.h"

#define ROWS_MAX 8

#define NO_NUMBER_ROW "writers take no number, so none waits for another pair's"
#define NUMBERED_BY_SEQUENCER "the outbox row is the sequencer's: its event is known by pair and version, not by xmin"

typedef struct
{
	const char *design;
	const char *scenario;
	Restatement rows[ROWS_MAX]; /* ended by one without a check */
	const char *nothing_left;   /* why the case is left out */
} RestatedCase;

static const RestatedCase restated_cases[] = {
	{.design = "sequencer",
	 .scenario = "32-B",
	 .rows = {{"the first like holds a number, uncommitted", "0", "it has none before it is committed"},
			  {"the second like waits in pg_locks", "0", NO_NUMBER_ROW},
			  {"it waits for the first one's backend", "0", NO_NUMBER_ROW},
			  {"the second like, after the commit", "CHANGED(liked, v1, seq=4)",
			   "it did not wait, and was numbered before the first had committed"}}},
	{.design = "sequencer",
	 .scenario = "32-L",
	 .rows = {{"outbox rows without exactly one request that wrote them", "0", NUMBERED_BY_SEQUENCER},
			  {"acked CHANGED found in the outbox under their number and version", NULL, NUMBERED_BY_SEQUENCER},
			  {"unknown CHANGED that committed, found by the xid in xmin", NULL, NUMBERED_BY_SEQUENCER}}},
	{.design = "sequencer",
	 .scenario = "33-A",
	 .nothing_left = "both its conflicts are at the number row, which writers of this design do not touch"},
};

void
restate(Scene *scene, const LikeDesign *design)
{
	for (size_t i = 0; i < LENGTH_OF(restated_cases); i++)
	{
		const RestatedCase *here = &restated_cases[i];

		if (strcmp(here->design, design->name) != 0 || strcmp(here->scenario, scene_id(scene)) != 0)
		{
			continue;
		}
		if (here->nothing_left != NULL)
		{
			scene_skip(scene, "design %s: %s", design->name, here->nothing_left);
		}
		scene_restate(scene, here->rows);
	}
}
