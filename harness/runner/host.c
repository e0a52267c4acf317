#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../scenario/message.h"
#include "reaper.h"
#include "session.h"
#include "trace.h"

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
	int host_slot; /* with the reaper, -1: not entered */
	int case_slot;
} Host;

static void
say_broken(const Host *host, const char *reason)
{
	/* a failing pipe means that the runner is gone; then the reaper is at work */
	(void) !message_send(host->setup->report_fd, &(Message){.kind = MESSAGE_BROKEN, .text = reason});
}

/*
 * The case's process: waits until its group is known to the reaper, then runs. It goes with its host, which alone holds
 * its deadline; of a host that has gone before, the gate tells.
 */
static void
case_main(const Host *host, int gate)
{
	sigset_t none;
	char go;

	(void) setpgid(0, 0);
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(gate, &go, 1) != 1)
	{
		_exit(EXIT_CODE_BROKEN);
	}
	close(gate);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!process_adopt_orphans())
	{
		_exit(EXIT_CODE_BROKEN);
	}
	exit(scene_main(host->scenario, host->setup));
}

static pid_t
start_case(Host *host)
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
		host->case_slot = reaper_enter_group(pid);
		if (host->case_slot < 0 || write(gate[1], "g", 1) != 1)
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

/* How many children there are once some time was given to them; 0 as soon as there are none. */
static int
children_after(pid_t *pids, int ms)
{
	Deadline deadline = deadline_in_ms(ms);
	int count;

	while ((count = process_children(pids, CHILDREN_MAX)) > 0 && !deadline_passed(deadline))
	{
		backoff_us(1000);
	}
	return count;
}

/* Of a case that ended by itself and has a server to keep. */
static bool
may_stay(const Host *host, pid_t pid, bool killed)
{
	Text command = {0};
	bool stays;

	process_describe(pid, &command);
	stays = host->setup->keep && !killed && strstr(text_get(&command), "postgres") != NULL;
	text_free(&command);
	return stays;
}

/* Appends those that should not be there; answers how many. */
static int
name_leftovers(const Host *host, const pid_t *pids, int count, Text *report)
{
	int found = 0;

	for (int i = 0; i < count; i++)
	{
		if (!may_stay(host, pids[i], false))
		{
			text_append(report, "%spid %d (", found++ > 0 ? ", " : "left running: ", (int) pids[i]);
			process_describe(pids[i], report);
			text_append(report, ")");
		}
	}
	return found;
}

/* Again and again: the children of one that is ended become ours. */
static void
end_children(const Host *host, bool killed)
{
	Deadline deadline = deadline_in_ms(END_CHILDREN_MS);
	pid_t pids[CHILDREN_MAX];
	bool left = true;

	while (left && !deadline_passed(deadline))
	{
		int count = process_children(pids, CHILDREN_MAX);

		left = false;
		for (int i = 0; i < count; i++)
		{
			if (!may_stay(host, pids[i], killed))
			{
				kill(pids[i], SIGKILL);
				left = true;
			}
		}
		if (left)
		{
			backoff_us(1000);
		}
	}
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

	if (!killed)
	{
		found = name_leftovers(host, pids, children_after(pids, QUIET_MS), &report);
	}
	if (!host->setup->keep || killed)
	{
		Text swept = {0};

		if (reaper_sweep(case_pid, &swept) > 0 && found++ == 0)
		{
			text_append(&report, "left behind: %s", text_get(&swept));
		}
		text_free(&swept);
	}
	end_children(host, killed);
	if (found > 0 && !killed)
	{
		say_broken(host, text_get(&report));
	}
	text_free(&report);
}

/* In a server that is not the lab's, whatever became of the case. */
static void
drop_database(const Host *host)
{
	Session *session = session_open(host->setup->server, host->scenario->id);
	char *sql = string_format("DROP DATABASE IF EXISTS %s WITH (FORCE)", host->setup->database);

	if (session == NULL || !session_execute(session, sql))
	{
		say_broken(host, "its database could not be dropped");
	}
	session_close(session);
	free(sql);
}

/* The runner's open files are not a case's business: nor are the read ends of pipes, which would hide that it has gone. */
static void
close_inherited(int kept)
{
	for (int fd = STDERR_FILENO + 1; fd < kept; fd++)
	{
		(void) close(fd);
	}
	closefrom(kept + 1);
}

/* Into a group of its own, known to the reaper, while the runner still lives. Answers what SIGTERM is read from. */
static int
host_settle(Host *host)
{
	sigset_t term;
	int signal_fd;

	(void) setpgid(0, 0);
	close_inherited(host->setup->report_fd);
	notice_set_prefix(host->scenario->id);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_SETMASK, &term, NULL);
	signal_fd = signalfd(-1, &term, SFD_CLOEXEC);
	host->host_slot = reaper_enter_group(getpid());
	if (signal_fd < 0 || host->host_slot < 0 || !process_adopt_orphans() || getppid() != host->runner)
	{
		return -1;
	}
	return signal_fd;
}

/*
 * A contradiction is the system's defect or the lab's, which nobody can tell from here: a failed check in any case, with both
 * events. A record that cannot be read is the lab's.
 */
static void
say_verdict(const Host *host, const TraceVerdict *verdict)
{
	static const char none[] = "no contradiction";
	bool holds = verdict->contradiction.length == 0;

	if (verdict->numbered > 0 || !holds)
	{
		(void) !message_send(host->setup->report_fd,
							 &(Message){.kind = MESSAGE_LINE,
										.line = holds ? LINE_PASS : LINE_FAIL,
										.text = "trace: what came before by the clocks has the smaller number",
										.expected = none,
										.actual = holds ? none : text_get(&verdict->contradiction)});
	}
}

/* Not file_replace(): nobody else reads it, and it need not be on disk, for which a case would wait. */
static bool
write_execution(const char *path, const Text *execution)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bool done = fd >= 0 && file_write(fd, text_get(execution), execution->length);

	if (!done)
	{
		report_error("cannot write %s: %s", path, strerror(errno));
	}
	if (fd >= 0)
	{
		close(fd);
	}
	return done;
}

/* Whatever became of the case: one that was killed is the one whose picture is wanted. */
static void
conclude_trace(const Host *host)
{
	char *record = string_format("%s/%s", host->setup->folder, TRACE_RECORD);
	char *file = string_format("%s/%s", host->setup->folder, EVIDENCE_TRACE);
	Text execution = {0};
	TraceVerdict verdict = {0};

	if (access(record, F_OK) == 0)
	{
		if (!trace_conclude(record, &execution, &verdict) || !write_execution(file, &execution))
		{
			say_broken(host, "its trace cannot be concluded");
		}
		say_verdict(host, &verdict);
	}
	text_free(&execution);
	text_free(&verdict.contradiction);
	free(record);
	free(file);
}

static void
host_case(Host *host, int signal_fd)
{
	pid_t pid = start_case(host);
	int status = 0;
	CaseWait how;

	if (pid < 0)
	{
		say_broken(host, "its process could not start");
		return;
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
	conclude_trace(host);
	if (host->setup->drop_database)
	{
		drop_database(host);
	}
}

static void
host_main(Host *host)
{
	int signal_fd = host_settle(host);

	if (signal_fd < 0)
	{
		say_broken(host, "its host could not start");
	}
	else
	{
		host_case(host, signal_fd);
	}
	reaper_leave(host->case_slot);
	reaper_leave(host->host_slot);
	_exit(EXIT_CODE_PASS);
}

pid_t
host_start(const Scenario *scenario, const SceneSetup *setup)
{
	Host host = {.scenario = scenario, .setup = setup, .runner = getpid(), .host_slot = -1, .case_slot = -1};
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
