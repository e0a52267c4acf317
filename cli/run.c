/*
 * run: select, then hand over to the runner.
 */
#include <stdlib.h>

#include "commands.h"
#include "twins/twins.h"

ExitCode
command_run(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig config = options->runner;
	const Scenario **selected = NULL;
	Text replay = {0};
	ExitCode code;
	int count = 0;

	if (word_count == 0)
	{
		report_error("nothing to run: name a suite, a case or all (see: help, list)");
		return EXIT_CODE_USAGE;
	}
	if (config.variant != NULL && !twin_known(config.variant))
	{
		return EXIT_CODE_NO_MATCH;
	}
	if (!command_select(options, words, word_count, &selected, &count))
	{
		return EXIT_CODE_NO_MATCH;
	}
	if (config.verbose)
	{
		notice_set_level(NOTICE_DEBUG);
	}
	text_append(&replay, "./run.sh");
	for (int i = 0; i < word_count; i++)
	{
		text_append(&replay, " ");
		options_quote(&replay, words[i]);
	}
	text_append(&replay, "%s", text_get(&options->replay));
	config.replay = text_get(&replay);
	if (config.server == NULL && config.pg_bin == NULL)
	{
		report_error(
			"no PostgreSQL %d: start through run.sh, which finds it, or name the folder of its binaries with --pg-bin",
			config.pg_major);
		code = EXIT_CODE_BROKEN;
	}
	else
	{
		code = runner_run(&config, selected, count);
	}
	text_free(&replay);
	free(selected);
	return code;
}
