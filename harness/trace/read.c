/* The record as it is read back: events in the order of the file, with what they follow at once known. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace_private.h"

#define FIELDS 7

/* Events of an actor or of a thread, in order. */
typedef struct
{
	const char *name;
	size_t *events;
	size_t count, room;
} Line;

typedef struct
{
	Line *lines;
	size_t count;
} LineList;

/* How often a word was forgotten. */
typedef struct
{
	const char *word;
	size_t length;
	int epoch;
} Epoch;

typedef struct
{
	Record *record;
	LineList actors, threads;
	Epoch *epochs;
	size_t epoch_count;
} Reader;

static Line *
line_of(LineList *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
	{
		if (strcmp(list->lines[i].name, name) == 0)
		{
			return &list->lines[i];
		}
	}
	list->lines = memory_grow(list->lines, (list->count + 1) * sizeof(*list->lines));
	list->lines[list->count] = (Line){.name = name};
	return &list->lines[list->count++];
}

static size_t
line_last(const Line *line)
{
	return line->count == 0 ? NO_EVENT : line->events[line->count - 1];
}

static void
line_add(Line *line, size_t event)
{
	if (line->count == line->room)
	{
		line->room = line->room == 0 ? 64 : 2 * line->room;
		line->events = memory_grow(line->events, line->room * sizeof(*line->events));
	}
	line->events[line->count++] = event;
}

static void
lines_free(LineList *list)
{
	for (size_t i = 0; i < list->count; i++)
	{
		free(list->lines[i].events);
	}
	free(list->lines);
}

void
event_add_before(Event *event, size_t before)
{
	if (before == NO_EVENT)
	{
		return;
	}
	for (size_t i = 0; i < event->before_count; i++)
	{
		if (event->before[i] == before)
		{
			return;
		}
	}
	if (event->before_count == event->before_room)
	{
		event->before_room = event->before_room == 0 ? 4 : 2 * event->before_room;
		event->before = memory_grow(event->before, event->before_room * sizeof(*event->before));
	}
	event->before[event->before_count++] = before;
}


/* --- marks --- */

/* "pair.3.1" is forgotten with "pair". */
static int *
epoch_of(Reader *reader, const char *what)
{
	size_t length = strcspn(what, ".");
	Epoch *epoch;

	for (size_t i = 0; i < reader->epoch_count; i++)
	{
		if (reader->epochs[i].length == length && strncmp(reader->epochs[i].word, what, length) == 0)
		{
			return &reader->epochs[i].epoch;
		}
	}
	reader->epochs = memory_grow(reader->epochs, (reader->epoch_count + 1) * sizeof(*reader->epochs));
	epoch = &reader->epochs[reader->epoch_count++];
	*epoch = (Epoch){.word = what, .length = length};
	return &epoch->epoch;
}

static bool
mark_parse(char *string, Mark *mark)
{
	char *colon = strrchr(string, ':');
	char *dots = colon == NULL ? NULL : strstr(colon, "..");

	if (dots == NULL || strchr("=!>~+?x<-*^", string[0]) == NULL)
	{
		/* what a thread follows is one number */
		dots = colon;
		if (colon == NULL || string[0] != TRACE_FOLLOWS)
		{
			return false;
		}
	}
	*colon = '\0';
	mark->how = string[0];
	mark->what = string + 1;
	if (mark->how == TRACE_FOLLOWS)
	{
		return string_to_int64(colon + 1, 1, INT64_MAX, &mark->from);
	}
	*dots = '\0';
	return string_to_int64(colon + 1, 0, INT64_MAX, &mark->from) && string_to_int64(dots + 2, 0, INT64_MAX, &mark->to);
}

static void
mark_keep(Record *record, const Mark *mark)
{
	if (record->mark_count == record->mark_room)
	{
		record->mark_room = record->mark_room == 0 ? 256 : 2 * record->mark_room;
		record->marks = memory_grow(record->marks, record->mark_room * sizeof(*record->marks));
	}
	record->marks[record->mark_count++] = *mark;
}

/* The first stop of the server on record since this client connected to it. */
static size_t
stop_since(Reader *reader, const char *client, const char *server)
{
	const Event *events = reader->record->events;
	Line line = *line_of(&reader->actors, client);
	Line stops = *line_of(&reader->actors, server);
	size_t connected = line.count;

	while (connected > 0 && strcmp(events[line.events[connected - 1]].kind, "connect") != 0)
	{
		connected--;
	}
	for (size_t i = 0; connected > 0 && i < stops.count; i++)
	{
		if (stops.events[i] > line.events[connected - 1] && strcmp(events[stops.events[i]].kind, "stop") == 0)
		{
			return stops.events[i];
		}
	}
	return NO_EVENT;
}

/* What is known by the place in the file is an edge at once; the rest has to wait until all is read. */
static bool
mark_take(Reader *reader, Mark *mark)
{
	Event *event = &reader->record->events[mark->event];
	const Line *line;

	switch (mark->how)
	{
		case TRACE_FOLLOWS:
			line = line_of(&reader->threads, mark->what);
			if (mark->from > (int64_t) line->count)
			{
				return false;
			}
			event_add_before(event, line->events[mark->from - 1]);
			return true;
		case TRACE_HEARD:
			event_add_before(event, line_last(line_of(&reader->actors, mark->what)));
			return true;
		case TRACE_LOST:
			event_add_before(event, stop_since(reader, event->actor, mark->what));
			return true;
		case TRACE_FORGET:
			(*epoch_of(reader, mark->what))++;
			return true;
		default:
			mark->epoch = *epoch_of(reader, mark->what);
			mark_keep(reader->record, mark);
			return true;
	}
}

static bool
marks_parse(Reader *reader, char *list, size_t event)
{
	char *rest = list;
	char *word;

	while ((word = strsep(&rest, " ")) != NULL)
	{
		Mark mark = {.event = event};

		if (word[0] != '\0' && (!mark_parse(word, &mark) || !mark_take(reader, &mark)))
		{
			return false;
		}
	}
	return true;
}


/* --- lines --- */

static Event *
event_new(Record *record)
{
	if (record->event_count == record->event_room)
	{
		record->event_room = record->event_room == 0 ? 256 : 2 * record->event_room;
		record->events = memory_grow(record->events, record->event_room * sizeof(*record->events));
	}
	record->events[record->event_count] = (Event){.line = record->event_count + 1, .next_actor = NO_EVENT, .fate = ""};
	return &record->events[record->event_count++];
}

/* On its actor's line and in its thread. Marks know only what is above them, and come first. */
static void
event_place(Reader *reader, size_t index)
{
	Event *event = &reader->record->events[index];
	Line *actor = line_of(&reader->actors, event->actor);
	Line *thread = line_of(&reader->threads, event->thread);

	event->in_actor = line_last(actor);
	event->in_thread = line_last(thread);
	event->thread_count = (int) thread->count + 1;
	event_add_before(event, event->in_actor);
	event_add_before(event, event->in_thread);
	if (event->in_actor != NO_EVENT)
	{
		reader->record->events[event->in_actor].next_actor = index;
	}
	line_add(actor, index);
	line_add(thread, index);
}

static bool
line_parse(Reader *reader, char *line)
{
	char *fields[FIELDS];
	char *rest = line;
	int64_t outcome;
	Event *event = event_new(reader->record);
	size_t index = reader->record->event_count - 1;

	for (int i = 0; i < FIELDS; i++)
	{
		fields[i] = strsep(&rest, "\t");
		if (fields[i] == NULL)
		{
			return false;
		}
	}
	if (rest != NULL || !string_to_int64(fields[0], 0, INT64_MAX, &event->ns) || fields[1][0] == '\0' ||
		fields[2][0] == '\0' || fields[3][0] == '\0' ||
		!string_to_int64(fields[4], TRACE_DONE, TRACE_UNKNOWN, &outcome))
	{
		return false;
	}
	event->thread = fields[1];
	event->actor = fields[2];
	event->kind = fields[3];
	event->outcome = (TraceOutcome) outcome;
	event->text = fields[6];
	if (!marks_parse(reader, fields[5], index))
	{
		return false;
	}
	event_place(reader, index);
	return true;
}

static bool
lines_parse(Reader *reader)
{
	Record *record = reader->record;
	char *at = record->text.data;
	const char *end = at + record->text.length;

	for (size_t line = 1; at < end; line++)
	{
		char *newline = memchr(at, '\n', (size_t) (end - at));

		if (newline == NULL)
		{
			report_error("trace \"%s\" line %zu is torn: it has no end, the disk may have been full", record->path,
						 line);
			return false;
		}
		*newline = '\0';
		if (strlen(at) != (size_t) (newline - at) || !line_parse(reader, at))
		{
			report_error("trace \"%s\" line %zu cannot be read", record->path, line);
			return false;
		}
		at = newline + 1;
	}
	return true;
}


/* --- looking up --- */

static int
compare_named(const Mark *a, const Mark *b)
{
	int order = a->how != b->how ? a->how - b->how : strcmp(a->what, b->what);

	if (order == 0)
	{
		order = a->epoch - b->epoch;
	}
	return order < 0 ? -1 : order > 0;
}

static int
compare_marks(const void *left, const void *right)
{
	const Mark *a = left, *b = right;
	int order = compare_named(a, b);

	if (order != 0)
	{
		return order;
	}
	if (a->from != b->from)
	{
		return a->from < b->from ? -1 : 1;
	}
	return a->event < b->event ? -1 : a->event > b->event;
}

/* The first mark whose comparison with the wanted one is at least `least`. */
static size_t
bound(const Record *record, const Mark *wanted, int least)
{
	size_t low = 0, high = record->mark_count;

	while (low < high)
	{
		size_t middle = low + (high - low) / 2;

		if (compare_named(&record->marks[middle], wanted) < least)
		{
			low = middle + 1;
		}
		else
		{
			high = middle;
		}
	}
	return low;
}

size_t
record_find(const Record *record, char how, const char *what, int epoch, const Mark **first)
{
	const Mark wanted = {.how = how, .what = what, .epoch = epoch};
	size_t begin = bound(record, &wanted, 0);

	*first = record->marks + begin;
	return bound(record, &wanted, 1) - begin;
}

static const Mark *
maker_among(const Record *record, char how, const Mark *value)
{
	const Mark *first;
	size_t low = 0, high = record_find(record, how, value->what, value->epoch, &first), count = high;

	while (low < high)
	{
		size_t middle = low + (high - low) / 2;

		if (first[middle].from < value->from)
		{
			low = middle + 1;
		}
		else
		{
			high = middle;
		}
	}
	for (; low < count && first[low].from == value->from; low++)
	{
		if (record->events[first[low].event].maker != NO_EVENT)
		{
			return &first[low];
		}
	}
	return NULL;
}

const Mark *
record_making(const Record *record, const Mark *value)
{
	const Mark *making = maker_among(record, TRACE_MADE, value);

	return making != NULL ? making : maker_among(record, TRACE_NUMBERED, value);
}

bool
record_read(Record *record, const char *path)
{
	Reader reader = {.record = record};
	bool done;

	*record = (Record){.path = path};
	done = file_read(path, &record->text) && lines_parse(&reader);
	if (record->mark_count > 0)
	{
		qsort(record->marks, record->mark_count, sizeof(*record->marks), compare_marks);
	}
	lines_free(&reader.actors);
	lines_free(&reader.threads);
	free(reader.epochs);
	return done;
}

void
record_free(Record *record)
{
	for (size_t i = 0; i < record->event_count; i++)
	{
		free(record->events[i].before);
	}
	free(record->events);
	free(record->marks);
	text_free(&record->text);
	*record = (Record){0};
}

void
event_describe(const Event *event, Text *text)
{
	text_append(text, "%s, %s %s", event->actor, event->kind, event->text);
}
