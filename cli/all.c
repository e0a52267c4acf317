/*
 * all: every suite, every twin over every case, and the shipped files of crash points, one after another. Each leaves its
 * own folder of evidence.
 */
#include <stdio.h>

#include "commands.h"

/* 1 before 3 before 4 before 0; what was refused or interrupted is the answer at once. */
static ExitCode
worse(ExitCode one, ExitCode other)
{
	static const ExitCode order[] = {EXIT_CODE_INTERRUPTED, EXIT_CODE_USAGE,  EXIT_CODE_NO_MATCH,
									 EXIT_CODE_FAIL,        EXIT_CODE_BROKEN, EXIT_CODE_INCONCLUSIVE};

	for (size_t i = 0; i < LENGTH_OF(order); i++)
	{
		if (one == order[i] || other == order[i])
		{
			return order[i];
		}
	}
	return EXIT_CODE_PASS;
}

static bool
ends_all(ExitCode code)
{
	return code == EXIT_CODE_INTERRUPTED || code == EXIT_CODE_USAGE || code == EXIT_CODE_NO_MATCH;
}

static void
announce(const char *what)
{
	printf("\n%s\n", what);
	fflush(stdout);
}

ExitCode
command_all(const Options *options, const char *const *words, int word_count)
{
	static const char *const suites[] = {"all"};
	ExitCode code;

	if (word_count > 0)
	{
		report_error("all takes no words, not \"%s\": name suites and cases without it", words[0]);
		return EXIT_CODE_USAGE;
	}
	announce("every suite");
	code = command_run(options, suites, 1);
	if (options->runner.server != NULL)
	{
		announce(
			"mutants and crashpoints are left out: they break their server, and --server names one that is not the "
			"lab's to break");
		return code;
	}
	if (!ends_all(code))
	{
		announce("every twin");
		code = worse(code, command_mutants(options, NULL, 0));
	}
	if (!ends_all(code))
	{
		announce("every crash point");
		code = worse(code, command_crashpoints(options, NULL, 0));
	}
	return code;
}
