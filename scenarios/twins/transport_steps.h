/* Wrong relays and stream consumers, for the programs of that kind. */
#ifndef COUNTERPROOF_TRANSPORT_STEPS_H
#define COUNTERPROOF_TRANSPORT_STEPS_H

#include "relay.h"
#include "stream_consumer.h"

/* What the program of this twin does. NULL: it has none of its own. */
extern const RelaySteps *twin_relay(const char *id);
extern const StreamSteps *twin_stream_consumer(const char *id);

#endif
