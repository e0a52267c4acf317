/*
 * counters: hand over to the tool. It needs no server of the lab, and connects where --server or PG* variables say.
 */
#include "counters.h"

#include <stdlib.h>
#include <string.h>

#include "commands.h"

static ExitCode
watch(const CountersRequest *request, const Options *options)
{
	CountersWatch how = {.every_s = options->counters.every_s,
						 .until_drift = options->counters.until_drift,
						 .metrics = options->counters.metrics};

	return counters_watch(request, &how);
}

static ExitCode
check(const CountersRequest *request, const Options *options)
{
	(void) options;
	return counters_check(request);
}

static ExitCode
explain(const CountersRequest *request, const Options *options)
{
	(void) options;
	return counters_explain(request);
}

static ExitCode
init(const CountersRequest *request, const Options *options)
{
	(void) options;
	if (request->name_count > 0)
	{
		report_error("counters init takes no names: it writes down all that it finds");
		return EXIT_CODE_USAGE;
	}
	return counters_init(request);
}

static ExitCode
repair(const CountersRequest *request, const Options *options)
{
	return counters_repair(request, &options->counters.repair);
}

static ExitCode
history(const CountersRequest *request, const Options *options)
{
	(void) options;
	return counters_history(request);
}

typedef struct
{
	const char *name;
	ExitCode (*run)(const CountersRequest *request, const Options *options);
	int options; /* whose rows it takes */
} Action;

static const Action ACTIONS[] = {
	{"check", check, FOR_CHECK}, {"repair", repair, FOR_REPAIR},    {"history", history, FOR_HISTORY},
	{"watch", watch, FOR_WATCH}, {"explain", explain, FOR_EXPLAIN}, {"init", init, FOR_INIT},
};

/* NULL: reported. */
static const Action *
find_action(const char *word)
{
	const char *names[LENGTH_OF(ACTIONS) + 1] = {NULL};

	if (word == NULL)
	{
		report_error("counters does what? ./run.sh help counters");
		return NULL;
	}
	for (size_t i = 0; i < LENGTH_OF(ACTIONS); i++)
	{
		if (strcmp(word, ACTIONS[i].name) == 0)
		{
			return &ACTIONS[i];
		}
		names[i] = ACTIONS[i].name;
	}
	report_error("counters cannot \"%s\"; the nearest is \"%s\"", word, string_nearest(word, names));
	return NULL;
}

/* What belongs to another action is refused as what belongs to another command is. */
static bool
action_fits(const Action *action, Options *options)
{
	char *name = string_format("counters %s", action->name);
	bool fits = options_fit(options, action->options, name);

	free(name);
	if (fits && options->counters.file == NULL)
	{
		report_error("counters %s needs -c FILE, the file that names the counters", action->name);
		fits = false;
	}
	return fits;
}

static ExitCode
run_action(const Action *action, const Options *options, const char *const *names, int name_count)
{
	CountersRequest request = {.conninfo = options->runner.server,
							   .file = options->counters.file,
							   .names = names,
							   .name_count = name_count,
							   .id = options->counters.id,
							   .sample = options->sample,
							   .seed = options->runner.seed,
							   .chunk = options->counters.chunk,
							   .settle_s = options->counters.settle_s,
							   .report_limit = options->counters.report_limit,
							   .json = options->counters.json,
							   .verbose = options->runner.verbose,
							   .sql = options->runner.sql};

	if (request.verbose)
	{
		notice_set_level(NOTICE_DEBUG);
	}
	time_set_scale(options->runner.scale);
	return action->run(&request, options);
}

ExitCode
command_counters(const Options *options, const char *const *words, int word_count)
{
	const Action *action = find_action(word_count > 0 ? words[0] : NULL);
	Options own = *options; /* those of other actions are not in it */

	return action != NULL && action_fits(action, &own) ? run_action(action, &own, words + 1, word_count - 1)
													   : EXIT_CODE_USAGE;
}
