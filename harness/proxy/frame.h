/*
 * Where messages of the frontend/backend protocol begin and end, whatever the pieces in which their bytes arrive.
 *
 * A pure parser: no memory of its own, no socket. It remembers the first bytes of the message it is in, and no more,
 * so that a message of any length costs the same.
 */
#ifndef COUNTERPROOF_PROXY_FRAME_H
#define COUNTERPROOF_PROXY_FRAME_H

#include "base.h"

#define FRAME_PREVIEW_BYTES 256 /* from the message's first byte on; holds its header, and what names it */

typedef enum
{
	FRAME_MORE = 1, /* nothing to tell: a message ended, or all was taken */
	FRAME_KNOWN,    /* as much of the message has come as the preview holds: told once for each message */
	FRAME_BROKEN    /* this is not the protocol; nothing more is taken */
} FrameEvent;

typedef enum
{
	FRAME_STARTUP = 1, /* length and code, no type byte: what a client says first */
	FRAME_TYPED,       /* type byte and length */
	FRAME_OVER         /* after a cancel request nothing may follow */
} FramePhase;

typedef enum
{
	FRAME_MESSAGE = 1, /* with a type byte */
	FRAME_HELLO,       /* a startup packet of protocol 3 */
	FRAME_SSL,
	FRAME_GSS,
	FRAME_CANCEL
} FrameKind;

typedef struct
{
	FramePhase phase;
	bool broken;
	bool asked_ssl; /* a client may ask once for each */
	bool asked_gss;
	FrameKind kind; /* of the message it is in, or that has just ended; 0 while its header has not come whole */
	bool known;     /* it was told of */
	uint64_t size;  /* of all its bytes; 0 while its header has not come whole */
	uint64_t seen;  /* how many of them have come */
	unsigned char preview[FRAME_PREVIEW_BYTES];
} FrameParser;

extern void frame_begin(FrameParser *parser, FramePhase phase);

/* The next byte begins a message, or may end the stream. */
extern bool frame_is_between(const FrameParser *parser);

/* Take bytes up to the next thing to tell or the end of a message, at most `length`; the number taken. */
extern size_t frame_feed(FrameParser *parser, const unsigned char *bytes, size_t length, FrameEvent *event);

/* Of a known message: its type byte (0 without one), and as much of what follows its length as the preview holds. */
extern char frame_type(const FrameParser *parser);
extern const unsigned char *frame_body(const FrameParser *parser, size_t *length);

/* Four bytes of the wire, big end first. */
extern uint32_t frame_number(const unsigned char *bytes);

#endif
