/*
 * What the cases of the four ways to keep a count share: a like sent by a way, the items that a snapshot finds off, writers at
 * once with a sampler, and who waits for whom.
 */
#ifndef COUNTERPROOF_WAY_LAB_H
#define COUNTERPROOF_WAY_LAB_H

#include "32/recovery_lab.h"

typedef struct
{
	const char *file; /* below sql/, loaded over the like system */
	const char *set;  /* sends a like: user, item, wanted */
	const char *off;  /* how many items have a count that is not that of their facts */
} Way;

enum
{
	WAY_ITEMS = 3,
	WAY_SAMPLES_LEAST = 20
};

/* The like system with the way's file, or the twin's, over it. */
extern Session *way_lab(Scene *scene, const Way *way);

extern void set_by(Scene *scene, Session *session, const Way *way, int64_t user, int64_t item, bool want);
extern int64_t items_off(Scene *scene, Session *session, const Way *way);

/* Writers at once, and a sampler: *samples snapshots, of which *off found an item off. */
extern void run_way_storm(Scene *scene, const Way *way, int64_t *samples, int64_t *off);

/* Checks: a like of `item`, sent while one of item 1 is held before its commit, is seen to wait for it, or ends before it. */
extern void check_second(Scene *scene, Session *lab, const Way *way, int64_t item, bool waits, const char *what);

#endif
