/*
 * help: made from the tables of commands and options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "design.h"
#include "twins/twins.h"

typedef struct
{
	ExitCode code;
	const char *meaning;
} ExitRow;

static const ExitRow EXITS_OF_RUNS[] = {
	{EXIT_CODE_PASS, "all selected cases PASS"},
	{EXIT_CODE_FAIL, "a check failed"},
	{EXIT_CODE_USAGE, "usage or configuration error, nothing was started"},
	{EXIT_CODE_BROKEN, "the lab could not do its work"},
	{EXIT_CODE_INCONCLUSIVE, "inconclusive: UNKNOWN, a fault never fired, nothing was exercised"},
	{EXIT_CODE_NO_MATCH, "nothing matched the selection"},
	{EXIT_CODE_INTERRUPTED, "interrupted; everything stopped, evidence closed"},
};

static const ExitRow EXITS_OF_COUNTERS[] = {
	{EXIT_CODE_PASS, "nothing drifted"},
	{EXIT_CODE_FAIL, "drift, or rows that are missing; a watermark ahead of its log"},
	{EXIT_CODE_USAGE, "usage, or something wrong in FILE"},
	{EXIT_CODE_BROKEN, "cannot connect, or not allowed to read"},
	{EXIT_CODE_INCONCLUSIVE, "something could not be checked, or its lag is unknown"},
	{EXIT_CODE_INTERRUPTED, "interrupted"},
};

static void
print_exit_codes(bool counters)
{
	const ExitRow *rows = counters ? EXITS_OF_COUNTERS : EXITS_OF_RUNS;
	size_t count = counters ? LENGTH_OF(EXITS_OF_COUNTERS) : LENGTH_OF(EXITS_OF_RUNS);

	printf("\nExit codes\n");
	for (size_t i = 0; i < count; i++)
	{
		printf("  %3d  %s\n", (int) rows[i].code, rows[i].meaning);
	}
	printf("When several apply: 1, 3, 4, 0.\n");
}

static void
print_command(const Command *command)
{
	printf("  ./run.sh %-21s  %s\n", command->usage, command->summary);
}

/* What its words are, where neither `list` nor the usage tells. */
static void
print_words(const Command *command)
{
	if (command->run == command_crashpoints)
	{
		printf(
			"\nFILE is YAML: the program, its setup, and SQL that must return no row. crashpoints/README.md has all of it.\n"
			"Without one, the files in crashpoints/ and crashpoints/twins/.\n");
	}
	if (command->run == command_run)
	{
		printf("\nNAME of --design is one of these\n");
		for (const LikeDesign *design = like_designs; design->name != NULL; design++)
		{
			printf("  %-9s %s\n", design->name, design->idea);
		}
	}
	if (command->run == command_counters)
	{
		printf(
			"\ncheck    compare counts with what they are derived from; writes nothing, locks no row\n"
			"watch    the same again and again, a line a round\n"
			"repair   recount what is wrong, in portions, and verify; counterproof.run and .drift keep what was done\n"
			"history  the runs of repair, and since when keys have been wrong\n"
			"explain  what is known about a counter, and which way to repair is right for its writers\n"
			"init     write a starting FILE from foreign keys and columns named like counts\n"
			"\nFILE is YAML, NAME a counter in it; counters/README.md has all of it. The database is that of --server CONNINFO, else of\n"
			"PG variables and service file. No server of the lab is needed or started.\n");
	}
	if (command->run == command_mutants)
	{
		printf("\nID is one of these twins; all without one\n");
		for (const Twin *twin = twins; twin->id != NULL; twin++)
		{
			printf("  %-5s %-9s %s\n", twin->id, twin->layer, twin->wrong);
		}
	}
}

ExitCode
command_help(const Options *options, const char *const *words, int word_count)
{
	const char **names;

	(void) options;
	if (word_count == 0)
	{
		printf("Counterproof runs numbered cases against a real PostgreSQL, breaks things, and leaves evidence.\n\n");
		for (const Command *command = commands; command->name != NULL; command++)
		{
			print_command(command);
		}
		printf("\nOptions of runs, before or after the words; `help COMMAND` has those of a command\n");
		options_print_help(stdout, FOR_RUN);
		print_exit_codes(false);
		return EXIT_CODE_PASS;
	}
	for (const Command *command = commands; command->name != NULL; command++)
	{
		if (strcmp(command->name, words[0]) == 0)
		{
			print_command(command);
			print_words(command);
			if (command->options != FOR_NONE)
			{
				printf("\nOptions, before or after the words\n");
				options_print_help(stdout, command->options);
				print_exit_codes(command->run == command_counters);
			}
			return EXIT_CODE_PASS;
		}
	}
	names = command_names();
	report_error("no command is named \"%s\"; the nearest is \"%s\"", words[0], string_nearest(words[0], names));
	free(names);
	return EXIT_CODE_NO_MATCH;
}
