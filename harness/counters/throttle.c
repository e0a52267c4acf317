#include "throttle.h"

#include <unistd.h>

#define LOOK_MS 500       /* between two looks while waiting */
#define LONG_MS 604800000 /* only an interrupt ends the wait */
#define MB 1048576

typedef struct
{
	Session *session;
	const CountersRepair *limits;
	Deadline next; /* look */
	bool told;
} Throttle;

static bool
active_queries(Session *session, int64_t *active)
{
	return session_query_int(session, active,
							 "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND backend_type = "
							 "'client backend' AND pid <> pg_backend_pid() AND application_name <> "
							 "current_setting('application_name')",
							 NO_ARGS);
}

/* In bytes of WAL not replayed, of the replica that is furthest behind. *known: every one of them could be read, and there is one. */
static bool
replica_lag(Session *session, int64_t *bytes, bool *known)
{
	SqlResult *result;

	if (!session_query(session, &result,
					   "SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)), 0)::bigint, "
					   "count(*) > 0 AND count(*) = count(replay_lsn) FROM pg_stat_replication",
					   NO_ARGS))
	{
		return false;
	}
	*bytes = sql_int(result, 0, 0);
	*known = sql_bool(result, 0, 1);
	sql_free(result);
	return true;
}

bool
throttle_possible(Session *session, const CountersRepair *limits)
{
	int64_t bytes;
	bool known = true;

	if (limits->max_lag_mb > 0 && !replica_lag(session, &bytes, &known))
	{
		return false;
	}
	if (!known)
	{
		report_error("--max-lag: the lag is unknown: no replica is connected, or this role cannot see it (pg_monitor)");
	}
	return known;
}

/* What is in the way now, appended to `why`; nothing when nothing is. */
static bool
obstacle(Session *session, const CountersRepair *limits, Text *why)
{
	int64_t value;
	bool known;

	if (limits->pause_file != NULL && access(limits->pause_file, F_OK) == 0)
	{
		text_append(why, "%s is there", limits->pause_file);
	}
	if (limits->max_load > 0)
	{
		if (!active_queries(session, &value))
		{
			return false;
		}
		if (value > limits->max_load)
		{
			text_append(why, "%s%lld active queries", why->length > 0 ? ", " : "", (long long) value);
		}
	}
	if (limits->max_lag_mb > 0)
	{
		if (!replica_lag(session, &value, &known))
		{
			return false;
		}
		if (!known || value > limits->max_lag_mb * (int64_t) MB)
		{
			text_append(why, "%s", why->length > 0 ? ", " : "");
			text_append(why, known ? "a replica is %lld MB behind" : "replica lag unknown", (long long) (value / MB));
		}
	}
	return true;
}

static ProbeAnswer
look(void *context, Text *seen)
{
	Throttle *throttle = context;

	if (!deadline_passed(throttle->next))
	{
		return PROBE_AGAIN;
	}
	if (!obstacle(throttle->session, throttle->limits, seen))
	{
		return PROBE_FAILED;
	}
	if (seen->length == 0)
	{
		if (throttle->told)
		{
			report_info("goes on");
		}
		return PROBE_DONE;
	}
	if (!throttle->told)
	{
		report_info("waits: %s", text_get(seen));
		throttle->told = true;
	}
	throttle->next = deadline_in_ms(LOOK_MS);
	return PROBE_AGAIN;
}

bool
throttle_wait(Session *session, const CountersRepair *limits)
{
	Throttle throttle = {.session = session, .limits = limits};

	return wait_until("the limits to be kept", deadline_in_ms(LONG_MS), look, &throttle) || interrupt_seen();
}
