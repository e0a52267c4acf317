/*
 * The rebuild as a program: one snapshot, then the baseline of every item in a transaction of its own, beside running
 * writers and consumers. Killed on its way it is run again: an item that had its baseline gets a newer one.
 *
 * With --chunk N, for many items: only rows that are wrong are installed, N in one transaction; killed on its way it is run again
 * too, and finds those that are left.
 */
#include "like.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define USAGE "usage: like-rebuild --conninfo STRING [--chunk N]"
#define CHUNK_MAX 1000000

static void
count_installs(void *context, const LikeBaseline *baseline, const LikeInstall *install)
{
	int64_t *changed = context;

	(void) baseline;
	*changed += install->outcome == INSTALL_DONE && (install->row_missing || install->old_n != install->new_n);
}

static bool
rebuild(Session *session, int64_t chunk, int64_t *changed)
{
	LikeMended mended;
	bool ok;

	if (chunk == 0)
	{
		return like_rebuild_all(session, count_installs, changed);
	}
	ok = like_rebuild_wrong(session, chunk, &mended);
	*changed = mended.installed;
	return ok;
}

int
main(int argc, char **argv)
{
	Session *session;
	int64_t changed = 0, chunk = 0;
	bool ok;

	streams_hold();
	notice_set_prefix("like-rebuild");
	if ((argc != 3 && argc != 5) || strcmp(argv[1], "--conninfo") != 0 ||
		(argc == 5 && (strcmp(argv[3], "--chunk") != 0 || !string_to_int64(argv[4], 1, CHUNK_MAX, &chunk))))
	{
		report_error(USAGE);
		return EXIT_CODE_USAGE;
	}
	session = session_open(argv[2], "like-rebuild");
	ok = session != NULL && rebuild(session, chunk, &changed);
	session_close(session);
	if (ok && (printf("REBUILT changed=%lld\n", (long long) changed) < 0 || fflush(stdout) != 0))
	{
		report_error("cannot write to stdout: %s", strerror(errno));
		ok = false;
	}
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
