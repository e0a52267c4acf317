/*
 * The file in which a consumer keeps how far it has come: the number of the last event delivered, on a line of its own.
 * It is replaced as a whole, where a symbolic link points, and it is a regular file or not there yet.
 */
#ifndef COUNTERPROOF_OFFSET_FILE_H
#define COUNTERPROOF_OFFSET_FILE_H

#include "base.h"

typedef struct
{
	char *path; /* behind all links */
	int64_t offset;
} OffsetFile;

/*
 * Read it, and write it once as it is read, so that a place that cannot be written is found before anything is
 * delivered. No file means that nothing was delivered yet: 0. false: reported. Free with offset_file_close() either way.
 */
extern bool offset_file_open(OffsetFile *file, const char *path) MUST_CHECK;
extern bool offset_file_write(OffsetFile *file, int64_t offset) MUST_CHECK;
extern void offset_file_close(OffsetFile *file);

#endif
