#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../scenario/message.h"
#include "reaper.h"

/* What a case ended in order may need to be gone: the last backends of a server whose postmaster was reaped. */
#define QUIET_MS 100
#define END_CHILDREN_MS 5000
#define CHILDREN_MAX 256

typedef enum
{
	CASE_ENDED = 1,
	CASE_PAST_DEADLINE,
	CASE_INTERRUPTED
} CaseWait;

typedef struct
{
	const Scenario *scenario;
	const SceneSetup *setup;
	pid_t runner;
} Host;


static void
say_broken(const Host *host, const char *reason)
{
	/* a failing pipe means that the runner is gone; then the reaper is at work */
	(void) !message_send(host->setup->report_fd, &(Message){.kind = MESSAGE_BROKEN, .text = reason});
}


/* The case's process: waits until its group is known to the reaper, then runs. */
static void
case_main(const Host *host, int gate)
{
	sigset_t none;
	char go;

	(void) setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(gate, &go, 1) != 1)
	{
		_exit(EXIT_CODE_BROKEN);
	}
	close(gate);
	if (!process_adopt_orphans())
	{
		_exit(EXIT_CODE_BROKEN);
	}
	exit(scene_main(host->scenario, host->setup));
}


static pid_t
start_case(const Host *host)
{
	int gate[2];
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) != 0)
	{
		report_error("pipe: %s", strerror(errno));
		return -1;
	}
	pid = fork();
	if (pid == 0)
	{
		close(gate[1]);
		case_main(host, gate[0]);
	}
	close(gate[0]);
	if (pid < 0)
	{
		report_error("fork of case %s: %s", host->scenario->id, strerror(errno));
	}
	else
	{
		(void) setpgid(pid, pid);
		if (reaper_enter_group(pid) < 0 || write(gate[1], "g", 1) != 1)
		{
			kill(pid, SIGKILL);
		}
	}
	close(gate[1]);
	return pid;
}


/* Wait for the case's end without reaping it, for the deadline, or for SIGTERM. */
static CaseWait
wait_for_case(const Host *host, pid_t pid, int signal_fd)
{
	Deadline deadline = deadline_in_ms(host->setup->deadline_ms);
	int pid_fd = (int) syscall(SYS_pidfd_open, pid, 0);
	CaseWait answer = CASE_PAST_DEADLINE;

	while (!deadline_passed(deadline))
	{
		struct pollfd fds[] = {{.fd = pid_fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};

		if (poll(fds, LENGTH_OF(fds), deadline_left_ms(deadline)) < 0 && errno != EINTR)
		{
			break;
		}
		if (fds[0].revents != 0)
		{
			answer = CASE_ENDED;
			break;
		}
		if (fds[1].revents != 0)
		{
			answer = CASE_INTERRUPTED;
			break;
		}
	}
	close(pid_fd);
	return answer;
}


static void
judge_end(const Host *host, CaseWait how, int status)
{
	char reason[160] = "";

	if (how == CASE_PAST_DEADLINE)
	{
		snprintf(reason, sizeof(reason), "past its deadline of %d ms", host->setup->deadline_ms);
	}
	else if (how == CASE_INTERRUPTED)
	{
		snprintf(reason, sizeof(reason), "interrupted");
	}
	else if (WIFSIGNALED(status))
	{
		snprintf(reason, sizeof(reason), "its process ended by signal %d (%s)", WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
	}
	else if (WEXITSTATUS(status) != EXIT_CODE_PASS && WEXITSTATUS(status) != EXIT_CODE_BROKEN)
	{
		snprintf(reason, sizeof(reason), "its process ended by itself with exit code %d", WEXITSTATUS(status));
	}
	if (reason[0] != '\0')
	{
		say_broken(host, reason);
	}
}


static ProbeAnswer
probe_no_children(void *context, Text *seen)
{
	pid_t pids[CHILDREN_MAX];
	int *left = context;

	*left = process_children(pids, CHILDREN_MAX);
	text_append(seen, "%d left", *left);
	return *left == 0 ? PROBE_DONE : PROBE_AGAIN;
}


/* Poll without a report: running out of time is an answer here. */
static int
children_after(int ms)
{
	Deadline deadline = deadline_in_ms(ms);
	Text seen = {0};
	int left = 0;

	while (probe_no_children(&left, &seen) != PROBE_DONE && !deadline_passed(deadline))
	{
		backoff_us(1000);
		text_clear(&seen);
	}
	text_free(&seen);
	return left;
}


static bool
may_stay(const Host *host, const char *command)
{
	return host->setup->keep && strstr(command, "postgres") != NULL;
}


/*
 * Everything that is still there after the case is a leak: named, then ended. With --keep a server may stay.
 * A case that was killed had no chance to clean up, so what it leaves is not held against it.
 */
static void
end_leftovers(const Host *host, pid_t case_pid, bool killed)
{
	pid_t pids[CHILDREN_MAX];
	Text report = {0};
	int found = 0;
	int count = 0;

	if (killed || children_after(QUIET_MS) > 0)
	{
		count = process_children(pids, CHILDREN_MAX);
	}
	for (int i = 0; i < count; i++)
	{
		Text command = {0};

		process_describe(pids[i], &command);
		if (!may_stay(host, text_get(&command)))
		{
			text_append(&report, "%spid %d (%s)", found++ > 0 ? ", " : "left running: ", (int) pids[i],
						text_get(&command));
		}
		text_free(&command);
	}
	if (!host->setup->keep || killed)
	{
		Text swept = {0};

		if (reaper_sweep(case_pid, &swept) > 0 && found++ == 0)
		{
			text_append(&report, "left behind: %s", text_get(&swept));
		}
		text_free(&swept);
		for (int i = 0; i < count; i++)
		{
			kill(pids[i], SIGKILL);
		}
		(void) children_after(END_CHILDREN_MS);
	}
	if (found > 0 && !killed)
	{
		say_broken(host, text_get(&report));
	}
	text_free(&report);
}


static void
host_main(const Host *host)
{
	sigset_t term;
	int signal_fd;
	int status = 0;
	pid_t pid;
	CaseWait how;

	(void) setpgid(0, 0);
	notice_set_prefix(host->scenario->id);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_SETMASK, &term, NULL);
	signal_fd = signalfd(-1, &term, SFD_CLOEXEC);
	if (signal_fd < 0 || !process_adopt_orphans() || reaper_enter_group(getpid()) < 0 || getppid() != host->runner)
	{
		say_broken(host, "its host could not start");
		_exit(EXIT_CODE_BROKEN);
	}
	pid = start_case(host);
	if (pid < 0)
	{
		say_broken(host, "its process could not start");
		_exit(EXIT_CODE_BROKEN);
	}
	how = wait_for_case(host, pid, signal_fd);
	if (how != CASE_ENDED)
	{
		kill(-pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
	{
	}
	judge_end(host, how, status);
	end_leftovers(host, pid, how != CASE_ENDED);
	_exit(EXIT_CODE_PASS);
}


pid_t
host_start(const Scenario *scenario, const SceneSetup *setup)
{
	Host host = {scenario, setup, getpid()};
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
	{
		host_main(&host);
	}
	if (pid < 0)
	{
		report_error("fork for case %s: %s", scenario->id, strerror(errno));
	}
	return pid;
}
