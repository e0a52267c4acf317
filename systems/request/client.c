/* The client as a program. What --conninfo leaves open is filled in libpq's usual way, from PG* variables and the like. */
#include "request.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define USAGE "usage: request-client --conninfo STRING WISH.."

/* For all wishes together. */
#define PATIENCE_MS 20000

static const char *
conninfo_read(int argc, char **argv)
{
	static const struct option known[] = {{"conninfo", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
	const char *conninfo = NULL;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+", known, NULL)) == 'c')
	{
		conninfo = optarg;
	}
	if (option != -1 || conninfo == NULL || optind == argc)
	{
		report_error(USAGE);
		return NULL;
	}
	return conninfo;
}

ExitCode
request_client_main(int argc, char **argv, RequestIdentity identity)
{
	Deadline deadline = deadline_in_ms(PATIENCE_MS);
	const char *conninfo;

	streams_hold();
	notice_set_prefix("request-client");
	conninfo = conninfo_read(argc, argv);
	if (conninfo == NULL)
	{
		return EXIT_CODE_USAGE;
	}
	for (int i = optind; i < argc; i++)
	{
		if (!request_insist(conninfo, argv[i], identity, NULL, deadline))
		{
			return EXIT_CODE_BROKEN;
		}
	}
	return EXIT_CODE_PASS;
}
