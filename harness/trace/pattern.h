/* A regular expression of a file for ShiViz: JavaScript's, with names for groups, over as many lines as it has breaks. */
#ifndef COUNTERPROOF_PATTERN_H
#define COUNTERPROOF_PATTERN_H

#include <regex.h>

#include "../trace.h"

#define PATTERN_GROUPS_MAX 16

typedef struct
{
	char name[32]; /* "" for none */
} PatternGroup;

typedef struct
{
	regex_t regex;
	PatternGroup groups[PATTERN_GROUPS_MAX];
	int group_count;
	size_t lines; /* that it spans */
} Pattern;

/* false: `why` has what is not understood; nothing to free. */
extern bool pattern_compile(const char *javascript, Pattern *pattern, Text *why) MUST_CHECK;
extern void pattern_free(Pattern *pattern);

/* Which group has this name, 0 for none. */
extern int pattern_group(const Pattern *pattern, const char *name);

/* Does all of it match, which is that many lines without the last one's end? Part 0 is all, the others are the groups. */
extern bool pattern_match(const Pattern *pattern, const char *lines, size_t length,
						  TracePart parts[PATTERN_GROUPS_MAX + 1]) MUST_CHECK;

#endif
