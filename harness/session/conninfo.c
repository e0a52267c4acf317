#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "session.h"

/* One `keyword='value'`, quoted as a conninfo string wants it. */
static void
append_option(Text *text, const char *keyword, const char *value)
{
	text_append(text, "%s%s='", text->length > 0 ? " " : "", keyword);
	for (const char *c = value; *c != '\0'; c++)
	{
		text_append(text, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
	}
	text_append(text, "'");
}

char *
session_conninfo_for(const char *conninfo, const char *database)
{
	char *error = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &error);
	Text text = {0};

	if (options == NULL)
	{
		report_error("not a connection string: %s: %s", conninfo, error != NULL ? error : "out of memory");
		PQfreemem(error);
		return NULL;
	}
	for (PQconninfoOption *option = options; option->keyword != NULL; option++)
	{
		if (option->val != NULL && strcmp(option->keyword, "dbname") != 0)
		{
			append_option(&text, option->keyword, option->val);
		}
	}
	append_option(&text, "dbname", database);
	PQconninfoFree(options);
	return text.data;
}

const char *
session_library_version(void)
{
	static char version[16];
	int number = PQlibVersion();

	snprintf(version, sizeof(version), "%d.%d", number / 10000, number % 10000);
	return version;
}
