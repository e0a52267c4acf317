#include "fault.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Only what was verified comes here. */
static bool
record_firing(Fault *fault, History *history, const char *effect)
{
	char *line;
	bool ok;

	fault->fired++;
	snprintf(fault->effect, sizeof(fault->effect), "%s", effect);
	if (history == NULL)
	{
		return true;
	}
	line = string_format("%s: %s", fault->name, effect);
	ok = history_fault(history, line);
	free(line);
	return ok;
}

bool
fault_kill(Fault *fault, History *history, Process *process, Deadline deadline)
{
	return process_kill(process, SIGKILL, deadline) && record_firing(fault, history, "exit by signal 9");
}

bool
fault_restart_immediate(Fault *fault, History *history, Cluster *cluster, Deadline deadline)
{
	pid_t before;
	pid_t after;

	/* A server that had ended, or is about to, is not one that this fault stopped. */
	if (!cluster_verify_running(cluster))
	{
		return false;
	}
	before = cluster_postmaster(cluster);
	if (!cluster_restart_immediate(cluster, deadline) || !cluster_verify_running(cluster))
	{
		return false;
	}
	after = cluster_postmaster(cluster);
	if (after == before)
	{
		report_error("%s: postmaster %d still runs after the restart", fault->name, (int) before);
		return false;
	}
	return record_firing(fault, history, "another postmaster runs");
}


/* --- abandoning a client --- */

typedef struct
{
	Session *control;
	int pid;
} BackendProbe;

/* A backend leaves pg_stat_activity after its transaction was aborted and its locks were released. */
static bool
count_backends(const BackendProbe *probe, int64_t *count)
{
	return session_query_int(probe->control, count, "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE pid = $1",
							 ARGS(arg_int(probe->pid)));
}

static ProbeAnswer
probe_backend_gone(void *context, Text *seen)
{
	const BackendProbe *probe = context;
	int64_t count;

	if (!count_backends(probe, &count))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "%" PRId64 " backend with pid %d", count, probe->pid);
	return count == 0 ? PROBE_DONE : PROBE_AGAIN;
}

bool
fault_abandon(Fault *fault, History *history, Session *control, Session *victim, Deadline deadline)
{
	BackendProbe probe = {.control = control, .pid = session_backend_pid(victim)};
	int64_t count;
	bool counted = count_backends(&probe, &count);

	session_abandon(victim);
	if (!counted)
	{
		return false;
	}
	if (count != 1)
	{
		report_error("%s: backend %d was gone before its client was", fault->name, probe.pid);
		return false;
	}
	return wait_until(fault->name, deadline, probe_backend_gone, &probe) &&
		   record_firing(fault, history, "its backend is gone");
}
