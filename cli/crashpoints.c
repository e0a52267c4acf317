/*
 * crashpoints: hand the files over to the enumerator.
 */
#include <stdlib.h>

#include "commands.h"

/* Options of cases that would be ignored here: whoever gives one expects something of it. */
static bool
refuse_foreign(const RunnerConfig *config)
{
	const char *name = config->server != NULL ? "server"
					   : config->keep         ? "keep"
					   : config->until_fail   ? "until-fail"
					   : config->repeat > 1   ? "repeat"
					   : config->fail_fast    ? "fail-fast"
					   : config->variant      ? "variant"
											  : NULL;

	if (name != NULL)
	{
		report_error("--%s is for cases; crashpoints makes servers of its own, and runs each point once", name);
	}
	return name == NULL;
}

/* The command for one of the files; the caller frees. */
static char *
replay_of(const Options *options, const char *file)
{
	Text text = {0};

	text_append(&text, "./run.sh crashpoints ");
	options_quote(&text, file);
	text_append(&text, "%s", text_get(&options->alike));
	return text.data;
}

static ExitCode
run_files(const Options *options, const RunnerConfig *config, const char *const *files, int count)
{
	char **replays = memory_get(sizeof(char *) * (size_t) count);
	CrashSelection selection = {.run = config,
								.first_point = options->points.first,
								.last_point = options->points.last,
								.fault = options->fault,
								.sample = options->sample,
								.shard_index = options->shard.index,
								.shard_count = options->shard.count,
								.replays = (const char *const *) replays};
	ExitCode code;

	for (int i = 0; i < count; i++)
	{
		replays[i] = replay_of(options, files[i]);
	}
	code = crashpoints_run(&selection, files, count);
	for (int i = 0; i < count; i++)
	{
		free(replays[i]);
	}
	free(replays);
	return code;
}

ExitCode
command_crashpoints(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig config = options->runner;
	Text replay = {0};
	ExitCode code;

	if (word_count == 0)
	{
		report_error("no file: ./run.sh crashpoints FILE... (README.md has what stands in one)");
		return EXIT_CODE_USAGE;
	}
	if (!refuse_foreign(&config))
	{
		return EXIT_CODE_USAGE;
	}
	if (!command_has_server(options))
	{
		return EXIT_CODE_BROKEN;
	}
	if (config.verbose)
	{
		notice_set_level(NOTICE_DEBUG);
	}
	command_replay(&replay, options, "crashpoints", words, word_count);
	config.replay = text_get(&replay);
	code = run_files(options, &config, words, word_count);
	text_free(&replay);
	return code;
}
