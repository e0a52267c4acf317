/*
 * The consumer between two databases as a program: it takes events from the first, counts them in the second, and knows where
 * it is from the second's watermark alone. Killed on its way it is run again; several may run at once.
 */
#include "second.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WORDS 5 /* of the command line, before --batch */
#define BATCH_DEFAULT 1000
#define BATCH_MAX 1000000

#define USAGE "usage: like-second --facts CONNINFO --counts CONNINFO [--batch N]"

static bool
options_read(int argc, char **argv, int64_t *batch)
{
	*batch = BATCH_DEFAULT;
	if (argc < WORDS || strcmp(argv[1], "--facts") != 0 || strcmp(argv[3], "--counts") != 0 ||
		(argc > WORDS && (argc != WORDS + 2 || strcmp(argv[WORDS], "--batch") != 0)))
	{
		report_error(USAGE);
		return false;
	}
	if (argc > WORDS && !string_to_int64(argv[WORDS + 1], 1, BATCH_MAX, batch))
	{
		report_error("--batch takes a number from 1 to %d, not \"%s\"", BATCH_MAX, argv[WORDS + 1]);
		return false;
	}
	return true;
}

static bool
say_drained(const LikeTotals *totals)
{
	Text line = {0};
	bool said;

	like_totals_describe(totals, &line);
	said = printf("DRAINED %s\n", text_get(&line)) >= 0 && fflush(stdout) == 0;
	text_free(&line);
	if (!said)
	{
		report_error("cannot write to stdout: %s", strerror(errno));
	}
	return said;
}

int
main(int argc, char **argv)
{
	LikeStores stores = {0};
	LikeTotals totals = {0};
	int64_t batch;
	bool ok;

	streams_hold();
	notice_set_prefix("like-second");
	if (!options_read(argc, argv, &batch))
	{
		return EXIT_CODE_USAGE;
	}
	stores.facts = session_open(argv[2], "like-second");
	stores.counts = stores.facts != NULL ? session_open(argv[4], "like-second") : NULL;
	ok = stores.counts != NULL && like_stores_drain(&stores, batch, &totals) && say_drained(&totals);
	session_close(stores.facts);
	session_close(stores.counts);
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
