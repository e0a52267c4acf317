/* Wrong stream consumers as a program: like-stream-consumer-twin --twin ID, and then what like-stream-consumer takes. */
#include <stdio.h>
#include <string.h>

#include "transport_steps.h"

#define TWIN_ARGS 2 /* --twin ID */

int
main(int argc, char **argv)
{
	const StreamSteps *steps =
		argc > TWIN_ARGS && strcmp(argv[1], "--twin") == 0 ? twin_stream_consumer(argv[2]) : NULL;

	if (steps == NULL)
	{
		report_error("usage: like-stream-consumer-twin --twin ID ..., of a twin that has a stream consumer of its own");
		return EXIT_CODE_USAGE;
	}
	argv[TWIN_ARGS] = argv[0];
	return (int) stream_consumer_main(argc - TWIN_ARGS, argv + TWIN_ARGS, steps);
}
