/*
 * {"A":2,"B":1}, out and in.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "vclock_private.h"

#define PLAIN_DIGITS 18     /* no number of so many overflows */
#define PLAIN_ENTRY_BYTES 5 /* at least: "a":1 */

/* As JSON writes it; nearly every name needs no more than its quotes. */
static bool
append_name(VClockId id, Text *json)
{
	char name[VCLOCK_ID_BYTES_MAX + 1];
	json_t *string;
	char *dumped;
	bool plain = true;

	for (size_t i = 0; i < id.length && plain; i++)
	{
		plain = id.bytes[i] >= ' ' && id.bytes[i] < 0x7f && id.bytes[i] != '"' && id.bytes[i] != '\\';
	}
	if (plain)
	{
		text_append_bytes(json, "\"", 1);
		text_append_bytes(json, id.bytes, id.length);
		text_append_bytes(json, "\"", 1);
		return true;
	}
	memcpy(name, id.bytes, id.length);
	name[id.length] = '\0';
	string = strlen(name) == id.length ? json_string(name) : NULL;
	if (string == NULL)
	{
		Text shown = {0};

		vclock_print_id(id, &shown);
		report_error("the participant %s cannot be named in JSON: it is no UTF-8, or has a zero byte",
					 text_get(&shown));
		text_free(&shown);
		return false;
	}
	dumped = json_dumps(string, JSON_ENCODE_ANY);
	text_append(json, "%s", dumped);
	free(dumped);
	json_decref(string);
	return true;
}

bool
vclock_print_json(const VClock *clock, Text *json)
{
	size_t before = json->length;
	size_t count = vclock_count(clock);

	text_append_bytes(json, "{", 1);
	for (size_t i = 0; i < count; i++)
	{
		VClockEntry entry = vclock_entry(clock, i);

		if (!append_name(entry.id, json))
		{
			json->length = before;
			json->data[before] = '\0';
			return false;
		}
		text_append_bytes(json, ":", 1);
		text_append_int64(json, entry.counter);
		text_append_bytes(json, ",", i + 1 < count);
	}
	text_append_bytes(json, "}", 1);
	return true;
}

static bool
read_members(json_t *object, VClock *clock, Text *why)
{
	VClockEntry *entries = memory_get(json_object_size(object) * sizeof(*entries));
	size_t count = 0;
	const char *name;
	json_t *value;
	bool done = true;

	json_object_foreach(object, name, value)
	{
		entries[count] = (VClockEntry){.id = vclock_id(name), .counter = json_integer_value(value)};
		if (done && (!json_is_integer(value) || entries[count].counter < 0))
		{
			text_append(why, "a counter is a whole number from 0 on, which it is not for ");
			vclock_print_id(entries[count].id, why);
			done = false;
		}
		count++;
	}
	done = done && vclock_from_entries(entries, count, clock, why);
	free(entries);
	return done;
}

/*
 * Of what vclock_print_json() prints, without blanks and escapes; false: it may still be a clock. Traces are full of these,
 * and a tree for each would take longer than what is done with them.
 */
static bool
read_plain(const char *json, size_t length, VClockEntry *entries, size_t *count)
{
	const char *at = json, *end = json + length;

	for (*count = 0; end - at > 4 && *at == (*count == 0 ? '{' : ',') && at[1] == '"'; (*count)++)
	{
		const char *name = at + 2;
		int64_t counter = 0;

		for (at = name; at < end && *at >= ' ' && *at < 0x7f && *at != '"' && *at != '\\';)
		{
			at++;
		}
		entries[*count].id = (VClockId){name, (size_t) (at - name)};
		if (end - at < 4 || *at++ != '"' || *at++ != ':' || *at < '1' || *at > '9')
		{
			return false;
		}
		for (const char *first = at; at < end && *at >= '0' && *at <= '9'; at++)
		{
			if (at - first == PLAIN_DIGITS)
			{
				return false;
			}
			counter = counter * 10 + (*at - '0');
		}
		entries[*count].counter = counter;
	}
	return *count > 0 && end - at == 1 && *at == '}';
}

static bool
parse_plain(const char *json, size_t length, VClock *clock)
{
	VClockEntry *entries = memory_get((length / PLAIN_ENTRY_BYTES + 1) * sizeof(*entries));
	Text why = {0};
	size_t count;
	bool done = read_plain(json, length, entries, &count) && vclock_from_entries(entries, count, clock, &why);

	text_free(&why);
	free(entries);
	return done;
}

bool
vclock_parse_json(const char *json, size_t length, VClock *clock, Text *why)
{
	json_error_t error;
	json_t *object;
	bool done = false;

	if (parse_plain(json, length, clock))
	{
		return true;
	}
	*clock = (VClock){0};
	object = json_loadb(json, length, JSON_REJECT_DUPLICATES, &error);
	if (object == NULL)
	{
		text_append(why, "byte %d: %s", error.position, error.text);
	}
	else if (!json_is_object(object))
	{
		text_append(why, "a clock is an object, like {\"A\":2,\"B\":1}");
	}
	else
	{
		done = read_members(object, clock, why);
	}
	json_decref(object);
	return done;
}
