/*
 * trace.shiviz as JSON for the page. That its clocks are right is what trace_check_file() has said; here its lines are only
 * read again: a header of two, then events on two lines each, `host {"host": own, "other": entry}` and what happened, in
 * the order that the header's first line says.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence.h"
#include "parts.h"
#include "trace.h"

#define DIVIDER "=== (?<trace>.*) ==="
#define EXECUTION_BEGIN "=== "
#define EXECUTION_END " ==="

typedef struct
{
	FILE *page;
	char *rest; /* what is not read yet */
	int line;
	bool event_first;
	bool divided;  /* into executions that have names */
	json_t *hosts; /* of the execution that is read: name to place; NULL outside of one */
	int executions;
	int events; /* of the execution */
} Reader;

/* NULL at the end. */
static char *
next_line(Reader *reader)
{
	reader->line++;
	return reader->rest == NULL || reader->rest[0] == '\0' ? NULL : strsep(&reader->rest, "\n");
}


/* --- one execution --- */

static void
begin_execution(Reader *reader, const char *label, size_t length)
{
	char *copy = string_format("%.*s", (int) length, label);
	json_t *name = json_string(copy);

	fputs(reader->executions++ > 0 ? ",\n{\"label\":" : "\n{\"label\":", reader->page);
	page_json(reader->page, name);
	fputs(",\"events\":[", reader->page);
	json_decref(name);
	free(copy);
	reader->hosts = json_object();
	reader->events = 0;
}

static void
end_execution(Reader *reader)
{
	const char *name;
	json_t *place;
	json_t *names = json_array();

	if (reader->hosts != NULL)
	{
		json_object_foreach(reader->hosts, name, place)
		{
			json_array_append_new(names, json_string(name));
		}
		fputs("],\"hosts\":", reader->page);
		page_json(reader->page, names);
		fputs("}", reader->page);
	}
	json_decref(names);
	json_decref(reader->hosts);
	reader->hosts = NULL;
}

static void
write_entry(Reader *reader, const char *host, const json_t *entry)
{
	const json_t *known = json_object_get(reader->hosts, host);
	size_t place = known != NULL ? (size_t) json_integer_value(known) : json_object_size(reader->hosts);

	if (known == NULL)
	{
		json_object_set_new(reader->hosts, host, json_integer((json_int_t) place));
	}
	fprintf(reader->page, ",%zu,%lld", place, (long long) json_integer_value(entry));
}

static void
write_event(Reader *reader, const char *host, const json_t *clock, const char *happened)
{
	const char *other;
	json_t *entry, *text;
	Text visible = {0}; /* a long text may have been cut inside a character */

	visible_append(&visible, happened);
	text = json_string(text_get(&visible));
	fputs(reader->events++ > 0 ? ",\n[" : "[", reader->page);
	page_json(reader->page, text);
	json_decref(text);
	text_free(&visible);
	write_entry(reader, host, json_object_get(clock, host));
	json_object_foreach((json_t *) clock, other, entry)
	{
		if (strcmp(other, host) != 0 && json_integer_value(entry) > 0)
		{
			write_entry(reader, other, entry);
		}
	}
	fputs("]", reader->page);
}

static bool
take_event(Reader *reader, char *first)
{
	char *second = next_line(reader);
	char *host = reader->event_first ? second : first;
	char *brace = host != NULL ? strstr(host, " {") : NULL;
	json_t *clock = brace != NULL ? json_loads(brace + 1, 0, NULL) : NULL;

	if (clock != NULL)
	{
		*brace = '\0';
		write_event(reader, host, clock, reader->event_first ? first : second);
		json_decref(clock);
	}
	return clock != NULL;
}


/* --- the file --- */

static bool
read_header(Reader *reader)
{
	const char *expression = next_line(reader);
	const char *divider = next_line(reader);
	const char *event = expression != NULL ? strstr(expression, "(?<event>") : NULL;
	const char *host = expression != NULL ? strstr(expression, "(?<host>") : NULL;

	reader->event_first = event == NULL || event < host;
	reader->divided = divider != NULL && strcmp(divider, DIVIDER) == 0;
	return divider != NULL && (reader->divided || divider[0] == '\0');
}

/* Where the name of an execution stands in the line that begins it, and how long it is. NULL of other lines. */
static const char *
label_of(const Reader *reader, const char *line, size_t *length)
{
	size_t frame = strlen(EXECUTION_BEGIN) + strlen(EXECUTION_END);
	size_t whole = strlen(line);

	*length = whole - frame;
	return reader->divided && whole >= frame && strncmp(line, EXECUTION_BEGIN, strlen(EXECUTION_BEGIN)) == 0 &&
				   strcmp(line + whole - strlen(EXECUTION_END), EXECUTION_END) == 0
			   ? line + strlen(EXECUTION_BEGIN)
			   : NULL;
}

static bool
read_lines(Reader *reader)
{
	char *line;
	bool done = read_header(reader);

	while (done && (line = next_line(reader)) != NULL)
	{
		size_t length;
		const char *label = label_of(reader, line, &length);

		if (label != NULL || reader->hosts == NULL)
		{
			end_execution(reader);
			begin_execution(reader, label != NULL ? label : "", label != NULL ? length : 0);
		}
		done = label != NULL || (line[0] == '\0' && reader->events == 0) || take_event(reader, line);
	}
	end_execution(reader);
	return done;
}

static bool
check(const char *path)
{
	Text why = {0};
	size_t executions, events;
	bool holds = trace_check_file(path, &why, &executions, &events);

	if (why.length > 0)
	{
		report_error("cannot read %s: %s", path, text_get(&why));
	}
	text_free(&why);
	return holds;
}

bool
executions_write(const char *path, FILE *page)
{
	Reader reader = {.page = page};
	Text text = {0};
	bool done;

	if (access(path, F_OK) != 0)
	{
		return true;
	}
	if (!check(path) || !file_read(path, &text))
	{
		return false;
	}
	reader.rest = text.data;
	done = read_lines(&reader);
	if (!done)
	{
		report_error("cannot read %s: line %d: laid out in a way that the page does not know", path, reader.line);
	}
	text_free(&text);
	return done;
}
