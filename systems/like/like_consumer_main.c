/*
 * The consumer as a program: a batch is delivered in one transaction, and the offset is written after its commit.
 * Between the two it may be killed; the batch is then delivered again and absorbed.
 */
#include "consumer.h"

static const ConsumerStep STEPS[] = {consumer_deliver, consumer_write_offset, NULL};

int
main(int argc, char **argv)
{
	return (int) consumer_main(argc, argv, STEPS);
}
