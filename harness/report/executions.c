/*
 * trace.shiviz, in ShiViz's own layout: a line with the expression that reads events, one with that of the lines between
 * executions, then the events, each on two lines: what happened, and `host {"host": own, "other": entry}`.
 *
 * A clock may name only what is there: own entries are 1, 2, 3, ... without a hole, others name an event of theirs.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parts.h"

#define EXECUTION_BEGIN "=== "
#define EXECUTION_END " ==="

typedef struct
{
	int host;
	int64_t entry;
} Entry;

typedef struct
{
	json_t *text;
	int line;
	size_t first, count; /* of the execution's entries; its own is the first */
} Event;

typedef struct
{
	const char *path;
	FILE *page;
	char *rest; /* what is not read yet */
	int line;
	bool event_first;
	bool divided; /* into executions that have names */
	int executions;

	/* of the execution that is being read */
	json_t *label;
	json_t *hosts; /* name to place */
	int64_t *seen; /* of each host: how many events */
	Event *events;
	size_t event_count, event_room;
	Entry *entries;
	size_t entry_count, entry_room;
} Trace;

static bool refuse(const Trace *trace, int line, const char *format, ...) PRINTF_LIKE(3, 4);

static bool
refuse(const Trace *trace, int line, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	report_error("cannot read %s: line %d: %s", trace->path, line, text_get(&text));
	text_free(&text);
	return false;
}

/* NULL at the end. A file that is whole ends with the end of a line. */
static char *
next_line(Trace *trace)
{
	char *line;

	if (trace->rest == NULL || trace->rest[0] == '\0')
	{
		return NULL;
	}
	line = strsep(&trace->rest, "\n");
	trace->line++;
	return line;
}


/* --- what is known of an execution --- */

static void
add_entry(Trace *trace, int host, int64_t value)
{
	if (trace->entry_count == trace->entry_room)
	{
		trace->entry_room = trace->entry_room * 2 + 256;
		trace->entries = memory_grow(trace->entries, trace->entry_room * sizeof(*trace->entries));
	}
	trace->entries[trace->entry_count++] = (Entry){host, value};
}

static int
place_of(Trace *trace, const char *host)
{
	const json_t *known = json_object_get(trace->hosts, host);
	size_t count = json_object_size(trace->hosts);

	if (known != NULL)
	{
		return (int) json_integer_value(known);
	}
	trace->seen = memory_grow(trace->seen, (count + 1) * sizeof(*trace->seen));
	trace->seen[count] = 0;
	json_object_set_new(trace->hosts, host, json_integer((json_int_t) count));
	return (int) count;
}

/* Takes the text over. */
static Event *
add_event(Trace *trace, json_t *text)
{
	if (trace->event_count == trace->event_room)
	{
		trace->event_room = trace->event_room * 2 + 256;
		trace->events = memory_grow(trace->events, trace->event_room * sizeof(*trace->events));
	}
	trace->events[trace->event_count] = (Event){.text = text, .line = trace->line, .first = trace->entry_count};
	return &trace->events[trace->event_count++];
}

static bool
take_clock(Trace *trace, const char *host, json_t *clock, json_t *text)
{
	Event *event = add_event(trace, text);
	const json_t *own = json_object_get(clock, host);
	int place = place_of(trace, host);
	const char *name;
	json_t *value;

	if (!json_is_integer(own))
	{
		return refuse(trace, trace->line, "the clock of %s has no entry for itself", host);
	}
	add_entry(trace, place, json_integer_value(own));
	trace->seen[place]++;
	json_object_foreach(clock, name, value)
	{
		if (!json_is_integer(value) || json_integer_value(value) < 0)
		{
			return refuse(trace, trace->line, "the entry for %s is no number of an event", name);
		}
		if (json_integer_value(value) > 0 && strcmp(name, host) != 0)
		{
			add_entry(trace, place_of(trace, name), json_integer_value(value));
		}
	}
	event->count = trace->entry_count - event->first;
	return true;
}

/* Two lines, in the order of the file's first. */
static bool
take_event(Trace *trace, char *first)
{
	char *second = next_line(trace);
	char *happened = trace->event_first ? first : second;
	char *where = trace->event_first ? second : first;
	char *brace = where != NULL ? strstr(where, " {") : NULL;
	json_error_t error = {.text = "no host and clock"};
	json_t *clock = NULL;
	json_t *text = NULL;
	bool done = false;

	if (brace != NULL)
	{
		*brace = '\0';
		clock = json_loads(brace + 1, JSON_REJECT_DUPLICATES, &error);
		text = json_string(happened != NULL ? happened : "");
	}
	if (second == NULL)
	{
		refuse(trace, trace->line, "it ends inside an event");
	}
	else if (clock == NULL || where[0] == '\0')
	{
		refuse(trace, trace->line, "%s", error.text);
	}
	else if (text == NULL)
	{
		refuse(trace, trace->line, "it is no UTF-8");
	}
	else
	{
		done = take_clock(trace, where, clock, json_incref(text));
	}
	json_decref(text);
	json_decref(clock);
	return done;
}


/* --- an execution that is whole --- */

static const char *
name_of(const Trace *trace, int host)
{
	const char *name;
	json_t *value;

	json_object_foreach(trace->hosts, name, value)
	{
		if (json_integer_value(value) == host)
		{
			return name;
		}
	}
	return "";
}

/* Own entries within 1..events, each once, have no hole. */
static bool
check_own(const Trace *trace)
{
	size_t hosts = json_object_size(trace->hosts);
	bool **there = memory_get((hosts + 1) * sizeof(*there));
	bool done = true;

	for (size_t i = 0; i < hosts; i++)
	{
		there[i] = memory_get((size_t) trace->seen[i] + 1);
	}
	for (size_t i = 0; i < trace->event_count && done; i++)
	{
		const Entry *own = &trace->entries[trace->events[i].first];
		bool within = own->entry >= 1 && own->entry <= trace->seen[own->host];

		if (!within || there[own->host][own->entry])
		{
			done = refuse(trace, trace->events[i].line, "the events of %s are not 1, 2, 3, ...: %lld %s",
						  name_of(trace, own->host), (long long) own->entry,
						  within ? "is there twice" : "is not one of them");
		}
		else
		{
			there[own->host][own->entry] = true;
		}
	}
	for (size_t i = 0; i < hosts; i++)
	{
		free(there[i]);
	}
	free(there);
	return done;
}

static bool
check_others(const Trace *trace)
{
	for (size_t i = 0; i < trace->event_count; i++)
	{
		const Event *event = &trace->events[i];

		for (size_t k = event->first; k < event->first + event->count; k++)
		{
			const Entry *entry = &trace->entries[k];

			if (entry->entry > trace->seen[entry->host])
			{
				return refuse(trace, event->line, "%s has no event %lld", name_of(trace, entry->host),
							  (long long) entry->entry);
			}
		}
	}
	return true;
}

static void
write_execution(Trace *trace)
{
	const char *name;
	json_t *value;
	const char *comma = "";

	fputs(trace->executions++ > 0 ? ",\n{\"label\":" : "\n{\"label\":", trace->page);
	page_json(trace->page, trace->label);
	fputs(",\"hosts\":[", trace->page);
	json_object_foreach(trace->hosts, name, value)
	{
		json_t *host = json_string(name);

		fputs(comma, trace->page);
		page_json(trace->page, host);
		json_decref(host);
		comma = ",";
	}
	fputs("],\"events\":[", trace->page);
	for (size_t i = 0; i < trace->event_count; i++)
	{
		const Event *event = &trace->events[i];

		fputs(i > 0 ? ",\n[" : "[", trace->page);
		page_json(trace->page, event->text);
		for (size_t k = event->first; k < event->first + event->count; k++)
		{
			fprintf(trace->page, ",%d,%lld", trace->entries[k].host, (long long) trace->entries[k].entry);
		}
		fputs("]", trace->page);
	}
	fputs("]}", trace->page);
}

/* Write what was read so far, if anything, and begin the next. */
static bool
end_execution(Trace *trace, json_t *next_label)
{
	bool done = check_own(trace) && check_others(trace);

	if (done && trace->event_count > 0)
	{
		write_execution(trace);
	}
	for (size_t i = 0; i < trace->event_count; i++)
	{
		json_decref(trace->events[i].text);
	}
	trace->event_count = trace->entry_count = 0;
	json_object_clear(trace->hosts);
	json_decref(trace->label);
	trace->label = next_label;
	return done;
}


/* --- the file --- */

static bool
read_header(Trace *trace)
{
	const char *expression = next_line(trace);
	const char *divider = next_line(trace);
	const char *event = expression != NULL ? strstr(expression, "(?<event>") : NULL;
	const char *host = expression != NULL ? strstr(expression, "(?<host>") : NULL;

	if (divider == NULL ||
		(expression[0] != '\0' && (event == NULL || host == NULL || strstr(host, "(?<clock>") == NULL)))
	{
		return refuse(trace, 1, "no trace of ShiViz: it begins with the expression that reads its events");
	}
	trace->event_first = expression[0] == '\0' || event < host;
	trace->divided = divider[0] != '\0';
	if (trace->divided && strcmp(divider, "^=== (?<trace>.*) ===$") != 0 &&
		strcmp(divider, "=== (?<trace>.*) ===") != 0)
	{
		return refuse(trace, 2, "executions are divided in a way that is not known here: %s", divider);
	}
	return true;
}

/* The label of a line that divides, NULL of others. The caller releases. */
static json_t *
label_of(const Trace *trace, const char *line)
{
	size_t length = strlen(line);
	size_t frame = strlen(EXECUTION_BEGIN) + strlen(EXECUTION_END);

	if (!trace->divided || length < frame || strncmp(line, EXECUTION_BEGIN, strlen(EXECUTION_BEGIN)) != 0 ||
		strcmp(line + length - strlen(EXECUTION_END), EXECUTION_END) != 0)
	{
		return NULL;
	}
	return json_stringn(line + strlen(EXECUTION_BEGIN), length - frame);
}

static bool
read_events(Trace *trace)
{
	char *line;
	bool done = true;

	while (done && (line = next_line(trace)) != NULL)
	{
		json_t *label = label_of(trace, line);

		if (label != NULL)
		{
			done = end_execution(trace, label);
		}
		else if (line[0] != '\0')
		{
			done = take_event(trace, line);
		}
	}
	return done && end_execution(trace, NULL);
}

bool
executions_write(const char *path, FILE *page)
{
	Trace trace = {.path = path, .page = page};
	Text text = {0};
	bool done;

	if (access(path, F_OK) != 0)
	{
		return true;
	}
	done = file_read(path, &text);
	trace.rest = text.data;
	trace.label = json_string("");
	trace.hosts = json_object();
	if (done && (text.length == 0 || text.data[text.length - 1] != '\n' || strlen(text.data) != text.length))
	{
		done = refuse(&trace, 0, "it is empty, cut, or no text");
	}
	done = done && read_header(&trace) && read_events(&trace);
	for (size_t i = 0; i < trace.event_count; i++)
	{
		json_decref(trace.events[i].text);
	}
	json_decref(trace.label);
	json_decref(trace.hosts);
	free(trace.seen);
	free(trace.events);
	free(trace.entries);
	text_free(&text);
	return done;
}
