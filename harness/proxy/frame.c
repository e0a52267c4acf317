/*
 * The limits are the server's own (16: backend_startup in postmaster.c, libpq.h, pqcomm.c): a startup packet has 4 to
 * 10000 bytes after its length, a message's length counts itself and is below MaxAllocSize.
 */
#include "frame.h"

#include <string.h>

#define LENGTH_BYTES 4
#define STARTUP_HEADER_BYTES 8 /* length and code */
#define TYPED_HEADER_BYTES 5   /* type and length */
#define STARTUP_MOST_BYTES (10000 + LENGTH_BYTES)
#define MESSAGE_MOST_BYTES 0x3ffffffe
#define CANCEL_BYTES 16 /* with a process id and a key of four bytes each */

#define CODE_CANCEL 80877102
#define CODE_SSL 80877103
#define CODE_GSS 80877104
#define PROTOCOL_MAJOR 3

void
frame_begin(FrameParser *parser, FramePhase phase)
{
	*parser = (FrameParser){.phase = phase};
}

bool
frame_is_between(const FrameParser *parser)
{
	return parser->seen == parser->size;
}

uint32_t
frame_number(const unsigned char *bytes)
{
	return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 | bytes[3];
}

static bool
is_type(unsigned char byte)
{
	return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

/* false: nothing that may stand before the first message. */
static bool
read_startup_header(FrameParser *parser)
{
	uint32_t length = frame_number(parser->preview);
	uint32_t code = frame_number(parser->preview + LENGTH_BYTES);

	parser->size = length;
	if (code == CODE_SSL && !parser->asked_ssl)
	{
		parser->kind = FRAME_SSL;
		parser->asked_ssl = true;
		return length == STARTUP_HEADER_BYTES;
	}
	if (code == CODE_GSS && !parser->asked_gss)
	{
		parser->kind = FRAME_GSS;
		parser->asked_gss = true;
		return length == STARTUP_HEADER_BYTES;
	}
	if (code == CODE_CANCEL)
	{
		parser->kind = FRAME_CANCEL;
		return length == CANCEL_BYTES;
	}
	parser->kind = FRAME_HELLO;
	return code >> 16 == PROTOCOL_MAJOR && length >= STARTUP_HEADER_BYTES && length <= STARTUP_MOST_BYTES;
}

static bool
read_typed_header(FrameParser *parser)
{
	uint32_t length = frame_number(parser->preview + 1);

	parser->kind = FRAME_MESSAGE;
	parser->size = (uint64_t) length + 1;
	return length >= LENGTH_BYTES && length <= MESSAGE_MOST_BYTES && is_type(parser->preview[0]);
}

/* What a message leaves behind: after the startup packet come typed ones, after a cancel request nothing. */
static void
end_message(FrameParser *parser)
{
	if (parser->kind == FRAME_HELLO)
	{
		parser->phase = FRAME_TYPED;
	}
	else if (parser->kind == FRAME_CANCEL)
	{
		parser->phase = FRAME_OVER;
	}
}

/* Copy into the preview until the message has `upto` bytes. */
static size_t
take(FrameParser *parser, const unsigned char *bytes, size_t length, uint64_t upto)
{
	size_t wanted = (size_t) (upto - parser->seen); /* the preview's size at most */
	size_t taken = wanted < length ? wanted : length;

	memcpy(parser->preview + parser->seen, bytes, taken);
	parser->seen += taken;
	return taken;
}

/* What lies beyond the preview is only counted. */
static size_t
skip(FrameParser *parser, size_t length)
{
	uint64_t left = parser->size - parser->seen;
	size_t skipped = left < length ? (size_t) left : length;

	parser->seen += skipped;
	return skipped;
}

/* Take what is missing of the header. true: it is whole and may stand here; *event says when it may not. */
static bool
take_header(FrameParser *parser, const unsigned char *bytes, size_t length, size_t *taken, FrameEvent *event)
{
	bool startup = parser->phase == FRAME_STARTUP;
	size_t header = startup ? STARTUP_HEADER_BYTES : TYPED_HEADER_BYTES;

	*taken = take(parser, bytes, length, header);
	if (parser->seen < header)
	{
		return false;
	}
	parser->broken = !(startup ? read_startup_header(parser) : read_typed_header(parser));
	if (parser->broken)
	{
		*event = FRAME_BROKEN;
	}
	return !parser->broken;
}

size_t
frame_feed(FrameParser *parser, const unsigned char *bytes, size_t length, FrameEvent *event)
{
	size_t taken = 0;

	*event = FRAME_MORE;
	if (length == 0)
	{
		return 0;
	}
	if (parser->broken || parser->phase == FRAME_OVER)
	{
		parser->broken = true;
		*event = FRAME_BROKEN;
		return 0;
	}
	if (frame_is_between(parser))
	{
		parser->kind = 0;
		parser->known = false;
		parser->size = 0;
		parser->seen = 0;
	}
	if (parser->size == 0 && !take_header(parser, bytes, length, &taken, event))
	{
		return taken;
	}
	if (parser->known)
	{
		taken += skip(parser, length - taken);
	}
	else
	{
		uint64_t upto = parser->size < FRAME_PREVIEW_BYTES ? parser->size : FRAME_PREVIEW_BYTES;

		taken += take(parser, bytes + taken, length - taken, upto);
		parser->known = parser->seen == upto;
		*event = parser->known ? FRAME_KNOWN : FRAME_MORE;
	}
	if (frame_is_between(parser))
	{
		end_message(parser);
	}
	return taken;
}

char
frame_type(const FrameParser *parser)
{
	return parser->kind == FRAME_MESSAGE ? (char) parser->preview[0] : '\0';
}

const unsigned char *
frame_body(const FrameParser *parser, size_t *length)
{
	size_t header = parser->kind == FRAME_MESSAGE ? TYPED_HEADER_BYTES : LENGTH_BYTES;
	size_t held = parser->seen < FRAME_PREVIEW_BYTES ? (size_t) parser->seen : FRAME_PREVIEW_BYTES;

	*length = held > header ? held - header : 0;
	return parser->preview + header;
}
