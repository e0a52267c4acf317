/*
 * {"A":2,"B":1}, out and in.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "vclock_private.h"

static bool
add_member(json_t *object, VClockEntry entry)
{
	char name[VCLOCK_ID_BYTES_MAX + 1];

	memcpy(name, entry.id.bytes, entry.id.length);
	name[entry.id.length] = '\0';
	if (strlen(name) != entry.id.length || json_object_set_new(object, name, json_integer(entry.counter)) != 0)
	{
		Text id = {0};

		vclock_print_id(entry.id, &id);
		report_error("the participant %s cannot be named in JSON: it is no UTF-8, or has a zero byte", text_get(&id));
		text_free(&id);
		return false;
	}
	return true;
}

bool
vclock_print_json(const VClock *clock, Text *json)
{
	json_t *object = json_object();
	bool done = true;
	char *dumped;

	for (size_t i = 0; i < vclock_count(clock) && done; i++)
	{
		done = add_member(object, vclock_entry(clock, i));
	}
	if (done)
	{
		dumped = json_dumps(object, JSON_COMPACT);
		text_append(json, "%s", dumped);
		free(dumped);
	}
	json_decref(object);
	return done;
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

bool
vclock_parse_json(const char *json, size_t length, VClock *clock, Text *why)
{
	json_error_t error;
	json_t *object = json_loadb(json, length, JSON_REJECT_DUPLICATES, &error);
	bool done = false;

	*clock = (VClock){0};
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
