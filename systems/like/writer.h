/*
 * A client of the write path that is a program of its own: it sends a list of requests, in order, each until it is
 * answered. "Set to liked" is safe to repeat, so what was lost or unknown is sent again over a new connection.
 */
#ifndef COUNTERPROOF_WRITER_H
#define COUNTERPROOF_WRITER_H

#include "like.h"

/* As like_prepare() and like_set(). */
typedef struct
{
	bool (*prepare)(Session *session);
	bool (*set)(Session *session, int64_t user, int64_t item, bool want, LikeResult *result);
} WriterSteps;

/* The program: --conninfo STRING REQUEST.., where REQUEST is USER:ITEM:like or USER:ITEM:unlike. Says ACKED N. */
extern ExitCode writer_main(int argc, char **argv, const WriterSteps *steps);

#endif
