/*
 * Runs permutations: a connection for each session, one step under way in each at most, and one connection that asks
 * the server who waits for whom.
 *
 * Steps go out in the order given. A step is over with when it has completed or waits for a lock of another session;
 * then those that waited before are looked at, and the next one goes out. Whose session is still busy is waited for.
 */
#ifndef COUNTERPROOF_SPEC_EXECUTOR_H
#define COUNTERPROOF_SPEC_EXECUTOR_H

#include "../session.h"
#include "tree.h"

typedef struct Executor Executor;

/* What happens, told in the order in which it does. Results and strings are borrowed. None is NULL. */
typedef struct
{
	void (*waits)(void *context, const SpecTurn *turn);
	void (*completes)(void *context, const SpecTurn *turn, bool at_once); /* its results follow */
	void (*result)(void *context, const SqlResult *result);               /* of a step, a setup or a teardown */
	void (*notice)(void *context, const SpecSession *session, const char *message);
	void (*notified)(void *context, const SpecSession *session, const Notification *notification, const char *sender);
	void (*canceled)(void *context, const SpecTurn *turn, int seconds);
	void (*unsent)(void *context, const SpecTurn *turn, const char *why); /* the end of the run */
	void (*trouble)(void *context, const char *text); /* with its newline; the end of the run, but in a teardown */
	void (*lingers)(void *context);                   /* nothing happens for a while */
} ExecutorEvents;

typedef struct
{
	const char *conninfo;  /* and the PG* variables */
	int64_t step_limit_us; /* then the step is cancelled, after twice as long the run ends */
	const ExecutorEvents *events;
	void *context;
} ExecutorConfig;

/* Connect. NULL: told as trouble. The spec must be linked, and outlive the executor. */
extern Executor *executor_open(const Spec *spec, const ExecutorConfig *config) MUST_CHECK;
extern void executor_close(Executor *executor); /* NULL allowed */

/* The parts of a permutation, and the whole. false: told; nothing more can be run. */
extern bool executor_set_up(Executor *executor) MUST_CHECK;
extern bool executor_launch(Executor *executor, const SpecTurn *turn) MUST_CHECK;
extern bool executor_drain(Executor *executor) MUST_CHECK; /* until no step is under way */
extern void executor_tear_down(Executor *executor);
extern bool executor_run(Executor *executor, const SpecTurn *const *turns, int count) MUST_CHECK;

#endif
