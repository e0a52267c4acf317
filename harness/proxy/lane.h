/*
 * One direction of a connection, without its sockets: a buffer of fixed size between what was read and what may be
 * written. Nothing of a message may be written before enough of it has come to name it and its owner has let it pass.
 */
#ifndef COUNTERPROOF_PROXY_LANE_H
#define COUNTERPROOF_PROXY_LANE_H

#include "frame.h"

#define LANE_BYTES 65536

typedef enum
{
	LANE_QUIET = 1, /* all that came has been looked at */
	LANE_MESSAGE,   /* one has come: its owner lets it pass, holds it, or drops it */
	LANE_BROKEN     /* what came is not the protocol: it is dropped, and so is all that follows */
} LaneEvent;

/* 0 <= begin <= passed <= scanned <= end: [begin, passed) may be written, [passed, scanned) is not let pass yet. */
typedef struct
{
	FrameParser parser; /* of the message last told of, until the next lane_scan() */
	bool holding;       /* the message last told of is held back, and all behind it */
	int64_t count;      /* messages let pass or held */
	size_t begin;
	size_t passed;
	size_t scanned;
	size_t end;
	unsigned char bytes[LANE_BYTES];
} Lane;

extern void lane_begin(Lane *lane, FramePhase phase);

/* Where to read into, and how much; then how much was read. */
extern bool lane_has_room(const Lane *lane);
extern unsigned char *lane_room(Lane *lane, size_t *size);
extern void lane_filled(Lane *lane, size_t length);

/* Look at what came up to the next event. While the lane holds it is quiet. */
extern LaneEvent lane_scan(Lane *lane);
extern void lane_pass(Lane *lane); /* the message told of or held */
extern void lane_hold(Lane *lane);
extern void lane_drop(Lane *lane); /* one that has come whole, which a startup request has; it does not count */

/* Nothing more will come: half a message may go, too. */
extern void lane_end(Lane *lane);

/* Forget all that was not written yet. */
extern void lane_discard(Lane *lane);

/* A byte that did not come from the other side. false: it would stand in the middle of a message. */
extern bool lane_put(Lane *lane, unsigned char byte) MUST_CHECK;

/* What may be written; then how much was written. */
extern const unsigned char *lane_ready(const Lane *lane, size_t *length);
extern void lane_written(Lane *lane, size_t length);
extern bool lane_is_empty(const Lane *lane);

#endif
