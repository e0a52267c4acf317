/*
 * Parameters on the way in, values on the way out; text form in both directions.
 */
#include "session_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


/* --- parameters --- */

SqlArg
arg_int(int64_t value)
{
	SqlArg arg = {.text = NULL};

	snprintf(arg.number, sizeof(arg.number), "%" PRId64, value);
	return arg;
}

SqlArg
arg_bool(bool value)
{
	return (SqlArg){.text = value ? "true" : "false"};
}

SqlArg
arg_text(const char *text)
{
	return (SqlArg){.text = text};
}

void
text_append_int64_array(Text *text, const int64_t *values, size_t count)
{
	text_append_bytes(text, "{", 1);
	for (size_t i = 0; i < count; i++)
	{
		text_append(text, i > 0 ? ",%" PRId64 : "%" PRId64, values[i]);
	}
	text_append_bytes(text, "}", 1);
}


/* --- results --- */

int
sql_rows(const SqlResult *result)
{
	return PQntuples(result_to_pg(result));
}

int
sql_columns(const SqlResult *result)
{
	return PQnfields(result_to_pg(result));
}

const char *
sql_column_name(const SqlResult *result, int column)
{
	const char *name = PQfname(result_to_pg(result), column);

	return name != NULL ? name : "";
}

/* A value that is not there is a mistake in the caller's SQL or C; any answer would be taken for data. */
static void
require_value(const SqlResult *result, int row, int column)
{
	if (row < 0 || row >= sql_rows(result) || column < 0 || column >= sql_columns(result))
	{
		report_error("no value at row %d, column %d of a result of %d rows and %d columns", row, column,
					 sql_rows(result), sql_columns(result));
		abort();
	}
}

const char *
sql_text(const SqlResult *result, int row, int column)
{
	require_value(result, row, column);
	return PQgetvalue(result_to_pg(result), row, column);
}

int64_t
sql_int(const SqlResult *result, int row, int column)
{
	const char *text = sql_text(result, row, column);
	int64_t value = 0;

	if (!sql_is_null(result, row, column) && !string_to_int64(text, INT64_MIN, INT64_MAX, &value))
	{
		report_error("column %s is not an integer: %s", sql_column_name(result, column), text);
		abort();
	}
	return value;
}

bool
sql_bool(const SqlResult *result, int row, int column)
{
	return sql_text(result, row, column)[0] == 't';
}

bool
sql_is_null(const SqlResult *result, int row, int column)
{
	require_value(result, row, column);
	return PQgetisnull(result_to_pg(result), row, column) != 0;
}

void
sql_free(SqlResult *result)
{
	PQclear((PGresult *) result);
}

const char *
sql_status_name(SqlStatus status)
{
	static const char *const names[] = {"UNSET", "OK", "ERROR", "LOST", "UNKNOWN", "TIMEOUT"};

	return (size_t) status < LENGTH_OF(names) ? names[status] : "?";
}
