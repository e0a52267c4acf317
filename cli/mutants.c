/*
 * mutants: every twin, or those named, against the cases.
 */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "twins/matrix.h"

/* false: a word names no twin, or nothing is left for this part; reported. */
static bool
choose(const Shard *shard, const char *const *words, int word_count, const Twin **chosen, int *count)
{
	int named_count = 0;

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
		if (named && named_count++ % shard->count == shard->index - 1)
		{
			chosen[(*count)++] = twin;
		}
	}
	if (*count == 0)
	{
		report_error("nothing to run: part %d of %d of %d twins", shard->index, shard->count, named_count);
	}
	return *count > 0;
}

ExitCode
command_mutants(const Options *options, const char *const *words, int word_count)
{
	RunnerConfig run = options->runner;
	MatrixConfig config = {.run = &run, .brief = options->brief};
	const Twin **chosen;
	Text replay = {0};
	ExitCode code;

	chosen = memory_get(sizeof(*chosen) * ((size_t) twin_count() + 1));
	if (!choose(&options->shard, words, word_count, chosen, &config.twin_count))
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
