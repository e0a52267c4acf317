/* The client as a program. What --conninfo leaves open is filled in libpq's usual way, from PG* variables and the like. */
#include "request.h"

#include <stdio.h>
#include <string.h>

#define USAGE "usage: request-client --conninfo STRING WISH.."

#define FIRST_WISH 3 /* word of the command line */

/* For all wishes together. */
#define PATIENCE_MS 20000

ExitCode
request_client_main(int argc, char **argv, RequestIdentity identity)
{
	Deadline deadline = deadline_in_ms(PATIENCE_MS);

	streams_hold();
	notice_set_prefix("request-client");
	if (argc < FIRST_WISH + 1 || strcmp(argv[1], "--conninfo") != 0)
	{
		report_error(USAGE);
		return EXIT_CODE_USAGE;
	}
	for (int i = FIRST_WISH; i < argc; i++)
	{
		if (!request_insist(argv[2], argv[i], identity, NULL, deadline))
		{
			return EXIT_CODE_BROKEN;
		}
	}
	return EXIT_CODE_PASS;
}
