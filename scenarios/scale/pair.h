/*
 * What the cases about failover share: a like system on a primary and its standby, and the door through which connections to
 * a server are handed out. One pair a case; all of it belongs to the case's own thread.
 */
#ifndef COUNTERPROOF_PAIR_H
#define COUNTERPROOF_PAIR_H

#include "32/recovery_lab.h"
#include "32/unknown_lab.h"
#include "failover.h"

#define STANDBY "standby" /* its name, for synchronous_standby_names, too */

typedef struct
{
	Cluster *primary, *standby;
	Session *lab, *standby_lab;
	int64_t highest; /* the highest epoch that the door has seen */
} Pair;

/* The like system with its part failover on the case's server, and a standby that streams from it. */
extern Pair pair_make(Scene *scene, const LikeDesign *design, int items);

/* Commits on the primary wait for the standby, from when this returns. The lab's own do not. */
extern void pair_make_synchronous(Scene *scene, Pair *pair);

/* Wait until the standby has replayed all that the primary has committed. */
extern void pair_await_replayed(Scene *scene, const Pair *pair);

/* The standby streams no more: what the primary commits from here on does not reach it. One check. */
extern void pair_cut(Scene *scene, Pair *pair);

/*
 * The standby is promoted; *horizon is read before anything writes there. Answers a session that went through the door,
 * prepared, and is the standby's lab from then on.
 */
extern Session *pair_promote(Scene *scene, Pair *pair, uint64_t *horizon);

/*
 * The door: a session to a server that is not of an older epoch than the highest seen. NULL: it is fenced, and the session
 * closed again. Each time told with epoch and timeline.
 */
extern Session *pair_door(Scene *scene, Pair *pair, Cluster *cluster, const char *name);

/*
 * Of the requests on record: how many that were acknowledged CHANGED have no event there, under their number and version.
 * Tells each. Before anything writes there.
 */
extern int64_t pair_count_gone(Scene *scene, Session *lab, const Requests *requests);

#endif
