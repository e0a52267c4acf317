/*
 * Faults as things with a name and a count. A fault is planned, carried out, verified, and recorded in the history;
 * one that was planned and never fired makes its scenario UNKNOWN.
 */
#ifndef COUNTERPROOF_FAULT_H
#define COUNTERPROOF_FAULT_H

#include "cluster.h"
#include "history.h"
#include "proc.h"
#include "session.h"

typedef struct
{
	char name[128]; /* "kill -9 like-consumer at consumer.before_commit" */
	int fired;
	char effect[128]; /* what was verified: "exit by signal 9" */
} Fault;

/* SIGKILL to a program, wait, confirm that signal 9 was the cause. */
extern bool fault_kill(Fault *fault, History *history, Process *process, Deadline deadline) MUST_CHECK;

/* `pg_ctl restart -m immediate`, and confirm that another postmaster runs afterwards. */
extern bool fault_restart_immediate(Fault *fault, History *history, Cluster *cluster, Deadline deadline) MUST_CHECK;

/* Immediate stop of a server that stays down, and confirm that it accepts nobody. */
extern bool fault_stop_immediate(Fault *fault, History *history, Cluster *cluster) MUST_CHECK;

/* Drop a client's socket as a killed client would, and confirm through `control` that its backend is gone. Frees `victim`. */
extern bool fault_abandon(Fault *fault, History *history, Session *control, Session *victim,
						  Deadline deadline) MUST_CHECK;

#endif
