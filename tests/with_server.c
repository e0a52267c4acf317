/*
 * with-server COMMAND [ARGUMENT..]: runs a command beside a throwaway server of its own, whose conninfo it finds in
 * COUNTERPROOF_TEST_CONNINFO, and answers with the command's exit code (128 + N after signal N).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "cluster.h"
#include "reaper.h"

enum
{
	PG_MAJOR = 16,
	START_MS = 60000
};

static int
run_command(char **argv)
{
	int status;
	pid_t child = fork();

	if (child == 0)
	{
		/* A group of its own, so that the reaper ends all of it when this program is killed. */
		if (setpgid(0, 0) != 0 || reaper_enter_group(getpid()) < 0)
		{
			_exit(EXIT_CODE_BROKEN);
		}
		execvp(argv[0], argv);
		report_error("cannot run %s: %m", argv[0]);
		_exit(EXIT_CODE_BROKEN);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
	{
		report_error("cannot fork or wait for %s: %m", argv[0]);
		return EXIT_CODE_BROKEN;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
main(int argc, char **argv)
{
	const char *bindir = getenv("COUNTERPROOF_PG_BIN");
	ServerKit kit;
	Cluster *cluster;
	int code = EXIT_CODE_BROKEN;

	notice_set_prefix("with-server");
	if (argc < 2 || bindir == NULL)
	{
		report_error("usage: COUNTERPROOF_PG_BIN=FOLDER with-server COMMAND [ARGUMENT..]");
		return EXIT_CODE_USAGE;
	}
	/* It ends server and command when this process is killed, by the deadline of a test runner, say. */
	if (!reaper_start())
	{
		return EXIT_CODE_BROKEN;
	}
	if (server_kit_find(&kit, bindir, PG_MAJOR) && (cluster = cluster_create(&kit, "tests")) != NULL)
	{
		if (cluster_start(cluster, deadline_in_ms(START_MS)) &&
			setenv("COUNTERPROOF_TEST_CONNINFO", cluster_conninfo(cluster, "postgres"), 1) == 0)
		{
			code = run_command(argv + 1);
		}
		if (!cluster_free(cluster) && code == EXIT_CODE_PASS)
		{
			code = EXIT_CODE_BROKEN;
		}
	}
	reaper_dismiss();
	return code;
}
