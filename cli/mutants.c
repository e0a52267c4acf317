/*
 * mutants: every twin, or those named, against the cases.
 */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "twins/matrix.h"

/* What a run over every twin cannot do. */
static bool
possible(const RunnerConfig *run)
{
	const char *refused = run->server != NULL                  ? "--server: some cases have to break their server"
						  : run->variant != NULL               ? "--variant: it runs all of them"
						  : run->repeat > 1 || run->until_fail ? "--repeat or --until-fail"
						  : run->keep                          ? "--keep: run the case with --variant"
															   : NULL;

	if (refused != NULL)
	{
		report_error("mutants cannot go with %s", refused);
	}
	return refused == NULL;
}

static bool
choose(const char *const *words, int word_count, const Twin **chosen, int *count)
{
	*count = 0;
	for (int i = 0; i < word_count; i++)
	{
		if (!twin_known(words[i]))
		{
			return false;
		}
	}
	for (const Twin *twin = twins; twin->id != NULL; twin++)
	{
		bool named = word_count == 0;

		for (int i = 0; i < word_count; i++)
		{
			named = named || strcmp(words[i], twin->id) == 0;
		}
		if (named)
		{
			chosen[(*count)++] = twin;
		}
	}
	return true;
}

ExitCode
command_mutants(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig run = options->runner;
	MatrixConfig config = {.run = &run, .brief = options->brief};
	const Twin **chosen;
	Text replay = {0};
	ExitCode code;

	if (!possible(&run))
	{
		return EXIT_CODE_USAGE;
	}
	chosen = memory_get(sizeof(*chosen) * ((size_t) twin_count() + 1));
	if (!choose(words, word_count, chosen, &config.twin_count))
	{
		free(chosen);
		return EXIT_CODE_NO_MATCH;
	}
	command_replay(&replay, options, "mutants", words, word_count);
	run.replay = text_get(&replay);
	config.twins = chosen;
	code = command_has_server(options) ? matrix_run(&config) : EXIT_CODE_BROKEN;
	text_free(&replay);
	free(chosen);
	return code;
}
