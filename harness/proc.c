#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_BYTES 1024
#define PIPE_BYTES 65536
#define LAST_WORDS_MS 1000 /* how long a report waits to learn how a program ended whose output has ended */
#define KILL_MS 5000       /* SIGKILL is obeyed at once, unless the kernel itself is stuck */
#define PATIENCE_MS 4000   /* for a program that is asked to end before it is killed */
#define LOOK_MS 50         /* a signal that comes just before poll(2) does not end it: an interrupt is looked for */

struct Process
{
	pid_t pid;
	pid_t owner; /* who may wait for it: a forked copy of this handle may not */
	char *command;
	int to_child;   /* -1: no stdin of ours */
	int from_child; /* -1: no output to read */
	Text unread;
	bool end_of_output;
	ProcessEnd end;
	pid_t held; /* a thread of it that is stopped, 0: none */
	Process *next;
};

typedef enum
{
	STREAMS_LINES = 1, /* stdin and stdout are ours; stderr is shared, or goes with stdout */
	STREAMS_FILE,      /* stdout and stderr go to a file */
	STREAMS_COLLECTED  /* stdout and stderr are ours, in one pipe */
} Streams;

/* All that the child needs, made before the fork: between fork and exec only async-signal-safe calls are allowed. */
typedef struct
{
	const ProcessSpec *spec;
	Streams streams;
	pid_t parent;
	char **env;
	int input[2]; /* a socket pair, so that writing to a program that has gone raises no SIGPIPE */
	int output[2];
	int failure[2]; /* closed by a successful exec */
} Launch;

typedef enum
{
	STAGE_SESSION = 1,
	STAGE_ACCOUNT,
	STAGE_DIRECTORY,
	STAGE_OUTPUT,
	STAGE_STREAMS,
	STAGE_EXEC
} Stage;

typedef struct
{
	Stage stage;
	int error;
} LaunchFailure;

/* Children with a handle, so that process_children() never takes a status that a handle waits for. */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static Process *known;


/* --- starting --- */

static const char *
stage_name(Stage stage)
{
	switch (stage)
	{
		case STAGE_SESSION:
			return "own session or group";
		case STAGE_ACCOUNT:
			return "change of account";
		case STAGE_DIRECTORY:
			return "working directory";
		case STAGE_OUTPUT:
			return "output file";
		case STAGE_STREAMS:
			return "standard streams";
		case STAGE_EXEC:
			return "exec";
	}
	return "unknown stage";
}

static bool
env_replaced(const char *entry, const char *const *additions)
{
	for (size_t i = 0; additions != NULL && additions[i] != NULL; i++)
	{
		size_t length = strcspn(additions[i], "=") + 1;

		if (strncmp(entry, additions[i], length) == 0)
		{
			return true;
		}
	}
	return false;
}

/* The array is the caller's; its strings are borrowed. */
static char **
env_merge(const char *const *additions)
{
	size_t count = 0;
	size_t used = 0;
	char **env;

	while (environ != NULL && environ[count] != NULL)
	{
		count++;
	}
	for (size_t i = 0; additions != NULL && additions[i] != NULL; i++)
	{
		count++;
	}
	env = memory_get((count + 1) * sizeof(*env));
	for (size_t i = 0; environ != NULL && environ[i] != NULL; i++)
	{
		if (!env_replaced(environ[i], additions))
		{
			env[used++] = environ[i];
		}
	}
	for (size_t i = 0; additions != NULL && additions[i] != NULL; i++)
	{
		/* execve() takes char * and does not write */
		memcpy(&env[used++], &additions[i], sizeof(char *));
	}
	return env;
}

static char *
command_text(const char *const *argv)
{
	Text text = {0};

	for (size_t i = 0; argv[i] != NULL; i++)
	{
		text_append(&text, "%s%s", i == 0 ? "" : " ", argv[i]);
	}
	return text.data;
}

static void
close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++)
	{
		if (pair[i] >= 0)
		{
			close(pair[i]);
			pair[i] = -1;
		}
	}
}

static void
child_fail(const Launch *launch, Stage stage)
{
	LaunchFailure failure = {.stage = stage, .error = errno};

	if (write(launch->failure[1], &failure, sizeof(failure)) != (ssize_t) sizeof(failure))
	{
		_exit(126);
	}
	_exit(127);
}

/* The descriptors may themselves be 0..2 where the caller had closed those: step above before any is replaced. */
static void
child_connect_streams(const Launch *launch)
{
	int in = launch->input[1];
	int out = launch->output[1];
	int above[2];

	if (launch->streams != STREAMS_LINES)
	{
		in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	if (launch->streams == STREAMS_FILE)
	{
		/* opened by the account itself, which a restarted server must be able to append to */
		out = open(launch->spec->output_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (out < 0)
		{
			child_fail(launch, STAGE_OUTPUT);
		}
	}
	above[0] = fcntl(in, F_DUPFD_CLOEXEC, 3);
	above[1] = fcntl(out, F_DUPFD_CLOEXEC, 3);
	if (above[0] < 0 || above[1] < 0 || dup2(above[0], STDIN_FILENO) < 0 || dup2(above[1], STDOUT_FILENO) < 0)
	{
		child_fail(launch, STAGE_STREAMS);
	}
	if ((launch->streams != STREAMS_LINES || launch->spec->errors_too) && dup2(above[1], STDERR_FILENO) < 0)
	{
		child_fail(launch, STAGE_STREAMS);
	}
#ifdef SYS_close_range
	/* what others left open without O_CLOEXEC; 4 is CLOSE_RANGE_CLOEXEC. An old kernel refuses, and loses only this. */
	(void) syscall(SYS_close_range, 3U, ~0U, 4U);
#endif
}

static void
child_become(const Launch *launch, const Account *account)
{
	if (setgroups(0, NULL) != 0 || setgid(account->gid) != 0 || setuid(account->uid) != 0)
	{
		child_fail(launch, STAGE_ACCOUNT);
	}
}

static void
child_run(const Launch *launch)
{
	const ProcessSpec *spec = launch->spec;
	bool apart = spec->own_session || spec->own_group;
	sigset_t none;
	char **argv;

	if ((spec->own_session && setsid() < 0) || (!spec->own_session && spec->own_group && setpgid(0, 0) != 0))
	{
		child_fail(launch, STAGE_SESSION);
	}
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
	{
		/* ignoring it also discards what the group that was left was sent since the fork */
		(void) signal(signal_number, apart ? SIG_IGN : SIG_DFL);
		(void) signal(signal_number, SIG_DFL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (spec->account != NULL)
	{
		child_become(launch, spec->account);
	}
	/* after the change of account, which would clear it */
	if (spec->dies_with_us && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != launch->parent))
	{
		child_fail(launch, STAGE_SESSION);
	}
	if (spec->directory != NULL && chdir(spec->directory) != 0)
	{
		child_fail(launch, STAGE_DIRECTORY);
	}
	child_connect_streams(launch);
	memcpy(&argv, &spec->argv, sizeof(argv)); /* execve() does not write to it */
	execve(spec->argv[0], argv, launch->env);
	child_fail(launch, STAGE_EXEC);
}

static bool
launch_open(Launch *launch, const char *command)
{
	bool done = pipe2(launch->failure, O_CLOEXEC) == 0;

	if (done && launch->streams == STREAMS_LINES)
	{
		done = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, launch->input) == 0;
	}
	if (done && launch->streams != STREAMS_FILE)
	{
		done = pipe2(launch->output, O_CLOEXEC) == 0 && fcntl(launch->output[0], F_SETFL, O_NONBLOCK) == 0;
	}
	if (!done)
	{
		report_error("cannot make the pipes for %s: %s", command, strerror(errno));
	}
	return done;
}

/* Fork with every signal held back, so that no handler of ours runs in the child. -1: errno. */
static pid_t
launch_fork(const Launch *launch)
{
	sigset_t all;
	sigset_t before;
	pid_t pid;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
	{
		child_run(launch);
	}
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}

static void
known_remove(Process *process)
{
	pthread_mutex_lock(&known_lock);
	for (Process **link = &known; *link != NULL; link = &(*link)->next)
	{
		if (*link == process)
		{
			*link = process->next;
			break;
		}
	}
	pthread_mutex_unlock(&known_lock);
}

/* Fork, and be in the list before anyone can take the new child for an unknown one. */
static bool
launch_start(Launch *launch, Process *process)
{
	pthread_mutex_lock(&known_lock);
	process->pid = launch_fork(launch);
	if (process->pid > 0)
	{
		process->owner = getpid();
		process->next = known;
		known = process;
	}
	pthread_mutex_unlock(&known_lock);
	if (process->pid < 0)
	{
		report_error("cannot fork for %s: %s", process->command, strerror(errno));
		return false;
	}
	return true;
}

/* The failure pipe ends silently when exec has succeeded. */
static bool
launch_confirm(Launch *launch, Process *process)
{
	LaunchFailure failure = {0};
	ssize_t got;

	close(launch->failure[1]);
	launch->failure[1] = -1;
	do
	{
		got = read(launch->failure[0], &failure, sizeof(failure));
	} while (got < 0 && errno == EINTR);
	if (got == 0)
	{
		return true;
	}
	while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
	{
	}
	process->end = (ProcessEnd){.how = ENDED_EXIT, .code = 127};
	report_error("cannot run %s: %s%s%s: %s", process->command, stage_name(failure.stage),
				 launch->spec->account != NULL ? " as " : "",
				 launch->spec->account != NULL ? launch->spec->account->name : "", strerror(failure.error));
	return false;
}

static Process *
process_launch(const ProcessSpec *spec, Streams streams)
{
	Launch launch = {.spec = spec,
					 .streams = streams,
					 .parent = getpid(),
					 .input = {-1, -1},
					 .output = {-1, -1},
					 .failure = {-1, -1}};
	Process *process = memory_get(sizeof(*process));
	bool done;

	process->to_child = -1;
	process->from_child = -1;
	process->command = command_text(spec->argv);
	launch.env = env_merge(spec->env);
	done = launch_open(&launch, process->command) && launch_start(&launch, process) && launch_confirm(&launch, process);
	if (done)
	{
		process->to_child = launch.input[0];
		process->from_child = launch.output[0];
		launch.input[0] = -1;
		launch.output[0] = -1;
		report_debug("started %s (pid %d)", process->command, (int) process->pid);
	}
	close_pair(launch.input);
	close_pair(launch.output);
	close_pair(launch.failure);
	free(launch.env);
	if (!done)
	{
		process_release(process);
		return NULL;
	}
	return process;
}

Process *
process_start(const ProcessSpec *spec)
{
	return process_launch(spec, spec->output_file != NULL ? STREAMS_FILE : STREAMS_LINES);
}

Process *
process_adopt(pid_t pid)
{
	ProcessStatus status;
	Process *process;
	Text command = {0};

	if (!process_status(pid, &status) || status.parent != getpid())
	{
		report_error("pid %d is no child of this process", (int) pid);
		return NULL;
	}
	process_describe(pid, &command);
	process = memory_get(sizeof(*process));
	process->pid = pid;
	process->owner = getpid();
	process->to_child = -1;
	process->from_child = -1;
	process->command = command.data != NULL ? command.data : string_copy(status.command);
	pthread_mutex_lock(&known_lock);
	process->next = known;
	known = process;
	pthread_mutex_unlock(&known_lock);
	return process;
}

pid_t
process_pid(const Process *process)
{
	return process->pid;
}

void
process_release(Process *process)
{
	if (process == NULL)
	{
		return;
	}
	known_remove(process);
	if (process->to_child >= 0)
	{
		close(process->to_child);
	}
	if (process->from_child >= 0)
	{
		close(process->from_child);
	}
	text_free(&process->unread);
	free(process->command);
	free(process);
}


/* --- its end --- */

static ProcessEnd
end_decode(int status)
{
	if (WIFSIGNALED(status))
	{
		return (ProcessEnd){.how = ENDED_SIGNAL, .code = WTERMSIG(status)};
	}
	return (ProcessEnd){.how = ENDED_EXIT, .code = WEXITSTATUS(status)};
}

/* A program has not ended before the status of its held thread was taken. */
static void
held_collect(Process *process)
{
	int status = 0;

	if (process->held != 0 && waitpid(process->held, &status, __WALL | WNOHANG) == process->held &&
		(WIFEXITED(status) || WIFSIGNALED(status)))
	{
		process->held = 0;
	}
}

/* Take the status if there is one. Answers whether the program has ended. */
static bool
end_collect(Process *process)
{
	int status = 0;
	pid_t got;

	if (process->end.how != ENDED_UNSET)
	{
		return true;
	}
	held_collect(process);
	do
	{
		got = waitpid(process->pid, &status, WNOHANG);
	} while (got < 0 && errno == EINTR);
	if (got == process->pid)
	{
		process->end = end_decode(status);
	}
	else if (got < 0)
	{
		report_error("the status of %s (pid %d) was taken by someone else: %s", process->command, (int) process->pid,
					 strerror(errno));
		process->end = (ProcessEnd){.how = ENDED_EXIT, .code = -1};
	}
	return process->end.how != ENDED_UNSET;
}

/* A descriptor that polls readable once the child has ended. -1: the kernel has none, poll at intervals. */
static int
end_descriptor(const Process *process)
{
	return (int) syscall(SYS_pidfd_open, process->pid, 0);
}

static int
look_ms(Deadline deadline)
{
	int left_ms = deadline_left_ms(deadline);

	return left_ms < LOOK_MS ? left_ms : LOOK_MS;
}

static bool
end_await(Process *process, Deadline deadline)
{
	struct pollfd ending = {.events = POLLIN};

	if (end_collect(process))
	{
		return true;
	}
	ending.fd = end_descriptor(process);
	while (!end_collect(process) && !deadline_passed(deadline) && !interrupt_presses())
	{
		if (ending.fd < 0)
		{
			backoff_us(500);
		}
		else if (poll(&ending, 1, look_ms(deadline)) < 0 && errno != EINTR)
		{
			break;
		}
	}
	if (ending.fd >= 0)
	{
		close(ending.fd);
	}
	return end_collect(process);
}

bool
process_wait(Process *process, Deadline deadline, ProcessEnd *end)
{
	bool ended = end_await(process, deadline);

	if (!ended && !interrupt_presses())
	{
		report_error("%s (pid %d) still runs at its deadline", process->command, (int) process->pid);
	}
	*end = process->end;
	return ended;
}

bool
process_poll(Process *process, ProcessEnd *end)
{
	bool ended = end_collect(process);

	*end = process->end;
	return ended;
}

int
process_descriptor(const Process *process)
{
	int fd = end_descriptor(process);

	if (fd < 0)
	{
		report_error("no descriptor for %s (pid %d): %s", process->command, (int) process->pid, strerror(errno));
	}
	return fd;
}

bool
process_kill(Process *process, int signal_number, Deadline deadline)
{
	Text how = {0};
	bool done = false;

	if (end_collect(process))
	{
		process_end_describe(process->end, &how);
		report_error("cannot kill %s (pid %d) with signal %d: it had already ended: %s", process->command,
					 (int) process->pid, signal_number, text_get(&how));
		goto out;
	}
	if (kill(process->pid, signal_number) != 0)
	{
		report_error("cannot send signal %d to %s (pid %d): %s", signal_number, process->command, (int) process->pid,
					 strerror(errno));
		goto out;
	}
	if (!end_await(process, deadline))
	{
		if (!interrupt_presses())
		{
			report_error("%s (pid %d) still runs after signal %d", process->command, (int) process->pid, signal_number);
		}
		goto out;
	}
	done = process->end.how == ENDED_SIGNAL && process->end.code == signal_number;
	if (!done)
	{
		process_end_describe(process->end, &how);
		report_error("%s (pid %d) did not end by signal %d but by %s", process->command, (int) process->pid,
					 signal_number, text_get(&how));
	}
out:
	text_free(&how);
	return done;
}

/* By the beginning of its name in /proc; 0: there is none. */
static pid_t
thread_find(pid_t pid, const char *name)
{
	char *path = string_format("/proc/%d/task", (int) pid);
	DIR *directory = opendir(path);
	const struct dirent *entry;
	pid_t found = 0;

	while (directory != NULL && found == 0 && (entry = readdir(directory)) != NULL)
	{
		ProcessStatus status;
		int64_t thread;

		if (string_to_int64(entry->d_name, 1, INT32_MAX, &thread) && process_status((pid_t) thread, &status) &&
			strncmp(status.command, name, strlen(name)) == 0)
		{
			found = (pid_t) thread;
		}
	}
	if (directory != NULL)
	{
		closedir(directory);
	}
	free(path);
	return found;
}

bool
process_hold_thread(Process *process, const char *name)
{
	pid_t thread = thread_find(process->pid, name);
	int status = 0;

	if (thread == 0)
	{
		report_error("%s (pid %d) has no thread %s", process->command, (int) process->pid, name);
		return false;
	}
	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0 ||
		waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status))
	{
		report_error("cannot hold thread %s of %s (pid %d): %s", name, process->command, (int) process->pid,
					 strerror(errno));
		return false;
	}
	process->held = thread;
	return true;
}

void
process_free(Process *process)
{
	if (process != NULL && process->owner == getpid() && !end_collect(process))
	{
		interrupt_defer();
		(void) kill(process->pid, SIGKILL);
		if (!end_await(process, deadline_in_ms(KILL_MS)))
		{
			report_error("%s (pid %d) does not go after SIGKILL", process->command, (int) process->pid);
		}
		interrupt_resume();
	}
	process_release(process);
}

void
process_end_describe(ProcessEnd end, Text *text)
{
	switch (end.how)
	{
		case ENDED_UNSET:
			text_append(text, "still running");
			break;
		case ENDED_EXIT:
			text_append(text, "exit %d", end.code);
			break;
		case ENDED_SIGNAL:
			text_append(text, "signal %d (%s)", end.code, strsignal(end.code));
			break;
	}
}


/* --- its lines --- */

/* Move what has arrived into unread: at most what a pipe holds, so that a program that never stops writing is left in time. */
static void
output_collect(Process *process)
{
	char buffer[PIPE_BYTES];
	size_t room = sizeof(buffer);

	while (room > 0)
	{
		ssize_t got = read(process->from_child, buffer, room);

		if (got > 0)
		{
			text_append_bytes(&process->unread, buffer, (size_t) got);
			room -= (size_t) got;
		}
		else if (got < 0 && errno == EAGAIN)
		{
			return;
		}
		else if (got == 0 || errno != EINTR)
		{
			process->end_of_output = true;
			return;
		}
	}
}

static bool
line_is_unread(const Process *process)
{
	return process->unread.length > 0 && memchr(process->unread.data, '\n', process->unread.length) != NULL;
}

/* The first line of unread; the rest of an output that has ended counts as one. */
static bool
line_take(Process *process, Text *line)
{
	size_t length = process->unread.length;
	const char *newline = length > 0 ? memchr(process->unread.data, '\n', length) : NULL;
	size_t taken;

	if (newline == NULL && (length == 0 || !process->end_of_output))
	{
		return false;
	}
	taken = newline != NULL ? (size_t) (newline - process->unread.data) : length;
	text_clear(line);
	text_append_bytes(line, process->unread.data, taken);
	taken += newline != NULL ? 1 : 0;
	memmove(process->unread.data, process->unread.data + taken, length - taken);
	process->unread.length = length - taken;
	process->unread.data[process->unread.length] = '\0';
	return true;
}

bool
process_read_line(Process *process, Text *line, Deadline deadline, bool *ended)
{
	struct pollfd readable = {.fd = process->from_child, .events = POLLIN};

	if (process->from_child < 0)
	{
		process->end_of_output = true;
	}
	for (;;)
	{
		if (line_take(process, line))
		{
			*ended = false;
			return true;
		}
		if (process->end_of_output)
		{
			*ended = true;
			return false;
		}
		if (poll(&readable, 1, deadline_left_ms(deadline)) > 0)
		{
			output_collect(process);
		}
		else if (deadline_passed(deadline))
		{
			*ended = false;
			return false;
		}
	}
}

bool
process_await_line(Process *process, const char *expected, Deadline deadline)
{
	Text line = {0};
	Text last = {0};
	Text how = {0};
	bool ended = false;
	bool found = false;
	bool more = true;

	/* past the deadline only what has arrived: a program that never stops printing would go on for ever */
	while (more && !found)
	{
		more = process_read_line(process, &line, deadline, &ended);
		if (more)
		{
			text_clear(&last);
			text_append_bytes(&last, text_get(&line), line.length);
			found = strcmp(text_get(&line), expected) == 0;
			more = !deadline_passed(deadline) || line_is_unread(process);
		}
	}
	if (!found)
	{
		if (ended)
		{
			(void) end_await(process, deadline_earlier(deadline, deadline_in_ms(LAST_WORDS_MS)));
		}
		else
		{
			(void) end_collect(process);
		}
		process_end_describe(process->end, &how);
		report_error("waited for the line \"%s\" of %s (pid %d) until its %s; last line \"%s\", %s", expected,
					 process->command, (int) process->pid, ended ? "output ended" : "deadline", text_get(&last),
					 text_get(&how));
	}
	text_free(&line);
	text_free(&last);
	text_free(&how);
	return found;
}

bool
process_write_line(Process *process, const char *line)
{
	char *whole = string_format("%s\n", line);
	size_t length = strlen(whole);
	size_t sent = 0;

	while (sent < length)
	{
		ssize_t now = send(process->to_child, whole + sent, length - sent, MSG_NOSIGNAL);

		if (now < 0 && errno != EINTR)
		{
			report_error("cannot write \"%s\" to %s (pid %d): %s", line, process->command, (int) process->pid,
						 strerror(errno));
			break;
		}
		sent += now > 0 ? (size_t) now : 0;
	}
	free(whole);
	return sent == length;
}


/* --- running to the end --- */

/* Collect until the program ends, not until its output does: what it left in the background may hold the pipe open. */
static bool
run_collect(Process *process, Deadline deadline)
{
	struct pollfd either[2] = {{.fd = process->from_child, .events = POLLIN},
							   {.fd = end_descriptor(process), .events = POLLIN}};
	bool ended = false;

	while (!ended && !deadline_passed(deadline) && !interrupt_presses())
	{
		if (either[1].fd < 0)
		{
			backoff_us(500);
		}
		else
		{
			(void) poll(either, 2, look_ms(deadline));
		}
		ended = end_collect(process);
		if (either[0].fd >= 0)
		{
			output_collect(process);
		}
		if (process->end_of_output)
		{
			either[0].fd = -1;
		}
	}
	if (either[1].fd >= 0)
	{
		close(either[1].fd);
	}
	return ended;
}

/*
 * Ask, then kill. initdb then ends together with the server that it feeds; one that was killed would leave its shared
 * memory behind for good. Not reaped before its group is killed: until then the group's number is not given to others.
 */
static void
run_break_off(const Process *process, bool own_group)
{
	struct pollfd ending = {.fd = end_descriptor(process), .events = POLLIN};
	Deadline patience = deadline_in_ms(PATIENCE_MS);

	(void) kill(process->pid, SIGTERM);
	while (poll(&ending, 1, deadline_left_ms(patience)) < 0 && errno == EINTR)
	{
	}
	if (own_group)
	{
		(void) kill(-process->pid, SIGKILL);
	}
	if (ending.fd >= 0)
	{
		close(ending.fd);
	}
}

char *
process_find_program(const char *name, const char *first)
{
	const char *path = getenv("PATH");
	char *folders = string_format("%s%s%s", first != NULL ? first : "", first != NULL ? ":" : "",
								  path != NULL ? path : "/usr/bin:/bin");
	char *rest = folders;
	char *folder;
	char *found = NULL;

	while (found == NULL && (folder = strsep(&rest, ":")) != NULL)
	{
		found = string_format("%s/%s", folder[0] != '\0' ? folder : ".", name);
		if (access(found, X_OK) != 0)
		{
			free(found);
			found = NULL;
		}
	}
	free(folders);
	return found;
}

bool
process_run(const ProcessSpec *spec, Deadline deadline, Text *output, ProcessEnd *end)
{
	Process *process = process_launch(spec, spec->output_file != NULL ? STREAMS_FILE : STREAMS_COLLECTED);
	bool ended;

	if (process == NULL)
	{
		return false;
	}
	ended = run_collect(process, deadline);
	if (!ended)
	{
		if (!interrupt_presses())
		{
			report_error("%s (pid %d) did not end in time and is killed", process->command, (int) process->pid);
		}
		run_break_off(process, spec->own_group || spec->own_session);
	}
	if (output != NULL && process->unread.length > 0)
	{
		text_append_bytes(output, process->unread.data, process->unread.length);
	}
	*end = process->end;
	process_free(process);
	return ended;
}

/* Its content as its owner, itself as ourselves: the folder around it may be closed to the owner. */
bool
process_remove_directory(const char *directory, Deadline deadline)
{
	const char *argv[] = {"/bin/sh", "-c", "rm -rf ./* ./.[!.]* ./..?*", NULL};
	Account owner = {.name = "the directory's owner"};
	ProcessSpec spec = {.argv = argv, .directory = directory, .own_group = true};
	ProcessEnd end;
	struct stat status;
	Text output = {0};
	bool done;

	if (lstat(directory, &status) != 0 && errno == ENOENT)
	{
		return true;
	}
	if (geteuid() == 0 && status.st_uid != 0)
	{
		owner.uid = status.st_uid;
		owner.gid = status.st_gid;
		spec.account = &owner;
	}
	interrupt_defer();
	done = process_run(&spec, deadline, &output, &end);
	interrupt_resume();
	if (done && (end.how != ENDED_EXIT || end.code != 0))
	{
		report_error("cannot empty %s: %s", directory, text_get(&output));
		done = false;
	}
	if (done && rmdir(directory) != 0)
	{
		report_error("cannot remove %s: %s", directory, strerror(errno));
		done = false;
	}
	text_free(&output);
	return done;
}


/* --- who is left --- */

bool
process_adopt_orphans(void)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
	{
		report_error("cannot become the heir of orphaned processes: %s", strerror(errno));
		return false;
	}
	return true;
}

/* A file of /proc in one read, ended with a zero; the bytes read, 0 when it is gone. */
static size_t
proc_file_read(pid_t pid, const char *name, char *buffer, size_t size)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
	{
		return 0;
	}
	got = read(fd, buffer, size - 1);
	close(fd);
	buffer[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t) got : 0;
}

bool
process_status(pid_t pid, ProcessStatus *status)
{
	char buffer[STATUS_BYTES];
	const char *open_paren;
	const char *close_paren;
	unsigned long long birth;
	int parent, group, session;

	if (proc_file_read(pid, "stat", buffer, sizeof(buffer)) == 0)
	{
		return false;
	}
	/* the name may hold parentheses and blanks: the last one closes it */
	open_paren = strchr(buffer, '(');
	close_paren = strrchr(buffer, ')');
	if (open_paren == NULL || close_paren == NULL ||
		sscanf(close_paren + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			   &status->state, &parent, &group, &session, &birth) != 5)
	{
		return false;
	}
	snprintf(status->command, sizeof(status->command), "%.*s", (int) (close_paren - open_paren - 1), open_paren + 1);
	status->parent = parent;
	status->group = group;
	status->session = session;
	status->birth = birth;
	return true;
}

void
process_visit_all(ProcessVisit visit, void *context)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;

	if (directory == NULL)
	{
		report_error("cannot read /proc: %s", strerror(errno));
		return;
	}
	while ((entry = readdir(directory)) != NULL)
	{
		ProcessStatus status;
		int64_t pid;

		if (string_to_int64(entry->d_name, 1, INT32_MAX, &pid) && process_status((pid_t) pid, &status))
		{
			visit(context, (pid_t) pid, &status);
		}
	}
	closedir(directory);
}

static bool
known_child(pid_t pid)
{
	bool found = false;

	pthread_mutex_lock(&known_lock);
	for (const Process *process = known; process != NULL && !found; process = process->next)
	{
		found = process->pid == pid && process->owner == getpid();
	}
	pthread_mutex_unlock(&known_lock);
	return found;
}

typedef struct
{
	pid_t *pids;
	int most;
	int count;
} ChildList;

static void
child_visit(void *context, pid_t pid, const ProcessStatus *status)
{
	ChildList *list = context;

	if (status->parent != getpid())
	{
		return;
	}
	if (status->state == 'Z')
	{
		if (!known_child(pid))
		{
			(void) waitpid(pid, NULL, WNOHANG);
		}
		return;
	}
	if (list->count < list->most)
	{
		list->pids[list->count] = pid;
	}
	list->count++;
}

int
process_children(pid_t *pids, int most)
{
	ChildList list = {.pids = pids, .most = most};

	process_visit_all(child_visit, &list);
	return list.count < most ? list.count : most;
}

size_t
process_arguments(pid_t pid, char *buffer, size_t size)
{
	return proc_file_read(pid, "cmdline", buffer, size);
}

void
process_describe(pid_t pid, Text *text)
{
	char buffer[STATUS_BYTES];
	size_t length = process_arguments(pid, buffer, sizeof(buffer));

	while (length > 0 && buffer[length - 1] == '\0')
	{
		length--;
	}
	for (size_t i = 0; i < length; i++)
	{
		if (buffer[i] == '\0' || buffer[i] == '\n')
		{
			buffer[i] = ' ';
		}
	}
	if (length > 0)
	{
		text_append_bytes(text, buffer, length);
	}
}
