/*
 * [A:2, B:1], out and in.
 */
#include <stdlib.h>
#include <string.h>

#include "vclock_private.h"

/* What is being read. Identifiers without their escapes lie in `ids`, one after another. */
typedef struct
{
	const char *text;
	size_t length;
	size_t at;
	Text ids;
	VClockEntry *entries; /* their bytes are set once all are read: `ids` moves as it grows */
	size_t count;
	size_t capacity;
	Text *why;
} Reader;


/* --- out --- */

static bool
is_plain(char byte)
{
	return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
		   (byte != '\0' && strchr("_.#@/+-", byte) != NULL);
}

static void
print_quoted(VClockId id, Text *text)
{
	text_append(text, "\"");
	for (size_t i = 0; i < id.length; i++)
	{
		char byte = id.bytes[i];

		if (byte < ' ' || byte > '~') /* whether char is signed or not */
		{
			text_append(text, "\\x%02x", (unsigned) (unsigned char) byte);
		}
		else
		{
			text_append(text, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
		}
	}
	text_append(text, "\"");
}

void
vclock_print_id(VClockId id, Text *text)
{
	bool plain = id.length > 0;

	for (size_t i = 0; i < id.length && plain; i++)
	{
		plain = is_plain(id.bytes[i]);
	}
	if (plain)
	{
		text_append_bytes(text, id.bytes, id.length);
	}
	else
	{
		print_quoted(id, text);
	}
}

void
vclock_print(const VClock *clock, Text *text)
{
	text_append(text, "[");
	for (size_t i = 0; i < vclock_count(clock); i++)
	{
		VClockEntry entry = vclock_entry(clock, i);

		text_append(text, i > 0 ? ", " : "");
		vclock_print_id(entry.id, text);
		text_append(text, ":%lld", (long long) entry.counter);
	}
	text_append(text, "]");
}


/* --- in --- */

static bool
refuse(Reader *reader, const char *what)
{
	text_append(reader->why, "byte %zu: %s", reader->at + 1, what);
	return false;
}

/* The next byte, '\0' at the end: no byte of the grammar is. */
static char
peek(const Reader *reader)
{
	return reader->at < reader->length ? reader->text[reader->at] : '\0';
}

static char
peek_past_blanks(Reader *reader)
{
	while (peek(reader) != '\0' && strchr(" \t\r\n", peek(reader)) != NULL)
	{
		reader->at++;
	}
	return peek(reader);
}

static bool
take(Reader *reader, char expected, const char *what)
{
	if (peek_past_blanks(reader) != expected)
	{
		return refuse(reader, what);
	}
	reader->at++;
	return true;
}

static int
hex_value(char digit)
{
	const char *digits = "0123456789abcdef";
	const char *place = digit != '\0' ? strchr(digits, digit) : NULL;

	return place != NULL ? (int) (place - digits) : -1;
}

/* Behind the backslash. */
static bool
read_escape(Reader *reader, char *byte)
{
	char kind = peek(reader);
	int high;
	int low;

	if (kind == '"' || kind == '\\')
	{
		*byte = kind;
		reader->at++;
		return true;
	}
	if (kind != 'x' || reader->length - reader->at < 3 || (high = hex_value(reader->text[reader->at + 1])) < 0 ||
		(low = hex_value(reader->text[reader->at + 2])) < 0)
	{
		return refuse(reader, "an escape is \\\", \\\\ or \\x and two digits of 0-9 a-f");
	}
	*byte = (char) (16 * high + low);
	reader->at += 3;
	return true;
}

static bool
read_quoted(Reader *reader)
{
	for (reader->at++; peek(reader) != '"';)
	{
		char byte = peek(reader);

		if (reader->at == reader->length)
		{
			return refuse(reader, "a name in quotes has no end");
		}
		reader->at++;
		if (byte == '\\' && !read_escape(reader, &byte))
		{
			return false;
		}
		text_append_bytes(&reader->ids, &byte, 1);
	}
	reader->at++;
	return true;
}

static bool
read_id(Reader *reader)
{
	size_t begin = reader->at;

	if (peek(reader) == '"')
	{
		return read_quoted(reader);
	}
	while (is_plain(peek(reader)))
	{
		reader->at++;
	}
	text_append_bytes(&reader->ids, reader->text + begin, reader->at - begin);
	return reader->at > begin ||
		   refuse(reader, "here a participant's name is expected, in quotes if it has other bytes "
						  "than letters, digits and _.#@/+-");
}

static bool
read_counter(Reader *reader, int64_t *counter)
{
	size_t begin = reader->at;

	*counter = 0;
	while (peek(reader) >= '0' && peek(reader) <= '9')
	{
		int64_t digit = peek(reader) - '0';

		if (*counter > (VCLOCK_COUNTER_MAX - digit) / 10)
		{
			return refuse(reader, "a counter is too large");
		}
		*counter = *counter * 10 + digit;
		reader->at++;
	}
	return reader->at > begin || refuse(reader, "here a counter is expected, a whole number from 0 on");
}

static bool
read_entry(Reader *reader)
{
	size_t before = reader->ids.length;
	VClockEntry *entry;

	if (reader->count == reader->capacity)
	{
		reader->capacity = 2 * reader->capacity + 8;
		reader->entries = memory_grow(reader->entries, reader->capacity * sizeof(*reader->entries));
	}
	entry = &reader->entries[reader->count];
	peek_past_blanks(reader);
	if (!read_id(reader) || !take(reader, ':', "here a colon is expected, between a name and its counter"))
	{
		return false;
	}
	entry->id.length = reader->ids.length - before;
	peek_past_blanks(reader);
	reader->count++;
	return read_counter(reader, &entry->counter);
}

static bool
read_clock(Reader *reader)
{
	if (!take(reader, '[', "here a clock is expected, like [A:2, B:1]"))
	{
		return false;
	}
	if (peek_past_blanks(reader) == ']')
	{
		reader->at++;
	}
	else
	{
		do
		{
			if (!read_entry(reader))
			{
				return false;
			}
		} while (peek_past_blanks(reader) == ',' && reader->at++ < reader->length);
		if (!take(reader, ']', "here a comma or the closing bracket is expected"))
		{
			return false;
		}
	}
	peek_past_blanks(reader);
	return reader->at == reader->length || refuse(reader, "behind the clock there is more");
}

bool
vclock_parse(const char *text, size_t length, VClock *clock, Text *why)
{
	Reader reader = {.text = text, .length = length, .why = why};
	const char *bytes;
	bool done = read_clock(&reader);

	*clock = (VClock){0};
	bytes = text_get(&reader.ids);
	for (size_t i = 0; i < reader.count && done; i++)
	{
		reader.entries[i].id.bytes = bytes;
		bytes += reader.entries[i].id.length;
	}
	done = done && vclock_from_entries(reader.entries, reader.count, clock, why);
	free(reader.entries);
	text_free(&reader.ids);
	return done;
}
