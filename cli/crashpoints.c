/*
 * crashpoints: hand the files over to the enumerator.
 */
#include <glob.h>
#include <stdlib.h>

#include "commands.h"

static bool
possible(const Options *options)
{
	if (options->runner.server != NULL)
	{
		report_error("crashpoints cannot go with --server: it makes servers of its own, and stops them");
		return false;
	}
	return command_refuse_case_options(options, "crashpoints");
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

/* The files that come with the lab: those that are clean, then those that are known to be wrong. */
static bool
find_shipped(const Options *options, glob_t *files)
{
	char *clean = string_format("%s/crashpoints/*.yaml", options->home);
	char *wrong = string_format("%s/crashpoints/twins/*.yaml", options->home);
	bool found = glob(clean, 0, NULL, files) == 0 && glob(wrong, GLOB_APPEND, NULL, files) == 0;

	if (!found)
	{
		report_error("no files %s and %s", clean, wrong);
	}
	free(clean);
	free(wrong);
	return found;
}

ExitCode
command_crashpoints(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig config = options->runner;
	glob_t shipped = {0};
	Text replay = {0};
	ExitCode code;

	if (!possible(options))
	{
		return EXIT_CODE_USAGE;
	}
	if (!command_has_server(options) || (word_count == 0 && !find_shipped(options, &shipped)))
	{
		return EXIT_CODE_BROKEN;
	}
	if (config.verbose)
	{
		notice_set_level(NOTICE_DEBUG);
	}
	command_replay(&replay, options, "crashpoints", words, word_count);
	config.replay = text_get(&replay);
	code = word_count > 0 ? run_files(options, &config, words, word_count)
						  : run_files(options, &config, (const char *const *) shipped.gl_pathv, (int) shipped.gl_pathc);
	globfree(&shipped);
	text_free(&replay);
	return code;
}
