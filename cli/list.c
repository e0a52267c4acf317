/*
 * list: a case on a line: its number, its kind, its claim.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static int
wider(int width, const char *string)
{
	int length = (int) strlen(string);

	return length > width ? length : width;
}

ExitCode
command_list(const Options *options, const char *const *words, int word_count)
{
	const Scenario **selected = NULL;
	int count = 0;
	int id = 0;
	int kind = 0;

	if (!command_select(options, words, word_count, &selected, &count))
	{
		return EXIT_CODE_NO_MATCH;
	}
	for (int i = 0; i < count; i++)
	{
		id = wider(id, selected[i]->id);
		kind = wider(kind, selected[i]->kind);
	}
	for (int i = 0; i < count; i++)
	{
		printf("%-*s  %-*s  %s\n", id, selected[i]->id, kind, selected[i]->kind, selected[i]->claim);
	}
	free(selected);
	return EXIT_CODE_PASS;
}
