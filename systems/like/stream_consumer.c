#include "stream_consumer.h"
#include "point.h"
#include "relay.h"
#include "stream_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MOST_MS 1000 /* of one look at a stream that has nothing new */

#define USAGE                                                                                                          \
	"usage: like-stream-consumer --conninfo STRING --redis SOCKET --name NAME [--batch N] [--claim-idle MS] "          \
	"[--patience MS] [--pause-at POINT[:N]] [--trace FILE]"


/* --- a batch --- */

bool
stream_deliver(StreamConsumer *consumer)
{
	LikeTotals totals;

	if (!like_deliver(consumer->session, consumer->events, consumer->count, consumer->number, &totals))
	{
		return false;
	}
	like_totals_add(&consumer->totals, &totals);
	return true;
}

bool
stream_acknowledge(StreamConsumer *consumer)
{
	if (!redis_group_acknowledge(consumer->redis, &consumer->reader, consumer->events, consumer->count))
	{
		return false;
	}
	point_reach("consumer.after_ack", "batch=%d events=%zu", consumer->number, consumer->count);
	return true;
}

static bool
deliver_then_acknowledge(StreamConsumer *consumer)
{
	return stream_deliver(consumer) && stream_acknowledge(consumer);
}

const StreamSteps stream_right_steps = {.batch = deliver_then_acknowledge, .claims = true};

/* Of what is in consumer->events; none is no batch. */
static bool
batch_run(StreamConsumer *consumer, const StreamSteps *steps)
{
	bool done = true;

	if (consumer->count > 0)
	{
		consumer->number++;
		done = steps->batch(consumer);
	}
	free(consumer->events);
	consumer->events = NULL;
	return done;
}


/* --- batch after batch --- */

typedef struct
{
	StreamConsumer *consumer;
	const StreamSteps *steps;
	char cursor[REDIS_CURSOR_BYTES]; /* of claiming */
	Deadline claim_next;
	Deadline patience; /* over when nothing came for so long */
} Loop;

static bool
claim(Loop *loop)
{
	StreamConsumer *consumer = loop->consumer;

	if (!loop->steps->claims || !deadline_passed(loop->claim_next))
	{
		consumer->count = 0;
		return true;
	}
	if (!redis_group_claim(consumer->redis, &consumer->reader, consumer->claim_idle_ms, consumer->most, loop->cursor,
						   &consumer->events, &consumer->count))
	{
		return false;
	}
	consumer->claimed += (int64_t) consumer->count;
	/* where entries were found there may be more */
	loop->claim_next = deadline_in_ms(consumer->count > 0 ? 0 : consumer->claim_idle_ms / 2);
	return batch_run(consumer, loop->steps);
}

static bool
read_new(Loop *loop, int64_t wait_ms)
{
	StreamConsumer *consumer = loop->consumer;

	return redis_group_read(consumer->redis, &consumer->reader, consumer->most, wait_ms, &consumer->events,
							&consumer->count) &&
		   batch_run(consumer, loop->steps);
}

bool
stream_consume(StreamConsumer *consumer, const StreamSteps *steps, bool *drained, int64_t *pending)
{
	Loop loop = {.consumer = consumer,
				 .steps = steps,
				 .cursor = "0-0",
				 .claim_next = deadline_in_ms(0),
				 .patience = deadline_in_ms(consumer->patience_ms)};
	int64_t wait_most = consumer->claim_idle_ms / 2 < WAIT_MOST_MS ? consumer->claim_idle_ms / 2 + 1 : WAIT_MOST_MS;
	int64_t wait_ms = 0;

	for (;;)
	{
		size_t claimed;

		if (!claim(&loop))
		{
			return false;
		}
		claimed = consumer->count;
		if (!read_new(&loop, claimed > 0 ? 0 : wait_ms) ||
			!redis_group_pending(consumer->redis, &consumer->reader, pending))
		{
			return false;
		}
		if (claimed + consumer->count > 0)
		{
			loop.patience = deadline_in_ms(consumer->patience_ms);
		}
		*drained = claimed + consumer->count == 0 && *pending == 0;
		if (*drained || deadline_passed(loop.patience))
		{
			return like_watermark(consumer->session, &consumer->totals.watermark);
		}
		wait_ms = *pending > 0 ? wait_most : 0;
	}
}


/* --- the program --- */

static ExitCode
say_end(const StreamConsumer *consumer, bool drained, int64_t pending)
{
	Text line = {0};
	bool said;

	if (drained)
	{
		text_append(&line, "DRAINED ");
	}
	else
	{
		text_append(&line, "GAVE UP pending=%" PRId64 " ", pending);
	}
	like_totals_describe(&consumer->totals, &line);
	text_append(&line, " claimed=%" PRId64, consumer->claimed);
	said = puts(text_get(&line)) >= 0 && fflush(stdout) == 0;
	text_free(&line);
	if (!said)
	{
		report_error("cannot write to stdout: %s", strerror(errno));
	}
	return !said ? EXIT_CODE_BROKEN : drained ? EXIT_CODE_PASS : EXIT_CODE_INCONCLUSIVE;
}

ExitCode
stream_consumer_main(int argc, char **argv, const StreamSteps *steps)
{
	static const char *const points[] = {"consumer.before_commit", "consumer.after_commit", "consumer.after_ack", NULL};
	static const StreamProgram program = {.usage = USAGE, .points = points, .consumes = true};
	StreamConsumer consumer = {.reader = {.stream = RELAY_STREAM, .group = RELAY_GROUP}};
	StreamOptions options;
	bool drained = false;
	int64_t pending = 0;
	bool done;

	streams_hold();
	notice_set_prefix("like-stream-consumer");
	if (!stream_options_read(&options, &program, argc, argv))
	{
		return EXIT_CODE_USAGE;
	}
	consumer.reader.consumer = options.name;
	consumer.most = options.batch;
	consumer.claim_idle_ms = options.claim_idle_ms;
	consumer.patience_ms = options.patience_ms;
	consumer.session = session_open(options.conninfo, "like-stream-consumer");
	consumer.redis = consumer.session != NULL ? redis_open(options.redis) : NULL;
	done = consumer.redis != NULL && stream_consume(&consumer, steps, &drained, &pending);
	redis_close(consumer.redis);
	session_close(consumer.session);
	return done ? say_end(&consumer, drained, pending) : EXIT_CODE_BROKEN;
}
