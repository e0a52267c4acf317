#include "writers.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
	WRITERS = 8,
	WARM_TRANSACTIONS = 10, /* of each, before the tool starts */
	MEET_MS = 30000,
	STOP_MS = 30000,
	BACKOFF_US = 200
};

typedef struct
{
	Session *session;
	Rng rng;
	_Atomic int64_t done;
	int64_t retried, unexpected, longest_ns;
	char first_unexpected[6];
} Writer;

struct Writers
{
	ActorGroup *group;
	int64_t media;
	atomic_bool stop;
	Writer each[WRITERS];
};

/* These are told by the tally, and are none of the system under test that SUMMARY counts. */
static bool
retryable(const char *sqlstate)
{
	return strcmp(sqlstate, "40001") == 0 || strcmp(sqlstate, "40P01") == 0;
}

/* One change of one or two media. */
static SqlStatus
write_once(Writer *writer, int64_t media)
{
	static const char *const flow[] = {"SELECT media_use($1)", "SELECT media_use($1)", "SELECT media_release($1)",
									   "SELECT media_soft_delete($1)", "SELECT media_move($1, $2)"};
	size_t which = rng_below(&writer->rng, LENGTH_OF(flow));
	SqlArg args[] = {arg_int(1 + (int64_t) rng_below(&writer->rng, (uint64_t) media)),
					 arg_int(1 + (int64_t) rng_below(&writer->rng, (uint64_t) media))};
	SqlStatus status;

	while ((status = session_try(writer->session, NULL, flow[which], args, which == LENGTH_OF(flow) - 1 ? 2 : 1)) ==
			   SQL_ERROR &&
		   retryable(session_error(writer->session)->sqlstate))
	{
		writer->retried++;
		backoff_us(BACKOFF_US);
	}
	return status;
}

static bool
write_until_stopped(int worker, void *context)
{
	Writers *writers = context;
	Writer *writer = &writers->each[worker];

	while (!atomic_load(&writers->stop))
	{
		int64_t began = time_now_ns(), took;
		SqlStatus status = write_once(writer, writers->media);

		took = time_now_ns() - began;
		writer->longest_ns = took > writer->longest_ns ? took : writer->longest_ns;
		if (status == SQL_OK)
		{
			atomic_fetch_add(&writer->done, 1);
		}
		else if (writer->unexpected++ == 0)
		{
			memcpy(writer->first_unexpected, session_error(writer->session)->sqlstate,
				   sizeof(writer->first_unexpected));
		}
		if (session_is_lost(writer->session))
		{
			return true; /* told by its tally */
		}
	}
	return true;
}

int64_t
writers_done(const Writers *writers)
{
	int64_t sum = 0;

	for (int i = 0; i < WRITERS; i++)
	{
		sum += atomic_load(&writers->each[i].done);
	}
	return sum;
}

static ProbeAnswer
probe_warm(void *context, Text *seen)
{
	Writers *writers = context;

	for (int i = 0; i < WRITERS; i++)
	{
		if (atomic_load(&writers->each[i].done) < WARM_TRANSACTIONS)
		{
			text_append(seen, "writer %d has written %lld times", i, (long long) atomic_load(&writers->each[i].done));
			return PROBE_AGAIN;
		}
	}
	return PROBE_DONE;
}

Writers *
writers_start(Scene *scene, int64_t media)
{
	Writers *writers = memory_get(sizeof(*writers)); /* outlives a case that ends early: its threads still use it */

	writers->media = media;
	for (int i = 0; i < WRITERS; i++)
	{
		char name[32];

		(void) snprintf(name, sizeof(name), "writer-%d", i);
		writers->each[i].session = scene_session(scene, name);
		writers->each[i].rng = rng_stream(scene_seed(scene), (uint64_t) i);
	}
	writers->group = actor_start("writers", WRITERS, write_until_stopped, writers);
	require(scene, writers->group != NULL);
	actor_open_gate(writers->group);
	require(scene, wait_until("every writer has written", scene_deadline(scene, MEET_MS), probe_warm, writers));
	return writers;
}

void
writers_stop(Scene *scene, Writers *writers, int64_t done_before, const char *when)
{
	int64_t during = writers_done(writers) - done_before;
	Writer sum = {0};

	atomic_store(&writers->stop, true);
	require(scene, actor_join(writers->group, scene_deadline(scene, STOP_MS)));
	for (int i = 0; i < WRITERS; i++)
	{
		Writer *writer = &writers->each[i];

		sum.retried += writer->retried;
		sum.longest_ns = writer->longest_ns > sum.longest_ns ? writer->longest_ns : sum.longest_ns;
		if (writer->unexpected > 0 && sum.unexpected == 0)
		{
			memcpy(sum.first_unexpected, writer->first_unexpected, sizeof(sum.first_unexpected));
		}
		sum.unexpected += writer->unexpected;
		scene_close_session(scene, writer->session);
	}
	note(scene, "%s: %lld transactions of %d writers, %lld of them beside the tool; %lld retries; longest wait %.1f ms",
		 when, (long long) writers_done(writers), WRITERS, (long long) during, (long long) sum.retried,
		 (double) sum.longest_ns / 1e6);
	check_at_least(scene, during, WRITERS, "%s: transactions beside the tool", when);
	CHECK_EQ(scene, sum.unexpected, 0, "%s: errors of writers that no retry mends%s%s", when,
			 sum.unexpected > 0 ? ", the first is " : "", sum.first_unexpected);
	free(writers);
}
