#include "worker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../actor.h"
#include "chunk.h"
#include "connect.h"
#include "throttle.h"

#define TARGET_MS 500 /* of a chunk */
#define FIRST_KEYS 100
#define UNINDEXED_KEYS 1000 /* where each chunk reads a whole table, however many keys it has */
#define MOST_KEYS 20000
#define GROWTH 4
#define ATTEMPTS_MAX 20 /* of one key that somebody is in the way of */
#define REFUSED_MAX 100 /* keys of one worker that cannot be written: more is no matter of single keys */
#define AGAIN_FIRST_US 2000
#define AGAIN_LAST_US 200000
#define LONG_MS 604800000 /* only an interrupt ends the wait */
#define SHOW_MS 500
#define NS_PER_MS 1000000

/* What the workers of a run have in common; under the lock. */
typedef struct
{
	const CountersRequest *request;
	const CountersRepair *repair;
	const Counter *counter;
	const Run *run;
	pthread_mutex_t lock;
	int64_t open; /* when they began */
	int64_t done;
	int64_t start_ns;
	Deadline next_show;
	bool shows; /* on a terminal */
	int failed;
} Crew;

typedef struct
{
	Crew *crew;
	Session *session;
	Chunk chunk;
	int64_t most;
	int attempts;
	int refused;
	bool told_slow;
	bool unindexed;
} Worker;


/* --- progress --- */

static void
crew_tell(Crew *crew, int64_t keys)
{
	pthread_mutex_lock(&crew->lock);
	crew->done += keys;
	if (crew->shows && deadline_passed(crew->next_show))
	{
		double seconds = (double) (time_now_ns() - crew->start_ns) / 1e9;
		double rate = seconds > 0 ? (double) crew->done / seconds : 0;

		fprintf(stderr, "\r%s  %lld of %lld  %.0f/s  %.0f s left \033[K", crew->run->counter, (long long) crew->done,
				(long long) crew->open, rate, rate > 0 ? (double) (crew->open - crew->done) / rate : 0);
		crew->next_show = deadline_in_ms(SHOW_MS);
	}
	pthread_mutex_unlock(&crew->lock);
}


/* --- one worker --- */

static int64_t
worker_first(const Worker *worker)
{
	int chunk = worker->crew->request->chunk;

	return chunk > 0 ? chunk : worker->unindexed ? UNINDEXED_KEYS : FIRST_KEYS;
}

/* The next chunk takes the time it should if it is like this one. */
static void
worker_size(Worker *worker, int64_t taken_ns)
{
	int64_t taken_ms = taken_ns / NS_PER_MS + 1;
	int64_t most;

	if (worker->crew->request->chunk > 0)
	{
		worker->most = worker_first(worker);
		return;
	}
	if (worker->unindexed)
	{
		most = worker->most * GROWTH; /* fewer keys would not be faster; it may have been halved */
		worker->most = most < worker_first(worker) ? most : worker_first(worker);
		return;
	}
	if (worker->chunk.keys < worker->most)
	{
		return; /* it was not a full one, and says nothing */
	}
	most = worker->most * TARGET_MS / taken_ms;
	most = most > worker->most * GROWTH ? worker->most * GROWTH : most;
	if (most < 1 && !worker->told_slow)
	{
		worker->told_slow = true;
		report_warning("%s: one key takes %lld ms: is there an index on what it is counted by?",
					   worker->crew->run->counter, (long long) taken_ms);
	}
	worker->most = most < 1 ? 1 : most > MOST_KEYS ? MOST_KEYS : most;
}

static void
worker_halve(Worker *worker)
{
	worker->most = worker->chunk.keys > 1 ? (worker->chunk.keys + 1) / 2 : 1;
}

/* A key of the chunk cannot be written: which one is found by halves. false: reported. */
static bool
worker_refused(Worker *worker)
{
	if (worker->chunk.keys > 1)
	{
		worker_halve(worker);
		return true;
	}
	if (++worker->refused > REFUSED_MAX)
	{
		report_error("%s: more than %d keys cannot be written", worker->crew->run->counter, REFUSED_MAX);
		return false;
	}
	return chunk_refuse(&worker->chunk);
}

/* Somebody was in the way of the chunk: half of it next time. false: it was one key, again and again. */
static bool
worker_again(Worker *worker)
{
	int64_t pause_us = AGAIN_FIRST_US << worker->attempts;

	worker->attempts += worker->chunk.keys <= 1;
	if (worker->attempts >= ATTEMPTS_MAX)
	{
		worker->attempts = 0;
		return false;
	}
	worker_halve(worker);
	backoff_us(pause_us < AGAIN_LAST_US ? pause_us : AGAIN_LAST_US);
	return true;
}

typedef struct
{
	Worker *worker;
	bool done;
} Leftovers;

/* Nothing could be claimed: is all done, or do others still hold some, which they may give back? */
static ProbeAnswer
look_for_open(void *context, Text *seen)
{
	Leftovers *left = context;
	Worker *worker = left->worker;
	SqlResult *result;
	bool open, free_to_take;

	if (!session_query(worker->session, &result,
					   "SELECT EXISTS (SELECT FROM counterproof.drift WHERE run = $1 AND outcome IS NULL)",
					   ARGS(arg_int(worker->crew->run->run))))
	{
		return PROBE_FAILED;
	}
	open = sql_bool(result, 0, 0);
	sql_free(result);
	left->done = !open;
	if (!open)
	{
		return PROBE_DONE;
	}
	text_append(seen, "others hold keys");
	if (!session_query(
			worker->session, &result,
			"SELECT FROM counterproof.drift WHERE run = $1 AND outcome IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED",
			ARGS(arg_int(worker->crew->run->run))))
	{
		return PROBE_FAILED;
	}
	free_to_take = sql_rows(result) > 0;
	sql_free(result);
	return free_to_take ? PROBE_DONE : PROBE_AGAIN;
}

/* At the end of the keys: *done when none is open any more. false: reported, or interrupted. */
static bool
worker_wrap(Worker *worker, bool *done)
{
	Leftovers left = {.worker = worker};

	worker->chunk.from = 0;
	if (!wait_until("all keys to be closed", deadline_in_ms(LONG_MS), look_for_open, &left))
	{
		return false;
	}
	*done = left.done;
	return true;
}

/* One chunk. false: reported. */
static bool
worker_chunk(Worker *worker, bool *done)
{
	int64_t start_ns = time_now_ns();

	switch (chunk_repair(&worker->chunk, worker->most))
	{
		case CHUNK_FAILED:
			return false;
		case CHUNK_AGAIN:
			return worker_again(worker) || chunk_give_up(&worker->chunk);
		case CHUNK_REFUSED:
			return worker_refused(worker);
		case CHUNK_DONE:
			break;
	}
	worker->attempts = 0;
	if (worker->chunk.keys == 0)
	{
		return worker_wrap(worker, done);
	}
	crew_tell(worker->crew, worker->chunk.keys);
	worker_size(worker, time_now_ns() - start_ns);
	return true;
}

static bool
worker_work(Worker *worker, bool inside)
{
	Crew *crew = worker->crew;
	bool done = false;
	bool able = true;

	chunk_prepare(&worker->chunk, worker->session, crew->counter, crew->run, inside);
	worker->unindexed = !counter_is_indexed(crew->counter, NULL);
	worker->most = worker_first(worker);
	while (able && !done && !interrupt_seen())
	{
		able = (inside || throttle_wait(worker->session, crew->repair)) &&
			   (interrupt_seen() || worker_chunk(worker, &done));
	}
	chunk_free(&worker->chunk);
	return able || interrupt_seen();
}

static bool
worker_body(int index, void *context)
{
	Crew *crew = context;
	Worker worker = {.crew = crew, .session = counters_connect(crew->request)};
	bool able = worker.session != NULL && run_share(worker.session, crew->run) && worker_work(&worker, false);

	(void) index;
	session_close(worker.session);
	if (!able)
	{
		pthread_mutex_lock(&crew->lock);
		crew->failed++;
		pthread_mutex_unlock(&crew->lock);
	}
	return true;
}


/* --- all of them --- */

static bool
crew_begin(Crew *crew, Session *session)
{
	crew->start_ns = time_now_ns();
	crew->shows = isatty(STDERR_FILENO) == 1;
	pthread_mutex_init(&crew->lock, NULL);
	return session_query_int(session, &crew->open,
							 "SELECT count(*) FROM counterproof.drift WHERE run = $1 AND outcome IS NULL",
							 ARGS(arg_int(crew->run->run)));
}

static void
crew_end(Crew *crew)
{
	if (crew->shows && crew->done > 0)
	{
		fprintf(stderr, "\r\033[K");
	}
	pthread_mutex_destroy(&crew->lock);
}

bool
workers_run(Session *session, const CountersRequest *request, const CountersRepair *repair, const Counter *counter,
			const Run *run)
{
	int jobs = repair->jobs > 0 ? repair->jobs : 1;
	Crew crew = {.request = request, .repair = repair, .counter = counter, .run = run};
	bool able = crew_begin(&crew, session);
	ActorGroup *group;

	if (able && crew.open > 0)
	{
		group = actor_start("repair", jobs, worker_body, &crew);
		able = group != NULL;
	}
	if (able && crew.open > 0)
	{
		actor_open_gate(group);
		able = actor_join(group, deadline_in_ms(LONG_MS)) && crew.failed < jobs;
	}
	crew_end(&crew);
	return able;
}

bool
worker_run_inside(Session *session, const CountersRequest *request, const CountersRepair *repair,
				  const Counter *counter, const Run *run)
{
	Crew crew = {.request = request, .repair = repair, .counter = counter, .run = run};
	Worker worker = {.crew = &crew, .session = session};
	bool able = crew_begin(&crew, session) && worker_work(&worker, true);

	crew_end(&crew);
	return able;
}
