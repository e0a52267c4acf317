/* Wrong relays as a program: like-relay-twin --twin ID, and then what like-relay takes. */
#include <stdio.h>
#include <string.h>

#include "transport_steps.h"

#define TWIN_ARGS 2 /* --twin ID */

int
main(int argc, char **argv)
{
	const RelaySteps *steps = argc > TWIN_ARGS && strcmp(argv[1], "--twin") == 0 ? twin_relay(argv[2]) : NULL;

	if (steps == NULL)
	{
		report_error("usage: like-relay-twin --twin ID ..., of a twin that has a relay of its own");
		return EXIT_CODE_USAGE;
	}
	argv[TWIN_ARGS] = argv[0];
	return (int) relay_main(argc - TWIN_ARGS, argv + TWIN_ARGS, steps);
}
