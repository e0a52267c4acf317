/*
 * The table. A row that is added here is run by ./run.sh mutants; its check must exist and must fail.
 */
#include "wrong_steps.h"

#include <string.h>

#include "design.h"

static const char *const consumer[] = {"like-consumer", NULL};

const ClientSteps right_steps = {
	.prepare = like_prepare,
	.set = like_set,
	.deliver = like_deliver,
	.snapshot = like_snapshot,
	.install = like_install,
	.recovery_horizon = like_recovery_horizon,
	.transaction = transaction_whole,
	.request_identity = request_identity,
	.consumer = consumer,
};

const Twin twins[] = {
	/* --- write --- */
	{.id = "M01",
	 .layer = "write",
	 .wrong = "a request adds or subtracts by its direction",
	 .guard = "the count follows from state changes alone",
	 .source = "invariant 2: a delta follows from the old state, not from what was asked for",
	 .caught_in = "32-F",
	 .caught_by = "count through the facts, like sent twice"},
	{.id = "M02",
	 .layer = "write",
	 .wrong = "the event of a change is written in a second transaction",
	 .guard = "fact and event are one transaction",
	 .source = "invariant 2: a change and its event are of one transaction, and end together",
	 .caught_in = "32-A",
	 .caught_by = "written by the transaction that wrote its fact",
	 .steps = &event_apart_steps},
	{.id = "M03",
	 .layer = "write",
	 .wrong = "events are numbered by a sequence",
	 .guard = "the number is a row, locked from the increment to the commit",
	 .source = "invariant 3: numbers have no hole and follow the commits; manual 9.17: a sequence does neither",
	 .caught_in = "32-B",
	 .caught_by = "events seen by the reader that asks for what is above its highest number"},
	{.id = "M04",
	 .layer = "write",
	 .wrong = "the old state is read without a row lock",
	 .guard = "the row is locked before its state is read",
	 .source = "the write path: lock, read, compare, then decide; manual 13.2.1",
	 .caught_in = "32-C",
	 .caught_by = "a like behind a lock: by the new state"},
	{.id = "M05",
	 .layer = "write",
	 .wrong = "every request writes an event, whether it changes anything or not",
	 .guard = "a request that changes nothing ends before it writes",
	 .source = "invariant 2: one event for each state change and none for a repeat",
	 .caught_in = "32-B",
	 .caught_by = "still one event, and no number used"},
	{.id = "M06",
	 .layer = "write",
	 .wrong = "decides by a state that was read in an earlier transaction",
	 .guard = "the old state is read under the lock under which it is changed",
	 .source = "the write path: reading and deciding belong to the transaction that writes",
	 .caught_in = "32-F",
	 .caught_by = "sendings that changed something, of one like sent twice at once",
	 .steps = &decided_early_steps},
	{.id = "M27",
	 .layer = "write",
	 .wrong = "a fact that was changed by hand is not noticed, and recovery goes on over it",
	 .guard = "deltas are compared with facts, and recovery stops where they differ",
	 .source = "failure boundary: a rebuild trusts the facts, and cannot mend them",
	 .caught_in = "32-G",
	 .caught_by = "recovery stopped at the damaged write side"},
	{.id = "M28",
	 .layer = "write",
	 .wrong = "no placeholder: the first change of a pair makes its row",
	 .guard = "a first request makes a row to lock",
	 .source =
		 "the write path: a lock needs a row; manual 13.2.1: a search does not wait for rows that it cannot see yet",
	 .caught_in = "32-C",
	 .caught_by = "a like behind a first like: by the new state"},
	{.id = "M29",
	 .layer = "write",
	 .wrong = "facts about items that do not exist are let in",
	 .guard = "the foreign key of like_fact",
	 .source = "state diagram: a request for an unknown item is refused and leaves nothing",
	 .caught_in = "32-B",
	 .caught_by = "unlike of an unknown item"},
	{.id = "M30",
	 .layer = "write",
	 .wrong = "an unlike locks the number row before the fact row",
	 .guard = "all lock the fact row, then the number row",
	 .source = "the lock order; manual 13.3.4: locks taken in one order by all do not end in a deadlock",
	 .caught_in = "32-C",
	 .caught_by = "an unlike behind a lock: requests that a deadlock ended"},
	{.id = "M35",
	 .layer = "write",
	 .wrong = "the write path is one statement with CTEs",
	 .guard = "a statement after the wait has a snapshot of its own",
	 .source = "the write path; manual 7.8.4 and 13.2.1: all parts of a statement see the snapshot from its start",
	 .caught_in = "32-C",
	 .caught_by = "a like behind a placeholder: by the new state"},

	/* --- consumer --- */
	{.id = "M07",
	 .layer = "consumer",
	 .wrong = "applies what it is given, however often",
	 .guard = "an event that is registered is not added again",
	 .source = "invariant 4: each event takes effect on the count exactly once",
	 .caught_in = "32-G",
	 .caught_by = "every event applied once"},
	{.id = "M08",
	 .layer = "consumer",
	 .wrong = "registers a batch in one transaction and adds it in the next",
	 .guard = "registration and effect are one transaction",
	 .source = "failure boundary: a consumer that ends inside its batch leaves nothing of it",
	 .caught_in = "32-K",
	 .caught_by = "rows of 26..50 registered",
	 .steps = &registered_first_steps},
	{.id = "M09",
	 .layer = "consumer",
	 .wrong = "adds a batch in one transaction and registers it in the next",
	 .guard = "registration and effect are one transaction",
	 .source = "failure boundary: a consumer that ends inside its batch leaves nothing of it",
	 .caught_in = "32-K",
	 .caught_by = "killed before its commit: counts plus what is pending",
	 .steps = &added_first_steps},
	{.id = "M10a",
	 .layer = "consumer",
	 .wrong = "knows what it added from a file, written before the commit",
	 .guard = "the database knows, in the transaction that adds",
	 .source = "failure boundary: a file and a transaction do not end together; between them events are lost",
	 .caught_in = "32-K",
	 .caught_by = "killed after its commit: counts plus what is pending",
	 .steps = &file_first_steps},
	{.id = "M10b",
	 .layer = "consumer",
	 .wrong = "knows what it added from a file, written after the commit",
	 .guard = "the database knows, in the transaction that adds",
	 .source = "failure boundary: a file and a transaction do not end together; between them events count twice",
	 .caught_in = "32-K",
	 .caught_by = "drained: counts plus what is pending",
	 .steps = &file_last_steps},
	{.id = "M11",
	 .layer = "consumer",
	 .wrong = "writes its offset before it delivers the batch",
	 .guard = "the offset is written after the commit",
	 .source = "failure boundary: at least once, an offset moves only behind what is committed",
	 .caught_in = "32-K",
	 .caught_by = "killed before its commit: offset file",
	 .steps = &offset_first_steps},
	{.id = "M12",
	 .layer = "consumer",
	 .wrong = "takes the highest number seen for the watermark",
	 .guard = "the watermark ends the contiguous run of processed numbers",
	 .source = "definition of lag: what is above the watermark, holes included",
	 .caught_in = "32-E",
	 .caught_by = "lag counts from the hole"},
	{.id = "M13",
	 .layer = "consumer",
	 .wrong = "reads and advances the watermark without a lock on its row",
	 .guard = "the watermark row is locked first, so one consumer at a time sees what all have registered",
	 .source = "the data model: the watermark is the largest number up to which all are processed",
	 .caught_in = "32-G",
	 .caught_by = "both have ended: identity, bound and watermark hold"},
	{.id = "M14",
	 .layer = "consumer",
	 .wrong = "adds events that the baseline contains",
	 .guard = "seq <= base_seq is COVERED and not added",
	 .source = "the rebuild: an event inside the installed baseline must not be added to it",
	 .caught_in = "32-H",
	 .caught_by = "step 5: 4, 5 and 6 are COVERED"},
	{.id = "M15",
	 .layer = "consumer",
	 .wrong = "takes 23505 for known and goes on in the transaction it has ended",
	 .guard = "what is registered is looked up, so that no batch meets the key",
	 .source = "manual, error 25P02: after an error a transaction refuses everything up to its end",
	 .caught_in = "32-E",
	 .caught_by = "after the fixed order: lag",
	 .steps = &on_after_23505_steps},
	{.id = "M16",
	 .layer = "consumer",
	 .wrong = "keeps registrations in an UNLOGGED table",
	 .guard = "registrations are as durable as the counts",
	 .source = "manual, CREATE TABLE: an unlogged table is emptied by a crash",
	 .caught_in = "32-L",
	 .caught_by = "identity, bound and watermark hold before draining"},
	{.id = "M31",
	 .layer = "consumer",
	 .wrong = "leaves covered events unregistered",
	 .guard = "COVERED is registered like APPLIED",
	 .source = "definition of lag: pending is what is not registered, and a covered event has taken effect",
	 .caught_in = "32-H",
	 .caught_by = "step 5: read side"},
	{.id = "M33",
	 .layer = "consumer",
	 .wrong = "reads base_seq in the statement that waits for the count row's lock",
	 .guard = "lock first, read in a later statement",
	 .source =
		 "manual 13.2.1: a statement of Read Committed sees what was committed before it began, not what its wait brought",
	 .caught_in = "32-I",
	 .caught_by = "by the baseline just installed, of its item"},
	{.id = "M34",
	 .layer = "consumer",
	 .wrong = "counts a number twice that one batch lists twice",
	 .guard = "the list has each number once",
	 .source = "invariant 4: each event takes effect on the count exactly once",
	 .caught_in = "32-E",
	 .caught_by = "the two counts"},
	{.id = "M38",
	 .layer = "consumer",
	 .wrong = "locks count rows in the list's order, without the watermark row: the pair",
	 .guard = "count rows in item order, and the watermark row before them",
	 .source = "the lock order: watermark row, then count rows in item order",
	 .caught_in = "32-G",
	 .caught_by = "deadlocks (40P01) of two batches in opposite order"},
	/* --- rebuild, audit, read --- */
	{.id = "M17",
	 .layer = "rebuild",
	 .wrong = "overwrites the count with the snapshot's",
	 .guard = "a baseline: base_seq is installed with the count, and what was applied above it is added",
	 .source = "the rebuild: a count and the number it was read at are installed together",
	 .caught_in = "32-H",
	 .caught_by = "step 4: read side"},
	{.id = "M18",
	 .layer = "rebuild",
	 .wrong = "sums what was applied before it locks the count row",
	 .guard = "lock first, then sum in a later statement",
	 .source =
		 "manual 13.2.1: a statement of Read Committed sees what was committed before it began, and nothing of its wait",
	 .caught_in = "32-I",
	 .caught_by = "Read Committed: it saw the event for which it waited"},
	{.id = "M19a",
	 .layer = "rebuild",
	 .wrong = "reads number and facts in two snapshots, the number first",
	 .guard = "one snapshot for both: Repeatable Read and a single statement, the pair",
	 .source = "the rebuild: C(S) holds exactly the events 1..S (manual 13.2.2: Repeatable Read has one snapshot)",
	 .caught_in = "32-I",
	 .caught_by = "held up at the facts: C(S) = the deltas of events 1..S",
	 .steps = &snapshot_in_read_committed_steps},
	{.id = "M19b",
	 .layer = "rebuild",
	 .wrong = "reads number and facts in two snapshots, the facts first",
	 .guard = "one snapshot for both: Repeatable Read and a single statement, the pair",
	 .source = "the rebuild: C(S) holds exactly the events 1..S (manual 13.2.2: Repeatable Read has one snapshot)",
	 .caught_in = "32-I",
	 .caught_by = "held up at the number: C(S) = the deltas of events 1..S",
	 .steps = &snapshot_in_read_committed_steps},
	{.id = "M20",
	 .layer = "rebuild",
	 .wrong = "installs a snapshot older than the baseline that is there",
	 .guard = "a snapshot below base_seq is skipped",
	 .source = "the rebuild: baselines of an item only move forward",
	 .caught_in = "32-H",
	 .caught_by = "older snapshot late: n"},
	{.id = "M21a",
	 .layer = "rebuild",
	 .wrong = "leaves items alone that nobody likes",
	 .guard = "every row of item is in the snapshot, with 0 facts if it has none",
	 .source = "the rebuild: a count is right when it equals the facts, also where there are none",
	 .caught_in = "32-G",
	 .caught_by = "the planted count of the item never liked"},
	{.id = "M21b",
	 .layer = "rebuild",
	 .wrong = "leaves items alone that have no count row",
	 .guard = "every row of item is in the snapshot, and a missing count row is inserted",
	 .source = "the rebuild: facts decide what there is to count, not the derived side",
	 .caught_in = "32-G",
	 .caught_by = "the missing count row was inserted"},
	{.id = "M22",
	 .layer = "rebuild",
	 .wrong = "installs in Repeatable Read and passes over what is 40001",
	 .guard = "Read Committed; in Repeatable Read the whole transaction is run again",
	 .source = "manual 13.2.2: a row changed since the snapshot ends the transaction, which has to be tried again",
	 .caught_in = "32-I",
	 .caught_by = "Read Committed: installed value",
	 .steps = &install_once_steps},
	{.id = "M23",
	 .layer = "audit",
	 .wrong = "reads the last number first and the watermark in a second statement",
	 .guard = "one statement, hence one snapshot",
	 .source = "lag: last number and watermark are of one moment, so it is never below zero",
	 .caught_in = "32-D",
	 .caught_by = "lag, from number and watermark of one snapshot"},
	{.id = "M32",
	 .layer = "read",
	 .wrong = "shows a count below zero as 0",
	 .guard = "n is told as it is, with its error bound beside it",
	 .source = "the read path: count plus pending deltas equals the facts at every step",
	 .caught_in = "32-D",
	 .caught_by = "below zero, and not clamped"},
	{.id = "M36",
	 .layer = "rebuild",
	 .wrong = "installs in one UPDATE with the sum as its subquery",
	 .guard = "lock first, then sum in a later statement",
	 .source = "manual 13.2.1: a statement that waited takes up the new version of the row, not a new snapshot",
	 .caught_in = "32-I",
	 .caught_by = "Read Committed: it saw the event for which it waited"},

	/* --- client, server --- */
	{.id = "M24",
	 .layer = "server",
	 .wrong = "answers a COMMIT before it is on disk (synchronous_commit=off)",
	 .guard = "synchronous_commit is on, and the settings in force are printed",
	 .source = "failure boundary: what was acknowledged survives a crash",
	 .caught_in = "32-L",
	 .caught_by = "acknowledged but gone"},
	{.id = "M25a",
	 .layer = "client",
	 .wrong = "writes again after 40001 what it had decided before",
	 .guard = "the whole transaction again: read, decide, write",
	 .source = "manual 13.5: the whole transaction is retried, with the logic that decides what to send",
	 .caught_in = "33-B",
	 .caught_by = "Serializable: doctors left on call",
	 .steps = &old_decision_steps},
	{.id = "M25b",
	 .layer = "client",
	 .wrong = "sends a failed COMMIT again and believes the tag, which comes with warning 25P01",
	 .guard = "success needs a transaction that was open just before its COMMIT",
	 .source = "failure boundary: what is acknowledged is stored",
	 .caught_in = "33-B",
	 .caught_by = "called in: doctors stored of those acknowledged",
	 .steps = &commit_again_steps},
	{.id = "M25c",
	 .layer = "client",
	 .wrong = "takes a COMMIT that answers ROLLBACK for success",
	 .guard = "the tag of a COMMIT is read",
	 .source = "failure boundary: what is acknowledged is stored",
	 .caught_in = "33-A",
	 .caught_by = "after 40001: facts stored of those acknowledged",
	 .steps = &tag_unread_steps},
	{.id = "M25d",
	 .layer = "client",
	 .wrong = "goes on after 40001 at COMMIT from its place in the batch, the end",
	 .guard = "nothing of a transaction is kept from one attempt to the next",
	 .source = "manual 13.5: the whole transaction is retried, with the logic that decides what to send",
	 .caught_in = "33-B",
	 .caught_by = "called in: doctors stored of those acknowledged",
	 .steps = &place_kept_steps},
	{.id = "M26",
	 .layer = "client",
	 .wrong = "sends a request whose COMMIT is unknown again under a fresh identity",
	 .guard = "a request keeps its identity over all its sendings",
	 .source = "failure boundary: an unknown COMMIT may have happened, and a repeat must find it",
	 .caught_in = "33-C",
	 .caught_by = "cut after: facts",
	 .steps = &fresh_identity_steps},
	{.id = "M37",
	 .layer = "client",
	 .wrong = "settles unknown requests when others write again",
	 .guard = "the horizon is read after recovery and before anything writes",
	 .source = "failure boundary: a transaction number that reached no disk is given out again",
	 .caught_in = "32-L",
	 .caught_by = "it had not committed",
	 .steps = &horizon_after_writes_steps},
	{.id = "M39",
	 .layer = "consumer",
	 .wrong = "purges registrations by their age",
	 .guard = "the pair: purged at or below every consumer's position, and deliveries from there are refused",
	 .source = "invariant 4: each event takes effect once, as long as it can be delivered",
	 .caught_in = "33-E",
	 .caught_by = "n after old events were delivered again"},
	{.id = "M40",
	 .layer = "consumer",
	 .wrong = "registers events in a table without a key",
	 .guard = "the key of the registrations: one that is there is found",
	 .source = "invariant 4: each event takes effect once, however often it is delivered",
	 .caught_in = "33-D",
	 .caught_by = "run again: n"},

	/* --- sequencer --- */
	{.id = "S01",
	 .layer = "rebuild",
	 .wrong = "takes the liked facts for C(S)",
	 .guard = "the deltas of events without a number are taken off",
	 .source = "the rebuild: C(S) holds exactly the events 1..S",
	 .caught_in = "scale/sequencer",
	 .caught_by = "beside a like without a number: C(S)",
	 .design = "sequencer"},
	{.id = "S02",
	 .layer = "write",
	 .wrong = "a session keeps twenty ids in stock (CACHE 20)",
	 .guard = "CACHE 1, drawn under the lock of the fact row",
	 .source = "manual, CREATE SEQUENCE: with a cache, values are not drawn in the order in which they are used",
	 .caught_in = "scale/sequencer",
	 .caught_by = "from two sessions: versions of the pair",
	 .design = "sequencer"},
	{.id = "S03",
	 .layer = "sequencer",
	 .wrong = "numbers the events of a batch as they come (no ORDER BY)",
	 .guard = "numbers follow the ids",
	 .source = "manual 7.5: without ORDER BY rows come in an unspecified order",
	 .caught_in = "scale/sequencer",
	 .caught_by = "the later event in front: versions of the pair",
	 .design = "sequencer"},
	{.id = "S04",
	 .layer = "sequencer",
	 .wrong = "looks only above the highest id that it has numbered",
	 .guard = "a floor that moves when nothing below it can come any more",
	 .source = "manual 9.17: a value of a sequence is drawn before the transaction that uses it commits",
	 .caught_in = "scale/sequencer",
	 .caught_by = "number of the like that committed late",
	 .design = "sequencer"},
	{.id = "S05",
	 .layer = "sequencer",
	 .wrong = "moves the floor by the xmax of a snapshot",
	 .guard = "by the round's own transaction number, drawn after it has looked",
	 .source = "manual 9.26: xmax is one past the highest completed number, and a higher one may be in progress",
	 .caught_in = "scale/sequencer",
	 .caught_by = "number of the like that committed late",
	 .design = "sequencer"},
	{.id = "S06",
	 .layer = "sequencer",
	 .wrong = "two sequencers work at once (no lock)",
	 .guard = "an advisory lock before it looks makes the sequencer single",
	 .source = "invariant 3: numbers have no gap, and each is given once",
	 .caught_in = "scale/sequencer",
	 .caught_by = "the second sequencer is refused with",
	 .design = "sequencer"},
	{.id = "S07",
	 .layer = "sequencer",
	 .wrong = "looks through all ids in each round (no floor)",
	 .guard = "what was numbered is not walked over again",
	 .source = "manual 24.1.2: dead entries stay as long as any snapshot may see them",
	 .caught_in = "scale/sequencer",
	 .caught_by = "a round looks at no more pages than before",
	 .design = "sequencer"},
	{.id = "S08",
	 .layer = "sequencer",
	 .wrong = "numbers the events of a batch by item, user and version",
	 .guard = "numbers follow the ids, which are drawn in time",
	 .source = "invariant 3: of two changes, one acknowledged before the other began, the earlier has the lower number",
	 .caught_in = "scale/sequencer",
	 .caught_by = "the number of the later like less that of the earlier one",
	 .design = "sequencer"},

	/* --- sharded counts --- */
	{.id = "H01",
	 .layer = "rebuild",
	 .wrong = "a baseline is installed shard by shard, each in its transaction",
	 .guard = "all shards are locked, then read and written, in one transaction",
	 .source = "sharded counts: an item has one base_seq, which tells what its shards hold from the baseline",
	 .caught_in = "scale/sharded",
	 .caught_by = "while the install waits: n",
	 .design = "row",
	 .steps = &install_by_shard_steps},
	{.id = "H02",
	 .layer = "rebuild",
	 .wrong = "what is on shards that go is read before they are locked",
	 .guard = "it is read in a statement after the locks",
	 .source = "manual 13.2.1: a statement after the wait sees what was just committed, the one before does not",
	 .caught_in = "scale/sharded",
	 .caught_by = "fewer shards: n/base_seq by shard",
	 .design = "row"},
	{.id = "H03",
	 .layer = "rebuild",
	 .wrong = "new shards begin without a baseline",
	 .guard = "they begin with the item's base_seq",
	 .source = "sharded counts: an item has one base_seq, which tells what its shards hold from the baseline",
	 .caught_in = "scale/sharded",
	 .caught_by = "events below the baseline on a new shard",
	 .design = "row"},
	{.id = "H04",
	 .layer = "consumer",
	 .wrong = "an event that another batch registers meanwhile is passed over, and counted",
	 .guard = "a batch that meets a registration is done again over what is known then",
	 .source = "invariant 4: each event takes effect on the count exactly once",
	 .caught_in = "scale/sharded",
	 .caught_by = "the second batch, looked at again",
	 .design = "row"},
	{.id = "H05",
	 .layer = "consumer",
	 .wrong = "the watermark is the highest processed number",
	 .guard = "it goes as far as none is missing",
	 .source = "the watermark: the largest w such that 1..w are all processed",
	 .caught_in = "scale/sharded",
	 .caught_by = "the batch with events 1 and 6",
	 .design = "row"},
	{.id = "H06",
	 .layer = "audit",
	 .wrong = "the audit looks at the sum of the shards alone",
	 .guard = "an item whose shards do not share one base_seq is a violation",
	 .source = "sharded counts: an item has one base_seq, which tells what its shards hold from the baseline",
	 .caught_in = "scale/sharded",
	 .caught_by = "items without one baseline over all their shards",
	 .design = "row"},
	{.id = "H07",
	 .layer = "rebuild",
	 .wrong = "an install locks the first shard of the item and no other",
	 .guard = "all shards are locked before registrations are read",
	 .source = "the install: lock, then sum in a later statement, then write; manual 13.2.1",
	 .caught_in = "scale/sharded",
	 .caught_by = "it saw event 6, for which it waited",
	 .design = "row"},
	{.id = "H08",
	 .layer = "consumer",
	 .wrong = "a batch takes it for granted that the shard it waited for is still there",
	 .guard = "it looks again when the number of shards has changed meanwhile",
	 .source = "manual 13.2.1: a row that was deleted while a statement waited for it is left out",
	 .caught_in = "scale/sharded",
	 .caught_by = "the batch, on a shard that is there",
	 .design = "row"},

	/* --- reading --- */
	{.id = "Q01",
	 .layer = "read",
	 .wrong = "a read looks for pending events among all events of the item",
	 .guard = "it begins at the watermark, below which there is none",
	 .source = "read path: a read costs what lags and never what history holds",
	 .caught_in = "scale/reading",
	 .caught_by = "pages of a read do not grow with history",
	 .design = "row"},

	{.id = NULL},
};

/* What a design has in the place of a twin's guard. */
static const struct
{
	const char *design;
	const char *id;
	const char *why;
} twins_without_guard[] = {
	{"sequencer", "M03", "its numbers are given after the commit, so a writer cannot draw one from anywhere"},
	{"sequencer", "M30", "its write path locks the fact row and nothing else, so there is no order to break"},
	{"sequencer", "M25c", "nothing in 33-A conflicts on it, so no COMMIT there answers ROLLBACK"},
};

const char *
twin_design(const Twin *twin, const char *design, const char **why)
{
	bool of_default = like_design_find(design) == like_design_find(NULL);
	const char *reason = NULL;

	for (size_t i = 0; i < LENGTH_OF(twins_without_guard); i++)
	{
		if (strcmp(twins_without_guard[i].design, design) == 0 && strcmp(twins_without_guard[i].id, twin->id) == 0)
		{
			reason = twins_without_guard[i].why;
		}
	}
	if (twin->design != NULL && !of_default && strcmp(twin->design, design) != 0)
	{
		reason = "it is a twin of another design";
	}
	if (why != NULL)
	{
		*why = reason;
	}
	return reason != NULL ? NULL : twin->design != NULL ? twin->design : design;
}

bool
twin_fits(const Twin *twin, const char *design)
{
	const char *why;

	if (twin_design(twin, design, &why) == NULL)
	{
		report_error("%s says nothing about design %s: %s", twin->id, design, why);
		return false;
	}
	return true;
}

int
twin_count(void)
{
	return (int) LENGTH_OF(twins) - 1;
}

const Twin *
twin_find(const char *id)
{
	for (const Twin *twin = twins; twin->id != NULL; twin++)
	{
		if (strcmp(twin->id, id) == 0)
		{
			return twin;
		}
	}
	return NULL;
}

ClientSteps
twin_steps(const Twin *twin)
{
	const ClientSteps *own = twin->steps != NULL ? twin->steps : &right_steps;
	const ClientSteps *right = &right_steps;

	return (ClientSteps){
		.prepare = own->prepare != NULL ? own->prepare : right->prepare,
		.set = own->set != NULL ? own->set : right->set,
		.deliver = own->deliver != NULL ? own->deliver : right->deliver,
		.snapshot = own->snapshot != NULL ? own->snapshot : right->snapshot,
		.install = own->install != NULL ? own->install : right->install,
		.recovery_horizon = own->recovery_horizon != NULL ? own->recovery_horizon : right->recovery_horizon,
		.transaction = own->transaction != NULL ? own->transaction : right->transaction,
		.request_identity = own->request_identity != NULL ? own->request_identity : right->request_identity,
		.consumer = own->consumer != NULL ? own->consumer : right->consumer,
	};
}

bool
twin_known(const char *id)
{
	const char *names[LENGTH_OF(twins)];

	if (twin_find(id) != NULL)
	{
		return true;
	}
	for (size_t i = 0; i < LENGTH_OF(twins); i++)
	{
		names[i] = twins[i].id;
	}
	report_error("there is no twin \"%s\"; the nearest is \"%s\" (see: help mutants)", id, string_nearest(id, names));
	return false;
}
