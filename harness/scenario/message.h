/*
 * What a case and its host tell the runner through a pipe: one JSON document a line, so that no text can break the
 * frame. A line torn by a crash is told from the next by a newline that each message begins with as well.
 */
#ifndef COUNTERPROOF_MESSAGE_H
#define COUNTERPROOF_MESSAGE_H

#include "base.h"
#include "evidence.h"

typedef enum
{
	MESSAGE_UNSET = 0,
	MESSAGE_LINE,    /* a line of output.txt */
	MESSAGE_UNKNOWN, /* text: why the case cannot be a PASS */
	MESSAGE_BROKEN,  /* text: what the lab could not do */
	MESSAGE_SKIP,    /* text: what the machine lacks; nothing was checked */
	MESSAGE_DONE,    /* the case ran to its end; 40001 and 40P01 of the system's own transactions */
	MESSAGE_SERIES,  /* text: the plot, expected: the line's name, values */
	MESSAGE_KEPT     /* text: conninfo of a server that stays up, actual: the command that ends it */
} MessageKind;

typedef struct
{
	MessageKind kind;
	LineKind line;
	const char *text; /* these three, and values, are allocated in a decoded message: message_free() */
	const char *expected;
	const char *actual;
	int64_t first, /* a fault's firings, or retries of 40001 */
		second;    /* retries of 40P01 */
	const int64_t *values;
	size_t value_count;
} Message;

extern bool message_send(int fd, const Message *message) MUST_CHECK;

/* false: not a message; reports nothing. Free with message_free(). */
extern bool message_decode(const char *line, Message *message) MUST_CHECK;
extern void message_free(Message *message);

#endif
