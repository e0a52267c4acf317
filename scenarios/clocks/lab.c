#include "lab.h"

#include <stdlib.h>
#include <string.h>


/* --- clocks --- */

VClock
clock_of(Scene *scene, const char *text)
{
	VClock clock;
	Text why = {0};

	if (!vclock_parse(text, strlen(text), &clock, &why))
	{
		scene_broken(scene, "%s: %s", text, text_get(&why));
	}
	return clock;
}

VClock
clock_without(const VClock *clock, const char *participant)
{
	VClock without = {0};

	for (size_t i = 0; i < vclock_count(clock); i++)
	{
		VClockEntry entry = vclock_entry(clock, i);
		bool dropped =
			entry.id.length == strlen(participant) && memcmp(entry.id.bytes, participant, entry.id.length) == 0;

		if (!dropped && !vclock_set(&without, entry.id, entry.counter))
		{
			break; /* of a clock that is one, every entry can be set in an empty one */
		}
	}
	return without;
}

bool
check_clock(Scene *scene, const VClock *clock, const char *expected, const char *what)
{
	Text text = {0};
	bool passed;

	vclock_print(clock, &text);
	passed = check_text(scene, text_get(&text), expected, "%s", what);
	text_free(&text);
	return passed;
}

bool
check_order(Scene *scene, const char *a, const char *b, const char *expected)
{
	VClock first = clock_of(scene, a);
	VClock second = clock_of(scene, b);
	bool passed =
		check_text(scene, vclock_order_name(vclock_compare(&first, &second)), expected, "%s, as seen from %s", a, b);

	vclock_free(&first);
	vclock_free(&second);
	return passed;
}

bool
check_refused(Scene *scene, bool done, const char *expected, const char *what)
{
	char error[512];

	notice_last_error(error, sizeof(error));
	return check_text(scene, done ? "done" : error, expected, "%s", what);
}


/* --- a store --- */

void
put_with(Scene *scene, Store *store, int replica, StoreClient *client, const VClock *context, const char *value)
{
	Text why = {0};

	if (!store_write(store, replica, STORE_KEY, client, context, value, &why))
	{
		scene_broken(scene, "%s: %s", value, text_get(&why));
	}
}

void
put_seen(Scene *scene, Store *store, int replica, StoreClient *client, const char *value)
{
	StoreReading seen = store_read(store, replica, STORE_KEY);

	put_with(scene, store, replica, client, &seen.context, value);
	store_reading_free(&seen);
}

void
put_blind(Scene *scene, Store *store, int replica, StoreClient *client, const char *value)
{
	put_with(scene, store, replica, client, NULL, value);
}

void
replicate(Scene *scene, Store *store, int from, int to)
{
	Text why = {0};

	if (!store_replicate(store, from, to, &why))
	{
		scene_broken(scene, "n%d to n%d: %s", from, to, text_get(&why));
	}
}

bool
check_values(Scene *scene, const Store *store, int replica, const char *expected, const char *what)
{
	StoreReading reading = store_read(store, replica, STORE_KEY);
	char *values = store_reading_text(&reading);
	bool passed = check_text(scene, values, expected, "n%d: %s", replica, what);

	free(values);
	store_reading_free(&reading);
	return passed;
}
