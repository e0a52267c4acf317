/*
 * The relay: committed events go from the outbox to a stream of Redis, in order, each with its number as its id.
 *
 * What it has published is not remembered: each batch begins above the stream's last number, asked anew, or above the watermark
 * where that is higher, and goes into the stream in one step that demands the same last number still. So a tail that Redis
 * lost is published again, an emptied stream begins above the watermark, any number of relays may run, and none leaves a
 * hole. What it needs from a design: numbers that rise in the order in which like_pull() gives them, as row and sequencer have.
 */
#ifndef COUNTERPROOF_RELAY_H
#define COUNTERPROOF_RELAY_H

#include "like.h"
#include "redis.h"

#define RELAY_STREAM "like-events"
#define RELAY_GROUP "like-count"

typedef struct
{
	int64_t published; /* entries */
	int64_t again;     /* batches that were planned again: the stream was no longer what it had been */
	int64_t trimmed;   /* entries */
	int64_t last;      /* number in the stream */
} RelayTotals;

/* A round on its way. */
typedef struct
{
	Session *session;
	Redis *redis;
	int64_t last;      /* of the stream */
	int64_t watermark; /* read after `last` */
	RelayTotals totals;
} Relay;

/* What a relay does that a wrong one may do otherwise. false: reported. */
typedef struct
{
	bool (*plan)(Relay *relay, int64_t *above); /* the batch's events are those above; last and watermark are known */
	bool (*published)(Relay *relay);            /* totals.last is the last number that went into the stream */
	int64_t (*line)(const Relay *relay);        /* entries at or below it may go */
} RelaySteps;

extern const RelaySteps relay_right_steps;

/*
 * One batch of `most` events: plan, publish, trim. *more is false when there was nothing to publish. The points
 * relay.before_publish and relay.after_publish have the detail "seq=A..B". false: reported; a stream that is ahead of
 * the outbox belongs to another one, and is refused.
 */
extern bool like_relay_batch(Relay *relay, const RelaySteps *steps, int64_t most, bool *more) MUST_CHECK;

/* Batch after batch until nothing is left. Adds to *totals. */
extern bool like_relay(Session *session, Redis *redis, int64_t most, RelayTotals *totals) MUST_CHECK;

/* The program: reads its options, runs until nothing is left, says PUBLISHED. */
extern ExitCode relay_main(int argc, char **argv, const RelaySteps *steps);

#endif
