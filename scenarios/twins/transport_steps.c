#include "transport_steps.h"

#include <string.h>

#include "wrong_steps.h"


/* --- T01, T03: the consumer --- */

static bool
t01_batch(StreamConsumer *consumer)
{
	return stream_acknowledge(consumer) && stream_deliver(consumer);
}

static const StreamSteps t01_steps = {.batch = t01_batch, .claims = true};


/* --- T02: the relay goes on behind what it notes --- */

static bool
t02_plan(Relay *relay, int64_t *above)
{
	return session_query_int(relay->session, above, "SELECT published_upto FROM relay_position WHERE id = 1", NO_ARGS);
}

static bool
t02_published(Relay *relay)
{
	return session_query(relay->session, NULL, "UPDATE relay_position SET published_upto = $1 WHERE id = 1",
						 ARGS(arg_int(relay->totals.last)));
}


/* --- T04: it trims what it has published --- */

static int64_t
t04_line(const Relay *relay)
{
	return relay->totals.last;
}


/* --- the lists --- */

const RelaySteps *
twin_relay(const char *id)
{
	static RelaySteps steps;

	steps = relay_right_steps;
	if (strcmp(id, "T02") == 0)
	{
		steps.plan = t02_plan;
		steps.published = t02_published;
		return &steps;
	}
	if (strcmp(id, "T04") == 0)
	{
		steps.line = t04_line;
		return &steps;
	}
	return NULL;
}

const StreamSteps *
twin_stream_consumer(const char *id)
{
	static StreamSteps never_claims;

	never_claims = stream_right_steps;
	never_claims.claims = false;
	return strcmp(id, "T01") == 0 ? &t01_steps : strcmp(id, "T03") == 0 ? &never_claims : NULL;
}

#define PROGRAM(name, id)                                                                                              \
	(const char *const[])                                                                                              \
	{                                                                                                                  \
		name, "--twin", id, NULL                                                                                       \
	}

const ClientSteps acknowledged_first_steps = {.stream_consumer = PROGRAM("like-stream-consumer-twin", "T01")};
const ClientSteps position_remembered_steps = {.relay = PROGRAM("like-relay-twin", "T02")};
const ClientSteps never_claims_steps = {.stream_consumer = PROGRAM("like-stream-consumer-twin", "T03")};
const ClientSteps trims_published_steps = {.relay = PROGRAM("like-relay-twin", "T04")};
