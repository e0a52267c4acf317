/*
 * scale/failover-async  the same without a synchronous standby: what was acknowledged is gone
 *
 * Claim      None: this is the negative control of scale/failover. The lab finds every change that was acknowledged and is gone,
 *            and names it. What is left agrees with itself, and the audits alone would show nothing.
 * Method     Fixed order. 12 likes, replayed; the standby is cut off; 5 more, acknowledged and consumed; the primary is
 *            stopped at once, the standby promoted. Then another like on the new timeline, and the consumer's program with
 *            its old offset file.
 * Expect     Acked but gone: 5, users 13 to 17 under numbers 13 to 17. Both audits clean. Number 13 is given out again,
 *            to another event; the program, whose file says 17, refuses to go on.
 * Not shown  How much is gone when nothing cuts the standby off: as much as it is behind. A consumer in another database would
 *            have counted what is gone (scale/second-database, L42).
 */
#include "pair.h"

#include <stdlib.h>
#include <string.h>

enum
{
	ITEMS = 2,
	KEPT = 12, /* likes before the cut, of users 1, 2, ... */
	GONE = 5,  /* after it */
	LATER_USER = 100,
	CONSUMER_MS = 20000
};

static void
like_on_record(Scene *scene, Session *session, int64_t first, int64_t last)
{
	for (int64_t user = first; user <= last; user++)
	{
		LikeResult result = {0};

		require(scene, recorded_set(scene_history(scene), 0, session, user, 1 + user % ITEMS, true, &result));
		expect_changed(scene, &result, user);
	}
}

/* The consumer as a program, which knows how far it is from its file. Answers its exit code. */
static int
consume(Scene *scene, Cluster *cluster, Text *output)
{
	char *conninfo = string_copy(cluster_conninfo(cluster, "postgres"));
	const char *argv[] = {scene_program(scene, "like-consumer"), "--conninfo", conninfo, "--offset-file",
						  scene_file(scene, "consumer.offset"),  NULL};
	ProcessEnd end = {0};

	require(scene, process_run(&(ProcessSpec){.argv = argv}, scene_deadline(scene, CONSUMER_MS), output, &end));
	note(scene, "like-consumer| %.*s", (int) strcspn(text_get(output), "\n"), text_get(output));
	free(conninfo);
	return end.how == ENDED_EXIT ? end.code : -1;
}

static void
consumer_is_ahead(Scene *scene, const Pair *pair)
{
	Text output = {0};

	CHECK_EQ(scene, consume(scene, pair->standby, &output), EXIT_CODE_USAGE,
			 "exit of the consumer whose file says %d, on the new primary", KEPT + GONE);
	CHECK(scene, strstr(text_get(&output), "it belongs to another outbox") != NULL, "it says why it does not go on");
	text_free(&output);
}

static void
lose_the_primary(Scene *scene, Pair *pair)
{
	Fault *death = scene_fault(scene, "immediate stop of the primary, of which the standby lacks %d changes", GONE);
	Session *writer = like_client(scene, "writer");
	Text output = {0};

	step(scene, "%d likes reach the standby, %d more do not", KEPT, GONE);
	like_on_record(scene, writer, 1, KEPT);
	pair_await_replayed(scene, pair);
	pair_cut(scene, pair);
	like_on_record(scene, writer, KEPT + 1, KEPT + GONE);
	CHECK_EQ(scene, consume(scene, pair->primary, &output), EXIT_CODE_PASS, "exit of the consumer on the old primary");
	check_drained(scene, pair->lab, "before the failover");
	require(scene, fault_stop_immediate(death, scene_history(scene), pair->primary));
	text_free(&output);
}

static void
run(Scene *scene)
{
	Pair pair = pair_make(scene, like_design_find(NULL), ITEMS);
	Requests requests = {0};
	uint64_t horizon;
	Session *lab;
	LikeResult later;
	LikeTotals totals;

	lose_the_primary(scene, &pair);

	step(scene, "the standby is promoted");
	lab = pair_promote(scene, &pair, &horizon);
	(void) resolve_unknowns(scene, lab, horizon, &requests);
	CHECK_EQ(scene, pair_count_gone(scene, lab, &requests), GONE, "acked but gone");
	check_query(scene, lab, "SELECT string_agg(user_id::text, ' ' ORDER BY seq) FROM like_outbox", NO_ARGS,
				"1 2 3 4 5 6 7 8 9 10 11 12", "users whose like is left");
	check_audits_clean(scene, lab, "of what is left, which the audits cannot tell from all there was");
	consumer_is_ahead(scene, &pair);

	step(scene, "the next like takes a number that another one had");
	later = set_like(scene, lab, LATER_USER, 1, true);
	check_answer(scene, &later, "CHANGED(liked, v1, seq=13)", "a like on the new timeline");
	totals = drain(scene, lab);
	check_totals(scene, &totals, "applied=13 covered=0 dup=0 watermark=13",
				 "the consumer from the watermark that it finds");
	check_drained(scene, lab, "in the end");
	requests_free(&requests);
}

const Scenario scenario_scale_failover_async = {
	.suite = "scale",
	.id = "scale/failover-async",
	.title = "the same without a synchronous standby: what was acknowledged is gone",
	.claim = "without synchronous_standby_names acked changes are gone after a failover, and the lab names each",
	.kind = "two servers, fixed interleaving, immediate stop, promotion, negative control",
	.guarantee = "none: what was acknowledged and is gone is counted and named",
	.observed = "the clients' answers beside the outbox, both audits, the refusal of a consumer that is ahead",
	.needs = NEEDS_CLUSTER,
	.server_setting = "autovacuum = off\n",
	.deadline_ms = 60000,
	.run = run,
};
