/*
 * A program of a file: started as the caller in a process group of its own that the reaper knows, and ended with all its
 * group. It is over when its first process has ended; what is left of its group then is killed.
 */
#ifndef COUNTERPROOF_CRASHPOINTS_PROGRAM_H
#define COUNTERPROOF_CRASHPOINTS_PROGRAM_H

#include "../proc.h"
#include "plan.h"

/* What a program finds. */
typedef struct
{
	const char *host; /* PGHOST */
	int port;
	const char *database;
	const char *programs;  /* the folder of the built programs: first in PATH */
	const char *directory; /* CRASHPOINTS_DIR: where the file lies */
	const char *work;      /* its working directory */
	const char *output;    /* its stdout and stderr are appended there */
} Surroundings;

typedef struct
{
	Process *process; /* NULL: not started, or over and freed */
	int descriptor;   /* polls readable once its first process has ended */
	int slot;         /* with the reaper */
	ProcessEnd end;
} Program;

/* false: reported. */
extern bool program_start(Program *program, const CrashCommand *command, const Surroundings *around) MUST_CHECK;

extern bool program_runs(const Program *program); /* it was started, and its end was not taken */
extern void program_signal(const Program *program, int signal_number);

/*
 * SIGKILL to what there is of its group, and take its status: program->end is signal 9 when it still ran, else how it had
 * ended by itself. Does nothing to one that does not run. false: reported, it could not be waited for.
 */
extern bool program_end(Program *program);

extern bool program_succeeded(const Program *program); /* it ended by itself with 0 */

#endif
