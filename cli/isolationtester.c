/*
 * isolationtester: takes the command line of PostgreSQL's program, not the options of the others.
 */
#include <stdio.h>
#include <unistd.h>

#include "commands.h"
#include "spec.h"

static bool
read_stdin(Text *text)
{
	char chunk[8192];
	size_t got;

	while ((got = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
	{
		text_append_bytes(text, chunk, got);
	}
	if (ferror(stdin) != 0)
	{
		report_error("cannot read stdin: %m");
	}
	return ferror(stdin) == 0;
}

ExitCode
command_isolationtester(int argc, char **argv)
{
	Text text = {0};
	ExitCode code = EXIT_CODE_FAIL;
	int option;

	while ((option = getopt(argc, argv, "V")) != -1)
	{
		if (option != 'V')
		{
			fprintf(stderr, "Usage: isolationtester [CONNINFO]\n");
			return EXIT_CODE_FAIL;
		}
		printf("isolationtester (PostgreSQL) %s\n", SPEC_ISOLATIONTESTER_VERSION);
		return EXIT_CODE_PASS;
	}
	if (read_stdin(&text))
	{
		code = spec_run_compatible(text_get(&text), text.length, optind < argc ? argv[optind] : SPEC_CONNINFO_DEFAULT,
								   stdout, stderr);
	}
	text_free(&text);
	return code;
}
