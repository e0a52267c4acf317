/*
 * Programs as children: start, read their lines, wait with a deadline, kill and confirm the cause; who is left.
 *
 * A process handle belongs to one thread. Descriptors are close-on-exec; the child gets stdin, stdout, stderr only. Its
 * stdin is empty where its output goes to a file or is collected; signals are at their defaults in it.
 * An interrupt (see base.h) ends the waits of process_wait(), process_kill() and process_run(): they answer false.
 */
#ifndef COUNTERPROOF_PROC_H
#define COUNTERPROOF_PROC_H

#include <sys/types.h>

#include "base.h"

typedef struct Process Process;

typedef enum
{
	ENDED_UNSET = 0, /* still running */
	ENDED_EXIT,
	ENDED_SIGNAL
} EndedHow;

typedef struct
{
	EndedHow how;
	int code; /* exit code, or the signal's number */
} ProcessEnd;

/* Another account to run as. Only root can; others pass NULL. */
typedef struct
{
	uid_t uid;
	gid_t gid;
	const char *name;
} Account;

typedef struct
{
	const char *const *argv; /* argv[0] is the path that is executed, absolute or relative to this process */
	const char *const *env;  /* NAME=value added to this process's environment; NULL-ended, or NULL */
	const char *directory;   /* working directory of the child, or NULL */
	const Account *account;  /* drop to it before exec, or NULL */
	const char *output_file; /* stdout and stderr are appended to this file; NULL: stdout is read line by line here */
	bool errors_too;         /* stderr is read with stdout, in one stream; without it, it is this process's own */
	bool own_group;          /* a process group of its own, which the terminal's Ctrl-C does not reach */
	bool own_session;        /* a session, and so a group, of its own */
	bool dies_with_us;       /* SIGKILL when the thread that started it ends: until the reaper knows its group */
} ProcessSpec;

/* NULL: reported, with the command. An exec that fails in the child is found here too. */
extern Process *process_start(const ProcessSpec *spec) MUST_CHECK;
extern pid_t process_pid(const Process *process);

/* The next line of stdout without its newline. false: end of file or deadline, *ended says which; reports nothing. */
extern bool process_read_line(Process *process, Text *line, Deadline deadline, bool *ended) MUST_CHECK;

/* Read lines until one equals `expected`. false: reported with the last line seen and how the process ended. */
extern bool process_await_line(Process *process, const char *expected, Deadline deadline) MUST_CHECK;

extern bool process_write_line(Process *process, const char *line) MUST_CHECK; /* to its stdin */

/* false: reported, it still runs. May be asked again after it ended. */
extern bool process_wait(Process *process, Deadline deadline, ProcessEnd *end) MUST_CHECK;

/* Has it ended? true: *end says how. Does not wait, reports nothing. */
extern bool process_poll(Process *process, ProcessEnd *end) MUST_CHECK;

/* Polls readable once it has ended; the caller closes it. -1: reported. */
extern int process_descriptor(const Process *process) MUST_CHECK;

/*
 * Send a signal, wait, and confirm that this signal was the cause. false: reported, e.g. it had ended by itself before
 * (then the kill was not exercised) or ended with another status.
 */
extern bool process_kill(Process *process, int signal_number, Deadline deadline) MUST_CHECK;

/*
 * Stop one of its threads, whose name begins so, and no other: what a program does whose disk hangs,
 * say. It stays so until the program ends, by process_kill() from this thread, or this thread does. false: reported; the
 * system may forbid it (ptrace), or there is no such thread.
 */
extern bool process_hold_thread(Process *process, const char *name) MUST_CHECK;

/* Close pipes; a child that still runs is killed with SIGKILL and reaped first. NULL allowed. */
extern void process_free(Process *process);

/* Free the handle and let the program run on; nobody here waits for it any more. NULL allowed. */
extern void process_release(Process *process);

/* A handle for an orphan that this process has inherited. It has no pipes. NULL: reported, it is no child of ours. */
extern Process *process_adopt(pid_t pid) MUST_CHECK;

/* The path of a program: in the folder `first` (may be NULL), else in PATH. Caller frees. NULL: not there; reports nothing. */
extern char *process_find_program(const char *name, const char *first) MUST_CHECK;

/*
 * Run to the end. Output (stdout and stderr) is appended to `output` (may be NULL). false: not started, or past deadline or
 * interrupted: then it is ended by SIGTERM, soon by SIGKILL, with its group if it has one of its own.
 */
extern bool process_run(const ProcessSpec *spec, Deadline deadline, Text *output, ProcessEnd *end) MUST_CHECK;

extern void process_end_describe(ProcessEnd end, Text *text); /* "exit 3", "signal 9 (Killed)", "still running" */

/*
 * Remove a directory and all below it, as its owner when root: a name that this account swaps for a link meanwhile harms
 * only the account. One that is not there is no failure. false: reported.
 */
extern bool process_remove_directory(const char *directory, Deadline deadline) MUST_CHECK;


/* --- who is left --- */

/* Make this process the one that inherits its orphaned descendants (child subreaper). false: reported. */
extern bool process_adopt_orphans(void) MUST_CHECK;

/*
 * Every present child of this process that waitpid() still counts as running: fills pids, at most `most`; the number
 * found. Zombies among the unknown are reaped on the way.
 */
extern int process_children(pid_t *pids, int most);

/* The arguments of a pid as far as they fit, each ended by a zero; the bytes filled, 0 when it is gone. */
extern size_t process_arguments(pid_t pid, char *buffer, size_t size);

/* The same as one line, for a report; empty when it is gone. */
extern void process_describe(pid_t pid, Text *text);

/* What the kernel says of a pid. With its birth it is a name that is not used again. */
typedef struct
{
	char command[16]; /* the program's short name */
	char state;       /* 'Z' for one that has ended and was not waited for */
	pid_t parent;
	pid_t group;
	pid_t session;
	uint64_t birth; /* clock ticks since boot */
} ProcessStatus;

extern bool process_status(pid_t pid, ProcessStatus *status) MUST_CHECK; /* false: no such process */

/* Every process of the machine that can be seen, zombies included. */
typedef void (*ProcessVisit)(void *context, pid_t pid, const ProcessStatus *status);
extern void process_visit_all(ProcessVisit visit, void *context);

#endif
