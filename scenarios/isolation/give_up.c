/*
 * isolation/give-up  a client that always loses gives up, and says so
 *
 * Claim      Retries end: after a number of attempts, and at a deadline. Given up is "not done": nothing is acknowledged, and
 *            nothing is stored.
 * Method     bob wants to leave, at Serializable. Each time he has read, alice signs in once more, reads the same and commits
 *            before he writes: she always wins. She wins ten times; until a deadline has passed; four times; and once more
 *            beside a client that takes the end of its attempts for success.
 * Expect     Ten attempts, then 40001, bob is on call. With room for 20 attempts: 3, because the deadline passes in the
 *            third. Where she stops after four: acknowledged in the fifth attempt, and stored. The client that does not look:
 *            1 acknowledged, 0 stored, found.
 * Not shown  A statement that waits past the deadline: that is lock_timeout's and statement_timeout's. Who deserves to win.
 */
#include "32/lab.h"

#define ATTEMPTS_MANY 20
#define DEADLINE_MS 100
#define OFF "SELECT count(*) FROM doctors WHERE name = 'bob' AND NOT on_call"

typedef struct
{
	Scene *scene;
	Session *lab, *alice, *bob;
	int64_t wins;      /* how often alice does */
	Deadline deadline; /* that bob has */
	int64_t late_in;   /* the attempt in which it passes; 0: none */
	int64_t attempts;
} Rivals;

static SqlStatus
sign_in(Session *session, void *context)
{
	SqlStatus status = session_try(session, NULL, "SELECT doctors_on_call()", NO_ARGS);

	(void) context;
	return status == SQL_OK ? session_try(session, NULL, "SELECT doctor_signs_in('alice')", NO_ARGS) : status;
}

static ProbeAnswer
probe_passed(void *context, Text *seen)
{
	const Rivals *rivals = context;

	text_append(seen, "it has not");
	return deadline_passed(rivals->deadline) ? PROBE_DONE : PROBE_AGAIN;
}

/* Read, be overtaken, write. */
static SqlStatus
leave(Session *session, void *context)
{
	Rivals *rivals = context;
	SqlStatus status = session_try(session, NULL, "SELECT doctors_on_call()", NO_ARGS);

	rivals->attempts++;
	if (rivals->attempts <= rivals->wins)
	{
		require(rivals->scene, session_transaction(rivals->alice, SERIALIZABLE, sign_in, NULL) == SQL_OK);
	}
	if (rivals->attempts == rivals->late_in)
	{
		require(rivals->scene,
				wait_until("bob's deadline passes", scene_deadline(rivals->scene, 5000), probe_passed, rivals));
	}
	return status == SQL_OK ? session_try(session, NULL, "SELECT doctor_leaves('bob')", NO_ARGS) : status;
}

static void
check_attempts(Rivals *rivals, const char *what, SqlStatus status, int64_t attempts, bool done)
{
	Scene *scene = rivals->scene;
	int64_t acknowledged = status == SQL_OK ? 1 : 0;

	CHECK_EQ(scene, rivals->attempts, attempts, "%s: attempts", what);
	check_text(scene, session_error(rivals->bob)->sqlstate, done ? "" : "40001", "%s: SQLSTATE in the end", what);
	CHECK_EQ(scene, acknowledged, done, "%s: acknowledged", what);
	CHECK_EQ(scene, number_of(scene, rivals->lab, OFF, NO_ARGS), acknowledged, "%s: stored", what);
	scene_expect_retries(scene, attempts - 1, 0);
}

/* Both on call, and alice to win so often. */
static void
begin_again(Rivals *rivals, int64_t wins)
{
	require(rivals->scene, session_execute(rivals->lab, "UPDATE doctors SET on_call = true"));
	rivals->wins = wins;
	rivals->attempts = 0;
	rivals->late_in = 0;
}

static void
bounded_in_number(Rivals *rivals)
{
	step(rivals->scene, "alice always wins: bob gives up after %d attempts", RETRY_ATTEMPTS_MAX);
	begin_again(rivals, ATTEMPTS_MANY);
	check_attempts(rivals, "by number", session_transaction(rivals->bob, SERIALIZABLE, leave, rivals),
				   RETRY_ATTEMPTS_MAX, false);
}

static void
bounded_by_deadline(Rivals *rivals)
{
	SqlStatus status;

	step(rivals->scene, "bob has %d attempts, and a deadline that passes in the third", ATTEMPTS_MANY);
	begin_again(rivals, ATTEMPTS_MANY);
	rivals->late_in = 3;
	rivals->deadline = deadline_in_ms(DEADLINE_MS);
	status = session_transaction_within(rivals->bob, SERIALIZABLE, leave, rivals, ATTEMPTS_MANY, rivals->deadline);
	check_attempts(rivals, "by deadline", status, 3, false);
}

static void
done_in_time(Rivals *rivals)
{
	step(rivals->scene, "alice wins four times: bob is through in the fifth attempt");
	begin_again(rivals, 4);
	check_attempts(rivals, "in time", session_transaction(rivals->bob, SERIALIZABLE, leave, rivals), 5, true);
}

static void
not_looked_at(Rivals *rivals)
{
	Scene *scene = rivals->scene;
	const int64_t acknowledged = 1;

	step(scene, "wrong: a client that takes the end of its attempts for success");
	begin_again(rivals, ATTEMPTS_MANY);
	(void) session_transaction(rivals->bob, SERIALIZABLE, leave, rivals);
	CHECK_EQ(scene, acknowledged - number_of(scene, rivals->lab, OFF, NO_ARGS), 1,
			 "not looked at: acknowledged and not stored, required");
	scene_expect_retries(scene, RETRY_ATTEMPTS_MAX - 1, 0);
}

static void
run(Scene *scene)
{
	Rivals rivals = {.scene = scene,
					 .lab = scene_session(scene, "lab"),
					 .alice = scene_session(scene, "alice"),
					 .bob = scene_session(scene, "bob")};

	require(scene, session_execute_file(rivals.lab, scene_sql(scene, "isolation/doctors.sql")));
	bounded_in_number(&rivals);
	bounded_by_deadline(&rivals);
	done_in_time(&rivals);
	not_looked_at(&rivals);
}

const Scenario scenario_isolation_give_up = {
	.suite = "isolation",
	.id = "isolation/give-up",
	.title = "a client that always loses gives up, and says so",
	.claim = "retries end by number and by deadline; given up is not acknowledged, and nothing of it is stored",
	.kind = "fixed interleaving, negative control",
	.guarantee = "what is acknowledged is stored, what is given up is not",
	.observed = "attempts, SQLSTATE, doctors, retries counted",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
