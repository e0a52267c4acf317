#include "actor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace.h"

typedef struct
{
	ActorGroup *group;
	int index;
	pthread_t thread;
	bool ended;
	TracePlace last; /* its last event on record */
} Worker;

typedef enum
{
	GATE_CLOSED = 0,
	GATE_OPEN,
	GATE_CANCELLED /* not all threads could be started: whoever waits goes home without working */
} Gate;

/* All but `name`, `body` and `context` changes under the lock only. */
struct ActorGroup
{
	char *name;
	ActorBody body;
	void *context;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* broadcast for every change below: arrived, gate, ended */
	Gate gate;
	int started, arrived, ended;
	bool failed;       /* a body answered false */
	TracePlace opened; /* the last event on record of who opened the gate */
	Worker *workers;
};

static void *
worker_main(void *argument)
{
	Worker *worker = argument;
	ActorGroup *group = worker->group;
	bool works;
	bool ok = true;

	pthread_mutex_lock(&group->lock);
	group->arrived++;
	pthread_cond_broadcast(&group->changed);
	while (group->gate == GATE_CLOSED)
	{
		pthread_cond_wait(&group->changed, &group->lock);
	}
	works = group->gate == GATE_OPEN;
	trace_follow(group->opened);
	pthread_mutex_unlock(&group->lock);

	if (works)
	{
		ok = group->body(worker->index, group->context);
	}

	pthread_mutex_lock(&group->lock);
	worker->ended = true;
	worker->last = trace_place();
	group->ended++;
	group->failed = group->failed || !ok;
	pthread_cond_broadcast(&group->changed);
	pthread_mutex_unlock(&group->lock);
	return NULL;
}

static ActorGroup *
group_make(const char *name, int workers, ActorBody body, void *context)
{
	ActorGroup *group = memory_get(sizeof(*group));
	pthread_condattr_t attributes;

	group->name = string_copy(name);
	group->body = body;
	group->context = context;
	group->workers = memory_get((size_t) workers * sizeof(Worker));
	pthread_mutex_init(&group->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&group->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return group;
}

/* Every started thread must have ended or be about to: this waits for the threads themselves. */
static void
group_free(ActorGroup *group)
{
	for (int i = 0; i < group->started; i++)
	{
		pthread_join(group->workers[i].thread, NULL);
	}
	pthread_cond_destroy(&group->changed);
	pthread_mutex_destroy(&group->lock);
	free(group->workers);
	free(group->name);
	free(group);
}

static void
set_gate(ActorGroup *group, Gate gate)
{
	pthread_mutex_lock(&group->lock);
	group->gate = gate;
	pthread_cond_broadcast(&group->changed);
	pthread_mutex_unlock(&group->lock);
}

ActorGroup *
actor_start(const char *name, int workers, ActorBody body, void *context)
{
	ActorGroup *group;

	if (workers < 1)
	{
		report_error("could not start %d workers of %s: at least one is needed", workers, name);
		return NULL;
	}
	group = group_make(name, workers, body, context);
	for (int i = 0; i < workers; i++)
	{
		Worker *worker = &group->workers[i];
		int error;

		worker->group = group;
		worker->index = i;
		error = pthread_create(&worker->thread, NULL, worker_main, worker);
		if (error != 0)
		{
			report_error("could not start worker %d of %d of %s: %s", i, workers, name, strerror(error));
			set_gate(group, GATE_CANCELLED);
			group_free(group);
			return NULL;
		}
		group->started++;
	}
	return group;
}

void
actor_open_gate(ActorGroup *group)
{
	pthread_mutex_lock(&group->lock);
	while (group->arrived < group->started)
	{
		pthread_cond_wait(&group->changed, &group->lock);
	}
	group->gate = GATE_OPEN;
	group->opened = trace_place();
	pthread_cond_broadcast(&group->changed);
	pthread_mutex_unlock(&group->lock);
}

static void
report_running(const ActorGroup *group)
{
	Text list = {0};

	for (int i = 0; i < group->started; i++)
	{
		if (!group->workers[i].ended)
		{
			text_append(&list, " %d", i);
		}
	}
	report_error("%d of %d workers of %s had not ended at the deadline:%s%s", group->started - group->ended,
				 group->started, group->name, text_get(&list),
				 group->gate == GATE_CLOSED ? "; their gate was never opened" : "");
	text_free(&list);
}

bool
actor_join(ActorGroup *group, Deadline deadline)
{
	const struct timespec until = {.tv_sec = deadline.at_ns / 1000000000, .tv_nsec = deadline.at_ns % 1000000000};
	bool ok;

	pthread_mutex_lock(&group->lock);
	while (group->ended < group->started)
	{
		if (pthread_cond_timedwait(&group->changed, &group->lock, &until) == ETIMEDOUT && group->ended < group->started)
		{
			report_running(group);
			pthread_mutex_unlock(&group->lock);
			return false;
		}
	}
	ok = !group->failed;
	for (int i = 0; i < group->started; i++)
	{
		trace_follow(group->workers[i].last);
	}
	pthread_mutex_unlock(&group->lock);
	group_free(group);
	return ok;
}
