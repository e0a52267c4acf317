/*
 * Measurements side by side, each against a yardstick of the same machine in the same run; medians of alternating
 * pairs. The machine is shared and noisy: the ratios count, the absolute numbers do not.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "actor.h"
#include "like.h"
#include "proxy.h"
#include "reaper.h"
#include "rng.h"
#include "session.h"

#define COMMAND_MS 180000
#define SERVER_MS 30000
#define CLIENTS_MAX 64

#define TRACE_PAIRS 15

#define LIKE_PAIRS 7
#define LIKE_SECONDS 3
#define LIKE_USERS 100000
#define LIKE_ITEMS 6

#define DRAIN_PAIRS 7
#define DRAIN_EVENTS 200000
#define DRAIN_ITEMS_MAX 1000

#define PROXY_PAIRS 15
#define PROXY_TRIPS 2000 /* each way, of each pair */
#define PROXY_BAR_US 50


static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *) a;
	double y = *(const double *) b;

	return (x > y) - (x < y);
}

double
bench_median(const double *values, int count)
{
	double *sorted = memory_get((size_t) count * sizeof(double));
	double median;

	memcpy(sorted, values, (size_t) count * sizeof(double));
	qsort(sorted, (size_t) count, sizeof(double), compare_doubles);
	median = count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
	free(sorted);
	return median;
}

double
bench_seconds_since(int64_t begin_ns)
{
	return (double) (time_now_ns() - begin_ns) / 1e9;
}

bool
bench_run_command(const char *const *argv, const char *directory, const Account *account, Text *output)
{
	ProcessSpec spec = {.argv = argv, .directory = directory, .account = account};
	ProcessEnd end;
	Text seen = {0};
	bool done = process_run(&spec, deadline_in_ms(COMMAND_MS), output != NULL ? output : &seen, &end) &&
				end.how == ENDED_EXIT && end.code == 0;

	if (!done)
	{
		report_error("%s failed: %s", argv[0], text_get(output != NULL ? output : &seen));
	}
	text_free(&seen);
	return done;
}


/* --- suite --- */

static bool
make_floor_folder(const Bench *bench, char *path, size_t size)
{
	snprintf(path, size, "%s/cpb-XXXXXX", bench->kit.scratch);
	if (mkdtemp(path) == NULL || (bench->kit.drops && chown(path, bench->kit.account.uid, bench->kit.account.gid) != 0))
	{
		report_error("cannot make a folder below %s", bench->kit.scratch);
		return false;
	}
	return true;
}

/* initdb, start, restart -m immediate, stop: what any run over a real server has to pay without a cache. */
static bool
measure_floor(const Bench *bench, double *seconds)
{
	char folder[600];
	char initdb[600];
	char pg_ctl[600];
	char data[640];
	char log[640];
	char options[700];
	const Account *account = bench->kit.drops ? &bench->kit.account : NULL;
	const char *const remove[] = {"/bin/rm", "-rf", folder, NULL};
	bool done;
	int64_t begin;

	if (!make_floor_folder(bench, folder, sizeof(folder)))
	{
		return false;
	}
	snprintf(initdb, sizeof(initdb), "%s/initdb", bench->kit.bindir);
	snprintf(pg_ctl, sizeof(pg_ctl), "%s/pg_ctl", bench->kit.bindir);
	snprintf(data, sizeof(data), "%s/data", folder);
	snprintf(log, sizeof(log), "%s/log", folder);
	snprintf(options, sizeof(options), "-c listen_addresses= -c unix_socket_directories=%s", folder);
	begin = time_now_ns();
	done = bench_run_command(
			   (const char *[]){initdb, "-D", data, "-A", "trust", "-U", "counterproof", "--no-locale", NULL}, folder,
			   account, NULL) &&
		   bench_run_command((const char *[]){pg_ctl, "-D", data, "-l", log, "-o", options, "-w", "start", NULL},
							 folder, account, NULL) &&
		   bench_run_command((const char *[]){pg_ctl, "-D", data, "-l", log, "-m", "immediate", "-w", "restart", NULL},
							 folder, account, NULL) &&
		   bench_run_command((const char *[]){pg_ctl, "-D", data, "-w", "stop", NULL}, folder, account, NULL);
	*seconds = bench_seconds_since(begin);
	return bench_run_command(remove, NULL, NULL, NULL) && done;
}

static bool
measure_run(const Bench *bench, const char *selection, const char *option, double *seconds)
{
	char *run = string_format("%s/run.sh", bench->home);
	int64_t begin = time_now_ns();
	bool done = bench_run_command((const char *[]){run, selection, "--evidence", bench->evidence, option, NULL}, NULL,
								  NULL, NULL);

	*seconds = bench_seconds_since(begin);
	free(run);
	return done;
}

static bool
bench_suite(const Bench *bench)
{
	double floors[PAIRS_MAX] = {0};
	double suite[PAIRS_MAX] = {0};
	double single[PAIRS_MAX] = {0};
	double floor_seconds;
	double suite_seconds;
	double single_seconds;

	for (int i = 0; i < bench->pairs; i++)
	{
		if (!measure_floor(bench, &floors[i]) || !measure_run(bench, "32", NULL, &suite[i]) ||
			!measure_run(bench, "32-B", NULL, &single[i]))
		{
			return false;
		}
	}
	floor_seconds = bench_median(floors, bench->pairs);
	suite_seconds = bench_median(suite, bench->pairs);
	single_seconds = bench_median(single, bench->pairs);
	bench_print_row("./run.sh 32 / floor", suite_seconds, floor_seconds, "s", suite_seconds / floor_seconds,
					"at most 3");
	bench_print_row("./run.sh 32-B / floor", single_seconds, floor_seconds, "s", single_seconds / floor_seconds,
					"at most 1.5");
	return true;
}


/* Which of a pair goes first alternates: the second finds warmer caches, or what the first has left to be written. */
static bool
bench_trace(const Bench *bench)
{
	double traced[TRACE_PAIRS];
	double plain[TRACE_PAIRS];
	double ratios[TRACE_PAIRS];

	for (int i = 0; i < TRACE_PAIRS; i++)
	{
		bool plain_first = i % 2 == 1;

		if ((plain_first && !measure_run(bench, "32", "--no-trace", &plain[i])) ||
			!measure_run(bench, "32", NULL, &traced[i]) ||
			(!plain_first && !measure_run(bench, "32", "--no-trace", &plain[i])))
		{
			return false;
		}
		ratios[i] = traced[i] / plain[i];
	}
	bench_print_row("./run.sh 32 / --no-trace", bench_median(traced, TRACE_PAIRS), bench_median(plain, TRACE_PAIRS),
					"s", bench_median(ratios, TRACE_PAIRS), "at most 1.05");
	return true;
}


/* --- memory --- */

/* VmHWM of the runner alone, in KiB; 0 when it is gone. */
static int64_t
peak_of(pid_t pid)
{
	char *path = string_format("/proc/%d/status", (int) pid);
	FILE *status = fopen(path, "re");
	char line[256];
	int64_t peak = 0;

	free(path);
	while (status != NULL && fgets(line, sizeof(line), status) != NULL)
	{
		if (strncmp(line, "VmHWM:", 6) == 0)
		{
			peak = strtoll(line + 6, NULL, 10);
		}
	}
	if (status != NULL)
	{
		fclose(status);
	}
	return peak;
}

typedef struct
{
	Process *process;
	int64_t peak_kib;
	ProcessEnd end;
} PeakWait;

static ProbeAnswer
probe_peak(void *context, Text *seen)
{
	PeakWait *wait = context;
	int64_t peak = peak_of(process_pid(wait->process));

	wait->peak_kib = peak > wait->peak_kib ? peak : wait->peak_kib;
	text_append(seen, "peak %" PRId64 " KiB", wait->peak_kib);
	/* a zombie has no VmHWM line any more: then it has ended */
	return wait->peak_kib > 0 && peak == 0 ? PROBE_DONE : PROBE_AGAIN;
}

bool
bench_peak_of(const char *const *argv, const char *output_file, double *peak_mib)
{
	ProcessSpec spec = {.argv = argv, .output_file = output_file};
	PeakWait wait = {.process = process_start(&spec)};
	bool done = wait.process != NULL && wait_until("the runner's end", deadline_in_ms(COMMAND_MS), probe_peak, &wait) &&
				process_wait(wait.process, deadline_in_ms(COMMAND_MS), &wait.end);

	*peak_mib = (double) wait.peak_kib / 1024;
	process_free(wait.process);
	return done;
}

static bool
bench_memory(const Bench *bench)
{
	char *program = string_format("%s/counterproof", bench->programs);
	const char *argv[] = {program, "32", "--repeat", "5", "--evidence", bench->evidence, NULL};
	double peak_mib;
	bool done = bench_peak_of(argv, "/dev/null", &peak_mib);

	if (done)
	{
		bench_print_row("runner's peak, 5 x suite 32", peak_mib, 64, "MiB", peak_mib / 64, "at most 1");
	}
	free(program);
	return done;
}


/* --- like --- */

typedef struct
{
	const char *conninfo;
	uint64_t seed;
	double rate[CLIENTS_MAX]; /* calls a second */
} LikeLoad;

static bool
like_client(int worker, void *context)
{
	LikeLoad *load = context;
	Rng rng = rng_stream(load->seed, (uint64_t) worker);
	Session *session = session_open(load->conninfo, "bench");
	bool done = session != NULL && like_prepare(session);
	int64_t begin = time_now_ns(); /* as pgbench: without the time to connect */
	int64_t end = begin + LIKE_SECONDS * INT64_C(1000000000);
	int64_t calls = 0;

	while (done && time_now_ns() < end)
	{
		int64_t user = 1 + (int64_t) rng_below(&rng, LIKE_USERS);
		int64_t item = 1 + (int64_t) rng_below(&rng, LIKE_ITEMS);
		LikeResult result;

		done = like_set(session, user, item, rng_below(&rng, 2) == 1, &result) &&
			   (result.outcome == LIKE_CHANGED || result.outcome == LIKE_NOOP);
		calls++;
	}
	load->rate[worker] = (double) calls / bench_seconds_since(begin);
	session_close(session);
	return done;
}

static bool
measure_like(const char *conninfo, int clients, uint64_t seed, double *rate)
{
	static LikeLoad load; /* outlives a measurement that ends early while its clients run */
	ActorGroup *group;

	load = (LikeLoad){.conninfo = conninfo, .seed = seed};
	group = actor_start("like", clients, like_client, &load);
	if (group == NULL)
	{
		return false;
	}
	actor_open_gate(group);
	if (!actor_join(group, deadline_in_ms(LIKE_SECONDS * 1000 + SERVER_MS)))
	{
		return false;
	}
	*rate = 0;
	for (int i = 0; i < clients; i++)
	{
		*rate += load.rate[i];
	}
	return true;
}

static bool
measure_pgbench(const Bench *bench, const char *conninfo, int clients, const char *script, double *rate)
{
	char *count = string_format("%d", clients);
	char *time = string_format("%d", LIKE_SECONDS);
	Text output = {0};
	const char *argv[] = {bench->pgbench, "-n", "-M", "prepared", "-c",   count,    "-j",
						  count,          "-T", time, "-f",       script, conninfo, NULL};
	const char *found;
	bool done = bench_run_command(argv, NULL, NULL, &output);

	found = strstr(text_get(&output), "tps = ");
	done = done && found != NULL;
	*rate = done ? strtod(found + 6, NULL) : 0;
	text_free(&output);
	free(count);
	free(time);
	return done;
}

static bool
make_like_database(const Bench *bench, const char *conninfo, int64_t items)
{
	Session *session = session_open(conninfo, "bench");
	char *sql = string_format("%s/sql/like", bench->home);
	bool done = session != NULL && like_create(session, sql);

	for (int64_t i = 1; done && i <= items; i++)
	{
		char label[32];

		snprintf(label, sizeof(label), "item-lab-%02" PRId64, i);
		done = like_add_item(session, i, label);
	}
	session_close(session);
	free(sql);
	return done;
}

static bool
bench_like_at(const Bench *bench, const char *conninfo, const char *script, int clients)
{
	double ours[LIKE_PAIRS] = {0};
	double theirs[LIKE_PAIRS] = {0};
	char what[64];

	for (int i = 0; i < LIKE_PAIRS; i++)
	{
		bool done = i % 2 == 0 ? measure_like(conninfo, clients, (uint64_t) i, &ours[i]) &&
									 measure_pgbench(bench, conninfo, clients, script, &theirs[i])
							   : measure_pgbench(bench, conninfo, clients, script, &theirs[i]) &&
									 measure_like(conninfo, clients, (uint64_t) i, &ours[i]);

		if (!done)
		{
			return false;
		}
	}
	snprintf(what, sizeof(what), "like(), %d client%s / pgbench", clients, clients > 1 ? "s" : "");
	bench_print_row(what, bench_median(ours, LIKE_PAIRS), bench_median(theirs, LIKE_PAIRS), "1/s",
					bench_median(ours, LIKE_PAIRS) / bench_median(theirs, LIKE_PAIRS), "at least 0.9");
	return true;
}

static bool
bench_like(const Bench *bench, Cluster *cluster)
{
	char script[] = "/tmp/cpb-script-XXXXXX";
	char *text = string_format("\\set user random(1, %d)\n\\set item random(1, %d)\n\\set want random(0, 1)\n%s\n",
							   LIKE_USERS, LIKE_ITEMS, "SELECT * FROM like_set(:user, :item, :want = 1);");
	char *conninfo = string_copy(cluster_conninfo(cluster, "postgres"));
	int fd = mkstemp(script);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text) &&
				make_like_database(bench, conninfo, LIKE_ITEMS) && bench_like_at(bench, conninfo, script, 1) &&
				bench_like_at(bench, conninfo, script, 8);

	if (fd >= 0)
	{
		close(fd);
		unlink(script);
	}
	free(text);
	free(conninfo);
	return done;
}


/* --- drain --- */

/* Facts and events of DRAIN_EVENTS first likes, as the write path would have left them. */
static const char *const fill_sql[] = {
	"TRUNCATE like_fact, like_outbox, processed_event",
	"INSERT INTO like_fact SELECT i, 1 + i % $1, true, 1 FROM generate_series(1, 200000) i",
	"INSERT INTO like_outbox SELECT user_id, user_id, item_id, 1, 1 FROM like_fact ORDER BY user_id",
	"UPDATE like_seq SET last = 200000",
	"VACUUM ANALYZE",
};

static const char reset_sql[] = "TRUNCATE processed_event; UPDATE counter_watermark SET applied_upto = 0;"
								"UPDATE like_count SET n = 0, base_seq = 0; CHECKPOINT;";

static bool
measure_bare(Session *session, double *seconds)
{
	int64_t begin;
	bool done = session_execute(session, reset_sql);

	begin = time_now_ns();
	done = done && session_execute(session, "INSERT INTO processed_event SELECT seq, 'APPLIED' FROM like_outbox");
	*seconds = bench_seconds_since(begin);
	return done;
}

static bool
measure_drain(Session *session, int64_t batch, double *seconds)
{
	LikeTotals totals = {0};
	LikeReadAudit result;
	int64_t begin;
	bool done = session_execute(session, reset_sql);

	begin = time_now_ns();
	done = done && like_drain(session, batch, &totals);
	*seconds = bench_seconds_since(begin);
	if (done && (totals.applied != DRAIN_EVENTS || !like_audit_read_side(session, &result) || result.lag != 0 ||
				 result.count_mismatch_items != 0))
	{
		report_error("the drain that was measured is wrong: applied %" PRId64, totals.applied);
		return false;
	}
	return done;
}

static bool
fill(Session *session, int items)
{
	for (size_t i = 0; i < LENGTH_OF(fill_sql); i++)
	{
		bool takes_items = strstr(fill_sql[i], "$1") != NULL;
		SqlArg count = arg_int(items);

		if (!session_query(session, NULL, fill_sql[i], takes_items ? &count : NULL, takes_items ? 1 : 0))
		{
			return false;
		}
	}
	return true;
}

/* Each batch adds to each item once: the more items, the more count rows a batch has to write. */
static bool
bench_drain_over(Session *session, int items, int64_t batch, const char *bar)
{
	double ours[DRAIN_PAIRS] = {0};
	double bare[DRAIN_PAIRS] = {0};
	double ratios[DRAIN_PAIRS];
	char what[64];
	bool done = true;

	for (int i = 0; done && i < DRAIN_PAIRS; i++)
	{
		done = i % 2 == 0 ? measure_drain(session, batch, &ours[i]) && measure_bare(session, &bare[i])
						  : measure_bare(session, &bare[i]) && measure_drain(session, batch, &ours[i]);
		ratios[i] = bare[i] / ours[i];
	}
	snprintf(what, sizeof(what), "drain by %" PRId64 ", %d items / bare", batch, items);
	if (done)
	{
		bench_print_row(what, DRAIN_EVENTS / bench_median(ours, DRAIN_PAIRS),
						DRAIN_EVENTS / bench_median(bare, DRAIN_PAIRS), "events/s", bench_median(ratios, DRAIN_PAIRS),
						bar);
	}
	return done;
}

static bool
bench_drain_items(Session *session, int items)
{
	return fill(session, items) && bench_drain_over(session, items, 1000, "") &&
		   bench_drain_over(session, items, 10000, "at least 0.4") &&
		   bench_drain_over(session, items, 50000, "at least 0.45");
}

static bool
bench_drain(const Bench *bench, Cluster *cluster)
{
	char *conninfo = string_copy(cluster_conninfo(cluster, "postgres"));
	Session *session = NULL;
	bool done = make_like_database(bench, conninfo, DRAIN_ITEMS_MAX);

	session = done ? session_open(conninfo, "bench") : NULL;
	done = session != NULL && bench_drain_items(session, 6) && bench_drain_items(session, DRAIN_ITEMS_MAX);
	session_close(session);
	free(conninfo);
	return done;
}


/* --- proxy --- */

typedef struct
{
	Proxy *proxy;
	int stop; /* readable when the measuring is over */
	const char *direct;
	const char *through;
	double direct_us[PROXY_PAIRS]; /* medians over the trips of a pair */
	double through_us[PROXY_PAIRS];
} ProxyLoad;

/* The median time of a statement that costs the server next to nothing. */
static bool
measure_trips(Session *session, double *median_us)
{
	double *trips = memory_get(PROXY_TRIPS * sizeof(double));
	bool done = true;

	for (int i = 0; done && i < PROXY_TRIPS; i++)
	{
		int64_t begin = time_now_ns();

		done = session_try_prepared(session, NULL, "one", NO_ARGS) == SQL_OK;
		trips[i] = (double) (time_now_ns() - begin) / 1e3;
	}
	qsort(trips, PROXY_TRIPS, sizeof(double), compare_doubles);
	*median_us = trips[PROXY_TRIPS / 2];
	free(trips);
	return done;
}

static bool
measure_both_ways(ProxyLoad *load)
{
	Session *direct = session_open(load->direct, "direct");
	Session *through = session_open(load->through, "through");
	bool done = direct != NULL && through != NULL && session_prepare(direct, "one", "SELECT 1") &&
				session_prepare(through, "one", "SELECT 1");

	for (int i = 0; done && i < PROXY_PAIRS; i++)
	{
		done = i % 2 == 0 ? measure_trips(direct, &load->direct_us[i]) && measure_trips(through, &load->through_us[i])
						  : measure_trips(through, &load->through_us[i]) && measure_trips(direct, &load->direct_us[i]);
	}
	session_close(direct);
	session_close(through);
	return done;
}

/* Worker 0 serves, worker 1 measures. */
static bool
proxy_worker(int worker, void *context)
{
	ProxyLoad *load = context;
	uint64_t one = 1;
	int which;
	bool done;

	if (worker == 0)
	{
		return proxy_serve(load->proxy, &load->stop, 1, deadline_in_ms(COMMAND_MS), &which) == PROXY_WATCHED;
	}
	done = measure_both_ways(load);
	return write(load->stop, &one, sizeof(one)) == sizeof(one) && done;
}

static bool
run_proxy(ProxyLoad *load)
{
	ActorGroup *group = actor_start("proxy", 2, proxy_worker, load);
	double more_us[PROXY_PAIRS];

	if (group == NULL)
	{
		return false;
	}
	actor_open_gate(group);
	if (!actor_join(group, deadline_in_ms(COMMAND_MS)))
	{
		return false;
	}
	for (int i = 0; i < PROXY_PAIRS; i++)
	{
		more_us[i] = load->through_us[i] - load->direct_us[i];
	}
	bench_print_row("round trip by the proxy - directly", bench_median(more_us, PROXY_PAIRS), PROXY_BAR_US, "us",
					bench_median(more_us, PROXY_PAIRS) / PROXY_BAR_US, "at most 1");
	return true;
}

static bool
bench_proxy(const Bench *bench, Cluster *cluster)
{
	static ProxyLoad load; /* outlives a measurement that ends early while its workers run */
	char folder[600];
	char *upstream = string_format("%s/.s.PGSQL.%d", cluster_directory(cluster), CLUSTER_PORT);
	ProxyConfig config = {.upstream = upstream, .directory = folder, .port = CLUSTER_PORT};
	char *direct = string_copy(cluster_conninfo(cluster, "postgres"));
	char *through = NULL;
	bool done;

	load = (ProxyLoad){.direct = direct, .stop = eventfd(0, EFD_CLOEXEC)};
	done = load.stop >= 0 && make_floor_folder(bench, folder, sizeof(folder)) &&
		   (load.proxy = proxy_open(&config)) != NULL;
	if (done)
	{
		through = string_format("%s host='%s'", direct, folder); /* the last of two hosts counts */
		load.through = through;
		done = run_proxy(&load);
		if (done) /* else it may still be served */
		{
			proxy_free(load.proxy);
		}
		done = bench_run_command((const char *[]){"/bin/rm", "-rf", folder, NULL}, NULL, NULL, NULL) && done;
	}
	close(load.stop);
	free(upstream);
	free(direct);
	free(through);
	return done;
}


/* --- all --- */

/* What can be measured. It gets a server of its own, whose directory lies in memory if it takes that much, or none. */
static const struct Part
{
	const char *name;
	const char *what;
	bool (*alone)(const Bench *);
	bool (*with_server)(const Bench *, Cluster *);
	int64_t memory_bytes;
} PARTS[] = {
	{"suite",
	 "./run.sh 32 and ./run.sh 32-B against the floor: initdb, start, restart -m immediate, stop, one after another",
	 bench_suite, NULL, 0},
	{"trace", "./run.sh 32 with a trace, which is how it runs, and without", bench_trace, NULL, 0},
	{"memory", "the runner's own peak resident memory", bench_memory, NULL, 0},
	{"like", "like_set() at 1 and 8 clients against pgbench running the same prepared statement", NULL, bench_like, 0},
	{"drain", "the consumer over 200,000 events in batches against a bare INSERT .. SELECT of the same rows", NULL,
	 bench_drain, 0},
	{"proxy", "what a round trip costs more by way of the proxy than directly, over a unix socket", NULL, bench_proxy,
	 0},
	{"crashpoints", "a run of a point against the program alone; two jobs against one", bench_crashpoints, NULL, 0},
	{"isolation", "three ways to keep a rule over several rows, beside each other", NULL, bench_isolation, 0},
	{"counters", "counts of another schema: check against the plain query that counts and joins", NULL, bench_counters,
	 0},
	{"spec", "the scenario language against PostgreSQL's isolationtester", NULL, bench_spec, (int64_t) 1 << 30},
	{"clocks",
	 "vector clocks against 100 ns, against a quarter of their entries, and against memcmp over as many bytes",
	 bench_clocks, NULL, 0},
	{"reads", "readCount by history and by lag", NULL, bench_reads, 0},
	{"rebuild", "the rebuild for many items against the plain count of all facts, and how it grows", NULL,
	 bench_rebuild, 0},
	{"write", "what a like costs by each way to keep its count, beside the bare insert of its rows", NULL, bench_write,
	 0},
};

static bool
measure(const Bench *bench, const struct Part *part)
{
	Bench own = *bench;
	Cluster *cluster;
	bool done;

	if (part->alone != NULL)
	{
		return part->alone(bench);
	}
	if (part->memory_bytes > 0)
	{
		server_kit_prefer_memory(&own.kit, part->memory_bytes);
	}
	cluster = cluster_create(&own.kit, "bench");
	done = cluster != NULL && cluster_start(cluster, deadline_in_ms(SERVER_MS)) && part->with_server(&own, cluster);
	return cluster_free(cluster) && done;
}

static bool
wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
	{
		if (strcmp(argv[i], name) == 0)
		{
			return true;
		}
	}
	return argc == 1;
}

/* A word that names none of them must not pass for a measurement. */
static bool
words_known(int argc, char **argv)
{
	const char *known[LENGTH_OF(PARTS) + 1] = {NULL};

	for (size_t i = 0; i < LENGTH_OF(PARTS); i++)
	{
		known[i] = PARTS[i].name;
	}
	for (int i = 1; i < argc; i++)
	{
		bool found = false;

		for (size_t k = 0; known[k] != NULL; k++)
		{
			found = found || strcmp(argv[i], known[k]) == 0;
		}
		if (!found)
		{
			report_error("nothing to measure is named \"%s\"; the nearest is \"%s\"", argv[i],
						 string_nearest(argv[i], known));
			return false;
		}
	}
	return true;
}

/* A case for each part that is wanted. */
static bool
open_record(const Bench *bench, int argc, char **argv)
{
	const char *root = getenv("COUNTERPROOF_EVIDENCE");
	char *own = string_format("%s/evidence", bench->home);
	BenchTitle titles[LENGTH_OF(PARTS)];
	Text replay = {0};
	int count = 0;
	bool done;

	text_append(&replay, "./run.sh bench");
	for (int i = 1; i < argc; i++)
	{
		text_append(&replay, " %s", argv[i]);
	}
	for (size_t i = 0; i < LENGTH_OF(PARTS); i++)
	{
		if (wanted(argc, argv, PARTS[i].name))
		{
			titles[count++] = (BenchTitle){PARTS[i].name, PARTS[i].what};
		}
	}
	done = record_open(root != NULL ? root : own, titles, count, text_get(&replay));
	text_free(&replay);
	free(own);
	return done;
}

static bool
measure_all(const Bench *bench, int argc, char **argv)
{
	bool done = true;
	int part = 0;

	printf("%-38s %12s %12s %-10s %8s   %s\n", "what", "value", "yardstick", "unit", "ratio", "bar");
	for (size_t i = 0; done && i < LENGTH_OF(PARTS); i++)
	{
		if (wanted(argc, argv, PARTS[i].name))
		{
			record_begin(part++);
			done = measure(bench, &PARTS[i]);
			record_end(done);
		}
	}
	return done;
}

static ExitCode
bench_all(Bench *bench, int argc, char **argv)
{
	char evidence[] = "/tmp/cpb-evidence-XXXXXX"; /* of runs that are measured */
	bool done = mkdtemp(evidence) != NULL;
	bool missed = false;

	bench->evidence = evidence;
	done = done && open_record(bench, argc, argv);
	if (done)
	{
		done = measure_all(bench, argc, argv);
		done = record_close(&missed) && done;
	}
	done = bench_run_command((const char *[]){"/bin/rm", "-rf", evidence, NULL}, NULL, NULL, NULL) && done;
	return !done ? EXIT_CODE_BROKEN : missed ? EXIT_CODE_FAIL : EXIT_CODE_PASS;
}

static void
say_usage(void)
{
	Text text = {0};

	text_append(&text, "start through ./run.sh bench");
	for (size_t i = 0; i < LENGTH_OF(PARTS); i++)
	{
		text_append(&text, " [%s]", PARTS[i].name);
	}
	report_error("%s", text_get(&text));
	text_free(&text);
}

int
main(int argc, char **argv)
{
	const char *bindir = getenv("COUNTERPROOF_PG_BIN");
	Bench bench = {.home = getenv("COUNTERPROOF_HOME"),
				   .programs = getenv("COUNTERPROOF_PROGRAMS"),
				   .pgbench = getenv("COUNTERPROOF_PGBENCH"),
				   .pairs = 7};
	ExitCode code;

	if (bindir == NULL || bench.home == NULL || bench.programs == NULL || bench.pgbench == NULL)
	{
		say_usage();
		return EXIT_CODE_USAGE;
	}
	if (!words_known(argc, argv))
	{
		return EXIT_CODE_USAGE;
	}
	if (!process_adopt_orphans() || !reaper_start() || !server_kit_find(&bench.kit, bindir, 16))
	{
		return EXIT_CODE_BROKEN;
	}
	code = bench_all(&bench, argc, argv);
	reaper_dismiss();
	return code;
}
