/*
 * The list of checks that are stated differently, by design and case, each with the reason. What is not in it holds on
 * every design as it stands in the case. A check that is listed must be made.
 */
#include <string.h>

#include "restated.h"

#define ROWS_MAX 12

#define NO_NUMBER_ROW "writers take no number, so none waits for another pair's"
#define OWN_LAG "lag is the item's own: what lags on another item makes no count here stale"
#define OWN_WATERMARK "each item has a watermark of its own, and they are added up: a hole holds up its own item"
#define BOTH_ITEMS "the watermarks of both items are moved, each by as much"
#define NAMED_BY_ITEM "an event is called by its item and its number there"
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
	{.design = "per-item",
	 .scenario = "32-D",
	 .rows = {{"item-lab-01, nothing consumed", "n=0 lag=20 pending=20 stale=true", OWN_LAG},
			  {"17 events behind with 16 allowed", "n=9 lag=11 pending=11 stale=false", OWN_LAG},
			  {"16 itself is not stale", "n=10 lag=10 pending=10 stale=false", OWN_LAG},
			  {"item-lab-01 after 20 events", "n=14 lag=6 pending=6 stale=false", OWN_LAG},
			  {"item-lab-02: lag is global, pending is not", "n=6 lag=4 pending=4 stale=false", OWN_LAG}}},
	{.design = "per-item",
	 .scenario = "32-E",
	 .rows = {{"the batch {1,9} is refused", "event 9 of item 0 is not in the outbox", NAMED_BY_ITEM},
			  {"the batch {1,3} is refused", "event 1 of item 2: the item has no count row", NAMED_BY_ITEM},
			  {"the batch's totals: {7,4,2}", "applied=2 covered=0 dup=1 watermark=3", OWN_WATERMARK},
			  {"the batch's totals: {3}", "applied=1 covered=0 dup=0 watermark=6", OWN_WATERMARK},
			  {"the watermark where it belongs", "lag=4 unprocessed=2 watermark_violations=0", OWN_WATERMARK},
			  {"one too low: nothing is lost, lag says too much", "lag=6 unprocessed=2 watermark_violations=2",
			   BOTH_ITEMS},
			  {"too high, and unprocessed <= lag sees nothing", "lag=2 unprocessed=2 watermark_violations=2",
			   BOTH_ITEMS},
			  {"all but event 4", "applied=7 covered=0 dup=0 watermark=5", OWN_WATERMARK},
			  {"lag counts from the hole, not from the highest event seen", "3", OWN_WATERMARK},
			  {"what is pulled above the watermark", "applied=1 covered=0 dup=2 watermark=8", OWN_WATERMARK}}},
	{.design = "per-item",
	 .scenario = "32-G",
	 .rows = {{"the second consumer waits, with {4,5,6}", "0", "its events are another item's, whose rows are free"},
			  {"for the watermark row, with {4,5,6}: it has no count row yet", "0", "it does not wait, and has it"}}},
	{.design = "per-item",
	 .scenario = "32-K",
	 .rows =
		 {{"what it printed", "DRAINED applied=45 covered=0 dup=0 watermark=120",
		   "a consumer stands at the watermark of each item, in the database: what is committed is not pulled again"}}},
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
