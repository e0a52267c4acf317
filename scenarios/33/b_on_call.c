/*
 * 33-B  a decision that the conflict has overtaken is made again
 *
 * Claim      Where a rule stands over several rows, Serializable turns the second of two decisions into 40001, at COMMIT;
 *            and only a client that then reads, decides and writes again keeps the rule, and has stored what it
 *            acknowledges.
 * Method     Two doctors are on call, and each may sign off while another is. Both read, both write, both commit, in the
 *            order r1 r2 w1 w2 c1 c2. In Repeatable Read first, which must break the rule (write skew, manual 13.2.2 and
 *            13.2.3). Then a second rule: who calls two more doctors in counts the places and takes the next two.
 * Expect     Repeatable Read: nobody on call. Serializable: one 40001, the second decision is a refusal, one stays. Called
 *            in: one 40001, then two rows acknowledged and stored, each place taken once.
 * Not shown  Readers that only look (a Serializable read may have to be retried as well); other databases' Serializable.
 */
#include "32/lab.h"

enum
{
	DOCTORS = 2,
	PLACES = 2,
	CALLED_IN = 2, /* by the client, at once */
	FIRST = 1,     /* doctors */
	SECOND = 2,
	OTHERS_NEW = 3,
	CLIENTS_NEW = 4
};

#define ON_CALL "SELECT count(*) FROM doctor WHERE on_call"

typedef struct
{
	Scene *scene;
	Session *other;
	int64_t reads;     /* how often the client has read */
	int64_t seen;      /* what it read last */
	bool signs_off;    /* what it decided by that */
	const char *write; /* what the other writes meanwhile */
} Client;

static SqlStatus
read_count_of_rows(Session *session, Client *client, const char *sql)
{
	SqlResult *rows = NULL;
	SqlStatus status = session_try(session, &rows, sql, NO_ARGS);

	if (status == SQL_OK)
	{
		client->seen = sql_int(rows, 0, 0);
		client->reads++;
		sql_free(rows);
		point_reach("client.decided", "%lld rows", (long long) client->seen);
	}
	return status;
}


/* --- what the other does in between --- */

static void
other_reads(Scene *scene, Client *client, Isolation isolation, const char *sql, int64_t expected)
{
	require(scene, session_begin(client->other, isolation));
	CHECK_EQ(scene, number_of(scene, client->other, sql, NO_ARGS), expected, "r1: the other reads");
}

static void
other_writes(void *context, const char *name, const char *detail)
{
	Client *client = context;

	(void) name;
	note(client->scene, "r2: the client reads %s", detail);
	require(client->scene, session_execute(client->other, client->write));
	note(client->scene, "w1: the other writes");
}

static void
other_commits(void *context, const char *name, const char *detail)
{
	Client *client = context;

	(void) name;
	(void) detail;
	note(client->scene, "w2: the client has written");
	CHECK(client->scene, session_commit(client->other) == SQL_OK, "c1: the other commits");
}

/* r1 has happened; the points put w1 between r2 and w2, and c1 between w2 and c2. Each at the client's first attempt. */
static SqlStatus
transact_meanwhile(Scene *scene, Session *session, Client *client, Isolation isolation, const TransactionBody *parts)
{
	SqlStatus status;

	client->reads = 0;
	point_arm_call("client.decided", 1, other_writes, client);
	point_arm_call("client.written", 1, other_commits, client);
	status = steps()->transaction(session, isolation, parts, client);
	point_disarm_all();
	require(scene, !session_is_lost(session));
	return status;
}


/* --- signing off --- */

static SqlStatus
decide_to_sign_off(Session *session, void *context)
{
	Client *client = context;
	SqlStatus status = read_count_of_rows(session, client, ON_CALL);

	client->signs_off = status == SQL_OK && client->seen >= 2;
	return status;
}

static SqlStatus
sign_off(Session *session, void *context)
{
	const Client *client = context;
	SqlStatus status = SQL_OK;

	if (client->signs_off)
	{
		status = session_try(session, NULL, "UPDATE doctor SET on_call = false WHERE id = $1", ARGS(arg_int(SECOND)));
	}
	point_reach("client.written", "signed off");
	return status;
}

static const TransactionBody signing_off[] = {decide_to_sign_off, sign_off, NULL};

static void
both_sign_off(Scene *scene, Session *lab, Session *session, Client *client, Isolation isolation)
{
	SqlStatus status;

	require(scene, session_execute(lab, "UPDATE doctor SET on_call = true"));
	client->write = "UPDATE doctor SET on_call = false WHERE id = 1";
	other_reads(scene, client, isolation, ON_CALL, DOCTORS);
	status = transact_meanwhile(scene, session, client, isolation, signing_off);
	CHECK(scene, status == SQL_OK, "the client is done, with %lld readings", (long long) client->reads);
}

static void
skew(Scene *scene, Session *lab, Session *session, Client *client)
{
	step(scene, "Repeatable Read: both see two on call, both sign off");
	both_sign_off(scene, lab, session, client, REPEATABLE_READ);
	CHECK_EQ(scene, number_of(scene, lab, ON_CALL, NO_ARGS), 0, "Repeatable Read: doctors left on call, required");
	scene_expect_retries(scene, 0, 0);

	step(scene, "Serializable: the same");
	both_sign_off(scene, lab, session, client, SERIALIZABLE);
	CHECK_EQ(scene, number_of(scene, lab, ON_CALL, NO_ARGS), 1, "Serializable: doctors left on call");
	CHECK_EQ(scene, client->reads, 2, "Serializable: times that the client has read and decided");
	CHECK_EQ(scene, client->seen, 1, "Serializable: doctors that it saw when it decided last");
	check_query(scene, lab, "SELECT on_call FROM doctor WHERE id = $1", ARGS(arg_int(SECOND)),
				client->signs_off ? "f" : "t", "Serializable: the client's doctor is what it was told");
	scene_expect_retries(scene, 1, 0);
}


/* --- calling in --- */

#define CALL_IN "INSERT INTO roster (doctor, place) VALUES ($1, $2)"

static SqlStatus
count_places(Session *session, void *context)
{
	return read_count_of_rows(session, context, "SELECT count(*) FROM roster");
}

static SqlStatus
call_in_one(Session *session, void *context)
{
	const Client *client = context;

	return session_try(session, NULL, CALL_IN, ARGS(arg_int(CLIENTS_NEW), arg_int(client->seen + 1)));
}

static SqlStatus
call_in_another(Session *session, void *context)
{
	const Client *client = context;
	SqlStatus status = session_try(session, NULL, CALL_IN, ARGS(arg_int(CLIENTS_NEW + 1), arg_int(client->seen + 2)));

	point_reach("client.written", "called in");
	return status;
}

static const TransactionBody calling_in[] = {count_places, call_in_one, call_in_another, NULL};

static void
both_call_in(Scene *scene, Session *lab, Session *session, Client *client)
{
	SqlStatus status;
	int64_t told;

	step(scene, "Serializable: both count %d places, the other takes the next one, the client the next two", PLACES);
	client->write = "INSERT INTO roster (doctor, place) VALUES (3, 3)";
	other_reads(scene, client, SERIALIZABLE, "SELECT count(*) FROM roster", PLACES);
	status = transact_meanwhile(scene, session, client, SERIALIZABLE, calling_in);
	told = status == SQL_OK ? CALLED_IN : 0;
	CHECK_EQ(scene, told, CALLED_IN, "called in: doctors acknowledged");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM roster WHERE doctor >= $1", ARGS(arg_int(CLIENTS_NEW))),
			 told, "called in: doctors stored of those acknowledged");
	check_query(scene, lab, "SELECT string_agg(place::text, ' ' ORDER BY place) FROM roster", NO_ARGS, "1 2 3 4 5",
				"called in: each place taken once");
	scene_expect_retries(scene, 1, 0);
}

static void
run(Scene *scene)
{
	Session *lab = scene_session(scene, "lab");
	Session *session = scene_session(scene, "client");
	Client client = {.scene = scene, .other = scene_session(scene, "other")};

	require(scene, session_execute_file(lab, scene_sql(scene, "oncall/schema.sql")));
	load_twin(scene, lab, "oncall");
	skew(scene, lab, session, &client);
	both_call_in(scene, lab, session, &client);
}

const Scenario scenario_33_b = {
	.suite = "33",
	.id = "33-B",
	.title = "two doctors sign off at once: the decision is made again",
	.claim = "a rule over several rows holds when the transaction that met 40001 reads, decides and writes again",
	.kind = "fixed interleaving, negative control",
	.guarantee = "one doctor stays on call; what is acknowledged is stored",
	.observed = "doctor, roster, readings of the client, retries counted",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
