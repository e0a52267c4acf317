/*
 * What happened before what: actors record events, vector clocks are computed from the record after the run, and a file
 * that ShiViz opens is made and checked.
 *
 * The record is one per process, none until trace_open(); then an event costs one comparison. A record is one write(2) to
 * a file opened with O_APPEND: safe from threads and processes, no lock, no shared buffer.
 *
 * What is stated must be true, and follows from the record alone; not all that is true can be stated (LIMITS.md). Known
 * to come before an event are the event before it on its actor's line, the one before it in its thread (after the gate that
 * the thread went through, and before its join), and what its marks say. The harness knows no system: what the marks name
 * are the author's own words.
 */
#ifndef COUNTERPROOF_TRACE_H
#define COUNTERPROOF_TRACE_H

#include "vclock.h"


/* --- recording --- */

typedef enum
{
	TRACE_MADE = '=',     /* it made `from` of `what`; nobody else does */
	TRACE_NUMBERED = '!', /* the same, and the server gives these values in the order of its commits */
	TRACE_SAW = '>',      /* it comes after the one that made `from` */
	TRACE_STANDS = '~',   /* it comes after all that stand at a lower value: `what` only grows, under a lock */
	TRACE_ONE_OF = '+',   /* to be found by the next, with the value `from` */
	TRACE_SOME = '?',     /* it comes after at least one of those from `from` to `to`, all of which are on record */
	TRACE_FORGET = 'x',   /* `what`, and all that begins with it and a dot, begins anew: was changed past the record */
	TRACE_HEARD = '<',    /* it comes after all that the actor `what` has on record above it */
	TRACE_LOST = '-',     /* its connection is lost: it comes after the first stop of `what` since it connected */
	TRACE_DURABLE = '*'   /* it comes after all that was made and is on record above it */
} TraceHow;

typedef struct
{
	TraceHow how;
	const char *what; /* a word without blanks; NULL for TRACE_DURABLE */
	int64_t from, to;
} TraceMark;

#define TRACE_MARKS_MAX 8
#define TRACE_LAST INT64_MAX /* no upper end */

typedef enum
{
	TRACE_DONE = 1, /* what it made is made */
	TRACE_OPEN,     /* it is made if its transaction commits */
	TRACE_CLOSES,   /* this is that commit, of what the events right before it on its line made */
	TRACE_UNKNOWN /* nobody knows whether it is made; if so, after the event before it on its line, where it was sent */
} TraceOutcome;

/* An event, to be filled in and given to trace_event(). */
typedef struct
{
	const char *actor; /* whose line it is on; blanks become hyphens */
	const char *kind;  /* one word: begin, commit, kill, ... */
	TraceOutcome outcome;
	TraceMark marks[TRACE_MARKS_MAX];
	int mark_count;
} TraceEvent;

/* false: reported. What a program records is appended to the record of its case. */
extern bool trace_open(const char *path) MUST_CHECK;
extern bool trace_is_open(void);

/* The failure to write a record is reported once, and told here: false. The record is not closed. */
extern bool trace_is_whole(void) MUST_CHECK;

extern void trace_mark(TraceEvent *event, TraceHow how, const char *what, int64_t from, int64_t to);

/* The format is what a person reads; on one line, and not more than TRACE_TEXT_BYTES of it. */
#define TRACE_TEXT_BYTES 400
extern void trace_event(const TraceEvent *event, const char *format, ...) PRINTF_LIKE(2, 3);

/* Names of actors: of a program, by its path; of a client, by the name of its session: "32-K/lab". */
extern const char *trace_program(const char *path);
extern const char *trace_client(const char *session);

/* An event that is done and has no marks. */
extern void trace_tell(const char *actor, const char *kind, const char *format, ...) PRINTF_LIKE(3, 4);

/* The last event of a thread of this process. The next event of the thread that calls trace_follow() comes after it. */
typedef struct
{
	int thread, count;
} TracePlace;

extern TracePlace trace_place(void);
extern void trace_follow(TracePlace place);


/* --- from the record to clocks --- */

typedef struct
{
	size_t events;
	size_t numbered;    /* events whose order the server has told */
	Text contradiction; /* "" when there is none, else both events */
} TraceVerdict;

/*
 * Compute the clocks of a record and compare them with the order that the server told: an event that comes before another
 * must not have the greater number. An execution for ShiViz is appended to `execution`, without that order where it is
 * contradicted; none where events come before each other.
 * The caller frees the verdict's text. false: the record cannot be read, reported with the line.
 */
extern bool trace_conclude(const char *path, Text *execution, TraceVerdict *verdict) MUST_CHECK;


/*
 * --- files for ShiViz: a line with a regular expression for an event, one for what parts executions, then these ---
 */

#define TRACE_HEADER "(?<host>\\S+) (?<clock>{.*})\\n(?<kind>\\S+) (?<event>.*)\n=== (?<trace>.*) ===\n"

/* What stands in the file, without a terminator. */
typedef struct
{
	const char *bytes;
	size_t length;
} TracePart;

/* Of a file that is read, in its order. `kind` is empty where the format has none. */
typedef struct
{
	void (*execution)(void *context, TracePart label); /* begins; not called for events above the first label */
	void (*event)(void *context, VClockId host, const VClock *clock, TracePart kind, TracePart text);
} TraceVisit;

/*
 * Check such a file, of ours or of another's: own entries of a host are 1, 2, 3, ..., every entry names an event, each
 * clock is the maximum of those before it with its own tick, and every line belongs to an event. false: `why` has one line,
 * with the number of the line where it is wrong, or nothing where the file cannot be read, which is reported. What has been
 * visited until then is worth nothing. `visit` may be NULL.
 */
extern bool trace_check_file(const char *path, const TraceVisit *visit, void *context, Text *why, size_t *executions,
							 size_t *events) MUST_CHECK;

#endif
