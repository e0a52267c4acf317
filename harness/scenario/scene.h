/* The inside of a case's process; its host and the runner use this, authors do not. */
#ifndef COUNTERPROOF_SCENE_H
#define COUNTERPROOF_SCENE_H

#include "scenario.h"

#define TRACE_RECORD "trace" /* in the folder of the case */

/* What the runner gives a case. Borrowed. */
typedef struct
{
	uint64_t seed;
	const ServerKit *kit; /* NULL with an existing server */
	const char *server;   /* conninfo of the server's maintenance database, NULL without one */
	const char *database; /* name of the case's own database */
	bool drop_database;   /* afterwards, by the host: the server is not ours */
	bool keep;
	int deadline_ms;    /* before scaling */
	const char *folder; /* for the case's files; exists */
	const char *programs;
	const char *sql;
	const char *variant; /* NULL: the system as it is */
	const char *design;  /* NULL: the default */
	int report_fd;       /* messages to the runner */
	bool trace;          /* record what happens, in the folder */
} SceneSetup;

/* Run the case and give everything back. Answers the exit code of its process: EXIT_CODE_PASS or EXIT_CODE_BROKEN. */
extern ExitCode scene_main(const Scenario *scenario, const SceneSetup *setup);

#endif
