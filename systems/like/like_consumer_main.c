/*
 * The consumer as a program: pulls from the outbox in batches after the offset in its file, delivers each batch in one
 * transaction, and writes the offset after the commit. Between the two it may be killed; the batch is then delivered
 * again and absorbed. It starts from its file and never asks the watermark where to begin.
 */
#include "like.h"
#include "point.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_DEFAULT 1000
#define BATCH_MAX 1000000
#define POINT_NAME_BYTES 64

#define USAGE "usage: like-consumer --conninfo STRING --offset-file FILE [--batch N] [--pause-at POINT[:N]]"

typedef struct
{
	const char *conninfo;
	const char *offset_file;
	int64_t batch;
} Options;

static bool
pause_arm(const char *value)
{
	static const char *const known[] = {"consumer.before_commit", "consumer.after_commit", NULL};
	char name[POINT_NAME_BYTES];
	int nth;

	if (!point_parse(value, name, sizeof(name), &nth))
	{
		report_error("--pause-at takes POINT or POINT:N, not \"%s\"", value);
		return false;
	}
	if (strcmp(name, known[0]) != 0 && strcmp(name, known[1]) != 0)
	{
		report_error("unknown point \"%s\", did you mean %s?", name, string_nearest(name, known));
		return false;
	}
	point_arm_pause(name, nth);
	return true;
}

static bool
options_read(int argc, char **argv, Options *options)
{
	static const struct option known[] = {
		{"conninfo", required_argument, NULL, 'c'}, {"offset-file", required_argument, NULL, 'o'},
		{"batch", required_argument, NULL, 'b'},    {"pause-at", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
	int option;

	*options = (Options){.batch = BATCH_DEFAULT};
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
	{
		switch (option)
		{
			case 'c':
				options->conninfo = optarg;
				break;
			case 'o':
				options->offset_file = optarg;
				break;
			case 'b':
				if (!string_to_int64(optarg, 1, BATCH_MAX, &options->batch))
				{
					report_error("--batch takes a number from 1 to %d, not \"%s\"", BATCH_MAX, optarg);
					return false;
				}
				break;
			case 'p':
				if (!pause_arm(optarg))
				{
					return false;
				}
				break;
			case 'h':
				puts(USAGE);
				exit(EXIT_CODE_PASS);
			default:
				report_error("unknown option or missing value: %s; " USAGE, argv[optind - 1]);
				return false;
		}
	}
	if (optind < argc || options->conninfo == NULL || options->offset_file == NULL)
	{
		report_error(USAGE);
		return false;
	}
	return true;
}

/* No file means that nothing was delivered yet. Anything else than a number must not be taken for one. */
static bool
offset_read(const char *path, int64_t *offset)
{
	Text content = {0};
	bool ok;

	*offset = 0;
	if (access(path, F_OK) != 0 && errno == ENOENT)
	{
		return true;
	}
	if (!file_read(path, &content))
	{
		return false;
	}
	if (content.length > 0 && content.data[content.length - 1] == '\n')
	{
		content.data[content.length - 1] = '\0';
	}
	ok = string_to_int64(text_get(&content), 0, INT64_MAX, offset);
	if (!ok)
	{
		report_error("offset file %s holds no event number: \"%.40s\"", path, text_get(&content));
	}
	text_free(&content);
	return ok;
}

static bool
offset_write(const char *path, int64_t offset)
{
	char *content = string_format("%" PRId64 "\n", offset);
	bool ok = file_replace(path, content);

	free(content);
	return ok;
}

static bool
consume(Session *session, const Options *options, int64_t offset, LikeTotals *totals)
{
	for (int batch = 1;; batch++)
	{
		LikeTotals delivered;
		int64_t *seqs;
		size_t count;
		bool ok;

		if (!like_pull(session, offset, options->batch, &seqs, &count))
		{
			return false;
		}
		if (count == 0)
		{
			free(seqs);
			return like_watermark(session, &totals->watermark);
		}
		offset = seqs[count - 1];
		ok = like_deliver(session, seqs, count, batch, &delivered);
		free(seqs);
		if (!ok || !offset_write(options->offset_file, offset))
		{
			return false;
		}
		like_totals_add(totals, &delivered);
	}
}

int
main(int argc, char **argv)
{
	Options options;
	int64_t offset;
	LikeTotals totals = {0};
	Text line = {0};
	Session *session;
	bool ok;

	notice_set_prefix("like-consumer");
	if (!options_read(argc, argv, &options) || !offset_read(options.offset_file, &offset))
	{
		return EXIT_CODE_USAGE;
	}
	session = session_open(options.conninfo, "like-consumer");
	if (session == NULL)
	{
		return EXIT_CODE_BROKEN;
	}
	ok = consume(session, &options, offset, &totals);
	session_close(session);
	if (ok)
	{
		like_totals_describe(&totals, &line);
		ok = printf("DRAINED %s\n", text_get(&line)) > 0 && fflush(stdout) == 0;
	}
	text_free(&line);
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
