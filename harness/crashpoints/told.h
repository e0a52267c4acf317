/*
 * What parent and workers tell each other: packets over a socket pair that keeps them apart. Both ends are the same
 * program in the same run, so a packet's head is a struct as it lies in memory.
 */
#ifndef COUNTERPROOF_CRASHPOINTS_TOLD_H
#define COUNTERPROOF_CRASHPOINTS_TOLD_H

#include "trial.h"

typedef enum
{
	TOLD_UNSET = 0,
	TOLD_REFERENCE, /* to a worker: run the references */
	TOLD_RUN,       /* to a worker: run `point` with `fault` */
	TOLD_READY,     /* its site stands; reason: conninfo of its server */
	TOLD_POINT,     /* one point of the reference, in order */
	TOLD_OUTCOME,   /* what came of the reference or the run */
	TOLD_BROKEN     /* reason: what it could not do */
} ToldKind;

typedef struct
{
	ToldKind kind;
	int index; /* of the pair */
	CrashPoint point;
	CrashFault fault;
	bool unstable; /* also: by kind */
	int connections;
} Told;

/* `outcome` may be NULL. false: the other end is gone, or an interrupt came; reports nothing. */
extern bool told_send(int fd, const Told *told, const TrialOutcome *outcome) MUST_CHECK;

/* Waits. *outcome is filled, its texts the caller's. false: as above. */
extern bool told_receive(int fd, Told *told, TrialOutcome *outcome) MUST_CHECK;

#endif
