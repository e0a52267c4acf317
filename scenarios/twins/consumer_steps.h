/* Wrong consumers as far as it is their steps that are wrong; what clients of a case do is in wrong_steps.h. */
#ifndef COUNTERPROOF_CONSUMER_STEPS_H
#define COUNTERPROOF_CONSUMER_STEPS_H

#include "consumer.h"

/* What the program of this twin does with a batch. NULL: it has none of its own. */
extern const ConsumerStep *twin_consumer(const char *id);

#endif
