/*
 * trace.shiviz as JSON for the page, written while its clocks are checked: a page over wrong ones is not kept.
 */
#include <string.h>
#include <unistd.h>

#include "evidence.h"
#include "parts.h"
#include "trace.h"

typedef struct
{
	FILE *page;
	json_t *hosts; /* of the execution that is read: name to place; NULL before the first */
	int executions;
	int events;                  /* of the execution */
	Text text, visible, entries; /* of one event */
} Writer;

static void
end_execution(Writer *writer)
{
	const char *name;
	json_t *place;
	json_t *names = json_array();

	if (writer->hosts != NULL)
	{
		json_object_foreach(writer->hosts, name, place)
		{
			json_array_append_new(names, json_string(name));
		}
		fputs("],\"hosts\":", writer->page);
		page_json(writer->page, names);
		fputs("}", writer->page);
	}
	json_decref(names);
	json_decref(writer->hosts);
	writer->hosts = NULL;
}

/* As a string of JSON. These are bytes of the file: a long text may have been cut inside a character. */
static void
write_text(Writer *writer, TracePart kind, TracePart text)
{
	text_clear(&writer->text);
	text_clear(&writer->visible);
	text_append_bytes(&writer->text, kind.bytes, kind.length);
	text_append_bytes(&writer->text, " ", kind.length > 0);
	text_append_bytes(&writer->text, text.bytes, text.length);
	visible_append(&writer->visible, text_get(&writer->text));
	putc('"', writer->page);
	for (const char *at = text_get(&writer->visible); *at != '\0'; at++)
	{
		switch (*at)
		{
			case '"':
			case '\\':
				putc('\\', writer->page);
				putc(*at, writer->page);
				break;
			case '<':
				fputs("\\u003c", writer->page);
				break;
			default:
				putc(*at, writer->page);
				break;
		}
	}
	putc('"', writer->page);
}

static void
begin_execution(void *context, TracePart label)
{
	Writer *writer = context;

	end_execution(writer);
	fputs(writer->executions++ > 0 ? ",\n{\"label\":" : "\n{\"label\":", writer->page);
	write_text(writer, (TracePart){"", 0}, label);
	fputs(",\"events\":[", writer->page);
	writer->hosts = json_object();
	writer->events = 0;
}

static void
append_entry(Writer *writer, VClockId host, int64_t counter)
{
	char name[VCLOCK_ID_BYTES_MAX + 1];
	json_t *place;

	(void) snprintf(name, sizeof(name), "%.*s", (int) host.length, host.bytes);
	place = json_object_get(writer->hosts, name);
	if (place == NULL)
	{
		place = json_integer((json_int_t) json_object_size(writer->hosts));
		json_object_set_new(writer->hosts, name, place);
	}
	text_append_bytes(&writer->entries, ",", 1);
	text_append_int64(&writer->entries, json_integer_value(place));
	text_append_bytes(&writer->entries, ",", 1);
	text_append_int64(&writer->entries, counter);
}

static void
write_event(void *context, VClockId host, const VClock *clock, TracePart kind, TracePart text)
{
	Writer *writer = context;
	int64_t own = vclock_get(clock, host);

	if (writer->hosts == NULL)
	{
		begin_execution(writer, (TracePart){"", 0});
	}
	fputs(writer->events++ > 0 ? ",\n[" : "[", writer->page);
	write_text(writer, kind, text);
	text_clear(&writer->entries);
	append_entry(writer, host, own);
	for (size_t i = 0; i < vclock_count(clock); i++)
	{
		VClockEntry entry = vclock_entry(clock, i);

		if (entry.id.length != host.length || memcmp(entry.id.bytes, host.bytes, host.length) != 0)
		{
			append_entry(writer, entry.id, entry.counter);
		}
	}
	fputs(text_get(&writer->entries), writer->page);
	fputs("]", writer->page);
}

bool
executions_write(const char *path, FILE *page)
{
	static const TraceVisit visit = {begin_execution, write_event};
	Writer writer = {.page = page};
	Text why = {0};
	size_t executions, events;
	bool holds;

	if (access(path, F_OK) != 0)
	{
		return true;
	}
	holds = trace_check_file(path, &visit, &writer, &why, &executions, &events);
	end_execution(&writer);
	text_free(&writer.text);
	text_free(&writer.visible);
	text_free(&writer.entries);
	if (why.length > 0)
	{
		report_error("cannot read %s: %s", path, text_get(&why));
	}
	text_free(&why);
	return holds;
}
