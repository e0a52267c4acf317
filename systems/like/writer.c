/* What --conninfo leaves open is filled in libpq's usual way, from PG* variables, a service file and .pgpass. */
#include "writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE "usage: like-writer --conninfo STRING USER:ITEM:like|unlike.."

#define FIRST_REQUEST 3 /* word of the command line */

/* For all requests together. */
#define PATIENCE_MS 20000

typedef struct
{
	const char *conninfo;
	const WriterSteps *steps;
	Deadline deadline;
	Session *session; /* NULL: to be opened */
} Writer;

typedef struct
{
	int64_t user, item;
	bool want;
} Request;

static bool
request_parse(const char *word, Request *request)
{
	char *copy = string_copy(word), *rest = copy;
	const char *user = strsep(&rest, ":"), *item = strsep(&rest, ":");
	bool ok = rest != NULL && string_to_int64(user, 1, INT64_MAX, &request->user) &&
			  string_to_int64(item, 1, INT64_MAX, &request->item) &&
			  (strcmp(rest, "like") == 0 || strcmp(rest, "unlike") == 0);

	request->want = ok && strcmp(rest, "like") == 0;
	free(copy);
	if (!ok)
	{
		report_error("a request is USER:ITEM:like or USER:ITEM:unlike, not \"%s\"", word);
	}
	return ok;
}

/* A session with its statements prepared. One that is lost meanwhile is followed by another. */
static bool
writer_connect(Writer *writer)
{
	while (writer->session == NULL)
	{
		Session *session = session_open_patiently(writer->conninfo, "like-writer", writer->deadline);

		if (session != NULL && writer->steps->prepare(session))
		{
			writer->session = session;
		}
		else if (session == NULL || !session_is_lost(session) || deadline_passed(writer->deadline))
		{
			session_close(session);
			return false;
		}
		else
		{
			session_close(session);
		}
	}
	return true;
}

/* One sending. false: the server refused it for good, reported. */
static bool
send_once(Writer *writer, const Request *request, bool *answered)
{
	LikeResult result = {0};
	Text text = {0};

	*answered = writer->steps->set(writer->session, request->user, request->item, request->want, &result) &&
				(result.outcome == LIKE_CHANGED || result.outcome == LIKE_NOOP);
	if (*answered)
	{
		return true;
	}
	if (session_is_lost(writer->session))
	{
		session_close(writer->session);
		writer->session = NULL;
		return true;
	}
	like_describe(&result, &text);
	report_error("user %lld, item %lld: %s", (long long) request->user, (long long) request->item, text_get(&text));
	text_free(&text);
	return false;
}

static bool
insist(Writer *writer, const Request *request)
{
	bool answered = false;

	while (!answered)
	{
		if (!writer_connect(writer) || !send_once(writer, request, &answered))
		{
			return false;
		}
		if (!answered && deadline_passed(writer->deadline))
		{
			report_error("user %lld, item %lld: no answer in time", (long long) request->user,
						 (long long) request->item);
			return false;
		}
	}
	return true;
}

/* All words are read before the first is sent. */
static ExitCode
write_all(Writer *writer, char **words, int count)
{
	Request *requests = memory_get((size_t) count * sizeof(*requests));
	ExitCode code = EXIT_CODE_PASS;

	for (int i = 0; code == EXIT_CODE_PASS && i < count; i++)
	{
		code = request_parse(words[i], &requests[i]) ? EXIT_CODE_PASS : EXIT_CODE_USAGE;
	}
	for (int i = 0; code == EXIT_CODE_PASS && i < count; i++)
	{
		code = insist(writer, &requests[i]) ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
	}
	free(requests);
	if (code == EXIT_CODE_PASS && (printf("ACKED %d\n", count) < 0 || fflush(stdout) != 0))
	{
		report_error("cannot write to stdout: %s", strerror(errno));
		code = EXIT_CODE_BROKEN;
	}
	return code;
}

ExitCode
writer_main(int argc, char **argv, const WriterSteps *steps)
{
	Writer writer = {.steps = steps, .deadline = deadline_in_ms(PATIENCE_MS)};
	ExitCode code;

	streams_hold();
	notice_set_prefix("like-writer");
	if (argc < FIRST_REQUEST + 1 || strcmp(argv[1], "--conninfo") != 0)
	{
		report_error(USAGE);
		return EXIT_CODE_USAGE;
	}
	writer.conninfo = argv[2];
	code = write_all(&writer, argv + FIRST_REQUEST, argc - FIRST_REQUEST);
	session_close(writer.session);
	return code;
}
