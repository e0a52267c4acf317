/* The consumer of the relay's stream as a program. Any number may run; one that is killed leaves its entries to the others. */
#include "stream_consumer.h"

int
main(int argc, char **argv)
{
	return (int) stream_consumer_main(argc, argv, &stream_right_steps);
}
