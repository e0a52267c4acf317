#include "message.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Text from a server or a program may be anything; JSON takes UTF-8 only. */
static json_t *
json_from_text(const char *text)
{
	json_t *value;
	Text ascii = {0};

	if (text == NULL)
	{
		return NULL; /* the key is left out */
	}
	value = json_string(text);
	if (value != NULL)
	{
		return value;
	}
	for (const char *c = text; *c != '\0'; c++)
	{
		if ((unsigned char) *c < 0x80)
		{
			text_append_bytes(&ascii, c, 1);
		}
		else
		{
			text_append(&ascii, "\\x%02x", (unsigned char) *c);
		}
	}
	value = json_string(text_get(&ascii));
	text_free(&ascii);
	return value;
}

static json_t *
json_from_values(const Message *message)
{
	json_t *values = NULL; /* the key is left out */

	if (message->kind == MESSAGE_SERIES)
	{
		values = json_array();
		for (size_t i = 0; i < message->value_count; i++)
		{
			json_array_append_new(values, json_integer(message->values[i]));
		}
	}
	return values;
}

static void
values_from_json(const json_t *array, Message *message)
{
	int64_t *values = memory_get((json_array_size(array) + 1) * sizeof(*values));
	const json_t *value;
	size_t i;

	json_array_foreach(array, i, value)
	{
		values[i] = json_integer_value(value);
	}
	message->values = values;
	message->value_count = json_array_size(array);
}

bool
message_send(int fd, const Message *message)
{
	json_t *document = json_pack("{s:i, s:i, s:o*, s:o*, s:o*, s:I, s:I, s:o*}", "kind", (int) message->kind, "line",
								 (int) message->line, "text", json_from_text(message->text), "expected",
								 json_from_text(message->expected), "actual", json_from_text(message->actual), "first",
								 (json_int_t) message->first, "second", (json_int_t) message->second, "values",
								 json_from_values(message));
	char *encoded = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
	char *framed;
	bool sent;

	json_decref(document);
	if (encoded == NULL)
	{
		report_error("could not encode a message to the runner: %s", message->text ? message->text : "");
		return false;
	}
	framed = string_format("\n%s\n", encoded);
	sent = file_write(fd, framed, strlen(framed));
	if (!sent)
	{
		report_error("could not tell the runner: %s", strerror(errno));
	}
	free(framed);
	free(encoded);
	return sent;
}

bool
message_decode(const char *line, Message *message)
{
	json_t *document = json_loads(line, 0, NULL);
	int kind = 0;
	int line_kind = 0;
	const char *text = NULL;
	const char *expected = NULL;
	const char *actual = NULL;
	json_t *values = NULL;
	json_int_t first = 0;
	json_int_t second = 0;
	bool understood;

	*message = (Message){0};
	understood = document != NULL && json_unpack(document, "{s:i, s:i, s?s, s?s, s?s, s:I, s:I, s?o}", "kind", &kind,
												 "line", &line_kind, "text", &text, "expected", &expected, "actual",
												 &actual, "first", &first, "second", &second, "values", &values) == 0;
	if (understood)
	{
		message->kind = (MessageKind) kind;
		message->line = (LineKind) line_kind;
		message->text = string_copy(text);
		message->expected = string_copy(expected);
		message->actual = string_copy(actual);
		message->first = first;
		message->second = second;
		values_from_json(values, message);
	}
	json_decref(document);
	return understood;
}

void
message_free(Message *message)
{
	free((char *) message->text);
	free((char *) message->expected);
	free((char *) message->actual);
	free((int64_t *) message->values);
	*message = (Message){0};
}
