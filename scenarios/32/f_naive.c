/*
 * 32-F  the same requests through the facts and through a naive count
 *
 * Claim      Reading the old state under a lock, comparing, and only then deciding the delta makes a repeated request
 *            harmless. Adding or subtracting by the direction of the request does not, in a transaction or not.
 * Method     One list of 400 requests on 4 items, drawn from the seed, 136 of them sent twice as after a lost answer.
 *            8 threads send it, each pair owned by one of them, so what must come out is computed from the list. One
 *            like more is sent twice at once, both sendings seen waiting for the row (manual 54.12). Then the same list through setNaive, which keeps counts of its own over the same facts. Last, each cause
 *            of the drift by itself, with a single pair.
 * Expect     Through the facts: every second sending NOOP, also of the two at once; counts equal facts. Naive: drift, required, item by item.
 * Not shown  The numbers are those of this list (L1, L7); counting in the request path with the facts read.
 */
#include <stdlib.h>

#include "lab.h"

#define REQUESTS 400
#define SENT_TWICE 136
#define CALLS (REQUESTS + SENT_TWICE)
#define WORKERS 8
#define WAIT_MS 10000
#define USERS 40
#define ITEMS 4
#define SENT_TWICE_ITEM 5 /* for one cause each */
#define NEVER_LIKED_ITEM 6
#define SENT_AGAIN_ITEM 7
#define SENDINGS 2

typedef struct
{
	int64_t user, item;
	bool want, twice;
} Request;

/* What a list must lead to, computed from it alone: a pair's requests are sent in order by the one thread that owns it. */
typedef struct
{
	int64_t changed;
	int64_t facts[ITEMS + 1], naive[ITEMS + 1]; /* by item, from 1 */
} Foreseen;

typedef struct
{
	Session *sessions[WORKERS];
	History *history;
	Request requests[REQUESTS];
	LikeTally tallies[WORKERS];
	int64_t second_noops[WORKERS], naive_calls[WORKERS];
	LikeTally sendings[SENDINGS]; /* of one like, at once */
} Clients;

static int
owner_of(const Request *request)
{
	return (int) (request->user % WORKERS);
}

static void
draw_requests(Request requests[REQUESTS], uint64_t seed)
{
	Rng rng = rng_stream(seed, 0);
	int64_t order[REQUESTS];

	for (int i = 0; i < REQUESTS; i++)
	{
		requests[i] = (Request){.user = 1 + (int64_t) rng_below(&rng, USERS),
								.item = 1 + (int64_t) rng_below(&rng, ITEMS),
								.want = rng_below(&rng, 2) == 1};
		order[i] = i;
	}
	rng_shuffle(&rng, order, REQUESTS);
	for (int i = 0; i < SENT_TWICE; i++)
	{
		requests[order[i]].twice = true;
	}
}

static Foreseen
foresee(const Request requests[REQUESTS])
{
	Foreseen foreseen = {0};
	bool liked[USERS + 1][ITEMS + 1] = {{false}};

	for (int i = 0; i < REQUESTS; i++)
	{
		const Request *request = &requests[i];
		bool *now = &liked[request->user][request->item];
		int64_t direction = request->want ? 1 : -1;

		if (*now != request->want)
		{
			*now = request->want;
			foreseen.changed++;
			foreseen.facts[request->item] += direction;
		}
		foreseen.naive[request->item] += direction * (request->twice ? 2 : 1);
	}
	return foreseen;
}


/* --- through the facts --- */

static bool
send_through_facts(int worker, void *context)
{
	Clients *clients = context;

	for (int i = 0; i < REQUESTS; i++)
	{
		const Request *request = &clients->requests[i];
		LikeResult result;

		if (owner_of(request) != worker)
		{
			continue;
		}
		for (int sending = 0; sending < (request->twice ? 2 : 1); sending++)
		{
			if (!recorded_set(clients->history, worker, clients->sessions[worker], request->user, request->item,
							  request->want, &result))
			{
				return false;
			}
			tally_add(&clients->tallies[worker], &result);
			clients->second_noops[worker] += sending == 1 && result.outcome == LIKE_NOOP;
		}
	}
	return true;
}

static void
through_facts(Scene *scene, Session *lab, Clients *clients, const Foreseen *foreseen)
{
	LikeTally sum = {0};
	int64_t second_noops = 0;

	step(scene, "%d requests, %d of them sent twice, through the facts", REQUESTS, SENT_TWICE);
	run_workers(scene, "clients", WORKERS, send_through_facts, clients);
	for (int i = 0; i < WORKERS; i++)
	{
		tally_merge(&sum, &clients->tallies[i]);
		second_noops += clients->second_noops[i];
	}
	note(scene, "facts: calls=%lld CHANGED=%lld NOOP=%lld", (long long) sum.requests, (long long) sum.changed,
		 (long long) sum.noop);
	check_tally(scene, &sum, CALLS);
	CHECK_EQ(scene, sum.changed + sum.noop, CALLS, "CHANGED + NOOP");
	CHECK_EQ(scene, second_noops, SENT_TWICE, "second sendings that were NOOP");
	CHECK_EQ(scene, sum.changed, foreseen->changed, "CHANGED, as the list foretells");
	CHECK_EQ(scene, last_number(scene, lab), sum.changed, "events = CHANGED");
	judge_history(scene, "the recorded requests");
	check_audits_clean(scene, lab, "before consuming");
	(void) drain(scene, lab);
	check_drained(scene, lab, "drained");
	for (int64_t item = 1; item <= ITEMS; item++)
	{
		CHECK_EQ(scene, read_count(scene, lab, item, 0).n, foreseen->facts[item],
				 "count of item-lab-%02lld, as the list foretells", (long long) item);
	}
}

static bool
send_impatiently(int worker, void *context)
{
	Clients *clients = context;
	LikeResult result;

	if (!steps()->set(clients->sessions[worker], 1, SENT_AGAIN_ITEM, true, &result))
	{
		return false;
	}
	tally_add(&clients->sendings[worker], &result);
	return true;
}

/* Both sendings are under way and neither has got the row: what they have read by now is about to end. */
static void
sent_again_meanwhile(Scene *scene, Session *lab, Clients *clients)
{
	LikeTally sum = {0};
	ActorGroup *group;

	step(scene, "a like is sent again before its first sending is answered; both wait for the row");
	(void) set_like(scene, lab, 1, SENT_AGAIN_ITEM, true);
	(void) set_like(scene, lab, 1, SENT_AGAIN_ITEM, false);
	require(scene, session_begin(lab, READ_COMMITTED));
	require(scene, session_query(lab, NULL, "SELECT FROM like_fact WHERE item_id = $1 FOR UPDATE",
								 ARGS(arg_int(SENT_AGAIN_ITEM))));
	group = actor_start("impatient client", SENDINGS, send_impatiently, clients);
	require(scene, group != NULL);
	actor_open_gate(group);
	for (int i = 0; i < SENDINGS; i++)
	{
		scene_await_blocked(scene, lab, session_backend_pid(clients->sessions[i]));
	}
	session_rollback(lab);
	require(scene, actor_join(group, scene_deadline(scene, WAIT_MS)));
	for (int i = 0; i < SENDINGS; i++)
	{
		tally_merge(&sum, &clients->sendings[i]);
	}
	check_tally(scene, &sum, SENDINGS);
	CHECK_EQ(scene, sum.changed, 1, "sendings that changed something, of one like sent twice at once");
	(void) drain(scene, lab);
	CHECK_EQ(scene, read_count(scene, lab, SENT_AGAIN_ITEM, 0).n, 1, "count of one like sent twice at once");
}


/* --- through setNaive --- */

static bool
set_naive(Session *session, int64_t user, int64_t item, bool want)
{
	return session_query(session, NULL, "SELECT like_set_naive($1, $2, $3)",
						 ARGS(arg_int(user), arg_int(item), arg_bool(want)));
}

static bool
send_naively(int worker, void *context)
{
	Clients *clients = context;

	for (int i = 0; i < REQUESTS; i++)
	{
		const Request *request = &clients->requests[i];

		if (owner_of(request) != worker)
		{
			continue;
		}
		for (int sending = 0; sending < (request->twice ? 2 : 1); sending++)
		{
			if (!set_naive(clients->sessions[worker], request->user, request->item, request->want))
			{
				return false;
			}
			clients->naive_calls[worker]++;
		}
	}
	return true;
}

static int64_t
naive_count_of(Scene *scene, Session *lab, int64_t item)
{
	return number_of(scene, lab, "SELECT coalesce(max(n), 0) FROM like_naive_count WHERE item_id = $1",
					 ARGS(arg_int(item)));
}

static void
through_naive(Scene *scene, Session *lab, Clients *clients, const Foreseen *foreseen)
{
	int64_t calls = 0, drifted = 0, distance = 0, lost = 0, naive[ITEMS + 1], facts[ITEMS + 1];
	char label[LABEL_SIZE];

	step(scene, "the same list through setNaive");
	run_workers(scene, "naive clients", WORKERS, send_naively, clients);
	for (int i = 0; i < WORKERS; i++)
	{
		calls += clients->naive_calls[i];
	}
	CHECK_EQ(scene, calls, CALLS, "naive calls, each of them committed");
	for (int64_t item = 1; item <= ITEMS; item++)
	{
		naive[item] = naive_count_of(scene, lab, item);
		facts[item] = facts_of(scene, lab, item);
		drifted += naive[item] != facts[item];
		distance += llabs((long long) (naive[item] - facts[item]));
		lost += naive[item] != foreseen->naive[item];
	}
	note(scene, "naive: items with drift=%lld of %d, sum abs(naive-facts)=%lld", (long long) drifted, ITEMS,
		 (long long) distance);
	for (int64_t item = 1; item <= ITEMS; item++)
	{
		item_label(item, label);
		note(scene, "  %s naive=%lld facts=%lld", label, (long long) naive[item], (long long) facts[item]);
	}
	check_at_least(scene, drifted, 1, "items whose naive count drifted: required");
	CHECK_EQ(scene, lost, 0, "naive counts that are not the sum of the directions sent: no addition was lost");
}

static void
each_cause_alone(Scene *scene, Session *lab)
{
	step(scene, "cause 1: a second sending counts twice");
	(void) set_like(scene, lab, 1, SENT_TWICE_ITEM, true);
	(void) set_like(scene, lab, 1, SENT_TWICE_ITEM, true);
	require(scene, set_naive(lab, 1, SENT_TWICE_ITEM, true));
	require(scene, set_naive(lab, 1, SENT_TWICE_ITEM, true));
	CHECK_EQ(scene, facts_of(scene, lab, SENT_TWICE_ITEM), 1, "facts after one like sent twice");
	CHECK_EQ(scene, naive_count_of(scene, lab, SENT_TWICE_ITEM), 2, "naive count after one like sent twice");

	step(scene, "cause 2: an unlike of a pair that was never liked goes below zero");
	(void) set_like(scene, lab, 1, NEVER_LIKED_ITEM, false);
	require(scene, set_naive(lab, 1, NEVER_LIKED_ITEM, false));
	CHECK_EQ(scene, facts_of(scene, lab, NEVER_LIKED_ITEM), 0, "facts after an unlike of nothing");
	CHECK_EQ(scene, naive_count_of(scene, lab, NEVER_LIKED_ITEM), -1, "naive count after an unlike of nothing");
	(void) drain(scene, lab);
	CHECK_EQ(scene, read_count(scene, lab, SENT_TWICE_ITEM, 0).n, 1, "count through the facts, like sent twice");
	CHECK_EQ(scene, read_count(scene, lab, NEVER_LIKED_ITEM, 0).n, 0, "count through the facts, unlike of nothing");
}

static void
run(Scene *scene)
{
	Session *lab = like_lab(scene, SENT_AGAIN_ITEM);
	Clients *clients = memory_get(sizeof(*clients)); /* not on the stack: workers may outlive a case that ends early */
	Foreseen foreseen;

	require(scene, session_execute_file(lab, scene_sql(scene, "like/naive_set.sql")));
	clients->history = scene_history(scene);
	for (int i = 0; i < WORKERS; i++)
	{
		clients->sessions[i] = like_client(scene, "client");
	}
	draw_requests(clients->requests, scene_seed(scene));
	foreseen = foresee(clients->requests);
	through_facts(scene, lab, clients, &foreseen);
	sent_again_meanwhile(scene, lab, clients);
	through_naive(scene, lab, clients, &foreseen);
	free(clients);
	each_cause_alone(scene, lab);
}

const Scenario scenario_32_f = {
	.suite = "32",
	.id = "32-F",
	.title = "the same requests through the facts and through a naive count",
	.claim = "a repeated request is absorbed by read, compare, decide; adding by direction drifts",
	.kind = "real component, real threads, fixed interleaving, negative control",
	.guarantee = "second sendings are NOOP and counts equal facts; the naive count must drift",
	.observed = "the clients' answers, like_count, like_naive_count, the judged history",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
