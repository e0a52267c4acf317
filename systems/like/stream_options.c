#include "stream_options.h"
#include "point.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH_DEFAULT 1000
#define BATCH_MAX 100000
#define CLAIM_IDLE_DEFAULT_MS 60000
#define PATIENCE_DEFAULT_MS 600000
#define HOUR_MS 3600000

static bool
number_read(const char *option, const char *value, int64_t most, int64_t *number)
{
	if (!string_to_int64(value, 1, most, number))
	{
		report_error("--%s takes a number from 1 to %" PRId64 ", not \"%s\"", option, most, value);
		return false;
	}
	return true;
}

/* false: reported. */
static bool
option_take(StreamOptions *options, const StreamProgram *program, int option, const char *value)
{
	switch (option)
	{
		case 'c':
			options->conninfo = value;
			return true;
		case 'r':
			options->redis = value;
			return true;
		case 'n':
			options->name = value;
			return true;
		case 'b':
			return number_read("batch", value, BATCH_MAX, &options->batch);
		case 'i':
			return number_read("claim-idle", value, HOUR_MS, &options->claim_idle_ms);
		case 'w':
			return number_read("patience", value, HOUR_MS, &options->patience_ms);
		case 'p':
			return point_arm_option("--pause-at", value, program->points);
		case 't':
			return point_record(value, program_invocation_short_name);
		case 'h':
			exit(puts(program->usage) >= 0 && fflush(stdout) == 0 ? EXIT_CODE_PASS : EXIT_CODE_BROKEN);
		default:
			report_error("unknown option or missing value; %s", program->usage);
			return false;
	}
}

bool
stream_options_read(StreamOptions *options, const StreamProgram *program, int argc, char **argv)
{
	static const struct option known[] = {
		{"name", required_argument, NULL, 'n'},     {"claim-idle", required_argument, NULL, 'i'},
		{"patience", required_argument, NULL, 'w'}, {"conninfo", required_argument, NULL, 'c'},
		{"redis", required_argument, NULL, 'r'},    {"batch", required_argument, NULL, 'b'},
		{"pause-at", required_argument, NULL, 'p'}, {"trace", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
	const int of_consumers = 3;
	int option;

	*options = (StreamOptions){
		.batch = BATCH_DEFAULT, .claim_idle_ms = CLAIM_IDLE_DEFAULT_MS, .patience_ms = PATIENCE_DEFAULT_MS};
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", known + (program->consumes ? 0 : of_consumers), NULL)) != -1)
	{
		if (!option_take(options, program, option, optarg))
		{
			return false;
		}
	}
	if (optind < argc || options->conninfo == NULL || options->redis == NULL ||
		(program->consumes && options->name == NULL))
	{
		report_error("%s", program->usage);
		return false;
	}
	return true;
}
