#include "fault.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

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

/* Who breaks things is the case. */
static void
trace_fault(const Fault *fault)
{
	trace_tell("case", "fault", "%s", fault->name);
}

bool
fault_kill(Fault *fault, History *history, Process *process, Deadline deadline)
{
	char program[256];

	if (process_arguments(process_pid(process), program, sizeof(program)) == 0)
	{
		program[0] = '\0';
	}
	trace_fault(fault);
	if (!process_kill(process, SIGKILL, deadline))
	{
		return false;
	}
	trace_tell(trace_program(program), "kill", "exit by signal 9");
	return record_firing(fault, history, "exit by signal 9");
}

static void
trace_stop(void)
{
	trace_event(&(TraceEvent){.actor = "server",
							  .kind = "stop",
							  .outcome = TRACE_DONE,
							  .marks = {{.how = TRACE_DURABLE}},
							  .mark_count = 1},
				"stopped at once");
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
	trace_fault(fault);
	trace_stop();
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
	trace_tell("server", "restart", "recovered, another postmaster runs");
	return record_firing(fault, history, "another postmaster runs");
}

bool
fault_stop_immediate(Fault *fault, History *history, Cluster *cluster)
{
	if (!cluster_verify_running(cluster))
	{
		return false;
	}
	trace_fault(fault);
	trace_stop();
	if (!cluster_stop_immediate(cluster))
	{
		return false;
	}
	if (server_accepts(cluster_conninfo(cluster, "postgres")))
	{
		report_error("%s: a server accepts connections there after the stop", fault->name);
		return false;
	}
	return record_firing(fault, history, "its postmaster is gone");
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
	char *actor = string_copy(trace_client(session_name(victim)));

	trace_fault(fault);
	session_abandon(victim);
	if (counted && count != 1)
	{
		report_error("%s: backend %d was gone before its client was", fault->name, probe.pid);
	}
	counted = counted && count == 1 && wait_until(fault->name, deadline, probe_backend_gone, &probe);
	if (counted)
	{
		trace_tell(actor, "kill", "its connection is dropped, its backend is gone");
	}
	free(actor);
	return counted && record_firing(fault, history, "its backend is gone");
}
