/*
 * The write path: what a like costs by each way to keep its count, from the bare insert of its rows, which is the limit, to the
 * designs of the like system with and without all that runs beside them.
 *
 * pgbench is the load, one SQL call a like, each the first like of its pair. Each way has a database of its own and they take turns,
 * in one order and the other. A call is one round trip, so that a network's delay lies between calls and in no lock: a pause of as
 * long has its effect. Where a like is several statements it lies inside the transaction, and so does the pause.
 *
 * COUNTERPROOF_BENCH_ROUNDS is how often each cell is measured (default 3); the table has medians, the rows under it medians
 * of the ratios in each round.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actor.h"
#include "bench.h"
#include "design.h"

#define ROUNDS_MAX PAIRS_MAX
#define ROUNDS 3
#define SECONDS 1
#define ITEMS 1000
#define END_MS 60000
#define BATCH 10000
#define RECOUNT_EVERY_MS 500
#define LAG_BAR_S 2 /* what is written in so long may be unprocessed when the writers stop */
#define SAMPLE_MS 5
#define FOLDER_TEMPLATE "/tmp/cpb-write-XXXXXX"

typedef enum
{
	ALONE,
	CONSUMED, /* what is written is numbered, if it has to be, and consumed meanwhile */
	RECOUNTED /* and counted anew each RECOUNT_EVERY_MS */
} Company;

typedef struct
{
	const char *name;
	const char *design; /* NULL: the default */
	const char *file;   /* below sql/like, loaded over it; NULL: none */
	const char *call;   /* a line of a pgbench script each; PAUSE is where a network would delay it */
	Company company;
} Way;

#define PAUSE "PAUSE\n"
#define FIRST_LIKE "INSERT INTO like_fact (user_id, item_id, liked, version) VALUES (:user, :item, true, 1)"

static const Way ways[] = {
	{"bare fact", NULL, NULL, FIRST_LIKE ";\n" PAUSE, ALONE},
	{"bare fact and event", "sequencer", NULL,
	 "WITH fact AS (" FIRST_LIKE ") INSERT INTO like_unnumbered (user_id, item_id, delta, version) "
	 "VALUES (:user, :item, 1, 1);\n" PAUSE,
	 ALONE},
	{"A direct", NULL, "naive_set.sql", "SELECT like_set_naive(:user, :item, true);\n" PAUSE, ALONE},
	{"B with the fact", NULL, "methods/counted_set.sql", "SELECT like_set_counted(:user, :item, true);\n" PAUSE, ALONE},
	{"B in four statements", NULL, "methods/counted_set.sql",
	 "BEGIN;\n" PAUSE FIRST_LIKE ";\n" PAUSE "UPDATE like_counted SET n = n + 1 WHERE item_id = :item;\n" PAUSE
	 "COMMIT;\n" PAUSE,
	 ALONE},
	{"D recounted", NULL, "methods/recount.sql", "SELECT like_set_fact(:user, :item, true);\n" PAUSE, RECOUNTED},
	{"C row", "row", NULL, "SELECT * FROM like_set(:user, :item, true);\n" PAUSE, ALONE},
	{"C row, all", "row", NULL, "SELECT * FROM like_set(:user, :item, true);\n" PAUSE, CONSUMED},
	{"C sequencer", "sequencer", NULL, "SELECT * FROM like_set(:user, :item, true);\n" PAUSE, ALONE},
	{"C sequencer, all", "sequencer", NULL, "SELECT * FROM like_set(:user, :item, true);\n" PAUSE, CONSUMED},
};

static const int client_counts[] = {1, 2, 4, 8, 16, 32};
#define COUNTS LENGTH_OF(client_counts)
#define AT_8 3 /* where 8 of them stand */

/* Which items are liked, and what a round trip is delayed by. */
typedef struct
{
	const char *name;
	const char *item; /* of a pgbench script */
	int delay_us;
} Load;

static const Load loads[] = {
	{"uniform", "random(1, 1000)", 0},
	{"Zipf 1.1", "random_zipfian(1, 1000, 1.1)", 0},
	{"uniform, 1 ms away", "random(1, 1000)", 1000},
	{"Zipf 1.1, 1 ms away", "random_zipfian(1, 1000, 1.1)", 1000},
};

typedef struct
{
	const Bench *bench;
	Cluster *cluster;
	Session *session;
	int rounds;
	char folder[sizeof(FOLDER_TEMPLATE)];
	double rate[LENGTH_OF(loads)][COUNTS][LENGTH_OF(ways)][ROUNDS_MAX]; /* likes a second */
	int64_t lag[LENGTH_OF(ways)];                                       /* the most, when writers stop */
	double lag_rate[LENGTH_OF(ways)];                                   /* at that time */
} WriteBench;


/* --- databases --- */

static char *
database_of(int way)
{
	return string_format("write_%d", way);
}

static char *
conninfo_of(const WriteBench *write, int way)
{
	char *name = database_of(way);
	char *conninfo = string_copy(cluster_conninfo(write->cluster, name));

	free(name);
	return conninfo;
}

static bool
fill_database(const WriteBench *write, Session *session, const Way *way)
{
	char *sql = string_format("%s/sql/like", write->bench->home);
	char *file = way->file != NULL ? string_format("%s/%s", sql, way->file) : NULL;
	bool done =
		like_design_create(session, like_design_find(way->design), sql) &&
		session_execute(session, "INSERT INTO item SELECT i, 'item-' || i FROM generate_series(1, 1000) i") &&
		session_execute(session, "INSERT INTO like_count (item_id, n, base_seq) SELECT item_id, 0, 0 FROM item") &&
		(file == NULL || session_execute_file(session, file));

	free(file);
	free(sql);
	return done;
}

static bool
make_databases(const WriteBench *write)
{
	bool done = true;

	for (int i = 0; i < (int) LENGTH_OF(ways) && done; i++)
	{
		char *name = database_of(i);
		char *drop = string_format("DROP DATABASE IF EXISTS %s WITH (FORCE)", name);
		char *create = string_format("CREATE DATABASE %s", name);
		char *conninfo = conninfo_of(write, i);
		Session *own = NULL;

		done = session_execute(write->session, drop) && session_execute(write->session, create) &&
			   (own = session_open(conninfo, "bench")) != NULL && fill_database(write, own, &ways[i]);
		session_close(own);
		free(conninfo);
		free(create);
		free(drop);
		free(name);
	}
	return done;
}


/* --- what runs beside --- */

typedef struct
{
	const Way *way;
	const char *conninfo;
	atomic_bool over;
} Beside;

typedef struct
{
	Beside *beside;
	Deadline next;
} Schedule;

static ProbeAnswer
probe_due(void *context, Text *seen)
{
	const Schedule *schedule = context;

	(void) seen;
	return atomic_load(&schedule->beside->over) || deadline_passed(schedule->next) ? PROBE_DONE : PROBE_AGAIN;
}

static bool
recount(Session *session, Beside *beside)
{
	bool done = true;

	while (done && !atomic_load(&beside->over))
	{
		Schedule schedule = {beside, deadline_in_ms(RECOUNT_EVERY_MS)};

		done = session_query(session, NULL, "SELECT like_recount()", NO_ARGS) &&
			   wait_until("the next recount", deadline_in_ms(END_MS), probe_due, &schedule);
	}
	return done;
}

static bool
consume(Session *session, Beside *beside)
{
	LikeTotals totals = {0};
	bool done = true;

	while (done && !atomic_load(&beside->over))
	{
		done = like_drain(session, BATCH, &totals);
	}
	return done && like_drain(session, BATCH, &totals);
}

static bool
run_beside(int worker, void *context)
{
	Beside *beside = context;
	Session *session = session_open(beside->conninfo, "beside");
	bool done =
		session != NULL && (beside->way->company == RECOUNTED ? recount(session, beside) : consume(session, beside));

	(void) worker;
	session_close(session);
	return done;
}


/* --- a cell --- */

/* The script of a way under a load. The caller frees its path; NULL: reported. */
static char *
write_script(const WriteBench *write, const Way *way, const Load *load)
{
	char *path = string_format("%s/script", write->folder);
	Text text = {0};
	const char *rest = way->call;
	const char *pause;
	bool done;

	text_append(&text, "\\set user random(1, 1000000000000)\n\\set item %s\n", load->item);
	while ((pause = strstr(rest, PAUSE)) != NULL)
	{
		text_append(&text, "%.*s", (int) (pause - rest), rest);
		if (load->delay_us > 0)
		{
			text_append(&text, "\\sleep %d us\n", load->delay_us);
		}
		rest = pause + strlen(PAUSE);
	}
	done = file_replace(path, text_get(&text));
	text_free(&text);
	if (!done)
	{
		free(path);
		return NULL;
	}
	return path;
}

static bool
run_pgbench(const WriteBench *write, const char *conninfo, const char *script, int clients, double *rate)
{
	char *count = string_format("%d", clients);
	char *threads = string_format("%d", clients < 2 ? 1 : 2);
	char *seconds = string_format("%d", SECONDS);
	Text output = {0};
	const char *argv[] = {write->bench->pgbench,
						  "-n",
						  "-M",
						  "prepared",
						  "-c",
						  count,
						  "-j",
						  threads,
						  "-T",
						  seconds,
						  "-f",
						  script,
						  conninfo,
						  NULL};
	bool done = bench_run_command(argv, NULL, NULL, &output);
	const char *found = strstr(text_get(&output), "tps = ");
	bool all = strstr(text_get(&output), "aborted") == NULL;

	if (done && (found == NULL || !all))
	{
		report_error("pgbench did not send all: %s", text_get(&output));
		done = false;
	}
	*rate = done ? strtod(found + strlen("tps = "), NULL) : 0;
	text_free(&output);
	free(seconds);
	free(threads);
	free(count);
	return done;
}

static bool
read_lag(const char *conninfo, int64_t *lag)
{
	Session *session = session_open(conninfo, "bench");
	LikeCount count = {0};
	bool found = false;
	bool done = session != NULL && like_read_count(session, 1, 0, &found, &count) && found;

	*lag = count.lag;
	session_close(session);
	return done;
}

static bool
measure_cell(WriteBench *write, int way, const Load *load, int clients, double *rate)
{
	static Beside beside; /* outlives a measurement that ends early while it runs */
	char *conninfo = conninfo_of(write, way);
	char *script = write_script(write, &ways[way], load);
	ActorGroup *group = NULL;
	int64_t lag = 0;
	bool done = script != NULL;

	beside.way = &ways[way];
	beside.conninfo = conninfo;
	atomic_store(&beside.over, false);
	if (done && beside.way->company != ALONE)
	{
		group = actor_start("beside", 1, run_beside, &beside);
		done = group != NULL;
	}
	if (group != NULL)
	{
		actor_open_gate(group);
	}
	done = done && run_pgbench(write, conninfo, script, clients, rate) &&
		   (beside.way->company != CONSUMED || read_lag(conninfo, &lag));
	atomic_store(&beside.over, true);
	done = (group == NULL || actor_join(group, deadline_in_ms(END_MS))) && done;
	if (lag > write->lag[way])
	{
		write->lag[way] = lag;
		write->lag_rate[way] = *rate;
	}
	free(script);
	free(conninfo);
	return done;
}

static bool
measure_round(WriteBench *write, int round)
{
	bool done = make_databases(write); /* anew: what a round leaves must not make the next one slower */

	for (size_t load = 0; load < LENGTH_OF(loads); load++)
	{
		for (size_t count = 0; count < COUNTS; count++)
		{
			for (int i = 0; i < (int) LENGTH_OF(ways) && done; i++)
			{
				int way = round % 2 == 0 ? i : (int) LENGTH_OF(ways) - 1 - i;

				done =
					measure_cell(write, way, &loads[load], client_counts[count], &write->rate[load][count][way][round]);
			}
		}
	}
	return done;
}


/* --- the table --- */

/* From the least to the most over the rounds, by their median; at 8 clients. */
static double
spread_of(const WriteBench *write, size_t load, size_t way)
{
	const double *rates = write->rate[load][AT_8][way];
	double least = rates[0], most = rates[0];

	for (int i = 1; i < write->rounds; i++)
	{
		least = rates[i] < least ? rates[i] : least;
		most = rates[i] > most ? rates[i] : most;
	}
	return (most - least) / bench_median(rates, write->rounds);
}

static void
print_load(const WriteBench *write, size_t load)
{
	double clients[COUNTS];
	Text head = {0};

	text_append(&head, "likes a second, %-21s", loads[load].name);
	for (size_t i = 0; i < COUNTS; i++)
	{
		clients[i] = client_counts[i];
		text_append(&head, " %8d", client_counts[i]);
	}
	bench_say("%s  clients", text_get(&head));
	bench_series(loads[load].name, "x: clients", clients, COUNTS);
	for (size_t way = 0; way < LENGTH_OF(ways); way++)
	{
		double rates[COUNTS];
		Text row = {0};

		text_append(&row, "  %-36s", ways[way].name);
		for (size_t i = 0; i < COUNTS; i++)
		{
			rates[i] = bench_median(write->rate[load][i][way], write->rounds);
			text_append(&row, " %8.0f", rates[i]);
		}
		bench_say("%s   spread %.2f", text_get(&row), spread_of(write, load, way));
		bench_series(loads[load].name, ways[way].name, rates, COUNTS);
		text_free(&row);
	}
	text_free(&head);
}


/* --- what has to be reached --- */

static size_t
way_of(const char *name)
{
	size_t way = 0;

	while (strcmp(ways[way].name, name) != 0)
	{
		way++;
	}
	return way;
}

/* Each round's own ratio, at 8 clients on uniform items. */
static void
print_ratio(const WriteBench *write, const char *ours, const char *theirs, const char *bar)
{
	const double *a = write->rate[0][AT_8][way_of(ours)];
	const double *b = write->rate[0][AT_8][way_of(theirs)];
	double ratios[ROUNDS_MAX];
	char *what = string_format("%s / %s", ours, theirs);

	for (int i = 0; i < write->rounds; i++)
	{
		ratios[i] = a[i] / b[i];
	}
	bench_print_row(what, bench_median(a, write->rounds), bench_median(b, write->rounds), "likes/s",
					bench_median(ratios, write->rounds), bar);
	free(what);
}

static void
print_bars(const WriteBench *write)
{
	bench_say("at 8 clients on uniform items; \"all\": numbering and consuming run beside the writers");
	print_ratio(write, "C sequencer", "C row", "at least 3");
	print_ratio(write, "C sequencer", "bare fact and event", "at least 0.8");
	print_ratio(write, "C sequencer, all", "C row", "at least 2.4");
	print_ratio(write, "C sequencer, all", "bare fact and event", "at least 0.6");
	print_ratio(write, "C row", "bare fact", "");
	for (size_t way = 0; way < LENGTH_OF(ways); way++)
	{
		if (ways[way].company == CONSUMED)
		{
			char *what = string_format("%s: most lag / %d s of likes", ways[way].name, LAG_BAR_S);
			double bar = LAG_BAR_S * write->lag_rate[way];

			bench_print_row(what, (double) write->lag[way], bar, "events", bar > 0 ? (double) write->lag[way] / bar : 0,
							"at most 1");
			free(what);
		}
	}
}


/* --- where the time goes --- */

/* What each client's backend is at, seen each SAMPLE_MS. */
typedef struct
{
	const char *conninfo;
	char *database;
	atomic_bool over;
	Deadline next;
	Text shares;
} Sampler;

static const char sample_sql[] =
	"INSERT INTO seen SELECT coalesce(wait_event_type || ':' || wait_event, 'running') FROM pg_stat_activity "
	"WHERE datname = $1 AND application_name = 'pgbench' AND state <> 'idle'";

static const char shares_sql[] =
	"SELECT coalesce(string_agg(format('%s %s %%', event, share), ', ' ORDER BY share DESC, event), 'nothing seen') FROM ("
	"SELECT event, round(100.0 * count(*) / sum(count(*)) OVER ()) AS share FROM seen GROUP BY event "
	"ORDER BY 2 DESC, 1 LIMIT 4) s";

static ProbeAnswer
probe_sample(void *context, Text *seen)
{
	const Sampler *sampler = context;

	(void) seen;
	return atomic_load(&sampler->over) || deadline_passed(sampler->next) ? PROBE_DONE : PROBE_AGAIN;
}

static bool
run_sampler(int worker, void *context)
{
	Sampler *sampler = context;
	Session *session = session_open(sampler->conninfo, "sampler");
	SqlResult *rows = NULL;
	bool done = session != NULL && session_execute(session, "CREATE TEMP TABLE seen (event text)");

	(void) worker;
	while (done && !atomic_load(&sampler->over))
	{
		sampler->next = deadline_in_ms(SAMPLE_MS);
		done = session_query(session, NULL, sample_sql, ARGS(arg_text(sampler->database))) &&
			   wait_until("the next sample", deadline_in_ms(END_MS), probe_sample, sampler);
	}
	if (done && session_query(session, &rows, shares_sql, NO_ARGS))
	{
		text_append(&sampler->shares, "%s", sql_text(rows, 0, 0));
		sql_free(rows);
	}
	session_close(session);
	return done;
}

static bool
sample_waits(WriteBench *write, int way)
{
	static Sampler sampler; /* as what runs beside */
	char *conninfo = string_copy(cluster_conninfo(write->cluster, "postgres"));
	ActorGroup *group;
	double rate;
	bool done;

	sampler.conninfo = conninfo;
	sampler.database = database_of(way);
	text_clear(&sampler.shares);
	atomic_store(&sampler.over, false);
	group = actor_start("sampler", 1, run_sampler, &sampler);
	if (group != NULL)
	{
		actor_open_gate(group);
	}
	done = group != NULL && measure_cell(write, way, &loads[1], client_counts[AT_8], &rate);
	atomic_store(&sampler.over, true);
	done = (group == NULL || actor_join(group, deadline_in_ms(END_MS))) && done;
	if (done)
	{
		bench_say("  %-36s %s", ways[way].name, text_get(&sampler.shares));
	}
	text_free(&sampler.shares);
	free(sampler.database);
	free(conninfo);
	return done;
}

static bool
print_waits(WriteBench *write)
{
	bool done = true;

	bench_say("what the clients' backends are at, 8 clients, %s", loads[1].name);
	for (int i = 0; i < (int) LENGTH_OF(ways) && done; i++)
	{
		done = sample_waits(write, i);
	}
	return done;
}

bool
bench_write(const Bench *bench, Cluster *cluster)
{
	static WriteBench write; /* large */
	const char *rounds = getenv("COUNTERPROOF_BENCH_ROUNDS");
	char *conninfo = string_copy(cluster_conninfo(cluster, "postgres"));
	int64_t count = ROUNDS;
	bool done = rounds == NULL || string_to_int64(rounds, 1, ROUNDS_MAX, &count);

	write = (WriteBench){.bench = bench, .cluster = cluster, .rounds = (int) count, .folder = FOLDER_TEMPLATE};
	if (!done)
	{
		report_error("COUNTERPROOF_BENCH_ROUNDS takes a number from 1 to %d, not \"%s\"", ROUNDS_MAX, rounds);
	}
	done = done && mkdtemp(write.folder) != NULL && (write.session = session_open(conninfo, "bench")) != NULL;
	for (int i = 0; i < write.rounds && done; i++)
	{
		done = measure_round(&write, i);
	}
	for (size_t load = 0; load < LENGTH_OF(loads) && done; load++)
	{
		print_load(&write, load);
	}
	if (done)
	{
		print_bars(&write);
		done = print_waits(&write);
	}
	session_close(write.session);
	free(conninfo);
	return bench_run_command((const char *[]){"/bin/rm", "-rf", write.folder, NULL}, NULL, NULL, NULL) && done;
}
