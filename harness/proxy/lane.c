#include "lane.h"

#include <string.h>

void
lane_begin(Lane *lane, FramePhase phase)
{
	frame_begin(&lane->parser, phase);
	lane->holding = false;
	lane->count = 0;
	lane->begin = lane->passed = lane->scanned = lane->end = 0;
}

bool
lane_has_room(const Lane *lane)
{
	return lane->end - lane->begin < LANE_BYTES;
}

/* A lane is full only by what may be written or is held: what is not known yet is shorter than a preview. */
unsigned char *
lane_room(Lane *lane, size_t *size)
{
	if (lane->begin > 0 && lane->end == LANE_BYTES)
	{
		memmove(lane->bytes, lane->bytes + lane->begin, lane->end - lane->begin);
		lane->passed -= lane->begin;
		lane->scanned -= lane->begin;
		lane->end -= lane->begin;
		lane->begin = 0;
	}
	*size = LANE_BYTES - lane->end;
	return lane->bytes + lane->end;
}

void
lane_filled(Lane *lane, size_t length)
{
	lane->end += length;
}

LaneEvent
lane_scan(Lane *lane)
{
	FrameEvent event;

	while (!lane->holding && lane->scanned < lane->end)
	{
		lane->scanned += frame_feed(&lane->parser, lane->bytes + lane->scanned, lane->end - lane->scanned, &event);
		if (event == FRAME_BROKEN)
		{
			lane->scanned = lane->end = lane->passed;
			return LANE_BROKEN;
		}
		if (event == FRAME_KNOWN)
		{
			return LANE_MESSAGE;
		}
		if (lane->parser.known) /* the rest of a message that was let pass */
		{
			lane->passed = lane->scanned;
		}
	}
	return LANE_QUIET;
}

void
lane_pass(Lane *lane)
{
	lane->count += lane->holding ? 0 : 1;
	lane->holding = false;
	lane->passed = lane->scanned;
}

void
lane_hold(Lane *lane)
{
	lane->count++;
	lane->holding = true;
}

void
lane_drop(Lane *lane)
{
	memmove(lane->bytes + lane->passed, lane->bytes + lane->scanned, lane->end - lane->scanned);
	lane->end -= lane->scanned - lane->passed;
	lane->scanned = lane->passed;
}

void
lane_end(Lane *lane)
{
	if (!lane->holding && !lane->parser.broken)
	{
		lane->passed = lane->scanned = lane->end;
	}
}

void
lane_discard(Lane *lane)
{
	lane->begin = lane->passed = lane->scanned = lane->end;
}

bool
lane_put(Lane *lane, unsigned char byte)
{
	size_t size;
	unsigned char *room = lane_room(lane, &size);

	if (lane->passed < lane->end || !frame_is_between(&lane->parser) || size == 0)
	{
		return false;
	}
	*room = byte;
	lane->passed = lane->scanned = ++lane->end;
	return true;
}

const unsigned char *
lane_ready(const Lane *lane, size_t *length)
{
	*length = lane->passed - lane->begin;
	return lane->bytes + lane->begin;
}

void
lane_written(Lane *lane, size_t length)
{
	lane->begin += length;
	if (lane->begin == lane->end)
	{
		lane->begin = lane->passed = lane->scanned = lane->end = 0;
	}
}

bool
lane_is_empty(const Lane *lane)
{
	return lane->begin == lane->end;
}
