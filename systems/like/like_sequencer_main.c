/*
 * The sequencer as a program: it numbers what is committed, batch after batch, until nothing is left. Killed on its way it is
 * run again; beside another one, or a consumer that has come to the end, it waits for its turn.
 */
#include "like.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIRST_OPTION 3 /* word of the command line, behind --conninfo STRING */
#define BATCH_DEFAULT 1000
#define BATCH_MAX 1000000

#define USAGE "usage: like-sequencer --conninfo STRING [--batch N]"

static bool
options_read(int argc, char **argv, int64_t *batch)
{
	*batch = BATCH_DEFAULT;
	if (argc < FIRST_OPTION || strcmp(argv[1], "--conninfo") != 0 ||
		(argc > FIRST_OPTION && (argc != FIRST_OPTION + 2 || strcmp(argv[FIRST_OPTION], "--batch") != 0)))
	{
		report_error(USAGE);
		return false;
	}
	if (argc > FIRST_OPTION && !string_to_int64(argv[FIRST_OPTION + 1], 1, BATCH_MAX, batch))
	{
		report_error("--batch takes a number from 1 to %d, not \"%s\"", BATCH_MAX, argv[FIRST_OPTION + 1]);
		return false;
	}
	return true;
}

static bool
number_all(Session *session, int64_t batch, int64_t *total)
{
	int64_t numbered;

	do
	{
		if (!like_number(session, batch, &numbered))
		{
			return false;
		}
		*total += numbered;
	} while (numbered > 0);
	return true;
}

int
main(int argc, char **argv)
{
	Session *session;
	int64_t batch, total = 0;
	bool ok;

	streams_hold();
	notice_set_prefix("like-sequencer");
	if (!options_read(argc, argv, &batch))
	{
		return EXIT_CODE_USAGE;
	}
	session = session_open(argv[2], "like-sequencer");
	ok = session != NULL && number_all(session, batch, &total);
	session_close(session);
	if (ok && (printf("NUMBERED %" PRId64 "\n", total) < 0 || fflush(stdout) != 0))
	{
		report_error("cannot write to stdout: %s", strerror(errno));
		ok = false;
	}
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
