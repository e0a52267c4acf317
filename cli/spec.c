/*
 * spec: hand the files over to the scenario language.
 */
#include "commands.h"
#include "spec.h"

static bool
possible(const Options *options, int word_count)
{
	if (word_count == 0)
	{
		report_error("spec wants at least one FILE: ./run.sh spec FILE...");
		return false;
	}
	if (options->order != NULL && (word_count != 1 || options->each))
	{
		report_error("--order is for one file, and without --each");
		return false;
	}
	return true;
}

static ExitCode
run_files(const Options *options, const RunnerConfig *config, const char *const *files, int count)
{
	char **replays = command_replays(options, "spec", files, count);
	SpecSelection selection = {
		.run = config, .order = options->order, .each = options->each, .replays = (const char *const *) replays};
	ExitCode code = spec_run_files(&selection, files, count);

	paths_free(replays, (size_t) count);
	return code;
}

ExitCode
command_spec(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig config = options->runner;
	char **names;
	Text replay = {0};
	ExitCode code;

	if (!possible(options, word_count))
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
	names = command_files_from_home(options, words, word_count);
	command_replay(&replay, options, "spec", (const char *const *) names, word_count);
	config.replay = text_get(&replay);
	code = run_files(options, &config, (const char *const *) names, word_count);
	paths_free(names, (size_t) word_count);
	text_free(&replay);
	return code;
}
