/* What check programs that make servers of their own have in common: the binaries, and one cache, so that initdb runs once. */
#ifndef COUNTERPROOF_SERVER_SUITE_H
#define COUNTERPROOF_SERVER_SUITE_H

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc.h"
#include "suite.h"

#define PATIENCE_MS 60000

static char cache[] = "/tmp/check-servers-XXXXXX";
static const char *bindir;

static Deadline
soon(void)
{
	return deadline_in_ms(PATIENCE_MS);
}

/* As suite_run(). Each test is a process of its own and finds the cache in its environment. */
static int
suite_run_with_servers(Suite *suite)
{
	int code;

	bindir = getenv("COUNTERPROOF_PG_BIN");
	if (bindir == NULL || mkdtemp(cache) == NULL || chmod(cache, 0755) != 0)
	{
		fprintf(stderr, "COUNTERPROOF_PG_BIN must name the folder of PostgreSQL 16's programs, and /tmp be writable\n");
		return EXIT_FAILURE;
	}
	unsetenv("COUNTERPROOF_USER");
	unsetenv("TMPDIR");
	setenv("COUNTERPROOF_CACHE", cache, 1);
	code = suite_run(suite);
	return process_remove_directory(cache, soon()) ? code : EXIT_FAILURE;
}

#endif
