#include "faults.h"

#define START_MS 60000

/* A backend whose client is gone. */
typedef struct
{
	Session *control;
	int pid;
	bool waits; /* for a lock */
} Ghost;

static ProbeAnswer
probe_gone(void *context, Text *seen)
{
	Ghost *ghost = context;
	int64_t state;

	if (!session_query_int(ghost->control, &state,
						   "SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1) THEN 0"
						   " WHEN pg_blocking_pids($1) <> '{}' THEN 1 ELSE 2 END",
						   ARGS(arg_int(ghost->pid))))
	{
		return PROBE_FAILED;
	}
	ghost->waits = state == 1;
	text_append(seen, "backend %d is still there", ghost->pid);
	return state == 2 ? PROBE_AGAIN : PROBE_DONE;
}

static bool
await_gone(const FaultSite *site, Ghost *ghost)
{
	*ghost = (Ghost){.control = executor_control(site->executor), .pid = ghost->pid};
	return wait_until("the backend of a lost session to go", deadline_in_ms(site->limit_ms), probe_gone, ghost);
}

static bool
terminate(const FaultSite *site, int pid)
{
	return session_query(executor_control(site->executor), NULL, "SELECT pg_terminate_backend($1)", ARGS(arg_int(pid)));
}

static bool
strike_session(const FaultSite *site, const SpecStep *fault)
{
	Ghost ghost = {.pid = executor_pid(site->executor, fault->session)};

	if (fault->fault == FAULT_TERMINATE && !terminate(site, ghost.pid))
	{
		return false;
	}
	/* a statement under way ends with the words of the server, which a killed client never reads */
	while (fault->fault == FAULT_TERMINATE && executor_is_busy(site->executor, fault->session))
	{
		if (!executor_await_any(site->executor))
		{
			return false;
		}
	}
	executor_drop(site->executor, fault->session);
	return await_gone(site, &ghost);
}

static bool
cancel(const FaultSite *site, const SpecStep *fault)
{
	char why[256];

	if (!session_raw_cancel(executor_session(site->executor, fault->session), why, sizeof(why)))
	{
		report_error("cannot cancel: %s", why);
		return false;
	}
	while (executor_is_busy(site->executor, fault->session))
	{
		if (!executor_await_any(site->executor))
		{
			return false;
		}
	}
	return true;
}

/* Whoever is under way is cut off with the server, not told by it. */
static bool
restart(const FaultSite *site, const Spec *spec)
{
	bool done = cluster_stop_immediate(site->cluster);

	for (int i = 0; i < spec->session_count; i++)
	{
		executor_drop(site->executor, i);
	}
	return done && cluster_start(site->cluster, deadline_in_ms(START_MS)) && executor_revive_control(site->executor);
}

bool
fault_strike(const FaultSite *site, const Spec *spec, const SpecStep *fault, bool *fired)
{
	*fired = fault->fault == FAULT_RESTART || !executor_is_lost(site->executor, fault->session);
	if (fault->fault == FAULT_CANCEL)
	{
		*fired = executor_is_held(site->executor, fault->session);
	}
	if (!*fired || fault->fault == FAULT_PAUSE || fault->fault == FAULT_RESUME)
	{
		return true;
	}
	return fault->fault == FAULT_RESTART  ? restart(site, spec)
		   : fault->fault == FAULT_CANCEL ? cancel(site, fault)
										  : strike_session(site, fault);
}

bool
fault_end_ghosts(const FaultSite *site, const Spec *spec)
{
	for (int i = 0; i < spec->session_count; i++)
	{
		Ghost ghost = {.pid = executor_pid(site->executor, i)};

		if (!executor_is_lost(site->executor, i))
		{
			continue;
		}
		if (!await_gone(site, &ghost) || (ghost.waits && (!terminate(site, ghost.pid) || !await_gone(site, &ghost))))
		{
			return false;
		}
	}
	return true;
}
