/*
 * isolationtester: takes the command line of PostgreSQL's program, not the options of the others; and one of its own,
 * --jobs N CONNINFO FILE..., which that program does not know.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "spec.h"

#define JOBS_MAX 64
#define JOBS_WORDS 4 /* isolationtester --jobs N CONNINFO */

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

static ExitCode
run_files(int argc, char **argv)
{
	int64_t jobs;

	if (argc <= JOBS_WORDS || !string_to_int64(argv[2], 1, JOBS_MAX, &jobs))
	{
		report_error("usage: isolationtester --jobs N CONNINFO FILE..., with N from 1 to %d", JOBS_MAX);
		return EXIT_CODE_USAGE;
	}
	return spec_run_compatible_files((const char *const *) argv + JOBS_WORDS, argc - JOBS_WORDS, argv[JOBS_WORDS - 1],
									 (int) jobs, stdout);
}

static ExitCode
run_stdin(const char *conninfo)
{
	Text text = {0};
	ExitCode code = EXIT_CODE_FAIL;

	if (read_stdin(&text))
	{
		code = spec_run_compatible(text_get(&text), text.length, conninfo, stdout, stderr);
	}
	text_free(&text);
	return code;
}

ExitCode
command_isolationtester(int argc, char **argv)
{
	int option;

	if (argc > 1 && strcmp(argv[1], "--jobs") == 0)
	{
		return run_files(argc, argv);
	}
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
	return run_stdin(optind < argc ? argv[optind] : SPEC_CONNINFO_DEFAULT);
}
