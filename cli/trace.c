/*
 * trace: check files that ShiViz opens, those of a run and those of other programs.
 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "trace.h"

static bool
check_file(const char *path)
{
	Text why = {0};
	size_t executions, events;
	bool holds = trace_check_file(path, NULL, NULL, &why, &executions, &events);

	if (holds)
	{
		printf("%s: %zu events in %zu executions, every clock is right\n", path, events, executions);
	}
	else if (why.length > 0)
	{
		report_error("%s: %s", path, text_get(&why));
	}
	text_free(&why);
	return holds;
}

ExitCode
command_trace(const Options *options, const char *const *words, int word_count)
{
	bool hold = true;

	(void) options;
	if (word_count < 2 || strcmp(words[0], "check") != 0)
	{
		report_error("what to do with which file? trace check FILE...");
		return EXIT_CODE_USAGE;
	}
	for (int i = 1; i < word_count; i++)
	{
		hold = check_file(words[i]) && hold;
	}
	return hold ? EXIT_CODE_PASS : EXIT_CODE_USAGE;
}
