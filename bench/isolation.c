/*
 * What three ways to keep one rule cost: somebody of a table of doctors is on call, whoever changes duty meanwhile
 * (sql/oncall/decide.sql). Serializable pays with retries, locking all rows and a count row with waits. No way is the fastest
 * everywhere; which one is, is printed, and held against no bar.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "rng.h"
#include "session.h"

#define WAYS 3
#define ROUNDS 3
#define ROUND_MS 500
#define CLIENTS_MAX 8
#define SAMPLE_US 2000
#define END_MS 30000

typedef struct
{
	const char *name;
	const char *sql;
	bool serializable;
} Way;

static const Way ways[WAYS] = {
	{"Serializable", "SELECT decide_serializable($1)", true},
	{"all rows locked", "SELECT decide_all_rows($1)", false},
	{"count row", "SELECT decide_count_row($1)", false},
};

/* One round. Of its workers the last one looks how many of the others wait. */
typedef struct
{
	const char *conninfo;
	const Way *way;
	int rows, clients;
	uint64_t seed;
	int64_t decided[CLIENTS_MAX], retried[CLIENTS_MAX];
	double waiting; /* clients that wait for a lock, at the mean */
} Load;

typedef struct
{
	double rate;    /* decisions a second */
	double waiting; /* clients at the mean */
	double retries; /* for a hundred decisions */
} Cost;


/* --- a round --- */

/* One attempt. *decided: it is stored; if not, it was refused, and is to be made again. */
static bool
decide(Session *session, int64_t doctor, bool *decided)
{
	SqlStatus status = session_try_prepared(session, NULL, "decide", ARGS(arg_int(doctor)));
	bool refused = status == SQL_ERROR && strcmp(session_error(session)->sqlstate, "40001") == 0;

	*decided = status == SQL_OK;
	if (status != SQL_OK && !refused)
	{
		report_error("a decision failed: %s %s", session_error(session)->sqlstate, session_error(session)->message);
	}
	return status == SQL_OK || refused;
}

static bool
work(Load *load, int worker, Session *session, int64_t end_ns)
{
	Rng rng = rng_stream(load->seed, (uint64_t) worker);
	bool done = session_prepare(session, "decide", load->way->sql);
	bool decided = true;
	int64_t doctor = 0;

	if (load->way->serializable)
	{
		done = done && session_execute(session, "SET default_transaction_isolation = serializable");
	}
	while (done && time_now_ns() < end_ns)
	{
		doctor = decided ? 1 + (int64_t) rng_below(&rng, (uint64_t) load->rows) : doctor;
		done = decide(session, doctor, &decided);
		*(decided ? &load->decided[worker] : &load->retried[worker]) += 1;
	}
	return done;
}

static bool
watch(Load *load, Session *session, int64_t end_ns)
{
	int64_t waiting = 0;
	int64_t all = 0;
	int64_t samples = 0;
	bool done = true;

	while (done && time_now_ns() < end_ns)
	{
		done = session_query_int(session, &waiting,
								 "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", NO_ARGS);
		all += waiting;
		samples++;
		backoff_us(SAMPLE_US);
	}
	load->waiting = samples > 0 ? (double) all / (double) samples : 0;
	return done;
}

static bool
run_worker(int worker, void *context)
{
	Load *load = context;
	Session *session = session_open(load->conninfo, "bench");
	int64_t end_ns = time_now_ns() + ROUND_MS * INT64_C(1000000);
	bool done = session != NULL &&
				(worker < load->clients ? work(load, worker, session, end_ns) : watch(load, session, end_ns));

	session_close(session);
	return done;
}

/* Half of the doctors are on call; of two, both. */
static bool
fill(Session *session, int rows)
{
	return session_execute(session, "TRUNCATE doctor, on_call_count") &&
		   session_query(session, NULL,
						 "INSERT INTO doctor (id, on_call) SELECT n, n % 2 = 1 OR $1 = 2 FROM generate_series(1, $1) n",
						 ARGS(arg_int(rows))) &&
		   session_execute(session,
						   "INSERT INTO on_call_count (n) SELECT count(*) FROM doctor WHERE on_call; ANALYZE doctor");
}

/* What was measured has to have kept the rule. */
static bool
check_rule(Session *session, const Way *way)
{
	int64_t on_call;
	int64_t counted;

	if (!session_query_int(session, &on_call, "SELECT count(*) FROM doctor WHERE on_call", NO_ARGS) ||
		!session_query_int(session, &counted, "SELECT n FROM on_call_count", NO_ARGS))
	{
		return false;
	}
	if (on_call < 1 || (way == &ways[WAYS - 1] && counted != on_call))
	{
		report_error("%s has not kept the rule: %" PRId64 " on call, %" PRId64 " counted", way->name, on_call, counted);
		return false;
	}
	return true;
}

static bool
run_round(Session *session, Load *load, Cost *cost)
{
	ActorGroup *group;
	int64_t decided = 0;
	int64_t retried = 0;

	if (!fill(session, load->rows) || (group = actor_start("isolation", load->clients + 1, run_worker, load)) == NULL)
	{
		return false;
	}
	actor_open_gate(group);
	if (!actor_join(group, deadline_in_ms(ROUND_MS + END_MS)) || !check_rule(session, load->way))
	{
		return false;
	}
	for (int i = 0; i < load->clients; i++)
	{
		decided += load->decided[i];
		retried += load->retried[i];
	}
	*cost = (Cost){.rate = (double) decided * 1000 / ROUND_MS,
				   .waiting = load->waiting,
				   .retries = decided > 0 ? 100 * (double) retried / (double) decided : 0};
	return true;
}


/* --- the table --- */

static Cost
median_cost(const Cost *costs)
{
	double rate[ROUNDS];
	double waiting[ROUNDS];
	double retries[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
	{
		rate[i] = costs[i].rate;
		waiting[i] = costs[i].waiting;
		retries[i] = costs[i].retries;
	}
	return (Cost){.rate = bench_median(rate, ROUNDS),
				  .waiting = bench_median(waiting, ROUNDS),
				  .retries = bench_median(retries, ROUNDS)};
}

static void
print_costs(int rows, int clients, const Cost *costs)
{
	int fastest = 0;
	Text row = {0};

	text_append(&row, "%6d %8d", rows, clients);
	for (int i = 0; i < WAYS; i++)
	{
		text_append(&row, "  %7.0f %5.2f %6.1f", costs[i].rate, costs[i].waiting, costs[i].retries);
		fastest = costs[i].rate > costs[fastest].rate ? i : fastest;
	}
	bench_say("%s   %s", text_get(&row), ways[fastest].name);
	text_free(&row);
}

/* The ways take turns, so that each meets the same states of the machine. */
static bool
measure_ways(Session *session, const char *conninfo, int rows, int clients)
{
	static Load load; /* outlives a round that ends early while its workers run */
	Cost rounds[WAYS][ROUNDS];
	Cost costs[WAYS];

	for (int i = 0; i < ROUNDS * WAYS; i++)
	{
		load = (Load){
			.conninfo = conninfo, .way = &ways[i % WAYS], .rows = rows, .clients = clients, .seed = (uint64_t) i};
		if (!run_round(session, &load, &rounds[i % WAYS][i / WAYS]))
		{
			return false;
		}
	}
	for (int i = 0; i < WAYS; i++)
	{
		costs[i] = median_cost(rounds[i]);
	}
	print_costs(rows, clients, costs);
	return true;
}

static bool
make_database(const Bench *bench, Session *session)
{
	char *schema = string_format("%s/sql/oncall/schema.sql", bench->home);
	char *decide_sql = string_format("%s/sql/oncall/decide.sql", bench->home);
	bool done = session_execute_file(session, schema) && session_execute_file(session, decide_sql);

	free(schema);
	free(decide_sql);
	return done;
}

static void
print_heads(void)
{
	Text names = {0}, units = {0};

	for (int i = 0; i < WAYS; i++)
	{
		text_append(&names, "  %-20s", ways[i].name);
		text_append(&units, "  %7s %5s %6s", "1/s", "wait", "retry%");
	}
	bench_say("decisions a second, how many clients wait for a lock at the mean, retries for a hundred decisions");
	bench_say("%6s %8s%s   fastest", "rows", "clients", text_get(&names));
	bench_say("%15s%s", "", text_get(&units));
	text_free(&names);
	text_free(&units);
}

bool
bench_isolation(const Bench *bench, Cluster *cluster)
{
	static const int rows[] = {2, 1000};
	static const int clients[] = {1, 2, CLIENTS_MAX};
	char *conninfo = string_copy(cluster_conninfo(cluster, "postgres"));
	Session *session = session_open(conninfo, "bench");
	bool done = session != NULL && make_database(bench, session);

	print_heads();
	for (size_t i = 0; done && i < LENGTH_OF(rows) * LENGTH_OF(clients); i++)
	{
		done = measure_ways(session, conninfo, rows[i / LENGTH_OF(clients)], clients[i % LENGTH_OF(clients)]);
	}
	session_close(session);
	free(conninfo);
	return done;
}
