/* Inside the trace: a record as it was read, and the graph of what comes before what. */
#ifndef COUNTERPROOF_TRACE_PRIVATE_H
#define COUNTERPROOF_TRACE_PRIVATE_H

#include "../trace.h"
#include "../vclock.h"

/* In the record only: after the `from`-th event of a thread, named as "pid.thread". */
#define TRACE_FOLLOWS '^'

#define NO_EVENT SIZE_MAX

/* A mark of the record, with the event that has it. Two marks mean the same thing when `what` and `epoch` are equal. */
typedef struct
{
	char how;
	const char *what;
	int epoch; /* how often it was forgotten before */
	int64_t from, to;
	size_t event;
} Mark;

typedef struct
{
	int64_t ns;
	const char *thread, *actor, *kind, *text;
	TraceOutcome outcome;
	const char *fate;  /* of TRACE_UNKNOWN: what the rest of the record says about it, "" for nothing */
	size_t line;       /* of the record */
	size_t in_actor;   /* the event before it on its line, NO_EVENT for none */
	size_t next_actor; /* the one after it */
	size_t in_thread;
	int thread_count; /* from 1 */
	size_t maker;     /* which event made what it made: itself, another, or NO_EVENT where nobody made it */
	size_t *before;   /* edges: what comes right before it */
	size_t before_count, before_room;
} Event;

typedef struct
{
	const char *path;
	Text text; /* the file; all strings point into it */
	Event *events;
	size_t event_count, event_room;
	Mark *marks; /* sorted by what they name once the record is read */
	size_t mark_count, mark_room;
} Record;

extern bool record_read(Record *record, const char *path) MUST_CHECK; /* false: reported */
extern void record_free(Record *record);

/* The marks that name the same and say the same: *first and the ones behind it. Answers how many. */
extern size_t record_find(const Record *record, char how, const char *what, int epoch, const Mark **first);

/* The mark by which this value was made, NULL when none is on record. */
extern const Mark *record_making(const Record *record, const Mark *value);

extern void event_add_before(Event *event, size_t before);

/* All edges but those between numbered events. */
extern void flows_add(Record *record);

/*
 * An order of all events in which each comes after those before it. The caller frees it. NULL: there is none, `cycle` then
 * names two events that come before each other.
 */
extern size_t *flows_sort(const Record *record, Text *cycle);

extern void event_describe(const Event *event, Text *text);

#endif
