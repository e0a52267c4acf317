/* The record while a case runs: who writes what, one write(2) each. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace_private.h"

#define FOLLOWS_MAX 32

static atomic_int record_fd = -1;
static atomic_bool record_failed;
static atomic_int threads;

/* Of this thread: its number among those of the process that have recorded anything, and its events so far. */
static _Thread_local TracePlace here;
static _Thread_local TracePlace follows[FOLLOWS_MAX];
static _Thread_local int follow_count;

bool
trace_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
	{
		report_error("could not open the trace \"%s\": %s", path, strerror(errno));
		return false;
	}
	atomic_store(&record_fd, fd);
	return true;
}

bool
trace_is_open(void)
{
	return atomic_load_explicit(&record_fd, memory_order_relaxed) >= 0;
}

bool
trace_is_whole(void)
{
	return !atomic_load(&record_failed);
}

static const char *
behind_slash(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash == NULL ? name : slash + 1;
}

const char *
trace_program(const char *path)
{
	return path[0] == '\0' ? "program" : behind_slash(path);
}

const char *
trace_client(const char *session)
{
	return session[0] == '\0' ? "client" : behind_slash(session);
}

TracePlace
trace_place(void)
{
	return here;
}

/* More than fit are not followed: less is stated then. */
void
trace_follow(TracePlace place)
{
	if (place.count > 0 && follow_count < FOLLOWS_MAX)
	{
		follows[follow_count++] = place;
	}
}

void
trace_mark(TraceEvent *event, TraceHow how, const char *what, int64_t from, int64_t to)
{
	if (event->mark_count == TRACE_MARKS_MAX)
	{
		report_error("an event of %s has more than %d marks", event->actor, TRACE_MARKS_MAX);
		atomic_store(&record_failed, true);
		return;
	}
	event->marks[event->mark_count++] = (TraceMark){how, what, from, to};
}

/* Characters that would end a field become others. */
static void
replace(char *string, const char *these, char by)
{
	for (char *at = strpbrk(string, these); at != NULL; at = strpbrk(at, these))
	{
		*at = by;
	}
}

static void
append_marks(Text *line, const TraceEvent *event)
{
	for (int i = 0; i < follow_count; i++)
	{
		text_append(line, "%c%d.%d:%d ", TRACE_FOLLOWS, (int) getpid(), follows[i].thread, follows[i].count);
	}
	for (int i = 0; i < event->mark_count; i++)
	{
		const TraceMark *mark = &event->marks[i];
		char what[128];

		snprintf(what, sizeof(what), "%s", mark->what == NULL ? "" : mark->what);
		replace(what, " \t\r\n:", '-');
		text_append(line, "%c%s:%" PRId64 "..%" PRId64 " ", mark->how, what, mark->from, mark->to);
	}
}

static void
write_line(const char *bytes, size_t length)
{
	ssize_t written;

	do
	{
		written = write(atomic_load(&record_fd), bytes, length);
	} while (written < 0 && errno == EINTR);
	if (written != (ssize_t) length && !atomic_exchange(&record_failed, true))
	{
		report_error("could not write to the trace: %s", written < 0 ? strerror(errno) : "the disk may be full");
	}
}

static void
record(const TraceEvent *event, const char *format, va_list args)
{
	char actor[128], text[TRACE_TEXT_BYTES];
	Text line = {0};

	if (here.thread == 0)
	{
		here.thread = atomic_fetch_add(&threads, 1) + 1;
	}
	here.count++;
	snprintf(actor, sizeof(actor), "%s", event->actor);
	replace(actor, " \t\r\n", '-');
	vsnprintf(text, sizeof(text), format, args);
	replace(text, "\t\r\n", ' ');
	text_append(&line, "%" PRId64 "\t%d.%d\t%s\t%s\t%d\t", time_now_ns(), (int) getpid(), here.thread, actor,
				event->kind, (int) event->outcome);
	append_marks(&line, event);
	follow_count = 0;
	text_append(&line, "\t%s\n", text);
	write_line(line.data, line.length);
	text_free(&line);
}

void
trace_event(const TraceEvent *event, const char *format, ...)
{
	va_list args;

	if (trace_is_open())
	{
		va_start(args, format);
		record(event, format, args);
		va_end(args);
	}
}

void
trace_tell(const char *actor, const char *kind, const char *format, ...)
{
	va_list args;

	if (trace_is_open())
	{
		va_start(args, format);
		record(&(TraceEvent){.actor = actor, .kind = kind, .outcome = TRACE_DONE}, format, args);
		va_end(args);
	}
}
