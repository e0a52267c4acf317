/*
 * From words and --shard to the cases they name.
 */
#include <stdlib.h>

#include "commands.h"
#include "registry.h"

const char **
command_names(void)
{
	int count = 0;
	const char **names;

	while (commands[count].name != NULL)
	{
		count++;
	}
	names = memory_get(sizeof(*names) * ((size_t) count + 1));
	for (int i = 0; i < count; i++)
	{
		names[i] = commands[i].name;
	}
	return names;
}

bool
command_select(const Options *options, const char *const *words, int word_count, const Scenario ***selected, int *count)
{
	static const char *const everything[] = {"all"};
	const char **names = command_names();
	bool known = word_count > 0 ? registry_select(registry_scenarios, words, word_count, names, selected, count)
								: registry_select(registry_scenarios, everything, 1, names, selected, count);
	int kept = 0;

	free(names);
	if (!known)
	{
		return false;
	}
	for (int i = options->shard.index - 1; i < *count; i += options->shard.count)
	{
		(*selected)[kept++] = (*selected)[i];
	}
	if (kept == 0)
	{
		report_error("nothing to run: part %d of %d of a selection of %d", options->shard.index, options->shard.count,
					 *count);
		free(*selected);
		return false;
	}
	*count = kept;
	return true;
}
