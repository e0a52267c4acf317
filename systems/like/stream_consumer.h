/*
 * A consumer of the relay's stream: an entry is acknowledged after the commit of the transaction in which it took effect, so
 * delivery is at least once, and what comes again is absorbed by the dedup. What a consumer that died was given stays pending
 * in its name until another one claims it.
 */
#ifndef COUNTERPROOF_STREAM_CONSUMER_H
#define COUNTERPROOF_STREAM_CONSUMER_H

#include "like.h"
#include "redis.h"

typedef struct
{
	Session *session;
	Redis *redis;
	RedisReader reader;
	int64_t most;          /* entries of a batch */
	int64_t claim_idle_ms; /* pending for so long is left behind by somebody dead */
	int64_t patience_ms;   /* others' pending entries are waited for so long at the most */
	int number;            /* of the batch, from 1 */
	int64_t *events;       /* of the batch */
	size_t count;
	int64_t claimed;   /* entries, so far */
	LikeTotals totals; /* so far */
} StreamConsumer;

/* What a consumer does that a wrong one may do otherwise. */
typedef struct
{
	bool (*batch)(StreamConsumer *consumer); /* deliver and acknowledge; false: reported */
	bool claims;
} StreamSteps;

extern const StreamSteps stream_right_steps;

extern bool stream_deliver(StreamConsumer *consumer) MUST_CHECK;     /* like_deliver(): one transaction */
extern bool stream_acknowledge(StreamConsumer *consumer) MUST_CHECK; /* and the point consumer.after_ack */

/*
 * Batch after batch, entries left behind as well as new ones, until the stream has nothing new and nothing is pending with anybody:
 * *drained. Not drained: its patience was over, *pending entries are still somebody's. false: reported.
 */
extern bool stream_consume(StreamConsumer *consumer, const StreamSteps *steps, bool *drained,
						   int64_t *pending) MUST_CHECK;

/* The program: reads its options, runs until then, says DRAINED, or GAVE UP and ends with EXIT_CODE_INCONCLUSIVE. */
extern ExitCode stream_consumer_main(int argc, char **argv, const StreamSteps *steps);

#endif
