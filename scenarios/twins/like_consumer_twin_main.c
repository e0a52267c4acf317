/*
 * Wrong consumers as a program: like-consumer-twin --twin ID, and then what like-consumer takes.
 */
#include <stdio.h>
#include <string.h>

#include "consumer_steps.h"

#define TWIN_ARGS 2 /* --twin ID */

int
main(int argc, char **argv)
{
	const ConsumerStep *steps = NULL;

	if (argc > TWIN_ARGS && strcmp(argv[1], "--twin") == 0)
	{
		steps = twin_consumer(argv[2]);
	}
	if (steps == NULL)
	{
		report_error("usage: like-consumer-twin --twin ID ..., of a twin that has a consumer of its own");
		return EXIT_CODE_USAGE;
	}
	argv[TWIN_ARGS] = argv[0];
	return (int) consumer_main(argc - TWIN_ARGS, argv + TWIN_ARGS, steps);
}
