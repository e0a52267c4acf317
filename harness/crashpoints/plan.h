/*
 * A file of crash points as it was read: what to set up, what to run, how to recover, and what must hold. libcyaml and a
 * schema do the reading; where in the file something stands is asked of libyaml, on which libcyaml rests.
 */
#ifndef COUNTERPROOF_CRASHPOINTS_PLAN_H
#define COUNTERPROOF_CRASHPOINTS_PLAN_H

#include "../crashpoints.h"

/* Arguments for execve(), ended by NULL; a string of the file is behind `/bin/sh -c`. NULL: not given. */
typedef struct
{
	const char **argv;
} CrashCommand;

typedef struct
{
	char *name;
	char *sql; /* must return no row */
} CrashInvariant;

typedef struct
{
	char *path;      /* as it was given */
	char *directory; /* absolute, of the file */
	char *id;        /* the file's name without folder and ending */
	char *setup;     /* SQL, or NULL */
	char *setup_file;
	char *server; /* lines for the server's postgresql.conf, or NULL */
	char *needs;  /* a program of the machine without which the file is skipped, or NULL */
	CrashCommand setup_program;
	CrashCommand program;
	CrashCommand recover; /* the program itself when the file says nothing */
	CrashCommand concurrent;
	CrashInvariant *invariants;
	int invariant_count;
	CrashFault faults[CRASH_FAULTS]; /* in the order of the enum */
	int fault_count;
	int timeout_ms;
	int pause_ms;
	int settle_ms;          /* 0: client_connection_check_interval stays off */
	bool expects_violation; /* a program known to be wrong: that it is found is the pass */
	bool turns;             /* of each turn, the points at its two ends */
	bool tcp;
} CrashPlan;

/* NULL: reported, with line and column where something in the file is wrong. */
extern CrashPlan *crash_plan_read(const char *path) MUST_CHECK;
extern void crash_plan_free(CrashPlan *plan); /* NULL allowed */

#endif
