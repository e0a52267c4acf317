/*
 * scale/reading  what a read costs when history grows, and what is shown of a count below zero
 *
 * Claim      readCount looks at as many pages with 200,000 events of history as with 10,000: it costs what lags. A count that is
 *            below zero for a while may be shown as 0, with the bound that it was read with.
 * Method     10,000 likes of one item, written set-based as the write path would have left them, and drained; the pages of a
 *            read counted by EXPLAIN (ANALYZE, BUFFERS), with nothing pending and with 5 events; then the same with 200,000. On
 *            another item an unlike is delivered before its like, and two likes are not delivered at all.
 * Expect     No more pages than before but a level of an index for each of the look-ups: one, and 5 more for what is
 *            pending. n=-1 as read; n=0 bound=3 clamped as shown, and the 2 facts within that bound.
 * Not shown  Time, and 10 million events: the bench. Caches in front (L11).
 */
#include "32/recovery_lab.h"

#include <stdlib.h>

enum
{
	ITEM = 1,
	ODD_ITEM = 2,
	ITEMS = 2,
	SMALL = 10000,
	LARGE = 200000,
	PENDING = 5,
	LEVELS = 4 /* an index of a like_outbox that is twenty times as long may have become deeper */
};

#define READ "SELECT * FROM like_read_count(1, 0)"

/* Users first..last like the item: facts, events, registrations and their count, as one transaction each would have left them. */
static void
write_history(Scene *scene, Session *lab, int64_t last)
{
	int64_t first = last_number(scene, lab) + 1;
	SqlArg from = arg_int(first), to = arg_int(last), item = arg_int(ITEM);

	require(scene, session_begin(lab, READ_COMMITTED));
	require(scene,
			session_query(
				lab, NULL,
				"INSERT INTO like_fact SELECT u, $3::bigint, true, 1 FROM generate_series($1::bigint, $2::bigint) u",
				ARGS(from, to, item)));
	require(scene,
			session_query(
				lab, NULL,
				"INSERT INTO like_outbox SELECT u, u, $3::bigint, 1, 1 FROM generate_series($1::bigint, $2::bigint) u",
				ARGS(from, to, item)));
	require(scene, session_query(
					   lab, NULL,
					   "INSERT INTO processed_event SELECT u, 'APPLIED' FROM generate_series($1::bigint, $2::bigint) u",
					   ARGS(from, to)));
	require(scene, session_query(lab, NULL, "UPDATE like_count SET n = n + $2 - $1 + 1 WHERE item_id = $3",
								 ARGS(from, to, item)));
	require(scene, session_query(lab, NULL, "UPDATE like_seq SET last = $1", ARGS(to)));
	require(scene, session_query(lab, NULL, "UPDATE counter_watermark SET applied_upto = $1", ARGS(to)));
	commit(scene, lab);
}

typedef struct
{
	int64_t drained, pending;
} Pages;

/* Read twice: the first read of a session also reads what the catalogues say. */
static Pages
pages_of_reads(Scene *scene, Session *lab, int64_t history)
{
	char *drained = string_format("n=%lld lag=0 pending=0 stale=false", (long long) history);
	char *lagging = string_format("n=%lld lag=%d pending=%d stale=true", (long long) history, PENDING, PENDING);
	Pages pages;

	(void) check_count(scene, lab, ITEM, 0, drained, "drained");
	(void) pages_of(scene, lab, READ);
	pages.drained = pages_of(scene, lab, READ);
	like_in_order(scene, lab, ITEM, LARGE + 1 + history, LARGE + PENDING + history);
	(void) check_count(scene, lab, ITEM, 0, lagging, "with %d events pending", PENDING);
	(void) pages_of(scene, lab, READ);
	pages.pending = pages_of(scene, lab, READ);
	note(scene, "history=%lld pages of a read: drained=%lld, with %d pending=%lld", (long long) history,
		 (long long) pages.drained, PENDING, (long long) pages.pending);
	(void) drain(scene, lab);
	free(drained);
	free(lagging);
	return pages;
}

static void
check_shown(Scene *scene, Session *lab, const char *expected, bool clamp, const char *what)
{
	LikeCount count = read_count(scene, lab, ODD_ITEM, 0);
	Text shown = {0};

	if (clamp)
	{
		like_count_clamp(&count);
	}
	like_count_describe(&count, &shown);
	check_text(scene, text_get(&shown), expected, "%s", what);
	CHECK(scene, llabs(count.n - facts_of(scene, lab, ODD_ITEM)) <= count.pending, "%s: its facts are within the bound",
		  what);
	text_free(&shown);
}

static void
below_zero(Scene *scene, Session *lab)
{
	int64_t unlike;

	step(scene, "an unlike is delivered before its like");
	like_in_order(scene, lab, ODD_ITEM, 1, 1);
	unlike = set_like(scene, lab, 1, ODD_ITEM, false).seq;
	like_in_order(scene, lab, ODD_ITEM, 2, 3);
	(void) deliver(scene, lab, &unlike, 1);
	check_shown(scene, lab, "n=-1 bound=3", false, "as it is read");
	check_shown(scene, lab, "n=0 bound=3 clamped", true, "as it is shown");
	(void) drain(scene, lab);
	check_shown(scene, lab, "n=2 bound=0", true, "drained, as it is shown");
	check_write_side(scene, lab, "in the end");
	check_drained(scene, lab, "in the end");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab_of(scene, like_design_find(NULL), ITEMS);
	Pages small, large;

	step(scene, "a read with %d events of history, and with %d", SMALL, LARGE);
	write_history(scene, lab, SMALL);
	small = pages_of_reads(scene, lab, SMALL);
	write_history(scene, lab, LARGE);
	large = pages_of_reads(scene, lab, LARGE);
	CHECK(scene, large.drained <= small.drained + LEVELS, "pages of a read do not grow with history");
	CHECK(scene, large.pending <= small.pending + LEVELS * PENDING, "nor do those of a read with events pending");
	below_zero(scene, lab);
}

const Scenario scenario_scale_reading = {
	.suite = "scale",
	.id = "scale/reading",
	.title = "what a read costs when history grows, and what is shown of a count below zero",
	.claim =
		"a read looks at as many pages with 200,000 events of history as with 10,000; a clamped count keeps its bound",
	.kind = "real component, fixed delivery order",
	.guarantee = "a read costs what lags and never what history holds",
	.observed = "EXPLAIN (ANALYZE, BUFFERS), readCount, facts",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
