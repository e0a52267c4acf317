#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../counters.h"
#include "connect.h"
#include "find.h"
#include "record.h"
#include "report.h"
#include "throttle.h"
#include "verify.h"
#include "worker.h"

#define FEWEST_ZEROED 10 /* keys that may go to nothing without asking */
#define LOCK_TABLE "10s"

/* One counter of the file on its way. */
typedef struct
{
	const CountersRequest *request;
	const CountersRepair *repair;
	Session *session;
	const Counter *counter;
	const CounterModeRow *mode;
	Run *run; /* NULL in a dry run */
	Found found;
} Job;


/* --- which mode --- */

static const CounterModeRow *
refuse_mode(const CounterSpec *spec, const CounterModeRow *asked)
{
	Text right = {0};

	for (const CounterModeRow *row = counter_modes; row->name != NULL; row++)
	{
		if (row->right[spec->writers])
		{
			text_append(&right, "%s%s", right.length > 0 ? ", " : "", row->name);
		}
	}
	report_error("%s: mode %s is wrong for writers: %s: %s; right is %s", spec->name, asked->name,
				 counter_writers_name(spec->writers), asked->wrong, text_get(&right));
	text_free(&right);
	return NULL;
}

/* NULL: reported, EXIT_CODE_USAGE. */
static const CounterModeRow *
mode_for(const CountersRepair *repair, const CounterSpec *spec)
{
	const CounterModeRow *row;

	if (spec->writers == WRITERS_UNSAID)
	{
		report_error(
			"%s: repair has to know its writers: say writers: same_transaction, separate_transaction or outbox",
			spec->name);
		return NULL;
	}
	row = repair->mode != NULL ? counter_mode_find(repair->mode) : counter_mode_default(spec->writers);
	if (row == NULL && repair->mode != NULL)
	{
		const char *names[MODE_MAINTENANCE + 1] = {NULL};

		for (int i = 0; i < MODE_MAINTENANCE && counter_modes[i].name != NULL; i++)
		{
			names[i] = counter_modes[i].name;
		}
		report_error("there is no mode \"%s\"; the nearest is \"%s\"", repair->mode,
					 string_nearest(repair->mode, names));
		return NULL;
	}
	if (row == NULL)
	{
		report_error(
			"%s: no mode is right for writers: %s while they write; --mode maintenance, with the writers stopped",
			spec->name, counter_writers_name(spec->writers));
		return NULL;
	}
	if (row->mode == MODE_MAINTENANCE && spec->writers == WRITERS_SEPARATE_TRANSACTION && spec->source == NULL)
	{
		report_error("%s: maintenance has to lock the source, and which tables truth reads is not known", spec->name);
		return NULL;
	}
	return row->right[spec->writers] ? row : refuse_mode(spec, row);
}

static void
explain_modes(const CounterSpec *spec)
{
	const CounterModeRow *usual = spec->writers != WRITERS_UNSAID ? counter_mode_default(spec->writers) : NULL;

	printf("%s  writers: %s\n", spec->name, counter_writers_name(spec->writers));
	for (const CounterModeRow *row = counter_modes; row->name != NULL; row++)
	{
		bool right = row->right[spec->writers];

		printf("  %-11s  %s: %s; costs: %s\n", row->name,
			   !right         ? "WRONG"
			   : row == usual ? "default"
							  : "right",
			   row->does, row->costs);
		if (!right && spec->writers != WRITERS_UNSAID)
		{
			printf("  %-11s  why: %s\n", "", row->wrong);
		}
		if (row->mode == MODE_RELATIVE)
		{
			printf("  %-11s  it starts from the old value, which a repair does not trust; NULL and missing rows stay\n",
				   "");
		}
	}
}


/* --- what is printed --- */

static bool
print_found(Job *job)
{
	Text line = {0};

	report_append_totals(&line, &job->found.totals, true);
	printf("%s  %s\n", job->counter->spec->name, text_get(&line));
	text_free(&line);
	return find_print(job->session, job->counter, &job->found, job->request->report_limit);
}

static void
print_would(const Job *job)
{
	int64_t not_checkable = totals_not_checkable(&job->found.totals);
	Text line = {0};

	report_append_totals(&line, &job->found.totals, false);
	if (not_checkable > 0)
	{
		text_append(&line, "  Not checkable: %lld", (long long) not_checkable);
	}
	text_append(&line, "  Would update: %lld  Would insert: %lld", (long long) job->found.would_update,
				(long long) job->found.would_insert);
	if (job->found.would_refuse > 0)
	{
		text_append(&line, "  Would stay: %lld", (long long) job->found.would_refuse);
	}
	printf("%s  %s\n", job->counter->spec->name, text_get(&line));
	text_free(&line);
}

/* A column that is being filled: how far it is. */
static bool
print_backfill(const Job *job)
{
	SqlResult *result;

	if (!session_query(job->session, &result,
					   "SELECT count(*), count(*) FILTER (WHERE outcome IN ('updated', 'healed')), max(scanned) "
					   "FROM counterproof.drift JOIN counterproof.run USING (run) WHERE run = $1 AND class = 5",
					   ARGS(arg_int(job->run->run))))
	{
		return false;
	}
	if (sql_int(result, 0, 0) > 0)
	{
		printf("  backfill  NULL: %lld of %lld  filled: %lld  left: %lld\n", (long long) sql_int(result, 0, 0),
			   (long long) sql_int(result, 0, 2), (long long) sql_int(result, 0, 1),
			   (long long) (sql_int(result, 0, 0) - sql_int(result, 0, 1)));
	}
	sql_free(result);
	return true;
}

/* The codes in their order: 1, 3, 4, 0. */
static ExitCode
judge(ExitCode code, int64_t not_checkable)
{
	return not_checkable > 0 ? counters_worse(code, EXIT_CODE_INCONCLUSIVE) : code;
}

static ExitCode
print_end(const Job *job)
{
	RunSummary summary;

	if (!run_summary(job->session, job->run, &summary) || !print_backfill(job))
	{
		return EXIT_CODE_BROKEN;
	}
	printf("%s  Updated: %lld  Inserted: %lld  Still drifted: %lld  Changed meanwhile: %lld", job->run->counter,
		   (long long) summary.updated, (long long) summary.inserted, (long long) summary.still_drifted,
		   (long long) summary.changed);
	if (summary.healed > 0)
	{
		printf("  Right by then: %lld", (long long) summary.healed);
	}
	if (summary.found_late > 0)
	{
		printf("  Found late: %lld", (long long) summary.found_late);
	}
	printf("\n");
	return judge(summary.still_drifted > 0 ? EXIT_CODE_FAIL : EXIT_CODE_PASS, summary.not_checkable);
}

static void
print_resume(const Job *job, const char *why)
{
	RunSummary summary;

	if (!session_is_lost(job->session) && run_summary(job->session, job->run, &summary))
	{
		(void) print_backfill(job);
		printf("%s  %s: %lld of %lld keys are done\n", job->run->counter, why,
			   (long long) (summary.drifted - summary.open), (long long) summary.drifted);
	}
	printf("%s  goes on with: repair -c %s --resume %lld\n", job->run->counter, job->request->file,
		   (long long) job->run->run);
}


/* --- finding --- */

static bool
commit_reported(const Job *job, const char *what)
{
	if (session_commit(job->session) != SQL_OK)
	{
		report_error("%s: cannot commit %s: %s", job->counter->spec->name, what, session_error(job->session)->message);
		return false;
	}
	return true;
}

static bool
find_inside(Job *job)
{
	const char *one_key = job->run != NULL ? job->run->one_key : job->request->id;

	return find_keys(job->session, job->counter, job->mode, one_key, &job->found) &&
		   (job->run == NULL || find_record(job->session, job->counter, job->run, &job->found));
}

/* The keys, of one snapshot, in a transaction of its own. */
static bool
find_alone(Job *job)
{
	if (!session_begin(job->session, REPEATABLE_READ) || !find_inside(job))
	{
		session_rollback(job->session);
		return false;
	}
	return commit_reported(job, "what was found") && print_found(job);
}

/* false: too many keys would go to nothing; reported. */
static bool
guard(const Job *job, bool *allowed)
{
	SqlResult *result;
	int64_t zeroed, scanned;

	if (!session_query(job->session, &result,
					   "SELECT coalesce(zeroed, 0), coalesce(scanned, 0) FROM counterproof.run WHERE run = $1",
					   ARGS(arg_int(job->run->run))))
	{
		return false;
	}
	zeroed = sql_int(result, 0, 0);
	scanned = sql_int(result, 0, 1);
	sql_free(result);
	*allowed =
		job->repair->yes || zeroed < FEWEST_ZEROED || zeroed * 100 <= scanned * (int64_t) job->repair->max_change;
	if (!*allowed)
	{
		report_error(
			"%s: %lld of %lld counts would become 0, more than %d %%: nothing was written; are the canonical rows "
			"still there? --yes goes on all the same",
			job->run->counter, (long long) zeroed, (long long) scanned, job->repair->max_change);
	}
	return true;
}


/* --- the modes in portions --- */

static ExitCode
work_in_passes(Job *job)
{
	bool allowed;

	if (!guard(job, &allowed))
	{
		return EXIT_CODE_BROKEN;
	}
	if (!allowed)
	{
		print_resume(job, "refused");
		return EXIT_CODE_FAIL;
	}
	while (job->run->state == RUN_REPAIRING)
	{
		if (!workers_run(job->session, job->request, job->repair, job->counter, job->run) || interrupt_seen() ||
			!verify_pass(job->session, job->request, job->counter, job->run, false))
		{
			print_resume(job, interrupt_seen() ? "interrupted" : "stopped");
			return interrupt_seen() ? EXIT_CODE_INTERRUPTED : EXIT_CODE_BROKEN;
		}
	}
	return print_end(job);
}

static ExitCode
work(Job *job, bool alone)
{
	if (alone)
	{
		if (!find_alone(job) || !run_open(job->session, job->run))
		{
			return EXIT_CODE_BROKEN;
		}
		printf("  run    %lld, mode %s\n", (long long) job->run->run, job->mode->name);
	}
	else
	{
		RunSummary summary;

		if (!run_summary(job->session, job->run, &summary))
		{
			return EXIT_CODE_BROKEN;
		}
		printf("%s  run %lld, mode %s: %lld of %lld keys are done\n", job->run->counter, (long long) job->run->run,
			   job->mode->name, (long long) (summary.drifted - summary.open), (long long) summary.drifted);
	}
	fflush(stdout);
	return work_in_passes(job);
}


/* --- maintenance: everything in one transaction --- */

static ProbeAnswer
time_is_over(void *context, Text *seen)
{
	(void) seen;
	return deadline_passed(*(Deadline *) context) ? PROBE_DONE : PROBE_AGAIN;
}

/* What changed the source before it was locked has to have arrived in the target: it is given the time. */
static bool
drain(const Job *job)
{
	Deadline settled = deadline_in_ms((int64_t) job->request->settle_s * 1000);
	Text sql = {0};
	bool done;

	text_append(&sql, "LOCK TABLE %s IN SHARE MODE", job->counter->source.quoted);
	done = session_execute(job->session, text_get(&sql));
	text_free(&sql);
	if (done)
	{
		report_info("%s: the source is locked; waits %d s for what is under way", job->run->counter,
					job->request->settle_s);
		done = wait_until("the time to settle", deadline_in_ms((int64_t) job->request->settle_s * 1000 + 10000),
						  time_is_over, &settled);
	}
	return done;
}

/*
 * Writers of one transaction wait for the target, whatever they did before: one lock, no order to go wrong. Writers of separate
 * ones have to be kept from the source, and given the time to arrive.
 */
static bool
lock_tables(const Job *job)
{
	bool separate = job->counter->spec->writers == WRITERS_SEPARATE_TRANSACTION;
	Text sql = {0};
	bool done;

	text_append(&sql, "LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE", job->counter->target.quoted);
	done = session_execute(job->session, "SET LOCAL lock_timeout = '" LOCK_TABLE
										 "'; SET LOCAL idle_in_transaction_session_timeout = 0") &&
		   (!separate || drain(job)) && session_execute(job->session, text_get(&sql));
	text_free(&sql);
	return done;
}

static bool
repair_inside(Job *job, bool *allowed)
{
	if (!find_inside(job) || !print_found(job) || !run_reload(job->session, job->run) || !guard(job, allowed))
	{
		return false;
	}
	printf("  run    %lld, mode %s\n", (long long) job->run->run, job->mode->name);
	fflush(stdout);
	while (*allowed && job->run->state == RUN_REPAIRING)
	{
		if (!worker_run_inside(job->session, job->request, job->repair, job->counter, job->run) || interrupt_seen() ||
			!verify_pass(job->session, job->request, job->counter, job->run, true))
		{
			return false;
		}
	}
	return *allowed;
}

static ExitCode
work_in_maintenance(Job *job)
{
	bool allowed = true;

	if (!session_begin(job->session, READ_COMMITTED) || !lock_tables(job) || !repair_inside(job, &allowed))
	{
		session_rollback(job->session);
		print_resume(job, interrupt_seen() ? "interrupted, nothing was changed" : "stopped, nothing was changed");
		return interrupt_seen() ? EXIT_CODE_INTERRUPTED : allowed ? EXIT_CODE_BROKEN : EXIT_CODE_FAIL;
	}
	return commit_reported(job, "the repair") ? print_end(job) : EXIT_CODE_BROKEN;
}


/* --- one counter --- */

static bool
record_dry(Job *job)
{
	return session_query(
			   job->session, NULL,
			   "UPDATE counterproof.drift SET outcome = 'left', remainder = coalesce(diff, 'none') WHERE run = $1",
			   ARGS(arg_int(job->run->run))) &&
		   session_query(job->session, NULL,
						 "UPDATE counterproof.run SET state = 'finished', ended = clock_timestamp() WHERE run = $1",
						 ARGS(arg_int(job->run->run)));
}

static ExitCode
run_dry(Job *job)
{
	bool wrong;

	if (job->repair->record)
	{
		if (!record_install(job->session, job->request->sql) ||
			(job->run = run_begin_dry(job->session, job->counter, job->mode, job->request->id)) == NULL)
		{
			return EXIT_CODE_BROKEN;
		}
	}
	if (!find_alone(job) || (job->run != NULL && !record_dry(job)))
	{
		return EXIT_CODE_BROKEN;
	}
	print_would(job);
	wrong = totals_drifted(&job->found.totals) + job->found.totals.keys[CLASS_MISSING] > 0;
	return judge(wrong ? EXIT_CODE_FAIL : EXIT_CODE_PASS, totals_not_checkable(&job->found.totals));
}

/* The run asked for, or a new one. *alone: its keys are still to be found. NULL: reported. */
static Run *
enter_run(const Job *job, int64_t number, bool *alone)
{
	Run *run;

	*alone = number == 0;
	if (number == 0)
	{
		return run_begin(job->session, job->counter, job->mode, job->request->id);
	}
	run = run_load(job->session, number);
	if (run != NULL && (run->state == RUN_FINDING || run->state == RUN_REPAIRING) &&
		!run_enter(job->session, run, alone))
	{
		run_free(run);
		return NULL;
	}
	return run;
}

/* Whether the run can go on under what the file says now. */
static ExitCode
run_fits(const Job *job)
{
	Text definition = {0};
	bool same;

	definition_append(&definition, job->counter->spec);
	same = strcmp(text_get(&definition), job->run->definition) == 0 &&
		   strcmp(job->run->counter, job->counter->spec->name) == 0;
	text_free(&definition);
	if (!same || job->run->mode == NULL)
	{
		report_error("run %lld is of %s under another definition than the file has", (long long) job->run->run,
					 job->run->counter);
		return EXIT_CODE_USAGE;
	}
	if (job->repair->mode != NULL && strcmp(job->repair->mode, job->run->mode->name) != 0)
	{
		report_error("run %lld was begun in mode %s", (long long) job->run->run, job->run->mode->name);
		return EXIT_CODE_USAGE;
	}
	if (job->run->state == RUN_SUPERSEDED)
	{
		report_error("run %lld of %s was superseded by a later one", (long long) job->run->run, job->run->counter);
		return EXIT_CODE_BROKEN;
	}
	return EXIT_CODE_PASS;
}

static ExitCode
run_real(Job *job, int64_t number)
{
	bool alone;
	ExitCode code;

	job->run = enter_run(job, number, &alone);
	if (job->run == NULL)
	{
		return EXIT_CODE_BROKEN;
	}
	code = run_fits(job);
	if (code != EXIT_CODE_PASS)
	{
		return code;
	}
	job->mode = job->run->mode;
	if (job->run->state == RUN_FINISHED)
	{
		return print_end(job);
	}
	return job->mode->mode == MODE_MAINTENANCE ? work_in_maintenance(job) : work(job, alone);
}

/* The run that is meant: *number 0 for a new one. false: reported. */
static bool
number_meant(const Job *job, int64_t *number)
{
	const char *resume = job->repair->resume;

	*number = 0;
	if (resume == NULL)
	{
		return true;
	}
	if (strcmp(resume, "last") == 0)
	{
		return run_latest_open(job->session, job->counter->spec->name, number);
	}
	return string_to_int64(resume, 1, INT32_MAX, number);
}

/* What no repair could write is told before anything is read. false: reported. */
static bool
can_be_written(const Job *job, bool *writable)
{
	const Counter *counter = job->counter;
	SqlResult *result;

	if (session_try_prepared(job->session, &result, "counters_privileges",
							 ARGS(arg_int(counter->target.oid), arg_text(counter->spec->column))) != SQL_OK)
	{
		report_error("%s: cannot ask what may be written: %s", counter->spec->name,
					 session_error(job->session)->message);
		return false;
	}
	*writable = sql_is_null(result, 0, 2);
	if (!*writable)
	{
		report_error("%s: column %s of %s cannot be written: %s", counter->spec->name, counter->column.quoted,
					 counter->target.quoted, sql_text(result, 0, 2));
	}
	sql_free(result);
	return true;
}

static void
warn_of_index(const Job *job)
{
	Text table = {0};

	if (!counter_is_indexed(job->counter, &table))
	{
		report_warning(
			"%s: no index begins with a column of %s: each chunk reads the whole table, and holds its rows as "
			"long as that takes",
			job->counter->spec->name, text_get(&table));
	}
	text_free(&table);
}

static ExitCode
repair_resolved(Job *job)
{
	bool writable;
	int64_t number;

	if (job->counter->obstacle != NULL)
	{
		printf("%s  Not checkable: %s\n", job->counter->spec->name, job->counter->obstacle);
		return job->counter->denied ? EXIT_CODE_BROKEN : EXIT_CODE_INCONCLUSIVE;
	}
	if (!can_be_written(job, &writable))
	{
		return EXIT_CODE_BROKEN;
	}
	if (!writable)
	{
		return EXIT_CODE_USAGE;
	}
	warn_of_index(job);
	if (job->repair->dry_run)
	{
		return run_dry(job);
	}
	if (!throttle_possible(job->session, job->repair) || !record_install(job->session, job->request->sql) ||
		!number_meant(job, &number))
	{
		return EXIT_CODE_BROKEN;
	}
	return run_real(job, number);
}

/* A session of its own for each counter: what it holds, and its temporary tables, end with it. */
static ExitCode
repair_counter(const CountersRequest *request, const CountersRepair *repair, const CounterSpec *spec)
{
	Job job = {.request = request, .repair = repair, .mode = mode_for(repair, spec)};
	Counter *counter = NULL;
	ExitCode code = EXIT_CODE_BROKEN;

	job.session = counters_connect(request);
	if (job.session != NULL)
	{
		counter = counter_resolve(job.session, spec);
	}
	if (counter != NULL)
	{
		job.counter = counter;
		code = repair_resolved(&job);
	}
	fflush(stdout);
	run_free(job.run);
	counter_free(counter);
	session_close(job.session);
	return code;
}


/* --- all of them --- */

/* Which counter a run is of; the caller frees. NULL: reported. */
static char *
counter_of_run(const CountersRequest *request, int64_t number)
{
	Session *session = counters_connect(request);
	Run *run = session != NULL ? run_load(session, number) : NULL;
	char *name = run != NULL ? string_copy(run->counter) : NULL;

	run_free(run);
	session_close(session);
	return name;
}

static bool
options_possible(const CountersRequest *request, const CountersRepair *repair)
{
	int64_t number;

	if (repair->record && !repair->dry_run)
	{
		report_error("--record keeps what a dry run found: it goes with --dry-run");
		return false;
	}
	if (repair->resume != NULL && (repair->dry_run || request->id != NULL))
	{
		report_error("--resume goes on with a run as it was begun, without --dry-run and --id");
		return false;
	}
	if (repair->resume != NULL && strcmp(repair->resume, "last") != 0 &&
		!string_to_int64(repair->resume, 1, INT32_MAX, &number))
	{
		report_error("--resume %s: the number of a run, or last", repair->resume);
		return false;
	}
	return true;
}

/* `only`: the counter whose run is resumed, or NULL. */
static bool
is_meant(const CountersRequest *request, const CounterSpec *spec, const char *only)
{
	return counters_selected(request, spec) && (only == NULL || strcmp(only, spec->name) == 0);
}

static ExitCode
repair_all(const CountersRequest *request, const CountersRepair *repair, const CounterConfig *config, const char *only)
{
	ExitCode code = EXIT_CODE_PASS;
	int meant = 0;

	for (unsigned i = 0; i < config->count; i++)
	{
		const CounterSpec *spec = &config->counters[i];

		if (is_meant(request, spec, only) && !repair->explain && mode_for(repair, spec) == NULL)
		{
			return EXIT_CODE_USAGE;
		}
	}
	for (unsigned i = 0; i < config->count && code != EXIT_CODE_INTERRUPTED; i++)
	{
		const CounterSpec *spec = &config->counters[i];

		if (!is_meant(request, spec, only))
		{
			continue;
		}
		meant++;
		if (repair->explain)
		{
			explain_modes(spec);
			continue;
		}
		code = counters_worse(code, repair_counter(request, repair, spec));
	}
	if (meant == 0)
	{
		report_error("the file has no counter %s, of which the run is", only != NULL ? only : "");
		return EXIT_CODE_USAGE;
	}
	return code;
}

ExitCode
counters_repair(const CountersRequest *request, const CountersRepair *repair)
{
	bool numbered = repair->resume != NULL && strcmp(repair->resume, "last") != 0;
	CounterConfig *config;
	char *only = NULL;
	int64_t number = 0;
	ExitCode code;

	if (!options_possible(request, repair))
	{
		return EXIT_CODE_USAGE;
	}
	interrupt_catch();
	config = counters_read(request);
	if (config == NULL)
	{
		return EXIT_CODE_USAGE;
	}
	if (numbered &&
		(!string_to_int64(repair->resume, 1, INT32_MAX, &number) || (only = counter_of_run(request, number)) == NULL))
	{
		counter_config_free(config);
		return EXIT_CODE_BROKEN;
	}
	code = repair_all(request, repair, config, only);
	free(only);
	counter_config_free(config);
	return code;
}
