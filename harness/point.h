/*
 * Named stops inside a program under test. Nothing is armed by default; then reaching a point costs one comparison.
 *
 * A program arms one with point_arm_pause() from its own option; a thread of a case arms with point_arm_call().
 * Points are armed before the threads that reach them start.
 */
#ifndef COUNTERPROOF_POINT_H
#define COUNTERPROOF_POINT_H

#include "base.h"

/*
 * The program is here. `detail` is a printf format for what a person needs to know, e.g. "batch=2 seq=26..50".
 * Counts the hit; does what is armed for this name at this hit.
 */
extern void point_reach(const char *name, const char *detail, ...) PRINTF_LIKE(2, 3);

/* At the nth hit: print `PAUSED <name> <detail>` on stdout, then wait for a line on stdin; end of file releases too. */
extern void point_arm_pause(const char *name, int nth);

/* The same by an option's value, NAME or NAME:N, where the name is one of `known`, ended by NULL. false: reported. */
extern bool point_arm_option(const char *option, const char *value, const char *const *known) MUST_CHECK;

/* At the nth hit: call back in the thread that reached it. */
typedef void (*PointCall)(void *context, const char *name, const char *detail);
extern void point_arm_call(const char *name, int nth, PointCall call, void *context);

extern void point_disarm_all(void);

/*
 * From here on every point that is reached is an event of `actor` in this record (trace.h), a word NAME=A..B of its detail
 * saying that NAME was seen up to B. false: reported.
 */
extern bool point_record(const char *path, const char *actor) MUST_CHECK;

/* "NAME" or "NAME:N" as an option's value. false: not of that form; reports nothing. */
extern bool point_parse(const char *value, char *name, size_t name_size, int *nth) MUST_CHECK;

#endif
