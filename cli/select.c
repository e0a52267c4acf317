/*
 * What commands that run something have in common: from words and --shard to the cases they name, what stands in the
 * evidence as the way to do it again, and that there is a server at all.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void
command_replay(Text *text, const Options *options, const char *name, const char *const *words, int word_count)
{
	text_append(text, "./run.sh");
	if (name != NULL)
	{
		text_append(text, " %s", name);
	}
	for (int i = 0; i < word_count; i++)
	{
		text_append(text, " ");
		text_append_word(text, words[i]);
	}
	text_append(text, "%s", text_get(&options->replay));
}

/* As ./run.sh of the checkout finds it: one that is named from another folder is named in full. The caller frees. */
static char *
name_from_home(const Options *options, const char *file)
{
	char here[PATH_MAX];
	char absolute[PATH_MAX];

	if ((getcwd(here, sizeof(here)) != NULL && strcmp(here, options->home) == 0) || realpath(file, absolute) == NULL)
	{
		return string_copy(file);
	}
	return string_copy(absolute);
}

char **
command_files_from_home(const Options *options, const char *const *files, int count)
{
	char **names = memory_get(sizeof(char *) * (size_t) count);

	for (int i = 0; i < count; i++)
	{
		names[i] = name_from_home(options, files[i]);
	}
	return names;
}

char **
command_replays(const Options *options, const char *name, const char *const *files, int count)
{
	char **replays = memory_get(sizeof(char *) * (size_t) count);

	for (int i = 0; i < count; i++)
	{
		Text text = {0};

		text_append(&text, "./run.sh %s ", name);
		text_append_word(&text, files[i]);
		text_append(&text, "%s", text_get(&options->alike));
		replays[i] = text.data;
	}
	return replays;
}

bool
command_has_server(const Options *options)
{
	if (options->runner.server != NULL || options->runner.pg_bin != NULL)
	{
		return true;
	}
	report_error(
		"no PostgreSQL %d: start through run.sh, which finds it, or name the folder of its binaries with --pg-bin",
		options->runner.pg_major);
	return false;
}
