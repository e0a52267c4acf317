/* Lists of keys on their way to the server, and keys as people read them. */
#include <string.h>

#include "counter.h"

/* One element of an array literal. */
static void
append_element(Text *array, const char *value)
{
	if (value == NULL)
	{
		text_append(array, "NULL");
		return;
	}
	text_append(array, "\"");
	for (; *value != '\0'; value++)
	{
		text_append(array, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
	}
	text_append(array, "\"");
}

/* The literals are kept closed: the brace moves on with each element. */
void
key_list_add(CounterKeyList *list, const Counter *counter, const char *const *key)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		Text *array = &list->columns[i];

		if (list->count == 0)
		{
			text_clear(array);
			text_append(array, "{");
		}
		else
		{
			array->data[array->length - 1] = ',';
		}
		append_element(array, key[i]);
		text_append(array, "}");
	}
	list->count++;
}

void
key_list_clear(CounterKeyList *list)
{
	list->count = 0;
}

void
key_list_free(CounterKeyList *list)
{
	for (int i = 0; i < COUNTER_KEY_MAX; i++)
	{
		text_free(&list->columns[i]);
	}
}

int
key_list_args(const CounterKeyList *list, const Counter *counter, SqlArg args[COUNTER_KEY_MAX])
{
	for (int i = 0; i < counter->key_count; i++)
	{
		args[i] = arg_text(list->count > 0 ? text_get(&list->columns[i]) : "{}");
	}
	return counter->key_count;
}

bool
key_list_add_written(CounterKeyList *list, const Counter *counter, const char *written)
{
	Text columns[COUNTER_KEY_MAX] = {{0}};
	const char *key[COUNTER_KEY_MAX] = {NULL};
	int count = 1;

	for (const char *at = written; *at != '\0'; at++)
	{
		if (*at == ',' && counter->key_count > 1)
		{
			count++;
			continue;
		}
		if (at[0] == '\\' && at[1] == ',' && counter->key_count > 1)
		{
			at++;
		}
		if (count <= COUNTER_KEY_MAX)
		{
			text_append_bytes(&columns[count - 1], at, 1);
		}
	}
	if (count == counter->key_count)
	{
		for (int i = 0; i < count; i++)
		{
			key[i] = text_get(&columns[i]);
		}
		key_list_add(list, counter, key);
	}
	else
	{
		report_error("%s: the key has %d columns, and --id names %d: %s", counter->spec->name, counter->key_count,
					 count, written);
	}
	for (int i = 0; i < COUNTER_KEY_MAX; i++)
	{
		text_free(&columns[i]);
	}
	return count == counter->key_count;
}


/* --- for people --- */

/* A text of someone else's: what would break the line, or look like the next field, is quoted. */
static void
append_value(Text *text, const char *value)
{
	if (value == NULL)
	{
		text_append(text, "NULL");
		return;
	}
	if (value[0] != '\0' && strcspn(value, " \t\r\n\"\\=,") == strlen(value) && strcmp(value, "NULL") != 0)
	{
		text_append(text, "%s", value);
		return;
	}
	text_append(text, "\"");
	for (; *value != '\0'; value++)
	{
		unsigned char byte = (unsigned char) *value;

		text_append(text, byte < ' ' || byte == 0x7f ? "\\x%02x" : byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
	}
	text_append(text, "\"");
}

void
key_append(Text *text, const Counter *counter, const char *const key[COUNTER_KEY_MAX])
{
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(text, "%s%s=", i > 0 ? " " : "", counter->spec->key[i]);
		append_value(text, key[i]);
	}
}

void
key_append_row(Text *text, const Counter *counter, const SqlResult *result, int row, int column)
{
	const char *key[COUNTER_KEY_MAX] = {NULL};

	for (int i = 0; i < counter->key_count; i++)
	{
		key[i] = sql_is_null(result, row, column + i) ? NULL : sql_text(result, row, column + i);
	}
	key_append(text, counter, key);
}
