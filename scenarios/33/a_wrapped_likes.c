/*
 * 33-A  two likes wrapped in one transaction: the conflict ends it, and the whole is run again
 *
 * Claim      A client that wraps several likes in one transaction meets 40001 in Repeatable Read, although nobody touched
 *            its pairs, and may meet 40P01 in Read Committed. Run again whole, what it then acknowledges is stored.
 * Method     Both by a fixed order. Repeatable Read: the client has looked, which takes its snapshot; another client's two
 *            likes of other pairs commit; the client's first like needs the number row, which has changed since (manual
 *            13.2.2). Read Committed: the client has liked one pair and so holds the number row; another has written the
 *            second pair's row and waits for the number row; the client's second like closes the circle (13.3.4), and its
 *            deadlock_timeout alone is short, so that it is the one that is ended. The other goes first then.
 * Expect     One retry after 40001, one after 40P01, both of the whole; 2 acknowledged and 2 stored each time. The second
 *            time the pair that the other has liked meanwhile is NOOP: decided anew, not sent again.
 * Not shown  A client whose transaction ends in the middle (33-C, 33-D). Which of two is ended when both timeouts are
 *            alike, and how many retries a crowd needs (L7).
 */
#include "32/lab.h"

#include <string.h>

enum
{
	CLIENT = 1, /* users */
	OTHER = 2,
	BYSTANDER = 4,
	FIRST_PAIR = 1, /* items */
	SECOND_PAIR = 2,
	ITEMS = 2,
	ACKNOWLEDGED = 2,
	ANSWER_MS = 10000
};

/* The client's transaction: what it saw and was answered, by its last attempt. */
typedef struct
{
	Scene *scene;
	Session *lab, *other;
	int64_t user;
	int64_t looks;    /* attempts that began with looking */
	bool other_ended; /* what was sent to it is answered */
	LikeResult first, second;
} Client;

static SqlStatus
look(Session *session, void *context)
{
	Client *client = context;
	SqlStatus status =
		session_try(session, NULL, "SELECT count(*) FROM like_fact WHERE user_id = $1", ARGS(arg_int(client->user)));

	client->looks++;
	point_reach("client.looked", "attempt %lld", (long long) client->looks);
	return status;
}

static SqlStatus
like(Session *session, int64_t user, int64_t item, LikeResult *result)
{
	if (!like_set_within(session, user, item, true, result))
	{
		return SQL_LOST;
	}
	return result->outcome != LIKE_REJECTED ? SQL_OK : session_is_lost(session) ? SQL_LOST : SQL_ERROR;
}

static SqlStatus
like_first(Session *session, void *context)
{
	Client *client = context;
	SqlStatus status = like(session, client->user, FIRST_PAIR, &client->first);

	point_reach("client.liked_first", "%s", client->first.sqlstate);
	return status;
}

static SqlStatus
like_second(Session *session, void *context)
{
	Client *client = context;

	return like(session, client->user, SECOND_PAIR, &client->second);
}

static const TransactionBody two_likes[] = {look, like_first, like_second, NULL};

/* What the client tells its caller after a COMMIT that it takes for one. */
static int64_t
acknowledged(Scene *scene, Session *session, SqlStatus status)
{
	require(scene, !session_is_lost(session));
	return status == SQL_OK ? ACKNOWLEDGED : 0;
}

static void
check_stored(Scene *scene, Session *lab, int64_t user, int64_t told, const char *when)
{
	CHECK_EQ(scene, told, ACKNOWLEDGED, "%s: likes acknowledged", when);
	CHECK_EQ(scene,
			 number_of(scene, lab, "SELECT count(*) FROM like_fact WHERE user_id = $1 AND liked", ARGS(arg_int(user))),
			 told, "%s: facts stored of those acknowledged", when);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM like_outbox WHERE user_id = $1", ARGS(arg_int(user))),
			 told, "%s: events stored of those acknowledged", when);
	check_write_side(scene, lab, when);
}


/* --- Repeatable Read: everybody's number row --- */

/* Two likes in one transaction by another client, on pairs that are no business of the first. */
static void
other_commits(void *context, const char *name, const char *detail)
{
	Client *client = context;
	Scene *scene = client->scene;
	LikeResult result;

	(void) name;
	(void) detail;
	require(scene, session_begin(client->other, REPEATABLE_READ));
	result = set_like_within(scene, client->other, OTHER, FIRST_PAIR, true);
	CHECK(scene, result.outcome == LIKE_CHANGED, "another client likes a pair of its own");
	result = set_like_within(scene, client->other, OTHER, SECOND_PAIR, true);
	CHECK(scene, result.outcome == LIKE_CHANGED, "and another");
	CHECK(scene, session_commit(client->other) == SQL_OK, "it commits both");
}

static void
unrelated_pairs(Scene *scene, Client *client, Session *session)
{
	SqlStatus status;

	step(scene, "Repeatable Read: another client's likes of other pairs commit after the client has looked");
	point_arm_call("client.looked", 1, other_commits, client);
	status = steps()->transaction(session, REPEATABLE_READ, two_likes, client);
	point_disarm_all();
	check_stored(scene, client->lab, client->user, acknowledged(scene, session, status), "after 40001");
	CHECK_EQ(scene, client->looks, 2, "after 40001: attempts that looked first");
	learn_number(scene, client->lab, client->user, SECOND_PAIR, &client->second);
	check_answer(scene, &client->second, "CHANGED(liked, v1, seq=4)", "the second like, in the second attempt");
	scene_expect_retries(scene, 1, 0);
}


/* --- Read Committed: each holds what the other wants --- */

/* Two likes of another client, sent as one statement: they go on by themselves as soon as they can. */
static void
other_waits(void *context, const char *name, const char *detail)
{
	Client *client = context;

	(void) name;
	(void) detail;
	require(client->scene,
			session_send(client->other, "SELECT (like_set($1, $2, true)).changed, (like_set($3, $4, true)).changed",
						 ARGS(arg_int(client->user), arg_int(SECOND_PAIR), arg_int(BYSTANDER), arg_int(FIRST_PAIR))));
	scene_await_blocked(client->scene, client->lab, session_backend_pid(client->other));
	note(client->scene, "the other has written the client's second pair and is seen waiting for the number row");
}

/* Before the client writes again, or it might be first at the number row once more and close the circle anew. */
static void
other_ends(void *context, const char *name, const char *detail)
{
	Client *client = context;

	(void) name;
	(void) detail;
	if (!client->other_ended)
	{
		SqlStatus status = session_await(client->other, NULL, scene_deadline(client->scene, ANSWER_MS));

		CHECK(client->scene, status == SQL_OK, "the other client's likes are committed at its first attempt");
		client->other_ended = true;
	}
}

static void
circle(Scene *scene, Client *client, Session *session)
{
	SqlStatus status;

	step(scene, "Read Committed: the client holds the number row, another its second pair");
	require(scene, session_execute(session, "SET deadlock_timeout = '10ms'"));
	require(scene, session_execute(client->other, "SET deadlock_timeout = '60s'"));
	point_arm_call("client.liked_first", 1, other_waits, client);
	point_arm_call("client.looked", 2, other_ends, client);
	status = steps()->transaction(session, READ_COMMITTED, two_likes, client);
	point_disarm_all();
	other_ends(client, "", "");
	check_stored(scene, client->lab, client->user, acknowledged(scene, session, status), "after 40P01");
	CHECK_EQ(scene, client->looks, 2, "after 40P01: attempts that looked first");
	learn_number(scene, client->lab, client->user, FIRST_PAIR, &client->first);
	check_answer(scene, &client->first, "CHANGED(liked, v1, seq=7)", "the first like, in the second attempt");
	check_answer(scene, &client->second, "NOOP(liked, v1, already liked)", "the second one, decided anew");
	scene_expect_retries(scene, 0, 1);
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, ITEMS);
	Session *session = like_client(scene, "client");
	Client client = {.scene = scene, .lab = lab, .other = like_client(scene, "other"), .user = CLIENT};

	unrelated_pairs(scene, &client, session);
	client.user = CLIENT + OTHER; /* nobody's so far */
	client.looks = 0;
	circle(scene, &client, session);
	(void) drain(scene, lab);
	check_drained(scene, lab, "in the end");
}

const Scenario scenario_33_a = {
	.suite = "33",
	.id = "33-A",
	.title = "two likes wrapped in one transaction, retried whole",
	.claim = "40001 without a common pair and 40P01 end a wrapped transaction; run again whole, acknowledged is stored",
	.kind = "real component, fixed interleaving",
	.guarantee = "a retry runs the whole transaction; what is acknowledged is stored",
	.observed = "acknowledged beside like_fact and like_outbox, retries counted",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
