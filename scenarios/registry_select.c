/*
 * From words to cases.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "registry.h"

static int
count_of(const Scenario *const *all)
{
	int count = 0;

	while (all[count] != NULL)
	{
		count++;
	}
	return count;
}

static bool
names(const char *word, const Scenario *scenario)
{
	return strcmp(word, "all") == 0 || strcmp(word, scenario->suite) == 0 || strcmp(word, scenario->id) == 0;
}

static void
report_unknown(const Scenario *const *all, const char *word, const char *const *others)
{
	size_t other_count = 0;
	const char **candidates;
	const char *nearest;
	int count = 0;

	while (others[other_count] != NULL)
	{
		other_count++;
	}
	candidates = memory_get(sizeof(*candidates) * (2 * (size_t) count_of(all) + other_count + 2));
	/* Of names equally near the first wins: a case before its suite, for a mistyped letter of 32-k. */
	for (int i = 0; all[i] != NULL; i++)
	{
		candidates[count++] = all[i]->id;
	}
	for (int i = 0; all[i] != NULL; i++)
	{
		candidates[count++] = all[i]->suite;
	}
	candidates[count++] = "all";
	memcpy(&candidates[count], others, sizeof(*candidates) * other_count);
	nearest = string_nearest(word, candidates);
	for (size_t i = 0; candidates[i] != NULL; i++)
	{
		if (strcasecmp(word, candidates[i]) == 0)
		{
			nearest = candidates[i];
		}
	}
	report_error("no suite or case is named \"%s\"; the nearest is \"%s\" (see: list)", word, nearest);
	free(candidates);
}

bool
registry_select(const Scenario *const *all, const char *const *words, int word_count, const char *const *others,
				const Scenario ***selected, int *selected_count)
{
	int total = count_of(all);
	bool *wanted = memory_get(sizeof(*wanted) * ((size_t) total + 1));
	bool known = true;

	for (int w = 0; w < word_count && known; w++)
	{
		known = false;
		for (int i = 0; i < total; i++)
		{
			if (names(words[w], all[i]))
			{
				wanted[i] = known = true;
			}
		}
		if (!known)
		{
			report_unknown(all, words[w], others);
		}
	}
	if (known)
	{
		*selected = memory_get(sizeof(**selected) * ((size_t) total + 1));
		*selected_count = 0;
		for (int i = 0; i < total; i++)
		{
			if (wanted[i])
			{
				(*selected)[(*selected_count)++] = all[i];
			}
		}
	}
	free(wanted);
	return known;
}
