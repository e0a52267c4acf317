/*
 * The table of commands. A first word that is none of them names what to run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"

#define ISOLATIONTESTER "isolationtester"

const Command commands[] = {
	{"run", "[run] WORD...", "run suites (32) and cases (32-K)", command_run, FOR_RUN},
	{"all", "all", "every suite, then mutants, then crashpoints", command_all, FOR_ALL},
	{"mutants", "mutants [ID...]", "every wrong twin of the system against the cases: which check catches it",
	 command_mutants, FOR_MUTANTS},
	{"crashpoints", "crashpoints [FILE...]",
	 "a program against a fault at every message that it exchanges with the server", command_crashpoints,
	 FOR_CRASHPOINTS},
	{"spec", "spec FILE...", "interleavings of transactions in SQL, explored and judged", command_spec, FOR_SPEC},
	{"counters", "counters check|repair|history|watch|explain|init -c FILE [NAME...]",
	 "derived counters of any schema: compared with what they are derived from, and repaired", command_counters,
	 FOR_COUNTERS},
	{"report", "report [FOLDER...]",
	 "the page of a suite's evidence again, of all suites without FOLDER; --compare of two, --merge of parts",
	 command_report, FOR_REPORT},
	{"list", "list [WORD...]", "every case with its kind and claim", command_list, FOR_LIST},
	{"trace", "trace check FILE...", "files for ShiViz: whether every clock in them is right", command_trace,
	 FOR_TRACE},
	{"test", "test [ARGUMENT...]",
	 "what CI runs: the lab's own tests, all suites again under sanitizers; arguments go to ctest", NULL, FOR_NONE},
	{"bench", "bench [ARGUMENT...]", "measurements side by side, as a table", NULL, FOR_NONE},
	{ISOLATIONTESTER, ISOLATIONTESTER " [CONNINFO] < FILE", "a spec as PostgreSQL 16's isolationtester runs it", NULL,
	 FOR_NONE},
	{"help", "help [COMMAND]", "this, or what a command takes", command_help, FOR_NONE},
	{.name = NULL},
};

static const Command *
find_command(const char *name)
{
	for (const Command *command = commands; command->name != NULL; command++)
	{
		if (strcmp(command->name, name) == 0)
		{
			return command;
		}
	}
	return NULL;
}

static ExitCode
dispatch(Options *options)
{
	const Command *command = options->word_count > 0 ? find_command(options->words[0]) : NULL;
	int skipped = command == NULL ? 0 : 1;

	if (options->help && (command == NULL || command->run != command_help))
	{
		return command_help(options, options->words, skipped);
	}
	if (command == NULL)
	{
		return options_fit(options, FOR_RUN, NULL) ? command_run(options, options->words, options->word_count)
												   : EXIT_CODE_USAGE;
	}
	if (command->run == NULL)
	{
		report_error("%s is a command of run.sh: ./run.sh %s", command->name, command->usage);
		return EXIT_CODE_USAGE;
	}
	if (!options_fit(options, command->options, command->name))
	{
		return EXIT_CODE_USAGE;
	}
	return command->run(options, options->words + skipped, options->word_count - skipped);
}

static ExitCode
end_output(ExitCode code)
{
	if ((fflush(stdout) != 0 || ferror(stdout) != 0) && code == EXIT_CODE_PASS)
	{
		report_error("cannot write to stdout");
		return EXIT_CODE_BROKEN;
	}
	return code;
}

int
main(int argc, char **argv)
{
	Options options;
	ExitCode code = EXIT_CODE_USAGE;

	streams_hold();
	(void) umask(umask(0) & 077); /* what is made here must at least be open to ourselves */
	if (argc > 1 && strcmp(argv[1], ISOLATIONTESTER) == 0)
	{
		return (int) end_output(command_isolationtester(argc - 1, argv + 1));
	}
	if (options_read(&options, argc, argv))
	{
		code = dispatch(&options);
	}
	options_free(&options);
	return (int) end_output(code);
}
