/*
 * Fuzzes the check of files for ShiViz. What is refused has a reason of one line that begins with a line of the file. What
 * is taken is checked again, by the definition and without haste: the n-th event of a host has n as its own entry, every
 * entry names an event, and a clock is the maximum over those that it names, and the one before on its line, with its tick.
 *
 * The input is a byte that says which head comes first: ours, GoVector's, what ShiViz takes for none, or the input's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define EVENTS_MAX 512

extern int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length);

typedef struct
{
	char host[VCLOCK_ID_BYTES_MAX];
	size_t host_length;
	VClock clock;
} Seen;

typedef struct
{
	Seen events[EVENTS_MAX]; /* of one execution */
	size_t count, all, executions;
	bool overflows;
	bool wrong; /* in an execution that has ended; told only where the check holds */
} Seens;

static void
require(bool holds, const char *what)
{
	if (!holds)
	{
		report_error("does not hold: %s", what);
		abort();
	}
}

static VClockId
host_of(const Seen *seen)
{
	return (VClockId){seen->host, seen->host_length};
}

/* The only one with this number; NULL when there is none, or several. */
static const Seen *
find(const Seens *seens, VClockId host, int64_t own)
{
	const Seen *found = NULL;

	for (size_t i = 0; i < seens->count; i++)
	{
		const Seen *seen = &seens->events[i];

		if (seen->host_length == host.length && memcmp(seen->host, host.bytes, host.length) == 0 &&
			vclock_get(&seen->clock, host) == own)
		{
			if (found != NULL)
			{
				return NULL;
			}
			found = seen;
		}
	}
	return found;
}

static bool
is_right(const Seens *seens, const Seen *seen)
{
	VClockId host = host_of(seen);
	int64_t own = vclock_get(&seen->clock, host);
	const Seen *last = own > 1 ? find(seens, host, own - 1) : NULL;
	VClock expected = last != NULL ? vclock_copy(&last->clock) : (VClock){0};
	bool right = find(seens, host, own) == seen && (own == 1 || last != NULL);

	for (size_t i = 0; i < vclock_count(&seen->clock) && right; i++)
	{
		VClockEntry entry = vclock_entry(&seen->clock, i);
		const Seen *named = find(seens, entry.id, entry.counter);

		right = named != NULL && (named == seen || vclock_get(&named->clock, host) < own);
		if (right && named != seen)
		{
			vclock_absorb(&expected, &named->clock);
		}
	}
	right = right && vclock_advance(&expected, host) && vclock_compare(&expected, &seen->clock) == VCLOCK_EQUAL;
	vclock_free(&expected);
	return right;
}

static void
end_execution(Seens *seens)
{
	for (size_t i = 0; i < seens->count; i++)
	{
		seens->wrong = seens->wrong || (!seens->overflows && !is_right(seens, &seens->events[i]));
	}
	for (size_t i = 0; i < seens->count; i++)
	{
		vclock_free(&seens->events[i].clock);
	}
	seens->executions += seens->count > 0;
	seens->count = 0;
	seens->overflows = false;
}

static void
see_execution(void *context, TracePart label)
{
	(void) label;
	end_execution(context);
}

static void
see_event(void *context, VClockId host, const VClock *clock, TracePart kind, TracePart text)
{
	Seens *seens = context;
	Seen *seen = &seens->events[seens->count];

	require(memchr(kind.bytes, '\0', kind.length) == NULL && memchr(text.bytes, '\0', text.length) == NULL,
			"what happened is text of the file");
	seens->all++;
	if (seens->count == EVENTS_MAX)
	{
		seens->overflows = true;
		return;
	}
	seens->count++;
	memcpy(seen->host, host.bytes, host.length);
	seen->host_length = host.length;
	seen->clock = vclock_copy(clock);
}

static void
check_reason(const Text *file, const char *why)
{
	size_t lines = 1, line = 0;

	for (size_t i = 0; i < file->length; i++)
	{
		lines += file->data[i] == '\n';
	}
	require(sscanf(why, "line %zu: ", &line) == 1 && line >= 1 && line <= lines, "a reason begins with a line");
	require(strchr(why, '\n') == NULL, "a reason is one line");
}

int
LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
	static const char *const heads[] = {TRACE_HEADER, "(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\n", "\n\n", ""};
	static const TraceVisit visit = {see_execution, see_event};
	static Seens seens;
	Text file = {0}, why = {0};
	size_t executions, events;
	bool holds;

	if (length == 0)
	{
		return 0;
	}
	memset(&seens, 0, sizeof(seens));
	text_append(&file, "%s", heads[bytes[0] % LENGTH_OF(heads)]);
	text_append_bytes(&file, (const char *) bytes + 1, length - 1);
	holds = trace_check_text(&file, &visit, &seens, &why, &executions, &events);
	end_execution(&seens);
	if (holds)
	{
		require(why.length == 0, "what is taken has no reason why not");
		require(!seens.wrong, "what is taken is right");
		require(seens.all == events && seens.executions == executions, "all of it was seen");
	}
	else
	{
		check_reason(&file, text_get(&why));
	}
	text_free(&file);
	text_free(&why);
	return 0;
}
