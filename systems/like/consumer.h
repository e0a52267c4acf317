/*
 * A consumer that is a program of its own: it pulls from the outbox in batches after the offset in its file, and does
 * with each batch what its steps say, in their order.
 */
#ifndef COUNTERPROOF_CONSUMER_H
#define COUNTERPROOF_CONSUMER_H

#include "like.h"
#include "offset_file.h"

/* One batch on its way: the numbers of its events in order, at least one. */
typedef struct
{
	Session *session;
	OffsetFile *file;
	int number; /* of the batch, from 1 */
	int64_t *seqs;
	size_t count;
	LikeTotals totals; /* what the steps made of it */
	bool refused;      /* by the like system, for good */
} ConsumerBatch;

/* false: reported; the program ends with EXIT_CODE_BROKEN, or EXIT_CODE_REFUSED where the batch is refused. */
typedef bool (*ConsumerStep)(ConsumerBatch *batch);

/* like_deliver(): one transaction. An event that breaks a constraint is tried CONSUMER_ATTEMPTS_MAX times. */
#define CONSUMER_ATTEMPTS_MAX 3
extern bool consumer_deliver(ConsumerBatch *batch) MUST_CHECK;
extern bool consumer_write_offset(ConsumerBatch *batch) MUST_CHECK; /* the batch's last number */

/* The program: reads its options, runs until nothing is left to pull, says DRAINED. `steps` end with NULL. */
extern ExitCode consumer_main(int argc, char **argv, const ConsumerStep *steps);

#endif
