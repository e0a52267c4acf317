/*
 * isolation/retry  three ways to go on after 40001, of which one is right
 *
 * Claim      Only the whole decision, made again, keeps the rule. To write again what was decided before the conflict breaks
 *            it, in a transaction that Serializable has no reason to refuse. To send COMMIT again stores nothing, and is
 *            answered COMMIT.
 * Method     Two doctors are on call. alice and bob both read 2, both leave, alice commits, bob gets 40001 at COMMIT. From
 *            there bob goes on in each of the three ways; what bob's client then tells is held against what is stored.
 * Expect     Written again: bob is told "off", and nobody is on call. COMMIT again: answers COMMIT with warning 25P01, bob is
 *            told "off" and is on call; session_commit() calls the same an error. Decided again: reads 1, bob stays and is told so.
 * Not shown  The same over all interleavings: isolation/skew. Clients that lose their place in a batch: 33-A.
 */
#include "32/lab.h"

typedef struct
{
	Scene *scene;
	Session *lab, *alice, *bob;
} Ward;

#define ON_CALL "SELECT doctors_on_call()"
#define OFF "SELECT count(*) FROM doctors WHERE name = 'bob' AND NOT on_call"

static SqlStatus
leave(Session *session, const char *name)
{
	return session_try(session, NULL, "SELECT doctor_leaves($1)", ARGS(arg_text(name)));
}

/* r1 r2 w1 w2 c1 c2. */
static void
meet(Ward *ward)
{
	Scene *scene = ward->scene;

	require(scene, session_execute(ward->lab, "UPDATE doctors SET on_call = true"));
	require(scene, session_begin(ward->alice, SERIALIZABLE) && session_begin(ward->bob, SERIALIZABLE));
	CHECK_EQ(scene, number_of(scene, ward->alice, ON_CALL, NO_ARGS), 2, "r1: alice reads");
	CHECK_EQ(scene, number_of(scene, ward->bob, ON_CALL, NO_ARGS), 2, "r2: bob reads");
	CHECK(scene, leave(ward->alice, "alice") == SQL_OK && leave(ward->bob, "bob") == SQL_OK, "w1 w2: both write");
	CHECK(scene, session_commit(ward->alice) == SQL_OK, "c1: alice commits");
	CHECK(scene, session_commit(ward->bob) == SQL_ERROR, "c2: bob's COMMIT is refused");
	check_text(scene, session_error(ward->bob)->sqlstate, "40001", "c2: SQLSTATE");
}

/* What bob's client tells, what the server has, and the rule. */
static void
compare(Ward *ward, const char *way, bool told_off, const char *expected, int64_t on_call)
{
	int64_t stored_off = number_of(ward->scene, ward->lab, OFF, NO_ARGS);

	note(ward->scene, "%s: bob is told that he is %s", way, told_off ? "off" : "on call");
	check_text(ward->scene, stored_off == told_off ? "stored" : "not stored", expected, "%s: what bob is told is", way);
	CHECK_EQ(ward->scene, number_of(ward->scene, ward->lab, ON_CALL, NO_ARGS), on_call, "%s: doctors on call", way);
}


/* --- the three ways --- */

static void
write_again(Ward *ward)
{
	bool done;

	step(ward->scene, "wrong: bob writes again what he decided by the old number");
	meet(ward);
	require(ward->scene, session_begin(ward->bob, SERIALIZABLE));
	done = leave(ward->bob, "bob") == SQL_OK && session_commit(ward->bob) == SQL_OK;
	CHECK(ward->scene, done, "written again: nothing is refused");
	compare(ward, "written again", done, "stored", 0);
}

static void
commit_again(Ward *ward)
{
	SqlResult *answer = NULL;
	bool done;

	step(ward->scene, "wrong: bob sends COMMIT again, and believes the answer");
	meet(ward);
	done = session_try(ward->bob, &answer, "COMMIT", NO_ARGS) == SQL_OK;
	require(ward->scene, done);
	check_text(ward->scene, sql_tag(answer), "COMMIT", "COMMIT again: answer");
	check_text(ward->scene, session_warning(ward->bob), "25P01", "COMMIT again: warning beside it");
	sql_free(answer);
	compare(ward, "COMMIT again", done, "not stored", 1);
	CHECK(ward->scene, session_commit(ward->bob) == SQL_ERROR, "COMMIT again: session_commit() does not believe it");
	check_text(ward->scene, session_error(ward->bob)->sqlstate, "25P01", "COMMIT again: its SQLSTATE");
}

typedef struct
{
	int64_t seen;
	bool leaves;
} Decision;

static SqlStatus
decide(Session *session, void *context)
{
	Decision *decision = context;
	SqlResult *rows = NULL;
	SqlStatus status = session_try(session, &rows, ON_CALL, NO_ARGS);

	if (status != SQL_OK)
	{
		return status;
	}
	decision->seen = sql_int(rows, 0, 0);
	decision->leaves = decision->seen >= 2;
	sql_free(rows);
	return decision->leaves ? leave(session, "bob") : SQL_OK;
}

static void
decide_again(Ward *ward)
{
	Decision decision = {0};
	SqlStatus status;

	step(ward->scene, "right: bob reads, decides and writes again");
	meet(ward);
	status = session_transaction(ward->bob, SERIALIZABLE, decide, &decision);
	CHECK(ward->scene, status == SQL_OK, "decided again: committed");
	CHECK_EQ(ward->scene, decision.seen, 1, "decided again: bob reads");
	compare(ward, "decided again", decision.leaves, "stored", 1);
	scene_expect_retries(ward->scene, 0, 0);
}

static void
run(Scene *scene)
{
	Ward ward = {.scene = scene,
				 .lab = scene_session(scene, "lab"),
				 .alice = scene_session(scene, "alice"),
				 .bob = scene_session(scene, "bob")};

	require(scene, session_execute_file(ward.lab, scene_sql(scene, "isolation/doctors.sql")));
	write_again(&ward);
	commit_again(&ward);
	decide_again(&ward);
}

const Scenario scenario_isolation_retry = {
	.suite = "isolation",
	.id = "isolation/retry",
	.title = "three ways to go on after 40001, of which one is right",
	.claim =
		"writing again breaks the rule, COMMIT again stores nothing and is answered COMMIT; deciding again keeps both",
	.kind = "fixed interleaving, negative control",
	.guarantee = "one doctor stays on call; what is told is stored",
	.observed = "doctors, answers and warnings, what bob is told",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
