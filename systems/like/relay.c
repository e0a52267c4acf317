#include "relay.h"
#include "point.h"
#include "stream_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE "usage: like-relay --conninfo STRING --redis SOCKET [--batch N] [--pause-at POINT[:N]] [--trace FILE]"


/* --- a batch --- */

/* The outbox is read after the stream: what the stream has, the outbox had before. */
static bool
look(Relay *relay)
{
	SqlResult *rows;
	int64_t last_event;

	if (!redis_stream_last(relay->redis, RELAY_STREAM, &relay->last) ||
		!session_query(relay->session, &rows,
					   "SELECT s.last, w.applied_upto FROM like_seq s, counter_watermark w WHERE s.id = 1 AND w.id = 1",
					   NO_ARGS))
	{
		return false;
	}
	last_event = sql_int(rows, 0, 0);
	relay->watermark = sql_int(rows, 0, 1);
	sql_free(rows);
	if (relay->last > last_event)
	{
		report_error("stream %s is at event %" PRId64 ", but the last event is %" PRId64
					 ": it belongs to another outbox",
					 RELAY_STREAM, relay->last, last_event);
	}
	return relay->last <= last_event;
}

static bool
plan(Relay *relay, int64_t *above)
{
	*above = relay->last > relay->watermark ? relay->last : relay->watermark;
	return true;
}

static bool
published(Relay *relay)
{
	(void) relay;
	return true;
}

static int64_t
line(const Relay *relay)
{
	return relay->watermark;
}

const RelaySteps relay_right_steps = {.plan = plan, .published = published, .line = line};

static bool
publish(Relay *relay, const RelaySteps *steps, const int64_t *events, size_t count)
{
	bool appended;

	point_reach("relay.before_publish", "seq=%" PRId64 "..%" PRId64, events[0], events[count - 1]);
	if (!redis_stream_append(relay->redis, RELAY_STREAM, relay->last, events, count, &appended))
	{
		return false;
	}
	if (!appended)
	{
		relay->totals.again++;
		return true;
	}
	relay->totals.published += (int64_t) count;
	relay->totals.last = events[count - 1];
	if (!steps->published(relay))
	{
		return false;
	}
	point_reach("relay.after_publish", "seq=%" PRId64 "..%" PRId64, events[0], events[count - 1]);
	return true;
}

static bool
trim(Relay *relay, const RelaySteps *steps)
{
	int64_t removed;

	if (!redis_stream_trim(relay->redis, RELAY_STREAM, steps->line(relay), &removed))
	{
		return false;
	}
	relay->totals.trimmed += removed;
	return true;
}

bool
like_relay_batch(Relay *relay, const RelaySteps *steps, int64_t most, bool *more)
{
	int64_t *events = NULL;
	size_t count = 0;
	int64_t above;
	bool done;

	if (!look(relay))
	{
		return false;
	}
	relay->totals.last = relay->last;
	done = steps->plan(relay, &above) && like_pull(relay->session, above, most, &events, &count) &&
		   (count == 0 || publish(relay, steps, events, count)) && trim(relay, steps);
	free(events);
	*more = count > 0;
	return done;
}

static bool
relay_all(Relay *relay, const RelaySteps *steps, int64_t most)
{
	bool more = true;

	while (more)
	{
		if (!like_relay_batch(relay, steps, most, &more))
		{
			return false;
		}
	}
	return true;
}

bool
like_relay(Session *session, Redis *redis, int64_t most, RelayTotals *totals)
{
	Relay relay = {.session = session, .redis = redis, .totals = *totals};
	bool done = relay_all(&relay, &relay_right_steps, most);

	*totals = relay.totals;
	return done;
}


/* --- the program --- */

static bool
say_published(const RelayTotals *totals)
{
	if (printf("PUBLISHED %" PRId64 " again=%" PRId64 " trimmed=%" PRId64 " last=%" PRId64 "\n", totals->published,
			   totals->again, totals->trimmed, totals->last) < 0 ||
		fflush(stdout) != 0)
	{
		report_error("cannot write to stdout: %s", strerror(errno));
		return false;
	}
	return true;
}

ExitCode
relay_main(int argc, char **argv, const RelaySteps *steps)
{
	static const char *const points[] = {"relay.before_publish", "relay.after_publish", NULL};
	static const StreamProgram program = {.usage = USAGE, .points = points};
	StreamOptions options;
	Relay relay = {0};
	bool done;

	streams_hold();
	notice_set_prefix("like-relay");
	if (!stream_options_read(&options, &program, argc, argv))
	{
		return EXIT_CODE_USAGE;
	}
	relay.session = session_open(options.conninfo, "like-relay");
	relay.redis = relay.session != NULL ? redis_open(options.redis) : NULL;
	done = relay.redis != NULL && relay_all(&relay, steps, options.batch) && say_published(&relay.totals);
	redis_close(relay.redis);
	session_close(relay.session);
	return done ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
