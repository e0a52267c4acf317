/*
 * run: select, then hand over to the runner.
 */
#include <stdlib.h>

#include "commands.h"
#include "design.h"
#include "registry.h"
#include "twins/twins.h"

static bool
needs_server(const Scenario **selected, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (selected[i]->needs != NEEDS_NOTHING)
		{
			return true;
		}
	}
	return false;
}

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
	if (config.variant != NULL)
	{
		if (!twin_known(config.variant) || !twin_fits(twin_find(config.variant), config.design))
		{
			return EXIT_CODE_NO_MATCH;
		}
		config.design = twin_design(twin_find(config.variant), config.design, NULL);
	}
	config.server_settings = like_design_find(config.design)->server_settings;
	if (!command_select(options, words, word_count, &selected, &count))
	{
		return EXIT_CODE_NO_MATCH;
	}
	if (config.verbose)
	{
		notice_set_level(NOTICE_DEBUG);
	}
	command_replay(&replay, options, NULL, words, word_count);
	config.replay = text_get(&replay);
	config.tales = registry_tales;
	code = !needs_server(selected, count) || command_has_server(options) ? runner_run(&config, selected, count)
																		 : EXIT_CODE_BROKEN;
	text_free(&replay);
	free(selected);
	return code;
}
