/*
 * The two regular expressions at the head of a file for ShiViz, which are JavaScript's, as POSIX's: groups with names, \d and
 * the like, and a line break between the lines of an event. What has no counterpart is refused.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

/* One that a repetition follows. */
static bool
is_count(const char *at)
{
	size_t length = strspn(at, "0123456789,");

	return isdigit((unsigned char) at[0]) && at[length] == '}';
}

static bool
add_escape(char escaped, bool in_class, Pattern *pattern, Text *posix, Text *why)
{
	switch (escaped)
	{
		case 'd':
			text_append(posix, in_class ? "0-9" : "[0-9]");
			return true;
		case 'w':
			text_append(posix, in_class ? "A-Za-z0-9_" : "[A-Za-z0-9_]");
			return true;
		case 's':
			text_append(posix, in_class ? " \t" : "[ \t]");
			return true;
		case 't':
			text_append(posix, "\t");
			return true;
		case 'n':
			pattern->lines += !in_class;
			text_append(posix, "\n");
			return true;
		case 'S':
		case 'W':
		case 'D':
			if (!in_class)
			{
				text_append(posix, escaped == 'S' ? "[^ \t\n]" : escaped == 'W' ? "[^A-Za-z0-9_\n]" : "[^0-9\n]");
				return true;
			}
			break;
		default:
			if (ispunct((unsigned char) escaped))
			{
				text_append(posix, in_class ? "%c" : "\\%c", escaped);
				return true;
			}
			break;
	}
	text_append(why, "\\%c has no meaning here", escaped == '\0' ? ' ' : escaped);
	return false;
}

/* "(?<name>": its name is kept; "(?:" is a group like any other. Moves behind the opening. */
static bool
add_group(const char **at, Pattern *pattern, Text *posix, Text *why)
{
	PatternGroup *group = &pattern->groups[pattern->group_count];
	const char *name = *at + 3;
	size_t length;

	if (pattern->group_count == PATTERN_GROUPS_MAX)
	{
		text_append(why, "more than %d groups", PATTERN_GROUPS_MAX);
		return false;
	}
	*group = (PatternGroup){0};
	pattern->group_count++;
	text_append(posix, "(");
	if ((*at)[1] != '?')
	{
		(*at)++;
		return true;
	}
	if ((*at)[2] == ':')
	{
		*at += 3;
		return true;
	}
	length = (*at)[2] == '<' ? strcspn(name, ">") : 0;
	if (length == 0 || name[length] != '>' || length >= sizeof(group->name) || !(isalpha((unsigned char) name[0])))
	{
		text_append(why, "a group that is none with a name: %.12s", *at);
		return false;
	}
	memcpy(group->name, name, length);
	*at = name + length + 1;
	for (int i = 0; i < pattern->group_count - 1; i++)
	{
		if (strcmp(pattern->groups[i].name, group->name) == 0)
		{
			text_append(why, "two groups named %s", group->name);
			return false;
		}
	}
	return true;
}

static bool
translate(const char *javascript, Pattern *pattern, Text *posix, Text *why)
{
	bool in_class = false;

	for (const char *at = javascript; *at != '\0';)
	{
		if (*at == '\\')
		{
			if (!add_escape(at[1], in_class, pattern, posix, why))
			{
				return false;
			}
			at += 2;
			continue;
		}
		if (!in_class && *at == '(')
		{
			if (!add_group(&at, pattern, posix, why))
			{
				return false;
			}
			continue;
		}
		if (!in_class && strchr("*+?}", *at) != NULL && at[1] == '?')
		{
			text_append(why, "%c? takes as little as it can, which is not known here", *at);
			return false;
		}
		in_class = in_class ? *at != ']' : *at == '[';
		/* A brace that begins no repetition is one of the text. */
		text_append(posix, !in_class && *at == '{' && !is_count(at + 1) ? "\\{" : "%c", *at);
		at++;
	}
	return true;
}

bool
pattern_compile(const char *javascript, Pattern *pattern, Text *why)
{
	Text posix = {0};
	char reason[128];
	int error = -1;

	*pattern = (Pattern){.lines = 1};
	text_append(&posix, "^");
	if (translate(javascript, pattern, &posix, why))
	{
		text_append(&posix, "$");
		error = regcomp(&pattern->regex, text_get(&posix), REG_EXTENDED | REG_NEWLINE);
		if (error != 0)
		{
			(void) regerror(error, &pattern->regex, reason, sizeof(reason));
			text_append(why, "%s", reason);
		}
	}
	text_free(&posix);
	return error == 0;
}

void
pattern_free(Pattern *pattern)
{
	regfree(&pattern->regex);
}

int
pattern_group(const Pattern *pattern, const char *name)
{
	for (int i = 0; i < pattern->group_count; i++)
	{
		if (strcmp(pattern->groups[i].name, name) == 0)
		{
			return i + 1;
		}
	}
	return 0;
}

bool
pattern_match(const Pattern *pattern, const char *lines, size_t length, TracePart parts[PATTERN_GROUPS_MAX + 1])
{
	regmatch_t found[PATTERN_GROUPS_MAX + 1];

	found[0] = (regmatch_t){.rm_so = 0, .rm_eo = (regoff_t) length};
	if (regexec(&pattern->regex, lines, LENGTH_OF(found), found, REG_STARTEND) != 0 || found[0].rm_so != 0 ||
		(size_t) found[0].rm_eo != length)
	{
		return false;
	}
	for (int i = 0; i <= pattern->group_count; i++)
	{
		parts[i] = found[i].rm_so < 0 ? (TracePart){lines, 0}
									  : (TracePart){lines + found[i].rm_so, (size_t) (found[i].rm_eo - found[i].rm_so)};
	}
	return true;
}
