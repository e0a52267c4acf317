/* A client of the write path as a program: each request is one transaction, and is sent until it is answered. */
#include "writer.h"

static const WriterSteps STEPS = {.prepare = like_prepare, .set = like_set};

int
main(int argc, char **argv)
{
	return (int) writer_main(argc, argv, &STEPS);
}
