/* Runs canaries by name, as counterproof runs cases: canary EVIDENCE_FOLDER [--repeat=N | --jobs=N | --server=CONNINFO]... NAME... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "canaries.h"
#include "runner.h"

#define NAMES_MAX 32

static ServerKit kit;

const ServerKit *
canary_server_kit(void)
{
	return &kit;
}

static const Scenario *
canary_named(const char *name)
{
	const Scenario *const *all = canary_scenarios();

	for (int i = 0; all[i] != NULL; i++)
	{
		if (strcmp(all[i]->id + strlen("canary-"), name) == 0)
		{
			return all[i];
		}
	}
	return NULL;
}

static bool
take_option(RunnerConfig *config, const char *word)
{
	int64_t number;

	if (strncmp(word, "--repeat=", 9) == 0 && string_to_int64(word + 9, 1, 1000, &number))
	{
		config->repeat = (int) number;
		return true;
	}
	if (strncmp(word, "--jobs=", 7) == 0 && string_to_int64(word + 7, 1, 64, &number))
	{
		config->jobs = (int) number;
		return true;
	}
	if (strncmp(word, "--server=", 9) == 0)
	{
		config->server = word + 9;
		return true;
	}
	return false;
}

int
main(int argc, char **argv)
{
	const Scenario *chosen[NAMES_MAX];
	int count = 0;
	RunnerConfig config = {.seed = 1,
						   .repeat = 1,
						   .jobs = 1,
						   .scale = 1.0,
						   .pg_major = 16,
						   .pg_bin = getenv("COUNTERPROOF_PG_BIN"),
						   .programs = ".",
						   .sql = "sql",
						   .commit = "unknown",
						   .replay = "canary",
						   .color = COLOR_NEVER};

	for (int i = 2; i < argc && count < NAMES_MAX; i++)
	{
		if (take_option(&config, argv[i]))
		{
			continue;
		}
		chosen[count] = canary_named(argv[i]);
		if (chosen[count++] == NULL)
		{
			fprintf(stderr, "no canary %s\n", argv[i]);
			return EXIT_CODE_NO_MATCH;
		}
	}
	if (count == 0)
	{
		fprintf(stderr, "usage: canary EVIDENCE_FOLDER [OPTION]... NAME...\n");
		return EXIT_CODE_USAGE;
	}
	config.evidence_root = argv[1];
	if (config.pg_bin == NULL || !server_kit_find(&kit, config.pg_bin, config.pg_major))
	{
		fprintf(stderr, "COUNTERPROOF_PG_BIN must name PostgreSQL 16 binaries\n");
		return EXIT_CODE_BROKEN;
	}
	return (int) runner_run(&config, chosen, count);
}
