/*
 * Eight writers that never rest: threads that insert, delete, move and soft-delete usages of media.sql by its flow, until they are
 * told to stop, and what they met meanwhile.
 */
#ifndef COUNTERPROOF_REPAIR_WRITERS_H
#define COUNTERPROOF_REPAIR_WRITERS_H

#include "lab.h"

typedef struct Writers Writers;

/* Start them over the media 1..media, and wait until each has written. They work on until writers_stop(). */
extern Writers *writers_start(Scene *scene, int64_t media);
extern int64_t writers_done(const Writers *writers); /* transactions so far */

/*
 * Stop and join them, note what they did and the longest that one of them took for a transaction, and two checks: they wrote
 * beside the tool (since `done_before`), and saw no error but 40001 and 40P01, which they retry. Frees them.
 */
extern void writers_stop(Scene *scene, Writers *writers, int64_t done_before, const char *when);

#endif
