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

/* What happens, told in the order in which it does. Results and strings are borrowed. None is NULL but `lost`, perhaps. */
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
	void (*lost)(void *context, const SpecSession *session,
				 const SpecTurn *turn); /* with `survives`; turn: under way */
} ExecutorEvents;

typedef struct
{
	const char *conninfo;  /* and the PG* variables */
	int64_t step_limit_us; /* then the step is cancelled, after twice as long the run ends */
	bool survives;         /* a session that is lost is told of, and the others go on */
	const ExecutorEvents *events;
	void *context;
} ExecutorConfig;

/* Connect. NULL: told as trouble. The spec must be linked, and outlive the executor. */
extern Executor *executor_open(const Spec *spec, const ExecutorConfig *config) MUST_CHECK;
extern void executor_close(Executor *executor); /* NULL allowed */

extern void executor_tell(Executor *executor, void *context); /* to another than the configuration names, from now on */

/* The parts of a permutation, and the whole. false: told; nothing more can be run. */
extern bool executor_set_up(Executor *executor) MUST_CHECK;
extern bool executor_launch(Executor *executor, const SpecTurn *turn) MUST_CHECK;
extern bool executor_drain(Executor *executor) MUST_CHECK; /* until no step is under way */
/* With `survives`, what a session left open is rolled back. false: told, the file's own failed; a session's may. */
extern bool executor_tear_down(Executor *executor);
extern bool executor_was_set_up(const Executor *executor); /* once, at least, by executor_set_up() as a whole */
/* The parts of a setup. */
extern bool executor_set_up_all(Executor *executor) MUST_CHECK;                  /* of the whole file */
extern bool executor_set_up_session(Executor *executor, int session) MUST_CHECK; /* a lost one is left alone */

/*
 * What an order that is decided on the way looks at. Sessions are indexes of the file. After a launch each session either
 * has no step under way, or waits for another one.
 */
extern bool executor_is_busy(const Executor *executor, int session); /* has a step under way */
extern bool executor_is_held(const Executor *executor, int session); /* and the server has not answered it */
extern bool executor_is_lost(const Executor *executor, int session);
extern int executor_waiting(const Executor *executor);
extern int executor_pid(const Executor *executor, int session);          /* of its backend, also of a lost one */
extern Session *executor_session(const Executor *executor, int session); /* NULL: lost */
extern Session *executor_control(const Executor *executor);
extern Deadline executor_deadline(const Executor *executor); /* for a statement that begins now, as for a step */

/* Whether the wait that this session is in leads into a deadlock, which the server will end. false: told. */
extern bool executor_deadlocks(Executor *executor, int session, bool *deadlocks) MUST_CHECK;

/* Wait until a step that waits has completed. The first is cancelled at the limit. false: told. */
extern bool executor_await_any(Executor *executor) MUST_CHECK;

/* Look who goes on, after what was done past the executor. false: told. */
extern bool executor_settle(Executor *executor) MUST_CHECK;

/* End what waits by cancelling it, and roll back. false: told. */
extern bool executor_cancel_all(Executor *executor) MUST_CHECK;

/* Drop a session's connection, as a client does that is killed. It is told as lost. */
extern void executor_drop(Executor *executor, int session);

/* Connect anew: the sessions that were lost, or the control connection after a restart of the server. false: told. */
extern bool executor_revive(Executor *executor) MUST_CHECK;
extern bool executor_revive_control(Executor *executor) MUST_CHECK;

/* A whole permutation. */
extern bool executor_run(Executor *executor, const SpecTurn *const *turns, int count) MUST_CHECK;

#endif
