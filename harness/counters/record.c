#include "record.h"

#include <stdlib.h>
#include <string.h>

/* Classes of advisory locks; the second number is the run's, or a hash of the counter's name. */
#define LOCK_RUN 1129336914
#define LOCK_CLOSING 1129336915
#define LOCK_COUNTER 1129336916

#define ALIVE_MS 5000     /* how long the backend of a client that is gone may take to notice */
#define LONG_MS 604800000 /* a wait that only an interrupt ends */

static const char *const state_names[] = {
	[RUN_FINDING] = "finding",
	[RUN_REPAIRING] = "repairing",
	[RUN_FINISHED] = "finished",
	[RUN_SUPERSEDED] = "superseded",
};


/* --- the tables --- */

bool
record_install(Session *session, const char *folder)
{
	int64_t there;
	char *path;
	bool done;

	if (!session_query_int(session, &there,
						   "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
						   "WHERE nspname = 'counterproof' AND relname IN ('run', 'drift', 'summary', 'since')",
						   NO_ARGS))
	{
		return false;
	}
	if (there == 4)
	{
		return true;
	}
	path = string_format("%s/counters/record.sql", folder);
	done = session_begin(session, READ_COMMITTED) &&
		   session_query(session, NULL, "SELECT pg_advisory_xact_lock($1, 0)", ARGS(arg_int(LOCK_COUNTER))) &&
		   session_execute_file(session, path);
	if (done && session_commit(session) != SQL_OK)
	{
		report_error("cannot make the schema counterproof: %s", session_error(session)->message);
		done = false;
	}
	if (!done)
	{
		session_rollback(session);
		report_error("a role that may create a schema can run %s beforehand", path);
	}
	free(path);
	return done;
}


/* --- what a file says --- */

static void
append_names(Text *text, const char *label, char *const *names, unsigned count)
{
	text_append(text, "%s=(", label);
	for (unsigned i = 0; i < count; i++)
	{
		text_append(text, "%s%s", i > 0 ? "," : "", names[i]);
	}
	text_append(text, ")");
}

static void
append_value(Text *text, const char *label, const char *value)
{
	if (value != NULL)
	{
		text_append(text, " %s=%s", label, value);
	}
}

static void
append_place(Text *text, const char *label, const CounterPlace *place)
{
	if (place != NULL)
	{
		text_append(text, " %s=%s.%s", label, place->table, place->column);
	}
}

static void
append_outbox(Text *text, const CounterOutboxSpec *outbox)
{
	append_value(text, "outbox", outbox->table);
	append_names(text, " outbox_key", outbox->key, outbox->key_count);
	append_value(text, "seq", outbox->seq);
	append_value(text, "delta", outbox->delta);
	append_value(text, "base_seq", outbox->base_seq);
	append_place(text, "processed", outbox->processed);
	append_place(text, "watermark", outbox->watermark);
	append_place(text, "last", outbox->last);
}

void
definition_append(Text *text, const CounterSpec *spec)
{
	text_append(text, "target=%s", spec->target);
	append_names(text, " key", spec->key, spec->key_count);
	append_value(text, "column", spec->column);
	append_value(text, "target_where", spec->target_where);
	append_value(text, "truth", spec->truth);
	append_value(text, "source", spec->source);
	append_names(text, " source_key", spec->source_key, spec->source_key_count);
	append_value(text, "where", spec->where);
	append_value(text, "measure", spec->measure);
	if (spec->parent != NULL)
	{
		append_value(text, "parent", spec->parent->table);
		append_names(text, " parent_key", spec->parent->key, spec->parent->key_count);
		append_value(text, "parent_where", spec->parent->where);
	}
	append_value(text, "writers", counter_writers_name(spec->writers));
	if (spec->outbox != NULL)
	{
		append_outbox(text, spec->outbox);
	}
}


/* --- runs --- */

static bool
one_value(Session *session, const char *sql, int64_t class, int64_t number, bool *value)
{
	SqlResult *result;

	if (!session_query(session, &result, sql, ARGS(arg_int(class), arg_int(number))))
	{
		return false;
	}
	*value = sql_bool(result, 0, 0);
	sql_free(result);
	return true;
}

typedef struct
{
	Session *session;
	int64_t class, number;
	const char *hint;
} LockTry;

static ProbeAnswer
try_lock(void *context, Text *seen)
{
	LockTry *attempt = context;
	bool held;

	text_append(seen, "somebody works on it%s", attempt->hint);
	if (!one_value(attempt->session, "SELECT pg_try_advisory_lock($1, $2)", attempt->class, attempt->number, &held))
	{
		return PROBE_FAILED;
	}
	return held ? PROBE_DONE : PROBE_AGAIN;
}

/* Supersede one run that has not ended, unless somebody works on it. */
static bool
supersede(Session *session, const char *counter, int64_t number)
{
	LockTry attempt = {.session = session, .class = LOCK_RUN, .number = number, .hint = "; --resume joins it"};
	char *what = string_format("run %lld of %s to stop", (long long) number, counter);
	bool stopped = wait_until(what, deadline_in_ms(ALIVE_MS), try_lock, &attempt);

	free(what);
	return stopped &&
		   session_query(session, NULL,
						 "UPDATE counterproof.run SET state = 'superseded', ended = clock_timestamp() WHERE run = $1",
						 ARGS(arg_int(number))) &&
		   session_query(session, NULL, "SELECT pg_advisory_unlock($1, $2)", ARGS(arg_int(LOCK_RUN), arg_int(number)));
}

static bool
supersede_all(Session *session, const char *counter)
{
	SqlResult *result;
	bool done = true;

	if (!session_query(session, NULL, "SELECT pg_advisory_xact_lock($1, hashtext($2))",
					   ARGS(arg_int(LOCK_COUNTER), arg_text(counter))) ||
		!session_query(session, &result,
					   "SELECT run FROM counterproof.run WHERE counter = $1 AND state IN ('finding', 'repairing')",
					   ARGS(arg_text(counter))))
	{
		return false;
	}
	for (int i = 0; done && i < sql_rows(result); i++)
	{
		done = supersede(session, counter, sql_int(result, i, 0));
	}
	sql_free(result);
	return done;
}

static bool
insert_run(Session *session, const Counter *counter, const CounterModeRow *mode, const char *one_key, int64_t *number)
{
	Text definition = {0};
	bool done;

	definition_append(&definition, counter->spec);
	done =
		session_query_int(
			session, number,
			"INSERT INTO counterproof.run (counter, definition, mode, one_key) VALUES ($1, $2, $3, $4) RETURNING run",
			ARGS(arg_text(counter->spec->name), arg_text(text_get(&definition)), arg_text(mode->name),
				 arg_text(one_key))) &&
		session_query(session, NULL, "SELECT pg_advisory_lock($1, $2)", ARGS(arg_int(LOCK_RUN), arg_int(*number)));
	text_free(&definition);
	return done;
}

Run *
run_begin(Session *session, const Counter *counter, const CounterModeRow *mode, const char *one_key)
{
	int64_t number;

	if (!session_begin(session, READ_COMMITTED) || !supersede_all(session, counter->spec->name) ||
		!insert_run(session, counter, mode, one_key, &number))
	{
		session_rollback(session);
		return NULL;
	}
	if (session_commit(session) != SQL_OK)
	{
		report_error("cannot begin a run of %s: %s", counter->spec->name, session_error(session)->message);
		return NULL;
	}
	return run_load(session, number);
}

Run *
run_begin_dry(Session *session, const Counter *counter, const CounterModeRow *mode, const char *one_key)
{
	int64_t number;

	return insert_run(session, counter, mode, one_key, &number) ? run_load(session, number) : NULL;
}

static RunState
state_named(const char *name)
{
	for (RunState state = RUN_FINDING; state < RUN_SUPERSEDED; state++)
	{
		if (strcmp(name, state_names[state]) == 0)
		{
			return state;
		}
	}
	return RUN_SUPERSEDED;
}

/* The time zone in which it was begun: what the file says may depend on it, and the texts of keys that have times inside. */
static bool
take_time_zone(Session *session, int64_t number)
{
	return session_query(session, NULL,
						 "SELECT set_config('TimeZone', timezone, false) FROM counterproof.run WHERE run = $1",
						 ARGS(arg_int(number)));
}

Run *
run_load(Session *session, int64_t number)
{
	SqlResult *result;
	Run *run = NULL;

	if (!take_time_zone(session, number) ||
		!session_query(session, &result,
					   "SELECT counter, definition, one_key, mode, state, pass FROM counterproof.run WHERE run = $1",
					   ARGS(arg_int(number))))
	{
		return NULL;
	}
	if (sql_rows(result) == 1)
	{
		run = memory_get(sizeof(*run));
		run->run = number;
		run->counter = string_copy(sql_text(result, 0, 0));
		run->definition = string_copy(sql_text(result, 0, 1));
		run->one_key = sql_is_null(result, 0, 2) ? NULL : string_copy(sql_text(result, 0, 2));
		run->mode = counter_mode_find(sql_text(result, 0, 3));
		run->state = state_named(sql_text(result, 0, 4));
		run->pass = (int) sql_int(result, 0, 5);
	}
	else
	{
		report_error("there is no run %lld in counterproof.run", (long long) number);
	}
	sql_free(result);
	return run;
}

bool
run_reload(Session *session, Run *run)
{
	SqlResult *result;

	if (!session_query(session, &result, "SELECT state, pass FROM counterproof.run WHERE run = $1",
					   ARGS(arg_int(run->run))))
	{
		return false;
	}
	run->state = sql_rows(result) == 1 ? state_named(sql_text(result, 0, 0)) : RUN_SUPERSEDED;
	run->pass = sql_rows(result) == 1 ? (int) sql_int(result, 0, 1) : run->pass;
	sql_free(result);
	return true;
}

void
run_free(Run *run)
{
	if (run != NULL)
	{
		free(run->counter);
		free(run->definition);
		free(run->one_key);
		free(run);
	}
}

bool
run_latest_open(Session *session, const char *counter, int64_t *number)
{
	return session_query_int(session, number,
							 "SELECT coalesce(max(run), 0) FROM counterproof.run WHERE counter = $1 AND "
							 "state IN ('finding', 'repairing')",
							 ARGS(arg_text(counter)));
}


/* --- who holds a run --- */

static bool
lock(Session *session, const char *sql, int64_t number)
{
	bool held;

	return one_value(session, sql, LOCK_RUN, number, &held) && held;
}

typedef struct
{
	Session *session;
	Run *run;
	bool alone;
} EnterTry;

/* The keys have been found, so that many may hold it, or this one finds them. Never waits for a lock: an interrupt has to be seen. */
static ProbeAnswer
try_enter(void *context, Text *seen)
{
	EnterTry *attempt = context;
	bool alone, shared;

	text_append(seen, "run %lld is being begun elsewhere", (long long) attempt->run->run);
	if (!one_value(attempt->session, "SELECT pg_try_advisory_lock($1, $2)", LOCK_RUN, attempt->run->run, &alone) ||
		(!alone && !one_value(attempt->session, "SELECT pg_try_advisory_lock_shared($1, $2)", LOCK_RUN,
							  attempt->run->run, &shared)) ||
		!run_reload(attempt->session, attempt->run))
	{
		return PROBE_FAILED;
	}
	if (alone)
	{
		attempt->alone = attempt->run->state == RUN_FINDING;
		return attempt->alone || run_open(attempt->session, attempt->run) ? PROBE_DONE : PROBE_FAILED;
	}
	if (shared && attempt->run->state == RUN_FINDING)
	{
		return lock(attempt->session, "SELECT pg_advisory_unlock_shared($1, $2)", attempt->run->run) ? PROBE_AGAIN
																									 : PROBE_FAILED;
	}
	return shared ? PROBE_DONE : PROBE_AGAIN;
}

bool
run_enter(Session *session, Run *run, bool *alone)
{
	EnterTry attempt = {.session = session, .run = run};
	bool entered = wait_until("the keys of the run to be found", deadline_in_ms(LONG_MS), try_enter, &attempt);

	*alone = attempt.alone;
	return entered;
}

bool
run_open(Session *session, Run *run)
{
	return run_share(session, run) && lock(session, "SELECT pg_advisory_unlock($1, $2)", run->run) &&
		   run_reload(session, run);
}

bool
run_share(Session *session, const Run *run)
{
	if (!lock(session, "SELECT pg_try_advisory_lock_shared($1, $2)", run->run))
	{
		report_error("run %lld was superseded", (long long) run->run);
		return false;
	}
	return take_time_zone(session, run->run);
}

bool
run_close_begin(Session *session, Run *run)
{
	LockTry attempt = {.session = session, .class = LOCK_CLOSING, .number = run->run, .hint = ""};

	return wait_until("the end of the pass to be free", deadline_in_ms(LONG_MS), try_lock, &attempt) &&
		   run_reload(session, run);
}

bool
run_close_end(Session *session, Run *run)
{
	bool was_held;

	return one_value(session, "SELECT pg_advisory_unlock($1, $2)", LOCK_CLOSING, run->run, &was_held) &&
		   run_reload(session, run);
}

bool
run_summary(Session *session, const Run *run, RunSummary *summary)
{
	SqlResult *result;

	if (!session_query(
			session, &result,
			"SELECT drifted, updated, inserted, healed, still_drifted, open, changed, found_late, late, "
			"coalesce(not_checkable, 0) FROM counterproof.summary JOIN counterproof.run USING (run) WHERE run = $1",
			ARGS(arg_int(run->run))))
	{
		return false;
	}
	*summary = (RunSummary){.drifted = sql_int(result, 0, 0),
							.updated = sql_int(result, 0, 1),
							.inserted = sql_int(result, 0, 2),
							.healed = sql_int(result, 0, 3),
							.still_drifted = sql_int(result, 0, 4),
							.open = sql_int(result, 0, 5),
							.changed = sql_int(result, 0, 6),
							.found_late = sql_int(result, 0, 7),
							.late = sql_int(result, 0, 8),
							.not_checkable = sql_int(result, 0, 9)};
	sql_free(result);
	return true;
}
