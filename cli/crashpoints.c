/*
 * crashpoints: hand the files over to the enumerator.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "design.h"

static ExitCode
run_files(const Options *options, const RunnerConfig *config, const char *const *files, int count)
{
	char **replays = command_replays(options, "crashpoints", files, count);
	CrashSelection selection = {.run = config,
								.first_point = options->points.first,
								.last_point = options->points.last,
								.fault = options->fault,
								.sample = options->sample,
								.shard_index = options->shard.index,
								.shard_count = options->shard.count,
								.replays = (const char *const *) replays};
	ExitCode code = crashpoints_run(&selection, files, count);

	paths_free(replays, (size_t) count);
	return code;
}

static ExitCode
run_named(const Options *options, RunnerConfig *config, const char *const *words, int word_count)
{
	char **names = command_files_from_home(options, words, word_count);
	const char *const *files = (const char *const *) names;
	Text replay = {0};
	ExitCode code;

	command_replay(&replay, options, "crashpoints", files, word_count);
	config->replay = text_get(&replay);
	code = run_files(options, config, files, word_count);
	paths_free(names, (size_t) word_count);
	text_free(&replay);
	return code;
}

static ExitCode
run_shipped(const Options *options, RunnerConfig *config, const char *const *files, int count)
{
	Text replay = {0};
	ExitCode code;

	command_replay(&replay, options, "crashpoints", NULL, 0);
	config->replay = text_get(&replay);
	code = run_files(options, config, files, count);
	text_free(&replay);
	return code;
}

/* The files that come with the lab: those that are clean, then those that are known to be wrong. */
static bool
find_shipped(const Options *options, char ***files, size_t *count)
{
	static const char *const folders[] = {"crashpoints", "crashpoints/twins"};
	bool found = true;

	for (size_t i = 0; found && i < LENGTH_OF(folders); i++)
	{
		char *folder = string_format("%s/%s", options->home, folders[i]);
		char **more;
		size_t more_count;

		found = folder_files(folder, ".yaml", &more, &more_count);
		*files = memory_grow(*files, sizeof(char *) * (*count + more_count + 1));
		for (size_t k = 0; k < more_count; k++)
		{
			(*files)[(*count)++] = more[k];
		}
		free(more);
		free(folder);
	}
	if (found && *count == 0)
	{
		report_error("no files in %s/crashpoints", options->home);
		found = false;
	}
	return found;
}

ExitCode
command_crashpoints(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig config = options->runner;
	char **shipped = NULL;
	size_t shipped_count = 0;
	ExitCode code;

	/* For like-setup, which every file of the like system begins with: a file says nothing of a design. */
	if (setenv("COUNTERPROOF_DESIGN", config.design, 1) != 0)
	{
		report_error("cannot hand --design on: %s", strerror(errno));
		return EXIT_CODE_BROKEN;
	}
	config.server_settings = like_design_find(config.design)->server_settings;
	if (!command_has_server(options) || (word_count == 0 && !find_shipped(options, &shipped, &shipped_count)))
	{
		paths_free(shipped, shipped_count);
		return EXIT_CODE_BROKEN;
	}
	if (config.verbose)
	{
		notice_set_level(NOTICE_DEBUG);
	}
	code = word_count > 0 ? run_named(options, &config, words, word_count)
						  : run_shipped(options, &config, (const char *const *) shipped, (int) shipped_count);
	paths_free(shipped, shipped_count);
	return code;
}
