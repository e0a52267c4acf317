/*
 * A file for ShiViz, checked more strictly than ShiViz does: it draws whatever is in the clocks, and skips lines that it does
 * not understand.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "trace_private.h"

/* What ShiViz takes for an event when the first line is empty. */
#define DEFAULT_PATTERN "(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})"

#define HOST_SHOWN 64

typedef struct
{
	VClockId host; /* points into the file */
	VClock clock;
	int64_t own;
	size_t line;
} Entry;

/* The events of a host, one behind the other: its 1, 2, 3, ... */
typedef struct
{
	const Entry *first;
	int64_t count;
} HostEntries;

typedef struct
{
	const TraceVisit *visit;
	void *context;
	const char *at, *end; /* what is not read yet */
	size_t line;          /* the number of the line at `at` */
	bool ours;            /* TRACE_HEADER */
	Pattern event, delimiter;
	bool delimited;
	int host, clock, kind, text; /* groups */
	Text *why;
	char **labels;
	size_t label_count;
	Entry *entries; /* of the execution that is read */
	size_t entry_count, entry_room;
	HostEntries *hosts; /* of the execution, sorted */
	size_t host_count, host_room;
	size_t executions, events;
} Check;

static bool fail(Check *check, size_t line, const char *format, ...) PRINTF_LIKE(3, 4);

static bool
fail(Check *check, size_t line, const char *format, ...)
{
	va_list args;

	text_append(check->why, "line %zu: ", line);
	va_start(args, format);
	text_append_va(check->why, format, args);
	va_end(args);
	return false;
}

static int
shown(VClockId host)
{
	return host.length > HOST_SHOWN ? HOST_SHOWN : (int) host.length;
}


/* --- one execution, all of it read --- */

static int
compare_ids(VClockId a, VClockId b)
{
	size_t common = a.length < b.length ? a.length : b.length;
	int order = memcmp(a.bytes, b.bytes, common);

	if (order != 0)
	{
		return order;
	}
	return a.length < b.length ? -1 : a.length > b.length;
}

static int
compare_entries(const void *left, const void *right)
{
	const Entry *a = left, *b = right;
	int order = compare_ids(a->host, b->host);

	if (order != 0)
	{
		return order;
	}
	if (a->own != b->own)
	{
		return a->own < b->own ? -1 : 1;
	}
	return a->line < b->line ? -1 : a->line > b->line;
}

static HostEntries *
host_add(Check *check, const Entry *first)
{
	if (check->host_count == check->host_room)
	{
		check->host_room = check->host_room == 0 ? 16 : 2 * check->host_room;
		check->hosts = memory_grow(check->hosts, check->host_room * sizeof(*check->hosts));
	}
	check->hosts[check->host_count] = (HostEntries){.first = first};
	return &check->hosts[check->host_count++];
}

/* Of sorted entries: the events of a host are its 1, 2, 3, ... */
static bool
find_hosts(Check *check)
{
	HostEntries *host = NULL;

	check->host_count = 0;
	for (size_t i = 0; i < check->entry_count; i++)
	{
		const Entry *entry = &check->entries[i];

		if (host == NULL || compare_ids(host->first->host, entry->host) != 0)
		{
			host = host_add(check, entry);
		}
		if (host->count > 0 && entry->own == host->count)
		{
			return fail(check, entry->line, "%.*s has its event %" PRId64 " a second time; the first is in line %zu",
						shown(entry->host), entry->host.bytes, entry->own, check->entries[i - 1].line);
		}
		host->count++;
		if (entry->own != host->count)
		{
			return fail(check, entry->line, "%.*s has an event %" PRId64 ", but none with its own entry %" PRId64,
						shown(entry->host), entry->host.bytes, entry->own, host->count);
		}
	}
	return true;
}

/* The n-th event of a host; NULL: there is none. */
static const Entry *
entry_find(const Check *check, VClockId host, int64_t own)
{
	size_t low = 0, high = check->host_count;

	while (low < high)
	{
		size_t middle = low + (high - low) / 2;
		const HostEntries *at = &check->hosts[middle];
		int order = compare_ids(at->first->host, host);

		if (order == 0)
		{
			return own >= 1 && own <= at->count ? at->first + (own - 1) : NULL;
		}
		low = order < 0 ? middle + 1 : low;
		high = order < 0 ? high : middle;
	}
	return NULL;
}

/* Of a clock that is not before the one of the event that names it. */
static bool
fail_unknown(Check *check, const Entry *entry, const Entry *before)
{
	size_t i = 0;
	VClockEntry known = vclock_entry(&before->clock, i);

	while (known.counter <= vclock_get(&entry->clock, known.id))
	{
		known = vclock_entry(&before->clock, ++i);
	}
	return fail(check, entry->line,
				"it knows event %" PRId64 " of %.*s (line %zu) but of %.*s only %" PRId64 ", where that knew %" PRId64,
				before->own, shown(before->host), before->host.bytes, before->line, shown(known.id), known.id.bytes,
				vclock_get(&entry->clock, known.id), known.counter);
}

/* What an entry names is known with all that it knew, and did not know of this event. */
static bool
check_entry(Check *check, const Entry *entry, VClockEntry named)
{
	bool is_own = compare_ids(named.id, entry->host) == 0;
	const Entry *before = entry_find(check, named.id, is_own ? named.counter - 1 : named.counter);

	if (is_own && named.counter == 1)
	{
		return true;
	}
	if (before == NULL)
	{
		return fail(check, entry->line, "an entry names event %" PRId64 " of %.*s, which does not exist", named.counter,
					shown(named.id), named.id.bytes);
	}
	if (vclock_get(&before->clock, entry->host) >= entry->own)
	{
		return fail(check, entry->line,
					"it knows event %" PRId64 " of %.*s (line %zu), which knows it: they cannot come before each other",
					named.counter, shown(named.id), named.id.bytes, before->line);
	}
	return vclock_compare(&before->clock, &entry->clock) == VCLOCK_BEFORE || fail_unknown(check, entry, before);
}

static bool
check_execution(Check *check)
{
	bool holds;

	if (check->entry_count > 0)
	{
		qsort(check->entries, check->entry_count, sizeof(*check->entries), compare_entries);
	}
	holds = find_hosts(check);
	for (size_t i = 0; i < check->entry_count && holds; i++)
	{
		const Entry *entry = &check->entries[i];

		for (size_t j = 0; j < vclock_count(&entry->clock) && holds; j++)
		{
			holds = check_entry(check, entry, vclock_entry(&entry->clock, j));
		}
	}
	return holds;
}

static void
drop_entries(Check *check)
{
	for (size_t i = 0; i < check->entry_count; i++)
	{
		vclock_free(&check->entries[i].clock);
	}
	check->entry_count = 0;
}

static bool
end_execution(Check *check)
{
	bool holds = check_execution(check);

	check->executions += check->entry_count > 0;
	check->events += check->entry_count;
	drop_entries(check);
	return holds;
}


/* --- reading --- */

/* `lines` lines from where the reading stands, the last one without its end. NULL: there are not so many. */
static const char *
lines_end(const Check *check, size_t lines)
{
	const char *end = check->at;

	for (size_t i = 0; i < lines; i++)
	{
		end = i == 0 ? end : end + 1;
		end = end >= check->end ? NULL : memchr(end, '\n', (size_t) (check->end - end));
		if (end == NULL)
		{
			return NULL;
		}
	}
	return end;
}

static void
move_on(Check *check, const char *end, size_t lines)
{
	check->at = end + 1;
	check->line += lines;
}

/*
 * An event of ours, "host {clock}" and "kind text", as its regular expression would match it: those are many, and it takes
 * longer than all the rest.
 */
static bool
match_event(const char *lines, size_t length, TracePart *parts)
{
	const char *end = lines + length;
	const char *second = memchr(lines, '\n', length); /* its event spans two lines */
	const char *clock = lines + strcspn(lines, " \t\n") + 1;
	const char *text = second + 1 + strcspn(second + 1, " \t\n") + 1;
	size_t host = (size_t) (clock - lines) - 1;
	size_t kind = (size_t) (text - second) - 2;

	if (host == 0 || kind == 0 || lines[host] != ' ' || text[-1] != ' ' || second - clock < 2 || clock[0] != '{' ||
		second[-1] != '}')
	{
		return false;
	}
	parts[1] = (TracePart){lines, host};
	parts[2] = (TracePart){clock, (size_t) (second - clock)};
	parts[3] = (TracePart){second + 1, kind};
	parts[4] = (TracePart){text, (size_t) (end - text)};
	return true;
}

static bool
match_delimiter(const char *line, size_t length, TracePart *parts)
{
	static const char frame[] = "=== ";
	size_t width = strlen(frame);

	if (length < 2 * width || memcmp(line, frame, width) != 0 || memcmp(line + length - width, " ===", width) != 0)
	{
		return false;
	}
	parts[1] = (TracePart){line + width, length - 2 * width};
	return true;
}

static bool
match(const Check *check, const Pattern *pattern, const char *lines, size_t length, TracePart *parts)
{
	if (!check->ours)
	{
		return pattern_match(pattern, lines, length, parts);
	}
	return pattern == &check->event ? match_event(lines, length, parts) : match_delimiter(lines, length, parts);
}

/* {\"A\":2}: as programs write it whose own text is in quotes. */
static bool
parse_clock(const TracePart *part, VClock *clock, Text *why)
{
	Text plain = {0};
	bool done;

	if (memchr(part->bytes, '\\', part->length) == NULL)
	{
		return vclock_parse_json(part->bytes, part->length, clock, why);
	}
	for (size_t i = 0; i < part->length; i++)
	{
		if (part->bytes[i] != '\\' || i + 1 == part->length || part->bytes[i + 1] != '"')
		{
			text_append_bytes(&plain, part->bytes + i, 1);
		}
	}
	done = vclock_parse_json(text_get(&plain), plain.length, clock, why);
	text_free(&plain);
	return done;
}

static bool
take_event(Check *check, const TracePart *parts)
{
	const TracePart *host = &parts[check->host];
	Text reason = {0};
	Entry *entry;

	if (check->entry_count == check->entry_room)
	{
		check->entry_room = check->entry_room == 0 ? 256 : 2 * check->entry_room;
		check->entries = memory_grow(check->entries, check->entry_room * sizeof(*check->entries));
	}
	entry = &check->entries[check->entry_count];
	*entry = (Entry){.host = {host->bytes, host->length}, .line = check->line};
	if (host->length == 0 || host->length > VCLOCK_ID_BYTES_MAX)
	{
		return fail(check, check->line, "a host has a name of 1 to %d bytes", VCLOCK_ID_BYTES_MAX);
	}
	if (!parse_clock(&parts[check->clock], &entry->clock, &reason))
	{
		fail(check, check->line, "not a clock: %s", text_get(&reason));
		text_free(&reason);
		return false;
	}
	check->entry_count++;
	entry->own = vclock_get(&entry->clock, entry->host);
	if (entry->own == 0)
	{
		return fail(check, check->line, "the clock of an event of %.*s has no entry for it", shown(entry->host),
					entry->host.bytes);
	}
	if (check->visit != NULL)
	{
		const TracePart none = {"", 0};

		check->visit->event(check->context, entry->host, &entry->clock, check->kind > 0 ? parts[check->kind] : none,
							parts[check->text]);
	}
	return true;
}

static bool
take_label(Check *check, const TracePart *parts)
{
	int group = pattern_group(&check->delimiter, "trace");
	char *label;

	if (!end_execution(check))
	{
		return false;
	}
	if (check->visit != NULL)
	{
		check->visit->execution(check->context, group > 0 ? parts[group] : (TracePart){"", 0});
	}
	if (group == 0)
	{
		return true;
	}
	label = string_format("%.*s", (int) parts[group].length, parts[group].bytes);
	check->labels = memory_grow(check->labels, (check->label_count + 1) * sizeof(*check->labels));
	check->labels[check->label_count++] = label;
	for (size_t i = 0; i + 1 < check->label_count; i++)
	{
		if (strcmp(check->labels[i], label) == 0)
		{
			return fail(check, check->line, "a second execution is named \"%.60s\"", label);
		}
	}
	return true;
}

static bool
take_next(Check *check)
{
	TracePart parts[PATTERN_GROUPS_MAX + 1];
	const char *end = lines_end(check, 1);

	if (check->delimited && match(check, &check->delimiter, check->at, (size_t) (end - check->at), parts))
	{
		if (!take_label(check, parts))
		{
			return false;
		}
		move_on(check, end, 1);
		return true;
	}
	if (end == check->at && check->event.lines > 1 && check->entry_count == 0)
	{
		move_on(check, end, 1); /* between the head and the first event */
		return true;
	}
	end = lines_end(check, check->event.lines);
	if (end == NULL || !match(check, &check->event, check->at, (size_t) (end - check->at), parts))
	{
		return fail(check, check->line,
					end == NULL ? "an event begins, and the file ends"
								: "neither an event nor the name of an execution");
	}
	if (!take_event(check, parts))
	{
		return false;
	}
	move_on(check, end, check->event.lines);
	return true;
}

/* The two lines of the head, as strings. */
static bool
take_head(Check *check)
{
	char *heads[2] = {NULL, NULL};
	Text reason = {0};
	bool done = true;

	check->ours = strncmp(check->at, TRACE_HEADER, strlen(TRACE_HEADER)) == 0;
	for (int i = 0; i < 2 && done; i++)
	{
		const char *end = lines_end(check, 1);

		done =
			end != NULL || fail(check, check->line, "the file has no head: a line for events, one for what parts them");
		if (done)
		{
			heads[i] = string_format("%.*s", (int) (end - check->at), check->at);
			move_on(check, end, 1);
		}
	}
	if (done && !pattern_compile(heads[0][0] == '\0' ? DEFAULT_PATTERN : heads[0], &check->event, &reason))
	{
		done = fail(check, 1, "not a format known here: %s", text_get(&reason));
	}
	else if (done)
	{
		check->host = pattern_group(&check->event, "host");
		check->clock = pattern_group(&check->event, "clock");
		check->kind = pattern_group(&check->event, "kind");
		check->text = pattern_group(&check->event, "event");
		if (check->host == 0 || check->clock == 0 || check->text == 0)
		{
			done = fail(check, 1, "not a format known here: no group for each of host, clock and event");
		}
		else if (heads[1][0] != '\0' && !(check->delimited = pattern_compile(heads[1], &check->delimiter, &reason)))
		{
			done = fail(check, 2, "not a format known here: %s", text_get(&reason));
		}
		if (!done)
		{
			pattern_free(&check->event);
		}
	}
	free(heads[0]);
	free(heads[1]);
	text_free(&reason);
	return done;
}

static bool
check_body(Check *check)
{
	bool holds = true;

	while (holds && check->at < check->end)
	{
		holds = take_next(check);
	}
	holds = holds && end_execution(check);
	if (holds && check->events == 0)
	{
		holds = fail(check, check->line, "the file has no event");
	}
	drop_entries(check);
	pattern_free(&check->event);
	if (check->delimited)
	{
		pattern_free(&check->delimiter);
	}
	return holds;
}

/* The number of the line at this place. */
static size_t
line_at(const Text *text, const char *place)
{
	size_t line = 1;

	for (const char *at = text->data; at < place; at++)
	{
		line += *at == '\n';
	}
	return line;
}

bool
trace_check_file(const char *path, const TraceVisit *visit, void *context, Text *why, size_t *executions,
				 size_t *events)
{
	Text text = {0};
	Check check = {.visit = visit, .context = context, .line = 1, .why = why};
	const char *zero;
	bool holds = false;

	if (!file_read(path, &text))
	{
		return false;
	}
	check.at = text_get(&text);
	check.end = check.at + text.length;
	zero = memchr(check.at, '\0', text.length);
	if (zero != NULL)
	{
		(void) fail(&check, line_at(&text, zero), "a zero byte, where all is text");
	}
	else if (text.length > 0 && check.end[-1] != '\n')
	{
		(void) fail(&check, line_at(&text, check.end), "the file ends within a line: it was cut short");
	}
	else
	{
		holds = take_head(&check) && check_body(&check);
	}
	for (size_t i = 0; i < check.label_count; i++)
	{
		free(check.labels[i]);
	}
	free(check.labels);
	free(check.entries);
	free(check.hosts);
	text_free(&text);
	*executions = check.executions;
	*events = check.events;
	return holds;
}
