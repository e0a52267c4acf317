/*
 * The compatible mode: what isolationtester prints, where, and when it gives up.
 */
#include "../spec.h"

#include <stdlib.h>
#include <string.h>

#include "executor.h"
#include "permute.h"
#include "tree.h"

#define US_PER_S 1000000
#define STEP_LIMIT_S 360
#define LIMIT_FACTOR 2

typedef struct
{
	FILE *out, *err;
} Streams;


/* --- what it prints --- */

/* What was printed before must be out before: both may be the same file. */
static void
complain(void *context, const char *text)
{
	const Streams *streams = context;

	(void) fflush(streams->out);
	fprintf(streams->err, "%s", text);
	(void) fflush(streams->err);
}

static void
print_waits(void *context, const SpecTurn *turn)
{
	const Streams *streams = context;

	fprintf(streams->out, "step %s: %s <waiting ...>\n", turn->name, turn->step->sql);
}

static void
print_completes(void *context, const SpecTurn *turn, bool at_once)
{
	const Streams *streams = context;

	fprintf(streams->out, "step %s: %s\n", turn->name, at_once ? turn->step->sql : "<... completed>");
}

/* Of an error only the first line: a detail may have numbers that differ from run to run. */
static void
print_result(void *context, const SqlResult *result)
{
	const Streams *streams = context;
	SqlComplaint complaint;

	switch (sql_kind(result))
	{
		case RESULT_COMMAND:
		case RESULT_EMPTY:
			break;
		case RESULT_ROWS:
			sql_print(result, streams->out);
			break;
		case RESULT_ERROR:
			complaint = sql_complaint(result);
			if (complaint.severity != NULL && complaint.primary != NULL)
			{
				fprintf(streams->out, "%s:  %s\n", complaint.severity, complaint.primary);
			}
			else
			{
				fprintf(streams->out, "%s\n", complaint.whole);
			}
			break;
		case RESULT_OTHER:
			fprintf(streams->out, "unexpected result status: %s\n", sql_kind_name(result));
			break;
	}
}

static void
print_notice(void *context, const SpecSession *session, const char *message)
{
	const Streams *streams = context;

	fprintf(streams->out, "%s: %s", session->name, message);
}

static void
print_notified(void *context, const SpecSession *session, const Notification *notification, const char *sender)
{
	const Streams *streams = context;

	fprintf(streams->out, "%s: NOTIFY \"%s\" with payload \"%s\" from %s\n", session->name, notification->channel,
			notification->payload, sender);
}

static void
print_canceled(void *context, const SpecTurn *turn, int seconds)
{
	const Streams *streams = context;

	fprintf(streams->out, "isolationtester: canceling step %s after %d seconds\n", turn->name, seconds);
}

static void
print_unsent(void *context, const SpecTurn *turn, const char *why)
{
	const Streams *streams = context;

	fprintf(streams->out, "failed to send query for step %s: %s\n", turn->name, why);
}

/* Whoever watches sees what has happened up to here. */
static void
flush_printed(void *context)
{
	const Streams *streams = context;

	(void) fflush(streams->out);
}

static const ExecutorEvents EVENTS = {
	.waits = print_waits,
	.completes = print_completes,
	.result = print_result,
	.notice = print_notice,
	.notified = print_notified,
	.canceled = print_canceled,
	.unsent = print_unsent,
	.trouble = complain,
	.lingers = flush_printed,
};


/* --- a file --- */

/* PostgreSQL 16 reads the first of the two, up to 15 it was the second. */
static int64_t
read_step_limit_us(void)
{
	const char *half = getenv("PG_TEST_TIMEOUT_DEFAULT");
	const char *whole = getenv("PGISOLATIONTIMEOUT");

	if (half != NULL)
	{
		return (int64_t) LIMIT_FACTOR * atoi(half) * US_PER_S;
	}
	return (int64_t) (whole != NULL ? atoi(whole) : STEP_LIMIT_S) * US_PER_S;
}

static void
complain_of_file(Streams *streams, const SpecError *error)
{
	Text text = {0};

	text_append(&text, "%s", error->message);
	if (error->line_read > 0)
	{
		text_append(&text, " at line %d", error->line_read);
	}
	if (error->detail != NULL)
	{
		text_append(&text, ": %s", error->detail);
	}
	text_append(&text, "\n");
	complain(streams, text_get(&text));
	text_free(&text);
}

/* In the order of their names. When no permutation is written, every step is used. */
static void
complain_of_unused(Streams *streams, const Spec *spec)
{
	for (int i = 0; i < spec->step_count && spec->permutation_count > 0; i++)
	{
		if (!spec->steps[i]->used)
		{
			char *text = string_format("unused step name: %s\n", spec->steps[i]->name);

			complain(streams, text);
			free(text);
		}
	}
}

static bool
run_permutation(Executor *executor, const Streams *streams, const SpecTurn *const *turns, int count)
{
	fprintf(streams->out, "\nstarting permutation:");
	for (int i = 0; i < count; i++)
	{
		fprintf(streams->out, " %s", turns[i]->name);
	}
	fprintf(streams->out, "\n");
	return executor_run(executor, turns, count);
}

static bool
run_all(Executor *executor, const Streams *streams, const Spec *spec)
{
	const SpecTurn **turns = memory_get(sizeof(SpecTurn *) * (size_t) spec->step_count);
	Permute permute;
	bool done = true;

	permute_begin(&permute, spec);
	while (done && permute_next(&permute, turns))
	{
		done = run_permutation(executor, streams, turns, spec->step_count);
	}
	permute_end(&permute);
	free(turns);
	return done;
}

static bool
run_written(Executor *executor, const Streams *streams, const Spec *spec)
{
	bool done = true;

	for (int i = 0; done && i < spec->permutation_count; i++)
	{
		const SpecPermutation *permutation = spec->permutations[i];

		done =
			run_permutation(executor, streams, (const SpecTurn *const *) permutation->turns, permutation->turn_count);
	}
	return done;
}

static bool
run_spec(Streams *streams, const Spec *spec, const char *conninfo)
{
	ExecutorConfig config = {
		.conninfo = conninfo, .step_limit_us = read_step_limit_us(), .events = &EVENTS, .context = streams};
	Executor *executor;
	bool done;

	complain_of_unused(streams, spec);
	fprintf(streams->out, "Parsed test spec with %d sessions\n", spec->session_count);
	(void) fflush(streams->out);
	executor = executor_open(spec, &config);
	if (executor == NULL)
	{
		return false;
	}
	done = spec->permutation_count > 0 ? run_written(executor, streams, spec) : run_all(executor, streams, spec);
	executor_close(executor);
	return done;
}

ExitCode
spec_run_compatible(const char *text, size_t length, const char *conninfo, FILE *out, FILE *err)
{
	Streams streams = {.out = out, .err = err};
	SpecError error;
	Spec *spec = spec_read(text, length, SPEC_COMPATIBLE, &error);
	bool done = false;

	if (spec != NULL && spec_link(spec, &error))
	{
		done = run_spec(&streams, spec, conninfo);
	}
	else
	{
		complain_of_file(&streams, &error);
	}
	(void) fflush(out);
	spec_error_free(&error);
	spec_free(spec);
	return done ? EXIT_CODE_PASS : EXIT_CODE_FAIL;
}
