/*
 * The rebuild as a program: one snapshot, then the baseline of every item in a transaction of its own, beside running
 * writers and consumers. Killed on its way it is run again: an item that had its baseline gets a newer one.
 */
#include "like.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define USAGE "usage: like-rebuild --conninfo STRING"

static void
count_installs(void *context, const LikeBaseline *baseline, const LikeInstall *install)
{
	int64_t *changed = context;

	(void) baseline;
	*changed += install->outcome == INSTALL_DONE && (install->row_missing || install->old_n != install->new_n);
}

int
main(int argc, char **argv)
{
	Session *session;
	int64_t changed = 0;
	bool ok;

	streams_hold();
	notice_set_prefix("like-rebuild");
	if (argc != 3 || strcmp(argv[1], "--conninfo") != 0)
	{
		report_error(USAGE);
		return EXIT_CODE_USAGE;
	}
	session = session_open(argv[2], "like-rebuild");
	ok = session != NULL && like_rebuild_all(session, count_installs, &changed);
	session_close(session);
	if (ok && (printf("REBUILT changed=%lld\n", (long long) changed) < 0 || fflush(stdout) != 0))
	{
		report_error("cannot write to stdout: %s", strerror(errno));
		ok = false;
	}
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
