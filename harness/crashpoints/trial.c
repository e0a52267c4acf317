#include "trial.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_SHOWN 5
#define ROWS_COUNTED 1000
#define VALUE_SHOWN_BYTES 400
#define LINES_SHOWN 6
#define STOPPED_MS 2000
#define RECOVERY_FIRST_US 10000 /* between two attempts to recover, doubled each time */

typedef struct
{
	Site *site;
	const CrashPlan *plan;
	Proxy *proxy;
	TrialOutcome *outcome;
	Program program;
	Program concurrent;
	Program recovery; /* or who takes over from a paused program */
	ProxyMessage held;
} Trial;

typedef enum
{
	AWAIT_POINT = 1, /* the armed message is held */
	AWAIT_ENDED,     /* the program has ended; its status is taken */
	AWAIT_LATE,
	AWAIT_BROKEN /* reported, or interrupted */
} Awaited;

void
trial_outcome_free(TrialOutcome *outcome)
{
	text_free(&outcome->reason);
	text_free(&outcome->failures);
	text_free(&outcome->notes);
	*outcome = (TrialOutcome){0};
}

/* The first reason stays: what follows from it is no news. */
static void unknown(Trial *trial, const char *format, ...) PRINTF_LIKE(2, 3);

static void
unknown(Trial *trial, const char *format, ...)
{
	va_list args;

	if (trial->outcome->reason.length == 0)
	{
		va_start(args, format);
		text_append_va(&trial->outcome->reason, format, args);
		va_end(args);
	}
}

static void
violated(Trial *trial, const char *invariant, const char *expected, const char *got)
{
	text_append(&trial->outcome->failures, "%s\t%s\t%s\n", invariant, expected, got);
}


/* --- programs, and the proxy that has to be served while they run --- */

static bool
start(Trial *trial, Program *program, const CrashCommand *command, const char *name)
{
	Surroundings around =
		program == &trial->concurrent ? site_surroundings_past(trial->site) : site_surroundings(trial->site);
	char *output = string_format("%s/%s.out", site_folder(trial->site), name);
	bool done;

	around.output = output;
	done = program_start(program, command, &around);
	free(output);
	return done;
}

static Awaited
await(Trial *trial, Program *program, Deadline deadline)
{
	int which = 0;

	switch (proxy_serve(trial->proxy, &program->descriptor, 1, deadline, &which))
	{
		case PROXY_AT_POINT:
			return AWAIT_POINT;
		case PROXY_WATCHED:
			return program_end(program) ? AWAIT_ENDED : AWAIT_BROKEN;
		case PROXY_TIMEOUT:
			return interrupt_seen() ? AWAIT_BROKEN : AWAIT_LATE;
		default:
			return AWAIT_BROKEN;
	}
}

static Deadline
run_deadline(const Trial *trial)
{
	return deadline_in_ms(site_timeout_ms(trial->site));
}

static void
empty_output(const Trial *trial, const char *name)
{
	char *path = string_format("%s/%s.out", site_folder(trial->site), name);

	(void) unlink(path);
	free(path);
}

/* A fresh database, and the programs of a run. The point is armed in between, by the caller. */
static bool
trial_open(Trial *trial, Site *site, TrialOutcome *outcome)
{
	*trial = (Trial){.site = site, .plan = site_plan(site), .proxy = site_proxy(site), .outcome = outcome};
	empty_output(trial, "program");
	empty_output(trial, "recover");
	empty_output(trial, "concurrent");
	return site_begin_run(site);
}

static bool
start_programs(Trial *trial)
{
	return (trial->plan->concurrent.argv == NULL ||
			start(trial, &trial->concurrent, &trial->plan->concurrent, "concurrent")) &&
		   start(trial, &trial->program, &trial->plan->program, "program");
}

static void
trial_close(Trial *trial)
{
	(void) program_end(&trial->program);
	(void) program_end(&trial->recovery);
	(void) program_end(&trial->concurrent);
	proxy_cut_all(trial->proxy);
	site_end_strays(trial->site);
}

/* Its last words, for whoever reads of a violation. */
static void
note_output(const Trial *trial, const char *name)
{
	char *path = string_format("%s/%s.out", site_folder(trial->site), name);
	Text output = {0};
	const char *at;
	int lines = 0;

	if (access(path, R_OK) == 0 && file_read(path, &output) && output.length > 0)
	{
		at = output.data + output.length - (output.data[output.length - 1] == '\n' ? 1 : 0);
		while (at > output.data && (at[-1] != '\n' || ++lines < LINES_SHOWN))
		{
			at--;
		}
		while (*at != '\0')
		{
			int length = (int) strcspn(at, "\n");

			text_append(&trial->outcome->notes, "%s| %.*s\n", name, length < 400 ? length : 400, at);
			at += length + (at[length] == '\n' ? 1 : 0);
		}
	}
	text_free(&output);
	free(path);
}


/* --- judging --- */

static ProbeAnswer
probe_alone(void *context, Text *seen)
{
	Session *session = context;
	int64_t others;

	if (!session_query_int(session, &others,
						   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
						   " AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
						   NO_ARGS))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "%d", (int) others);
	return others == 0 ? PROBE_DONE : PROBE_AGAIN;
}

static void
note_rows(Trial *trial, const char *invariant, const SqlResult *result)
{
	Text *notes = &trial->outcome->notes;
	int rows = sql_rows(result);

	for (int row = 0; row < rows && row < ROWS_SHOWN; row++)
	{
		text_append(notes, "%s:", invariant);
		for (int column = 0; column < sql_columns(result); column++)
		{
			const char *value = sql_is_null(result, row, column) ? "NULL" : sql_text(result, row, column);

			text_append(notes, " %s=", sql_column_name(result, column));
			for (int i = 0; i < VALUE_SHOWN_BYTES && value[i] != '\0'; i++)
			{
				text_append_bytes(notes, value[i] == '\n' ? " " : &value[i], 1);
			}
		}
		text_append(notes, "\n");
	}
	if (rows > ROWS_SHOWN)
	{
		text_append(notes, "%s: and %d rows%s more\n", invariant, rows - ROWS_SHOWN, rows == ROWS_COUNTED ? " or" : "");
	}
}

/*
 * As a cursor, in a transaction that only reads: a command, which returns no row whatever is the matter, is refused, no
 * invariant changes what the next one sees, and one of a million rows costs no memory. No session's call but this waits
 * for what a file says, so the server keeps the time.
 */
static SqlStatus
fetch_rows(const Trial *trial, Session *session, const CrashInvariant *invariant, SqlResult **result)
{
	char *begin = string_format("BEGIN READ ONLY; SET LOCAL statement_timeout = %d", site_timeout_ms(trial->site));
	char *declare = string_format("DECLARE invariant NO SCROLL CURSOR FOR %s", invariant->sql);
	char *fetch = string_format("FETCH %d FROM invariant", ROWS_COUNTED);
	SqlStatus status = SQL_LOST;

	if (session_execute(session, begin))
	{
		status = session_try(session, NULL, declare, NO_ARGS);
		status = status == SQL_OK ? session_try(session, result, fetch, NO_ARGS) : status;
		session_rollback(session);
	}
	free(begin);
	free(declare);
	free(fetch);
	return status;
}

static bool
ask(Trial *trial, Session *session, const CrashInvariant *invariant, bool must)
{
	SqlResult *result = NULL;
	SqlStatus status = fetch_rows(trial, session, invariant, &result);
	char rows[32];

	if (status != SQL_OK)
	{
		if (must)
		{
			report_error("%s: invariant %s cannot be asked: %s", trial->plan->path, invariant->name,
						 session_error(session)->message);
			return false;
		}
		unknown(trial, "invariant %s cannot be asked: %s", invariant->name, session_error(session)->message);
		return true;
	}
	if (sql_rows(result) > 0)
	{
		snprintf(rows, sizeof(rows), "%d%s", sql_rows(result), sql_rows(result) == ROWS_COUNTED ? " or more" : "");
		violated(trial, invariant->name, "0 rows", rows);
		note_rows(trial, invariant->name, result);
	}
	sql_free(result);
	return true;
}

/*
 * Once the last backend of the run is gone: that of a killed client may still be in its statement, and commit. `must`: an
 * invariant that cannot be asked is the file's mistake.
 */
static bool
judge(Trial *trial, bool must)
{
	char *conninfo = site_conninfo(trial->site);
	Session *session = session_open(conninfo, "crashpoints judge");
	int64_t begin_ns = time_now_ns();
	bool done = session != NULL;
	bool alone;

	proxy_cut_all(trial->proxy); /* all programs have ended; nobody serves what they left open */
	free(conninfo);
	alone = done && wait_until("the run's other backends to go", run_deadline(trial), probe_alone, session);
	trial->outcome->waited_ms = (time_now_ns() - begin_ns) / 1000000;
	if (done && !alone)
	{
		done = !must && !interrupt_seen() && !session_is_lost(session);
		unknown(trial, "a backend of the run was still at work after %d ms", site_timeout_ms(trial->site));
		if (must && !interrupt_seen())
		{
			report_error("%s: without any fault, %s", trial->plan->path, text_get(&trial->outcome->reason));
		}
	}
	for (int i = 0; alone && done && i < trial->plan->invariant_count; i++)
	{
		done = ask(trial, session, &trial->plan->invariants[i], must);
	}
	session_close(session);
	return done;
}

static void
conclude(Trial *trial)
{
	TrialOutcome *outcome = trial->outcome;

	outcome->verdict = outcome->failures.length > 0 ? TRIAL_VIOLATED
					   : outcome->reason.length > 0 ? TRIAL_UNKNOWN
													: TRIAL_HELD;
	if (outcome->verdict == TRIAL_VIOLATED)
	{
		note_output(trial, "program");
		note_output(trial, "recover");
		note_output(trial, "concurrent");
	}
}


/* --- without a fault --- */

static bool
await_success(Trial *trial, Program *program, const char *name)
{
	Awaited awaited = await(trial, program, run_deadline(trial));
	Text end = {0};
	bool done = awaited == AWAIT_ENDED && program_succeeded(program);

	if (!done && awaited != AWAIT_BROKEN)
	{
		if (awaited == AWAIT_LATE)
		{
			text_append(&end, "it still ran after %d ms", site_timeout_ms(trial->site));
		}
		else
		{
			process_end_describe(program->end, &end);
		}
		note_output(trial, name);
		report_error("%s: without any fault, %s did not end with 0: %s; %.600s", trial->plan->path, name,
					 text_get(&end), text_get(&trial->outcome->notes));
	}
	text_free(&end);
	return done;
}

static bool
take_points(Trial *trial, CrashPoints *points)
{
	CrashPoints now = {0};
	size_t count;
	const ProxyMessage *record = proxy_record(trial->proxy, &count);

	if (proxy_record_left_off(trial->proxy) > 0)
	{
		report_error("%s: the program exchanges more messages than the record of a run takes: %zu", trial->plan->path,
					 count);
		return false;
	}
	crash_points_derive(record, count, &now);
	if (points->points == NULL)
	{
		*points = now;
	}
	else
	{
		crash_points_compare(points, &now);
		crash_points_free(&now);
	}
	return true;
}

static bool
run_reference(Trial *trial, CrashPoints *points)
{
	int64_t begin_ns = time_now_ns();

	if (!start_programs(trial) || !site_clone_ahead(trial->site) || !await_success(trial, &trial->program, "program"))
	{
		return false;
	}
	trial->outcome->duration_ns = time_now_ns() - begin_ns;
	return take_points(trial, points) &&
		   (!program_runs(&trial->concurrent) || await_success(trial, &trial->concurrent, "concurrent")) &&
		   judge(trial, true);
}

bool
trial_reference(Site *site, CrashPoints *points, TrialOutcome *outcome)
{
	Trial trial;
	bool done = true;

	for (int i = 0; done && i < TRIAL_REFERENCES && outcome->verdict != TRIAL_VIOLATED; i++)
	{
		done = trial_open(&trial, site, outcome);
		if (done)
		{
			done = run_reference(&trial, points);
			conclude(&trial);
			trial_close(&trial);
		}
	}
	if (done && site_plan(site)->turns)
	{
		crash_points_keep_ends(points);
	}
	return done;
}


/* --- recovery --- */

/* An attempt that does not end is no recovery, and what it holds would keep the next from ending, too. */
static bool
recover(Trial *trial)
{
	Deadline deadline = run_deadline(trial);
	int64_t pause_us = RECOVERY_FIRST_US;
	Text got = {0};

	for (int attempt = 1; attempt <= TRIAL_RECOVERIES_MAX; attempt++)
	{
		Awaited awaited;

		if (!start(trial, &trial->recovery, &trial->plan->recover, "recover"))
		{
			return false;
		}
		awaited = await(trial, &trial->recovery, deadline);
		if (awaited == AWAIT_BROKEN || (awaited == AWAIT_LATE && !program_end(&trial->recovery)))
		{
			return false;
		}
		if (awaited == AWAIT_LATE)
		{
			text_append(&got, "attempt %d still ran after %d ms", attempt, site_timeout_ms(trial->site));
			violated(trial, TRIAL_RECOVERS, "exit 0", text_get(&got));
			text_free(&got);
			return true;
		}
		if (program_succeeded(&trial->recovery))
		{
			return true;
		}
		backoff_us(pause_us);
		pause_us *= 2;
	}
	process_end_describe(trial->recovery.end, &got);
	text_append(&got, " at the last of %d attempts", TRIAL_RECOVERIES_MAX);
	violated(trial, TRIAL_RECOVERS, "exit 0", text_get(&got));
	text_free(&got);
	return true;
}

/* A program that is left to itself after a fault must come to an end; one that does not is killed, as an operator would. */
static bool
await_own_end(Trial *trial, Program *program, const char *name)
{
	Awaited awaited;

	if (!program_runs(program))
	{
		return true;
	}
	awaited = await(trial, program, run_deadline(trial));
	if (awaited == AWAIT_LATE)
	{
		unknown(trial, "%s still ran %d ms after the fault, and was killed", name, site_timeout_ms(trial->site));
		return program_end(program);
	}
	return awaited == AWAIT_ENDED;
}


/* --- the faults; each false when the lab could not do its work --- */

/*
 * After its Terminate a client waits for nothing: the signal may find it gone. Its message is not forwarded all the same,
 * so what is judged is a connection that was lost at its last message.
 */
static bool
kill_client(Trial *trial)
{
	if (!program_end(&trial->program))
	{
		return false;
	}
	proxy_cut_all(trial->proxy);
	if (trial->held.type != 'X' && (trial->program.end.how != ENDED_SIGNAL || trial->program.end.code != SIGKILL))
	{
		unknown(trial, "the program had ended before it could be killed");
	}
	return true;
}

static bool
cut(Trial *trial)
{
	proxy_cut(trial->proxy, trial->held.connection);
	return await_own_end(trial, &trial->program, "the program");
}

static bool
stop_server(Trial *trial)
{
	return site_restart(trial->site) && site_clone_ahead(trial->site) &&
		   await_own_end(trial, &trial->program, "the program");
}

static ProbeAnswer
probe_stopped(void *context, Text *seen)
{
	const Program *program = context;
	ProcessStatus status;

	if (!process_status(process_pid(program->process), &status))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "state %c", status.state);
	return status.state == 'T' || status.state == 'Z' ? PROBE_DONE : PROBE_AGAIN;
}

/* Another owner takes over while the program is stopped; then it wakes up and goes on as if nothing had been. */
static bool
stop_and_take_over(Trial *trial)
{
	Awaited awaited;

	program_signal(&trial->program, SIGSTOP);
	if (!wait_until("the program to be stopped", deadline_in_ms(STOPPED_MS), probe_stopped, &trial->program) ||
		!start(trial, &trial->recovery, &trial->plan->recover, "recover"))
	{
		return false;
	}
	awaited = await(trial, &trial->recovery, deadline_in_ms(trial->plan->pause_ms));
	program_signal(&trial->program, SIGCONT);
	proxy_release(trial->proxy);
	return awaited != AWAIT_BROKEN;
}

static bool
pause_program(Trial *trial)
{
	return stop_and_take_over(trial) && await_own_end(trial, &trial->program, "the program") &&
		   await_own_end(trial, &trial->recovery, "who took over");
}

static bool
strike(Trial *trial, CrashFault fault)
{
	switch (fault)
	{
		case CRASH_KILL_CLIENT:
			return kill_client(trial);
		case CRASH_CUT:
			return cut(trial);
		case CRASH_STOP_SERVER:
			return stop_server(trial);
		case CRASH_PAUSE:
			return pause_program(trial);
	}
	return false;
}

/* Whoever ended with 0 has said that its work is done: judged as it is, a further run might hide what it spoilt. */
static bool
needs_recovery(const Trial *trial, CrashFault fault)
{
	return !program_succeeded(&trial->program) || (fault == CRASH_PAUSE && !program_succeeded(&trial->recovery));
}

/* The concurrent program may end after all that, without having done its work: the stop of the server was its, too. */
static bool
recover_all(Trial *trial, CrashFault fault)
{
	bool needed = needs_recovery(trial, fault);

	if ((needed && !recover(trial)) || !await_own_end(trial, &trial->concurrent, "the concurrent program"))
	{
		return false;
	}
	return needed || trial->plan->concurrent.argv == NULL || program_succeeded(&trial->concurrent) || recover(trial);
}

static void
arm(Trial *trial, const CrashPoint *point, bool by_kind)
{
	const ProxyMessage *message = &point->message;

	if (by_kind)
	{
		proxy_arm_kind(trial->proxy, message->connection, message->direction, message->type,
					   point->tag_varies ? NULL : message->tag, point->ordinal);
	}
	else
	{
		proxy_arm(trial->proxy, message->connection, message->direction, message->first);
	}
}

/* The point is held, or it is known why not. */
static bool
reach(Trial *trial, const CrashPoint *point)
{
	const ProxyMessage *held;

	switch (await(trial, &trial->program, run_deadline(trial)))
	{
		case AWAIT_POINT:
			break;
		case AWAIT_ENDED:
			unknown(trial, "not reached: the program ended before");
			return true;
		case AWAIT_LATE:
			unknown(trial, "not reached within %d ms", site_timeout_ms(trial->site));
			return true;
		default:
			return false;
	}
	held = proxy_held(trial->proxy);
	trial->held = *held;
	if (!crash_point_is(point, held))
	{
		Text what = {0};

		proxy_message_describe(held, &what);
		unknown(trial, "not reached: in its place came %s", text_get(&what));
		text_free(&what);
	}
	return true;
}

static bool
run_with_fault(Trial *trial, const CrashPoint *point, CrashFault fault)
{
	if (!start_programs(trial) || (fault != CRASH_STOP_SERVER && !site_clone_ahead(trial->site)) ||
		!reach(trial, point))
	{
		return false;
	}
	if (trial->outcome->reason.length > 0)
	{
		return true;
	}
	return strike(trial, fault) && recover_all(trial, fault) && judge(trial, false);
}

bool
trial_run(Site *site, const CrashPoint *point, bool by_kind, CrashFault fault, TrialOutcome *outcome)
{
	int64_t begin_ns = time_now_ns();
	Trial trial;
	bool done = trial_open(&trial, site, outcome);

	if (done)
	{
		arm(&trial, point, by_kind);
		done = run_with_fault(&trial, point, fault);
		conclude(&trial);
		trial_close(&trial);
	}
	if (done && outcome->verdict == TRIAL_VIOLATED && site_disk_was_full(site))
	{
		report_error("%s: the disk of the server was full: what looks violated may not be", trial.plan->path);
		done = false;
	}
	outcome->duration_ns = time_now_ns() - begin_ns;
	return done;
}
