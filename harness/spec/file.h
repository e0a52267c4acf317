/* A file of the judged language, read and found runnable. */
#ifndef COUNTERPROOF_SPEC_FILE_H
#define COUNTERPROOF_SPEC_FILE_H

#include "../spec.h"
#include "tree.h"

struct SpecFile
{
	char *path;
	Spec *spec;
};

/* Its setup makes what belongs to the whole server: it cannot run beside itself. */
extern bool spec_file_shares(const SpecFile *file);

#endif
