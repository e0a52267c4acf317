/* init: a file to begin with, for a person to edit. What is guessed says so in a comment. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"

/* Columns of counters_init. */
enum
{
	INIT_TARGET = 0,
	INIT_TARGET_NAME,
	INIT_COLUMN,
	INIT_SOURCE,
	INIT_KEY,
	INIT_SOURCE_KEY,
	INIT_SOFT_DELETE,
	INIT_LIKELY
};

/* A text in JSON's quotes is one in YAML's. */
static void
append_text(Text *text, const char *value)
{
	json_t *string;
	char *quoted;

	if (value[0] != '\0' && strspn(value, "abcdefghijklmnopqrstuvwxyz_.0123456789") == strlen(value) &&
		strspn(value, ".0123456789") == 0)
	{
		text_append(text, "%s", value);
		return;
	}
	string = json_string(value);
	quoted = json_dumps(string, JSON_ENCODE_ANY);
	text_append(text, "%s", quoted != NULL ? quoted : "\"\"");
	free(quoted);
	json_decref(string);
}

/* `edge` begins each line; a counter that is a guess is one of comments. */
static void
append_counter(Text *text, const SqlResult *result, int row)
{
	bool likely = sql_bool(result, row, INIT_LIKELY);
	const char *edge = likely ? "  " : "#  ";
	char *name = string_format("%s.%s", sql_text(result, row, INIT_TARGET_NAME), sql_text(result, row, INIT_COLUMN));

	if (!likely)
	{
		text_append(text, "#  perhaps:\n");
	}
	text_append(text, "%s- name: ", edge);
	append_text(text, name);
	text_append(text, "\n%s  target: ", edge);
	append_text(text, sql_text(result, row, INIT_TARGET));
	text_append(text, "\n%s  key: %s\n%s  column: ", edge, sql_text(result, row, INIT_KEY), edge);
	append_text(text, sql_text(result, row, INIT_COLUMN));
	text_append(text, "\n%s  source: ", edge);
	append_text(text, sql_text(result, row, INIT_SOURCE));
	text_append(text, "\n%s  source_key: %s\n", edge, sql_text(result, row, INIT_SOURCE_KEY));
	if (sql_bool(result, row, INIT_SOFT_DELETE))
	{
		text_append(text, "%s  where: deleted_at IS NULL   # guessed from the column's name\n", edge);
	}
	text_append(text, "%s  # writers: same_transaction   # or separate_transaction, or outbox; repair needs it\n",
				edge);
	free(name);
}

/* The first likely source of a column counts; *found is whether there was one before. */
static int
append_all(Text *text, const SqlResult *result)
{
	int counters = 0;

	for (int row = 0; row < sql_rows(result); row++)
	{
		bool repeated = row > 0 &&
						strcmp(sql_text(result, row, INIT_TARGET), sql_text(result, row - 1, INIT_TARGET)) == 0 &&
						strcmp(sql_text(result, row, INIT_COLUMN), sql_text(result, row - 1, INIT_COLUMN)) == 0;

		if (sql_is_null(result, row, INIT_SOURCE))
		{
			text_append(text, "#  %s.%s: nothing references the table; if it is a count, name its source yourself\n",
						sql_text(result, row, INIT_TARGET), sql_text(result, row, INIT_COLUMN));
			continue;
		}
		if (repeated && sql_bool(result, row, INIT_LIKELY))
		{
			text_append(text, "#  or its source is %s, by %s\n", sql_text(result, row, INIT_SOURCE),
						sql_text(result, row, INIT_SOURCE_KEY));
			continue;
		}
		append_counter(text, result, row);
		counters += sql_bool(result, row, INIT_LIKELY) ? 1 : 0;
	}
	return counters;
}

static ExitCode
write_new(const char *path, const Text *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	bool done;

	if (fd < 0)
	{
		report_error("%s: %s", path, strerror(errno));
		return errno == EEXIST ? EXIT_CODE_USAGE : EXIT_CODE_BROKEN;
	}
	done = file_write(fd, text_get(text), text->length);
	done = close(fd) == 0 && done;
	if (!done)
	{
		report_error("%s: %s", path, strerror(errno));
	}
	return done ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}

static ExitCode
write_found(const CountersRequest *request, const SqlResult *result)
{
	Text text = {0};
	ExitCode code;
	int counters;

	text_append(
		&text,
		"# Made from foreign keys and columns named like counts. Look at each: is the source right, is `where` complete?\n"
		"# counters/README.md has all keys. Then: ./run.sh counters check -c FILE\n"
		"counters:\n");
	counters = append_all(&text, result);
	if (counters == 0)
	{
		report_error(
			"nothing to write: no column named like a count is in a table that a foreign key with a similar name "
			"references");
		code = EXIT_CODE_INCONCLUSIVE;
	}
	else
	{
		code = write_new(request->file, &text);
	}
	if (code == EXIT_CODE_PASS)
	{
		printf("%s  %d counters; look at each before you trust it\n", request->file, counters);
	}
	text_free(&text);
	return code;
}

ExitCode
counters_init(const CountersRequest *request)
{
	Session *session = counters_connect(request);
	char *path = string_format("%s/counters/init.sql", request->sql);
	SqlResult *result;
	ExitCode code = EXIT_CODE_BROKEN;

	if (session != NULL && session_execute_file(session, path))
	{
		if (session_try_prepared(session, &result, "counters_init", NO_ARGS) == SQL_OK)
		{
			code = write_found(request, result);
			sql_free(result);
		}
		else
		{
			report_error("cannot read the catalogs: %s", session_error(session)->message);
		}
	}
	free(path);
	session_close(session);
	return code;
}
