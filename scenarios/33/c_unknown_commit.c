/*
 * 33-C  the answer to a COMMIT is lost, and the client sends its request again
 *
 * Claim      A COMMIT without an answer may have happened or not. Sent again under the identity that it had, a request
 *            takes effect once in both cases; the client need not find out which it was.
 * Method     A proxy between client and server holds one message and cuts the connection there: the COMMIT before the
 *            server gets it, and the server's answer to it before the client does (manual 55.2.3, 55.7). The client
 *            connects again and sends the request again until it is answered. Its attempts are on record.
 * Expect     Cut before: not there, then stored by the second sending. Cut after: stored, and the second sending finds it.
 *            Both: one fact, one event, n grows by 1; on record one unknown and one ok, none failed.
 * Not shown  Identities that are purged (33-E). A client that forgets its request: who does not know what it has sent
 *            cannot send it again.
 */
#include "32/lab.h"

#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
	PROXY_PORT = 5433,
	WAIT_MS = 10000,
	CLIENT_MS = 15000
};

/* A client as a worker: static, since it outlives a case that ends early. */
typedef struct
{
	char *conninfo; /* of the proxy */
	const char *wish;
	int64_t number; /* of the wish, as the history's key */
	History *history;
	HistoryOp op;
	Deadline deadline;
	int done; /* written to when it has ended */
	bool answered;
} Client;

static bool
sending_begins(void *context, int attempt)
{
	Client *client = context;

	client->op = (HistoryOp){.worker = attempt, .key = {client->number, 0}, .want = true};
	return history_begin(client->history, &client->op);
}

static bool
sending_ends(void *context, int attempt, RequestOutcome outcome, const char *sqlstate)
{
	static const OpOutcome known[] = {[REQUEST_DONE] = OP_OK,
									  [REQUEST_REPEATED] = OP_OK,
									  [REQUEST_FAILED] = OP_FAILED,
									  [REQUEST_UNKNOWN] = OP_UNKNOWN};
	Client *client = context;

	(void) attempt;
	client->op.outcome = known[outcome];
	client->op.changed = outcome == REQUEST_DONE;
	snprintf(client->op.sqlstate, sizeof(client->op.sqlstate), "%s", sqlstate);
	return history_end(client->history, &client->op);
}

static bool
insist(int worker, void *context)
{
	Client *client = context;
	RequestWitness witness = {.before = sending_begins, .after = sending_ends, .context = client};

	(void) worker;
	client->answered =
		request_insist(client->conninfo, client->wish, steps()->request_identity, &witness, client->deadline);
	return file_write(client->done, "", 1) && client->answered;
}


/* --- the cut --- */

typedef struct
{
	Direction direction;
	char type;
	const char *what; /* is held */
	const char *effect;
	bool changes; /* the second sending does what the first did not */
} Place;

/* Forward until the client has ended, or a message is held. */
static ProxyEvent
serve(Scene *scene, Proxy *proxy, int ended)
{
	int which;
	ProxyEvent event = proxy_serve(proxy, &ended, 1, scene_deadline(scene, CLIENT_MS), &which);

	if (event != PROXY_AT_POINT && event != PROXY_WATCHED)
	{
		scene_broken(scene, "the client neither reached a point nor ended");
	}
	return event;
}

static void
cut_at(Scene *scene, Proxy *proxy, const Place *place, int ended)
{
	Fault *fault = scene_fault(scene, "the connection is cut at: %s", place->what);
	Text held = {0};

	if (serve(scene, proxy, ended) != PROXY_AT_POINT)
	{
		return; /* not exercised: the fault has not fired */
	}
	proxy_message_describe(proxy_held(proxy), &held);
	check_text(scene, text_get(&held), place->what, "what is held when the connection is cut");
	text_free(&held);
	proxy_cut(proxy, 1);
	fault->fired++;
	snprintf(fault->effect, sizeof(fault->effect), "%s", place->effect);
	require(scene, history_fault(scene_history(scene), fault->name));
	(void) serve(scene, proxy, ended);
}

static int64_t
outcomes(Scene *scene, int64_t number, OpOutcome outcome)
{
	HistoryOp *ops = NULL;
	size_t count = 0;
	int64_t found = 0;

	require(scene, history_read(scene_history_path(scene), &ops, &count));
	for (size_t i = 0; i < count; i++)
	{
		found += ops[i].key[0] == number && ops[i].outcome == outcome;
	}
	free(ops);
	return found;
}

static void
check_once(Scene *scene, Session *lab, const Client *client, int64_t n, const char *when)
{
	CHECK(scene, client->answered, "%s: the client was answered in the end", when);
	CHECK_EQ(scene, outcomes(scene, client->number, OP_UNKNOWN), 1, "%s: sendings on record as unknown", when);
	CHECK_EQ(scene, outcomes(scene, client->number, OP_FAILED), 0, "%s: sendings on record as failed", when);
	CHECK_EQ(scene, outcomes(scene, client->number, OP_OK), 1, "%s: sendings on record as done", when);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT count(*) FROM request WHERE wish = $1", ARGS(arg_text(client->wish))),
			 1, "%s: facts", when);
	CHECK_EQ(scene,
			 number_of(scene, lab,
					   "SELECT count(*) FROM request_event e JOIN request r ON r.id = e.request_id WHERE r.wish = $1",
					   ARGS(arg_text(client->wish))),
			 1, "%s: events", when);
	CHECK_EQ(scene, number_of(scene, lab, "SELECT n FROM tally", NO_ARGS), n, "%s: n", when);
}

static void
cut_and_send_again(Scene *scene, Session *lab, Proxy *proxy, Client *client, const Place *place, const char *when)
{
	ActorGroup *group;
	int ended[2];

	require(scene, pipe(ended) == 0);
	client->done = ended[1];
	client->deadline = scene_deadline(scene, CLIENT_MS);
	client->answered = false;
	proxy_forget(proxy);
	proxy_arm_kind(proxy, 1, place->direction, place->type, "COMMIT", 1);
	group = actor_start("client", 1, insist, client);
	require(scene, group != NULL);
	actor_open_gate(group);
	cut_at(scene, proxy, place, ended[0]);
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	close(ended[0]);
	close(ended[1]);
	CHECK_EQ(scene, client->op.changed, place->changes, "%s: the second sending changes something", when);
	CHECK_EQ(scene, proxy_connections(proxy), 2, "%s: connections that the client has made", when);
	check_once(scene, lab, client, client->number, when);
}

/* Its socket lies beside the server's, under another number. */
static Proxy *
proxy_before(Scene *scene, Session *lab, Client *client)
{
	const char *folder = cluster_directory(scene_cluster(scene));
	SqlResult *rows;
	char *upstream;
	Proxy *proxy;

	require(scene,
			session_query(lab, &rows, "SELECT current_setting('port'), current_user, current_database()", NO_ARGS));
	upstream = string_format("%s/.s.PGSQL.%s", folder, sql_text(rows, 0, 0));
	proxy = proxy_open(&(ProxyConfig){.upstream = upstream, .directory = folder, .port = PROXY_PORT});
	free(upstream);
	require(scene, proxy != NULL);
	client->conninfo = string_format("host='%s' port=%d user='%s' dbname='%s'", proxy_host(proxy), proxy_port(proxy),
									 sql_text(rows, 0, 1), sql_text(rows, 0, 2));
	sql_free(rows);
	return proxy;
}

static void
run(Scene *scene)
{
	static const Place before = {FROM_CLIENT, 'Q', "Query COMMIT", "the server never got it", true};
	static const Place after = {FROM_SERVER, 'C', "CommandComplete COMMIT", "the client never got it", false};
	static Client client;
	Session *lab = scene_session(scene, "lab");
	Proxy *proxy;

	require(scene, session_execute_file(lab, scene_sql(scene, "request/request.sql")));
	load_twin(scene, lab, "request");
	proxy = proxy_before(scene, lab, &client);
	client.history = scene_history(scene);

	step(scene, "cut before the server gets the COMMIT");
	client.wish = "first";
	client.number = 1;
	cut_and_send_again(scene, lab, proxy, &client, &before, "cut before");

	step(scene, "cut after the server has committed");
	client.wish = "second";
	client.number = 2;
	cut_and_send_again(scene, lab, proxy, &client, &after, "cut after");

	proxy_free(proxy);
	free(client.conninfo);
}

const Scenario scenario_33_c = {
	.suite = "33",
	.id = "33-C",
	.title = "the answer to a COMMIT is lost, and the request is sent again",
	.claim = "sent again under the identity it had, a request whose COMMIT was not answered takes effect once",
	.kind = "fixed interleaving, connection cut at a message",
	.guarantee = "one fact, one event, n + 1, whether it had committed or not; on record as unknown, never as failed",
	.observed = "request, request_event, tally, the history",
	.needs = NEEDS_CLUSTER,
	.deadline_ms = 40000,
	.run = run,
};
