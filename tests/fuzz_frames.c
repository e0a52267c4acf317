/*
 * Fuzzes the frame parser and the lane: whatever the pieces in which bytes come, the messages are the same, and what
 * goes out is what came in, without what was dropped. libFuzzer finds the bytes; a sanitizer finds the over-reads.
 *
 * The input is four bytes of choices, sizes of pieces, a zero byte, and then what one side of a connection says.
 *
 * What the parser and the lane make of it, in pieces and at once, is held against an account by the rules that has the
 * whole of it in sight.
 */
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "proxy/frame.h"
#include "proxy/lane.h"
#include "proxy/record.h"

#define CHOICE_BYTES 4
#define PIECES_MOST 32
#define REPEAT_MOST 24 /* of the bytes, to fill more than a lane */

typedef struct
{
	FramePhase phase;
	int64_t held;  /* the message to hold, 0: none */
	size_t pieces; /* how many sizes there are; 0: all comes at once */
	unsigned char piece[PIECES_MOST];
	size_t repeat;
	const unsigned char *said;
	size_t length;
} Input;

/* What is said of a stream, in a form that two runs can compare. */
typedef struct
{
	Text seen;   /* of each message where it began, kind, type, size and name */
	Text passed; /* by the rules: the bytes that may go out */
	Text fenced; /* by the rules: those of them that stand before the message to hold */
	int64_t count;
	bool held;   /* by the rules: there is one to hold */
	bool broken; /* there is something that is no message */
} Account;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A check that holds in a release build, too. */
static void
must(bool holds, const char *what)
{
	if (!holds)
	{
		report_error("does not hold: %s", what);
		abort();
	}
}

static bool
same(const Text *a, const Text *b)
{
	return a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}

/* The size of piece number n, never 0. */
static size_t
piece_of(const Input *input, size_t n, size_t left)
{
	size_t size = input->pieces > 0 ? (size_t) input->piece[n % input->pieces] + 1 : left;

	return size < left ? size : left;
}


/* --- the parser --- */

/* A name is made of what came, and of nothing that lies behind it in the preview. */
static void
account_name(Account *account, const FrameParser *parser, Direction direction)
{
	FrameParser *other = memory_get(sizeof(FrameParser)); /* its last member is the preview: ASan guards its end */
	size_t known = parser->seen < FRAME_PREVIEW_BYTES ? (size_t) parser->seen : FRAME_PREVIEW_BYTES;
	ProxyMessage one = {.direction = direction};
	ProxyMessage two = {.direction = direction};

	*other = *parser;
	message_name(&one, other);
	memset(other->preview + known, 'Z', FRAME_PREVIEW_BYTES - known);
	message_name(&two, other);
	must(one.type == two.type && strcmp(one.tag, two.tag) == 0, "a name is made of what came");
	proxy_message_describe(&one, &account->seen);
	text_append(&account->seen, "\n");
	free(other);
}

/* Feed a piece, in memory of just its size. Where it stands in the stream is `at`. */
static void
account_piece(Account *account, FrameParser *parser, const unsigned char *bytes, size_t length, size_t at)
{
	unsigned char *piece = memory_get(length);
	size_t taken = 0;

	memcpy(piece, bytes, length);
	while (taken < length && !account->broken)
	{
		FrameEvent event;
		size_t before = taken;

		taken += frame_feed(parser, piece + taken, length - taken, &event);
		must(taken <= length && (taken > before || event == FRAME_BROKEN),
			 "it takes something, and no more than there is");
		account->broken = event == FRAME_BROKEN;
		must(account->broken || parser->size == 0 || parser->seen <= parser->size,
			 "a message has no more than its size");
		if (event == FRAME_KNOWN)
		{
			text_append(&account->seen, "%zu %d %d %lld ", at + taken - (size_t) parser->seen, (int) parser->kind,
						frame_type(parser), (long long) parser->size);
			account_name(account, parser, FROM_CLIENT);
			account_name(account, parser, FROM_SERVER);
		}
	}
	free(piece);
}

static void
account_stream(Account *account, const Input *input)
{
	FrameParser *parser = memory_get(sizeof(FrameParser));
	size_t n = 0;

	frame_begin(parser, input->phase);
	for (size_t at = 0; at < input->length && !account->broken;)
	{
		size_t length = piece_of(input, n++, input->length - at);

		account_piece(account, parser, input->said + at, length, at);
		at += length;
	}
	free(parser);
}


/* --- the same from the rules alone, with the whole stream in sight --- */

static bool
is_dropped(FrameKind kind)
{
	return kind == FRAME_SSL || kind == FRAME_GSS;
}

/* 0: nothing that may stand there. `asked` remembers the requests, which come once each. */
static FrameKind
kind_of_packet(uint32_t size, uint32_t code, bool asked[2])
{
	if ((code == 80877103 || code == 80877104) && size == 8 && !asked[code - 80877103])
	{
		asked[code - 80877103] = true;
		return code == 80877103 ? FRAME_SSL : FRAME_GSS;
	}
	if (code == 80877102 && size == 16)
	{
		return FRAME_CANCEL;
	}
	return code / 65536 == 3 && size >= 8 && size <= 10004 ? FRAME_HELLO : 0;
}

static FrameKind
kind_of_message(const unsigned char *bytes, uint32_t length)
{
	static const char types[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	return memchr(types, bytes[0], sizeof(types) - 1) != NULL && length >= 4 && length < 0x3fffffff ? FRAME_MESSAGE : 0;
}

/* A message, whole or as far as it came: it goes out, before the held one or not. */
static void
account_message(Account *account, const Input *input, const unsigned char *bytes, size_t length, bool known)
{
	account->held = account->held || (known && ++account->count == input->held);
	text_append_bytes(&account->passed, (const char *) bytes, length);
	if (!account->held)
	{
		text_append_bytes(&account->fenced, (const char *) bytes, length);
	}
}

static void
account_by_rules(Account *account, const Input *input)
{
	FramePhase phase = input->phase;
	bool asked[2] = {false};

	for (size_t at = 0; at < input->length && !account->broken;)
	{
		const unsigned char *bytes = input->said + at;
		size_t left = input->length - at;
		bool startup = phase == FRAME_STARTUP;
		bool whole = left >= (startup ? 8 : 5);
		uint64_t size = left; /* of a header that did not come whole */
		FrameKind kind = FRAME_MESSAGE;

		if (whole)
		{
			size = startup ? frame_number(bytes) : (uint64_t) frame_number(bytes + 1) + 1;
			kind = startup ? kind_of_packet((uint32_t) size, frame_number(bytes + 4), asked)
						   : kind_of_message(bytes, (uint32_t) (size - 1));
		}
		account->broken = kind == 0 || phase == FRAME_OVER;
		if (!account->broken && !is_dropped(kind))
		{
			account_message(account, input, bytes, size < left ? (size_t) size : left,
							whole && left >= (size < FRAME_PREVIEW_BYTES ? size : FRAME_PREVIEW_BYTES));
		}
		at += size < left ? (size_t) size : left;
		phase = kind == FRAME_HELLO ? FRAME_TYPED : kind == FRAME_CANCEL ? FRAME_OVER : phase;
	}
}


/* --- the lane --- */

/* Take what may go out, in pieces of its own. */
static void
drain(Lane *lane, Text *out, const Input *input, size_t *n, bool all)
{
	size_t ready;
	const unsigned char *bytes = lane_ready(lane, &ready);

	while (ready > 0)
	{
		size_t length = piece_of(input, (*n)++, ready);

		text_append_bytes(out, (const char *) bytes, length);
		lane_written(lane, length);
		bytes = lane_ready(lane, &ready);
		if (!all)
		{
			return;
		}
	}
}

static LaneEvent
look(Lane *lane, const Input *input)
{
	LaneEvent event;

	while ((event = lane_scan(lane)) == LANE_MESSAGE)
	{
		if (is_dropped(lane->parser.kind))
		{
			lane_drop(lane);
		}
		else if (lane->count + 1 == input->held)
		{
			lane_hold(lane);
		}
		else
		{
			lane_pass(lane);
		}
	}
	return event;
}

/* Fill the lane as far as it has room. The number of bytes taken. */
static size_t
fill(Lane *lane, const Input *input, size_t at, size_t *n)
{
	size_t room;
	unsigned char *to = lane_room(lane, &room);
	size_t length = piece_of(input, (*n)++, input->length - at);

	length = length < room ? length : room;
	memcpy(to, input->said + at, length);
	lane_filled(lane, length);
	return length;
}

/* The whole stream through a lane; what is held is let go when nothing more fits or comes. Was anything? */
static bool
run_lane(const Input *input, Text *out, Text *fenced)
{
	static Lane memory; /* fresh for each input it would cost more than all the rest */
	Lane *lane = &memory;
	bool held = false;
	LaneEvent event = LANE_QUIET;
	size_t n = 0;
	size_t at = 0;

	lane_begin(lane, input->phase);
	while (event != LANE_BROKEN && (at < input->length || lane->holding))
	{
		size_t taken = at < input->length && lane_has_room(lane) ? fill(lane, input, at, &n) : 0;

		at += taken;
		event = look(lane, input);
		drain(lane, out, input, &n, n % 3 == 0 || taken == 0);
		if (lane->holding && taken == 0)
		{
			held = true;
			text_append_bytes(fenced, text_get(out), out->length);
			lane_pass(lane);
			event = look(lane, input);
		}
	}
	if (event != LANE_BROKEN)
	{
		lane_end(lane);
	}
	drain(lane, out, input, &n, true);
	must(lane_is_empty(lane), "all that came has gone, or was no message");
	return held;
}

static void
check_lane(const Input *input, const Account *account)
{
	Text out = {0};
	Text fenced = {0};

	bool held = run_lane(input, &out, &fenced);

	must(held == account->held, "the message to hold was held");
	must(same(&out, &account->passed), "what goes out is what came, without what was dropped");
	must(!held || same(&fenced, &account->fenced), "nothing of a held message goes out, and all before it");
	text_free(&out);
	text_free(&fenced);
}


/* --- one input --- */

static void
check_input(Input *input)
{
	Account whole = {0};
	Account pieces = {0};
	Account rules = {0};
	size_t sizes = input->pieces;

	account_by_rules(&rules, input);
	account_stream(&pieces, input);
	check_lane(input, &rules);
	input->pieces = 0;
	account_stream(&whole, input);
	check_lane(input, &rules);
	input->pieces = sizes;
	must(same(&whole.seen, &pieces.seen), "pieces are the same messages");
	must(whole.broken == rules.broken && pieces.broken == rules.broken, "what is refused is what the rules refuse");
	text_free(&whole.seen);
	text_free(&pieces.seen);
	text_free(&rules.passed);
	text_free(&rules.fenced);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input input = {0};
	unsigned char *said;

	if (size < CHOICE_BYTES)
	{
		return 0;
	}
	input.phase = data[0] % 2 == 0 ? FRAME_STARTUP : FRAME_TYPED;
	input.held = data[1] % 8;
	input.repeat = 1 + (data[2] < 250 ? 0 : data[3] % REPEAT_MOST);
	data += CHOICE_BYTES;
	size -= CHOICE_BYTES;
	for (; size > 0 && data[0] != 0 && input.pieces < PIECES_MOST; data++, size--)
	{
		input.piece[input.pieces++] = (unsigned char) (data[0] - 1);
	}
	said = memory_get(size * input.repeat);
	for (size_t i = 0; i < input.repeat && size > 0; i++)
	{
		memcpy(said + i * size, data, size);
	}
	input.said = said;
	input.length = size * input.repeat;
	check_input(&input);
	free(said);
	return 0;
}
