/*
 * Wrong clients of the write path as a program: like-writer-twin --twin ID, and then what like-writer takes.
 */
#include <string.h>

#include "twins.h"
#include "writer.h"

#define TWIN_ARGS 2 /* --twin ID */

int
main(int argc, char **argv)
{
	const Twin *twin = argc > TWIN_ARGS && strcmp(argv[1], "--twin") == 0 ? twin_find(argv[2]) : NULL;
	ClientSteps does;
	WriterSteps steps;

	if (twin == NULL || twin->steps == NULL || twin->steps->set == NULL)
	{
		report_error("usage: like-writer-twin --twin ID ..., of a twin that has a client of its own");
		return EXIT_CODE_USAGE;
	}
	does = twin_steps(twin);
	steps = (WriterSteps){.prepare = does.prepare, .set = does.set};
	argv[TWIN_ARGS] = argv[0];
	return (int) writer_main(argc - TWIN_ARGS, argv + TWIN_ARGS, &steps);
}
