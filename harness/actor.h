/* N workers as threads behind a start gate, and a join with a deadline. */
#ifndef COUNTERPROOF_ACTOR_H
#define COUNTERPROOF_ACTOR_H

#include "base.h"

typedef struct ActorGroup ActorGroup;

/* What a worker does. `worker` counts from 0. Answer false for a failure of the lab itself, already reported. */
typedef bool (*ActorBody)(int worker, void *context);

/* Start threads that wait at the gate. `name` is for reports. NULL: reported. */
extern ActorGroup *actor_start(const char *name, int workers, ActorBody body, void *context) MUST_CHECK;

/* Waits until every worker has reached the gate, then lets them all go at once. */
extern void actor_open_gate(ActorGroup *group);

/*
 * Wait for all to end. false: a body answered false, or the deadline passed, which is reported with the workers that
 * had not ended; those still run, so the process must end soon. Frees the group unless some still run.
 */
extern bool actor_join(ActorGroup *group, Deadline deadline) MUST_CHECK;

#endif
