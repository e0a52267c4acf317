/*
 * The consumer as a program: its options, its session, and the loop over batches. What happens to a batch is a list of
 * steps, which the program that calls consumer_main() hands in.
 *
 * It starts from its file and never asks the watermark where to begin. What --conninfo leaves open is filled in libpq's
 * usual way, from PG* variables, a service file and .pgpass. That is meant for whoever starts it by hand; a case hands
 * over all that matters and an environment without them.
 */
#include "consumer.h"
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

#define USAGE                                                                                                          \
	"usage: like-consumer --conninfo STRING --offset-file FILE [--batch N] [--pause-at POINT[:N]] [--trace FILE]"

typedef struct
{
	const char *conninfo;
	const char *offset_file;
	const char *trace; /* where the points that it reaches are recorded, NULL: nowhere */
	int64_t batch;
} Options;

static bool
say(const char *line)
{
	if (puts(line) < 0 || fflush(stdout) != 0)
	{
		report_error("cannot write to stdout: %s", strerror(errno));
		return false;
	}
	return true;
}

static bool
options_read(int argc, char **argv, Options *options)
{
	static const struct option known[] = {{"conninfo", required_argument, NULL, 'c'},
										  {"offset-file", required_argument, NULL, 'o'},
										  {"batch", required_argument, NULL, 'b'},
										  {"pause-at", required_argument, NULL, 'p'},
										  {"trace", required_argument, NULL, 't'},
										  {"help", no_argument, NULL, 'h'},
										  {NULL, 0, NULL, 0}};
	static const char *const points[] = {"consumer.before_commit", "consumer.after_commit", NULL};
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
				if (!point_arm_option("--pause-at", optarg, points))
				{
					return false;
				}
				break;
			case 't':
				options->trace = optarg;
				break;
			case 'h':
				exit(say(USAGE) ? EXIT_CODE_PASS : EXIT_CODE_BROKEN);
			default:
				report_error("unknown option or missing value: %s; " USAGE, argv[optind - 1]);
				return false;
		}
	}
	if (options->offset_file != NULL && options->offset_file[0] == '\0')
	{
		report_error("--offset-file takes the name of a file, not \"\"");
		return false;
	}
	if (optind < argc || options->conninfo == NULL || options->offset_file == NULL)
	{
		report_error(USAGE);
		return false;
	}
	return true;
}

/*
 * An offset above the last number belongs to another history, and the events up to it would never be delivered. Between
 * the watermark and the last number it is possible: the events below it are lost to this consumer, or another one has
 * them, which only its file knows.
 */
static bool
offset_possible(Session *session, const OffsetFile *file, bool *possible)
{
	int64_t last;

	if (!session_query_int(session, &last, "SELECT like_last($1)", ARGS(arg_int(file->offset))))
	{
		return false;
	}
	*possible = file->offset <= last;
	if (!*possible)
	{
		report_error("offset file %s says event %" PRId64 ", but the last event is %" PRId64
					 ": it belongs to another outbox",
					 file->path, file->offset, last);
	}
	return true;
}

/*
 * A crash empties an unlogged table. Without its registrations an event counts again, and no lag tells; without its
 * watermark nobody knows what was processed.
 */
static bool
tables_logged(Session *session, bool *logged)
{
	SqlResult *rows;

	if (!session_query(session, &rows,
					   "SELECT oid::regclass FROM pg_class WHERE relpersistence <> 'p' "
					   "AND oid IN ('processed_event'::regclass, 'counter_watermark'::regclass)",
					   NO_ARGS))
	{
		return false;
	}
	*logged = sql_rows(rows) == 0;
	for (int row = 0; row < sql_rows(rows); row++)
	{
		report_error("table %s is not logged: a crash would empty it, and events would be counted again",
					 sql_text(rows, row, 0));
	}
	sql_free(rows);
	return true;
}

static void
reach_with_totals(const char *point, const LikeTotals *totals)
{
	Text text = {0};

	like_totals_describe(totals, &text);
	point_reach(point, "%s", text_get(&text));
	text_free(&text);
}

bool
consumer_deliver(ConsumerBatch *batch)
{
	if (!like_deliver(batch->session, batch->seqs, batch->count, batch->number, &batch->totals))
	{
		return false;
	}
	reach_with_totals("consumer.delivered", &batch->totals);
	return true;
}

bool
consumer_write_offset(ConsumerBatch *batch)
{
	int64_t offset = batch->seqs[batch->count - 1];

	if (!offset_file_write(batch->file, offset))
	{
		return false;
	}
	point_reach("consumer.offset_written", "offset=%" PRId64, offset);
	return true;
}

static bool
batch_run(ConsumerBatch *batch, const ConsumerStep *steps)
{
	for (; *steps != NULL; steps++)
	{
		if (!(*steps)(batch))
		{
			return false;
		}
	}
	return true;
}

static bool
consume(Session *session, const Options *options, OffsetFile *file, const ConsumerStep *steps, LikeTotals *totals)
{
	ConsumerBatch batch = {.session = session, .file = file};
	int64_t watermark = -1;

	for (batch.number = 1;; batch.number++)
	{
		bool ok;

		if (!like_pull(session, file->offset, options->batch, &batch.seqs, &batch.count))
		{
			return false;
		}
		if (batch.count == 0)
		{
			bool behind;

			free(batch.seqs);
			if (!like_end_of_log(session, file->offset, &watermark, &behind))
			{
				return false;
			}
			totals->watermark = watermark;
			if (!behind)
			{
				return true;
			}
			file->offset = 0;
			continue;
		}
		ok = batch_run(&batch, steps);
		free(batch.seqs);
		if (!ok)
		{
			return false;
		}
		like_totals_add(totals, &batch.totals);
	}
}

static ExitCode
consume_in_session(Session *session, const Options *options, OffsetFile *file, const ConsumerStep *steps)
{
	LikeTotals totals = {0};
	Text line = {0};
	bool logged, possible;
	bool ok;

	if (!tables_logged(session, &logged) || !offset_possible(session, file, &possible))
	{
		return EXIT_CODE_BROKEN;
	}
	if (!logged || !possible)
	{
		return EXIT_CODE_USAGE;
	}
	point_reach("consumer.started", "offset=%" PRId64, file->offset);
	if (!consume(session, options, file, steps, &totals))
	{
		return EXIT_CODE_BROKEN;
	}
	reach_with_totals("consumer.drained", &totals);
	text_append(&line, "DRAINED ");
	like_totals_describe(&totals, &line);
	ok = say(text_get(&line));
	text_free(&line);
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}

ExitCode
consumer_main(int argc, char **argv, const ConsumerStep *steps)
{
	Options options;
	OffsetFile file = {0};
	Session *session = NULL;
	ExitCode code = EXIT_CODE_USAGE;

	streams_hold();
	notice_set_prefix("like-consumer");
	if (options_read(argc, argv, &options) &&
		(options.trace == NULL || point_record(options.trace, program_invocation_short_name)) &&
		offset_file_open(&file, options.offset_file))
	{
		session = session_open(options.conninfo, "like-consumer");
		code = session != NULL ? consume_in_session(session, &options, &file, steps) : EXIT_CODE_BROKEN;
	}
	session_close(session);
	offset_file_close(&file);
	return code;
}
