/*
 * The list of checks that are stated differently, by design and case, each with the reason. What is not in it holds on
 * every design as it stands in the case. A check that is listed must be made.
 */
#include <string.h>

#include "restated.h"

#define ROWS_MAX 13

#define NO_NUMBER_ROW "writers take no number, so none waits for another pair's"
#define OWN_LAG "lag is the item's own: what lags on another item makes no count here stale"
#define OWN_WATERMARK "each item has a watermark of its own, and they are added up: a hole holds up its own item"
#define BOTH_ITEMS "the watermarks of both items are moved, each by as much"
#define NAMED_BY_ITEM "an event is called by its item and its number there"
#define NUMBERED_BY_SEQUENCER "the outbox row is the sequencer's: its event is known by pair and version, not by xmin"
#define IDS_HAVE_HOLES "ids have holes; an id that was not drawn is seen, and a missing event by its pair and its item"
#define PROCESSED_ARE_COUNTED "the watermark is the number of processed events, lag that of the others"
#define LAG_WITHOUT_WATERMARK                                                                                          \
	"lag is what is not registered, whatever the watermark says; that it is wrong is seen all the same"
#define REGISTERED_ARE_LEFT_OUT "the slot brings them again, and a pull leaves out what is registered"

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
	{.design = "wal",
	 .scenario = "32-A",
	 .rows = {{"an event under another number: 5 is missing, 7 is too many",
			   "last_seq=5 outbox_rows=5 gap_violations=1 version_mismatch_pairs=0 delta_sum_mismatch_items=0",
			   IDS_HAVE_HOLES},
			  {"an event that is gone",
			   "last_seq=4 outbox_rows=4 gap_violations=0 version_mismatch_pairs=1 delta_sum_mismatch_items=1",
			   IDS_HAVE_HOLES}}},
	{.design = "wal",
	 .scenario = "32-B",
	 .rows = {{"the second like waits in pg_locks", "0", NO_NUMBER_ROW},
			  {"it waits for the first one's backend", "0", NO_NUMBER_ROW},
			  {"events seen by the reader that asks for what is above its highest number", "12",
			   "a pull answers what is not processed, wherever the reader believes to stand: 3, 4 and 5 events"}}},
	{.design = "wal",
	 .scenario = "32-D",
	 .rows = {{"event 32 before 31", "applied=1 covered=0 dup=0 watermark=31", PROCESSED_ARE_COUNTED},
			  {"below zero, and not clamped", "n=-1 lag=1 pending=1 stale=false", PROCESSED_ARE_COUNTED},
			  {"pending events are found by item and number", "false",
			   "one walk over what is not known to be processed counts those of all items and those of this one"}}},
	{.design = "wal",
	 .scenario = "32-E",
	 .rows = {{"the batch's totals: {2}", "applied=1 covered=0 dup=0 watermark=1", PROCESSED_ARE_COUNTED},
			  {"the batch's totals: {5,2}", "applied=1 covered=0 dup=1 watermark=2", PROCESSED_ARE_COUNTED},
			  {"the batch's totals: {8}", "applied=1 covered=0 dup=0 watermark=3", PROCESSED_ARE_COUNTED},
			  {"the batch's totals: {1,1}", "applied=1 covered=0 dup=1 watermark=4", PROCESSED_ARE_COUNTED},
			  {"the batch's totals: {7,4,2}", "applied=2 covered=0 dup=1 watermark=6", PROCESSED_ARE_COUNTED},
			  {"the batch's totals: {3}", "applied=1 covered=0 dup=0 watermark=7", PROCESSED_ARE_COUNTED},
			  {"the watermark where it belongs", "lag=2 unprocessed=2 watermark_violations=0", PROCESSED_ARE_COUNTED},
			  {"one too low: nothing is lost, lag says too much", "lag=2 unprocessed=2 watermark_violations=1",
			   LAG_WITHOUT_WATERMARK},
			  {"too high, and unprocessed <= lag sees nothing", "lag=2 unprocessed=2 watermark_violations=1",
			   LAG_WITHOUT_WATERMARK},
			  {"all but event 4", "applied=7 covered=0 dup=0 watermark=7", PROCESSED_ARE_COUNTED},
			  {"lag counts from the hole, not from the highest event seen", "1",
			   "one event is not processed: there is no hole"},
			  {"what is pulled above the watermark", "applied=1 covered=0 dup=0 watermark=8",
			   REGISTERED_ARE_LEFT_OUT}}},
	{.design = "wal",
	 .scenario = "32-H",
	 .rows = {{"step 3: deliver {7}", "applied=1 covered=0 dup=0 watermark=4", PROCESSED_ARE_COUNTED},
			  {"step 3: read side",
			   "watermark=4 lag=4 unprocessed=4 exact_violations=0 bound_violations=0 watermark_violations=0",
			   PROCESSED_ARE_COUNTED},
			  {"step 4: read side",
			   "watermark=4 lag=4 unprocessed=4 exact_violations=0 bound_violations=0 watermark_violations=0",
			   PROCESSED_ARE_COUNTED},
			  {"step 4, by overwrite: only the identity sees it yet: read side",
			   "watermark=4 lag=4 unprocessed=4 exact_violations=1 bound_violations=0 watermark_violations=0",
			   PROCESSED_ARE_COUNTED}}},
	{.design = "wal",
	 .scenario = "32-I",
	 .rows = {{"the consumer, n 0->1", "applied=1 covered=0 dup=0 watermark=1", PROCESSED_ARE_COUNTED},
			  {"after the install: read side",
			   "watermark=1 lag=4 unprocessed=4 exact_violations=0 bound_violations=0 watermark_violations=0",
			   PROCESSED_ARE_COUNTED}}},
	{.design = "wal",
	 .scenario = "32-K",
	 .rows = {{"what it printed", "DRAINED applied=45 covered=0 dup=0 watermark=120", REGISTERED_ARE_LEFT_OUT}}},
	{.design = "wal",
	 .scenario = "33-A",
	 .nothing_left = "both its conflicts are at the number row, which writers of this design do not touch"},
	{.design = "per-item",
	 .scenario = "scale/relay",
	 .nothing_left = "the relay publishes by the one order of the numbers, and this design has none"},
	{.design = "per-item",
	 .scenario = "scale/relay-crash",
	 .nothing_left = "the relay publishes by the one order of the numbers, and this design has none"},
	{.design = "wal",
	 .scenario = "scale/relay",
	 .nothing_left = "the relay publishes by the one order of the numbers, and this design has none"},
	{.design = "wal",
	 .scenario = "scale/relay-crash",
	 .nothing_left = "the relay publishes by the one order of the numbers, and this design has none"},
	{.design = "wal", .scenario = "scale/failover", .nothing_left = "a standby that is promoted has no slot (L36)"},
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
