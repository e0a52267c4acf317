/*
 * For crash points over programs that need Redis: redis-up FOLDER has one running in that folder, with its socket in it, and
 * ends; whoever asks again finds the same. It is in no process group of the run, and is ended with the run's folder.
 */
#include "redis_server.h"

#include <stddef.h>

#define START_MS 10000

int
main(int argc, char **argv)
{
	streams_hold();
	notice_set_prefix("redis-up");
	if (argc != 2)
	{
		report_error("usage: redis-up FOLDER");
		return EXIT_CODE_USAGE;
	}
	return redis_server_stay(argv[1], deadline_in_ms(START_MS)) ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
