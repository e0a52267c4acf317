/* The command line of relay and stream consumer. */
#ifndef COUNTERPROOF_STREAM_OPTIONS_H
#define COUNTERPROOF_STREAM_OPTIONS_H

#include "base.h"

typedef struct
{
	const char *usage;         /* without a newline */
	const char *const *points; /* of --pause-at, ended by NULL */
	bool consumes;             /* has a name in its group, and the options of a consumer */
} StreamProgram;

typedef struct
{
	const char *conninfo;
	const char *redis; /* its socket */
	const char *name;
	int64_t batch, claim_idle_ms, patience_ms;
} StreamOptions;

/* Arms what --pause-at names, and records for --trace. --help ends the program. false: reported. */
extern bool stream_options_read(StreamOptions *options, const StreamProgram *program, int argc, char **argv) MUST_CHECK;

#endif
