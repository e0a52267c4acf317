/*
 * spec: hand the files over to the scenario language.
 */
#include <stdlib.h>

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

/* The command for one of the files; the caller frees. */
static char *
replay_of(const Options *options, const char *file)
{
	Text text = {0};

	text_append(&text, "./run.sh spec ");
	text_append_word(&text, file);
	text_append(&text, "%s", text_get(&options->alike));
	return text.data;
}

static ExitCode
run_files(const Options *options, const RunnerConfig *config, const char *const *files, int count)
{
	char **replays = memory_get(sizeof(char *) * (size_t) count);
	SpecSelection selection = {
		.run = config, .order = options->order, .each = options->each, .replays = (const char *const *) replays};
	ExitCode code;

	for (int i = 0; i < count; i++)
	{
		replays[i] = replay_of(options, files[i]);
	}
	code = spec_run_files(&selection, files, count);
	for (int i = 0; i < count; i++)
	{
		free(replays[i]);
	}
	free(replays);
	return code;
}

ExitCode
command_spec(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig config = options->runner;
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
	command_replay(&replay, options, "spec", words, word_count);
	config.replay = text_get(&replay);
	code = run_files(options, &config, words, word_count);
	text_free(&replay);
	return code;
}
