/*
 * scale/chunks  the rebuild for many items: only rows that are wrong, in chunks, beside a consumer
 *
 * Claim      Rows whose identity holds are not written; those that do not, or that are missing, are right afterwards, also where a
 *            consumer held one of them when its chunk came, and where events were written after the snapshot.
 * Method     Items with likes, some consumed and some not. Counts are spoilt by hand and one row is deleted. Then a chunk of two
 *            is installed while a consumer holds one of its rows uncommitted, and likes that came after the snapshot are consumed before
 *            it. The row versions (xmin) of the items that were right are compared.
 * Expect     Found: the spoilt ones. Both audits hold after each step, drained counts are the facts, the others' xmin is what it was. A second
 *            rebuild finds nothing.
 * Not shown  What it costs at a million items: ./run.sh bench rebuild.
 */
#include "32/recovery_lab.h"

enum
{
	ITEMS = 12,
	USERS = 5,
	CHUNK = 2,
	WAIT_MS = 10000
};

#define CONSUME_LAST_TWO                                                                                               \
	"SELECT applied FROM like_consume(ARRAY(SELECT event FROM lab_event ORDER BY number DESC LIMIT 2))"

/* Of the items that are right. */
#define VERSIONS "SELECT string_agg(xmin::text, ' ' ORDER BY item_id) FROM like_count WHERE item_id > 4"

static int64_t
find_wrong(Scene *scene, Session *session)
{
	return number_of(scene, session, "SELECT like_find_wrong()", NO_ARGS);
}

static void
spoil(Scene *scene, Session *lab)
{
	require(scene, session_execute(lab, "UPDATE like_count SET n = n + 7 WHERE item_id IN (1, 2)"));
	require(scene, session_execute(lab, "UPDATE like_count SET n = -1 WHERE item_id = 3"));
	require(scene, session_execute(lab, "DELETE FROM like_count WHERE item_id = 4"));
}

/* Likes that come after the snapshot; the consumer holds their counts, and the chunk waits for it. */
static void
install_behind_consumer(Scene *scene, Session *lab, Session *rebuild)
{
	Session *consumer = like_client(scene, "consumer");

	(void) set_like(scene, lab, 100, 1, true);
	(void) set_like(scene, lab, 101, 2, true);
	require(scene, session_begin(consumer, READ_COMMITTED));
	CHECK_EQ(scene, number_of(scene, consumer, CONSUME_LAST_TWO, NO_ARGS), 2, "both applied, uncommitted");
	require(scene, session_execute(rebuild, "SELECT"));
	require(scene, session_send(rebuild, "SELECT FROM like_install_wrong($1, $2)", ARGS(arg_int(1), arg_int(CHUNK))));
	check_waits(scene, lab, rebuild, "the chunk waits for the row that is held");
	commit(scene, consumer);
	CHECK_EQ(scene, session_await(rebuild, NULL, scene_deadline(scene, WAIT_MS)), SQL_OK,
			 "the chunk, after the commit");
	scene_close_session(scene, consumer);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, ITEMS), *rebuild = like_client(scene, "rebuild");
	SqlResult *rows = NULL;
	LikeMended mended;

	step(scene, "likes, half of them consumed");
	for (int64_t i = 0; i < (int64_t) ITEMS * USERS; i++)
	{
		(void) set_like(scene, lab, 1 + i / ITEMS, 1 + i % ITEMS, true);
		if (i == ITEMS * USERS / 2)
		{
			(void) drain(scene, lab);
		}
	}
	CHECK_EQ(scene, find_wrong(scene, rebuild), 0, "rows that are wrong while half is consumed");
	(void) drain(scene, lab);
	spoil(scene, lab);
	require(scene, session_query(lab, &rows, VERSIONS, NO_ARGS));
	CHECK_EQ(scene, find_wrong(scene, rebuild), 4, "rows that are wrong: three spoilt, one missing");

	step(scene, "the first chunk, beside a consumer that holds one of its rows");
	install_behind_consumer(scene, lab, rebuild);
	check_query(scene, lab, "SELECT string_agg(n::text, ' ' ORDER BY item_id) FROM like_count WHERE item_id <= 2",
				NO_ARGS, "6 6", "counts of the chunk: five likes before the snapshot, one after it");

	step(scene, "all that is left");
	require(scene, like_rebuild_wrong(rebuild, CHUNK, &mended));
	CHECK_EQ(scene, mended.wrong, 2, "rows that were left");
	CHECK_EQ(scene, mended.installed, 2, "rows installed");
	check_drained(scene, lab, "after the rebuild");
	CHECK_EQ(scene, find_wrong(scene, rebuild), 0, "rows that are wrong in the end");
	check_query(scene, lab, VERSIONS, NO_ARGS, sql_text(rows, 0, 0), "row versions of the items that were right");
	sql_free(rows);
}

const Scenario scenario_scale_chunks = {
	.suite = "scale",
	.id = "scale/chunks",
	.title = "the rebuild for many items: only rows that are wrong, in chunks",
	.claim =
		"a row whose identity holds is left alone; spoilt and missing ones are right afterwards, beside a consumer",
	.kind = "real component, fixed interleaving",
	.guarantee = "identity after each chunk; the xmin of right rows stays",
	.observed = "like_count, its xmin, pg_locks, both audits",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
