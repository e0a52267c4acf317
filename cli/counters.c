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

/* An option of repair that another action would have to ignore; NULL: none was given. */
static const char *
option_of_repair(const CountersRepair *how)
{
	return how->mode != NULL ? "mode"
		   : how->dry_run    ? "dry-run"
		   : how->record     ? "record"
		   : how->explain    ? "explain"
		   : how->resume     ? "resume"
		   : how->yes        ? "yes"
		   : how->pause_file ? "pause-file"
		   : how->max_load   ? "max-load"
		   : how->max_lag_mb ? "max-lag"
							 : NULL;
}

/* The same of watch; how often has a value always. */
static const char *
option_of_watch(const Options *options)
{
	return options->counters.until_drift ? "until-drift" : options->counters.metrics != NULL ? "prometheus" : NULL;
}

static bool
is_for(const char *owner, const char *action, const char *option)
{
	if (option != NULL && strcmp(action, owner) != 0)
	{
		report_error("--%s is for counters %s", option, owner);
		return false;
	}
	return true;
}

static bool
possible(const Options *options, const char *action)
{
	return is_for("repair", action, option_of_repair(&options->counters.repair)) &&
		   is_for("watch", action, option_of_watch(options));
}

static const struct
{
	const char *name;
	ExitCode (*run)(const CountersRequest *request, const Options *options);
} ACTIONS[] = {{"check", check}, {"repair", repair},   {"history", history},
			   {"watch", watch}, {"explain", explain}, {"init", init}};

static ExitCode
refuse_action(const char *word)
{
	const char *names[LENGTH_OF(ACTIONS) + 1] = {NULL};

	for (size_t i = 0; i < LENGTH_OF(ACTIONS); i++)
	{
		names[i] = ACTIONS[i].name;
	}
	if (word == NULL)
	{
		report_error("counters does what? ./run.sh help counters");
	}
	else
	{
		report_error("counters cannot \"%s\"; the nearest is \"%s\"", word, string_nearest(word, names));
	}
	return EXIT_CODE_USAGE;
}

ExitCode
command_counters(const Options *options, const char *const *words, int word_count)
{
	CountersRequest request = {.conninfo = options->runner.server,
							   .file = options->counters.file,
							   .names = words + 1,
							   .name_count = word_count - 1,
							   .id = options->counters.id,
							   .sample = options->sample,
							   .seed = options->runner.seed,
							   .chunk = options->counters.chunk,
							   .settle_s = options->counters.settle_s,
							   .report_limit = options->counters.report_limit,
							   .json = options->counters.json,
							   .verbose = options->runner.verbose,
							   .sql = options->runner.sql};

	for (size_t i = 0; word_count > 0 && i < LENGTH_OF(ACTIONS); i++)
	{
		if (strcmp(words[0], ACTIONS[i].name) != 0)
		{
			continue;
		}
		if (request.file == NULL)
		{
			report_error("counters %s needs -c FILE, the file that names the counters", words[0]);
			return EXIT_CODE_USAGE;
		}
		if (request.verbose)
		{
			notice_set_level(NOTICE_DEBUG);
		}
		time_set_scale(options->runner.scale);
		return possible(options, words[0]) ? ACTIONS[i].run(&request, options) : EXIT_CODE_USAGE;
	}
	return refuse_action(word_count > 0 ? words[0] : NULL);
}
