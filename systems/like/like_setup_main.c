/*
 * An empty database becomes a like system with items and events: each user likes one item, item after item in turn. Then
 * files of folders named with --over are loaded over it, such as a part of it that is done otherwise; a folder that is not
 * named from the root is looked for below --sql, first among what the design has of its own.
 */
#include "design.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define USAGE                                                                                                          \
	"usage: like-setup --conninfo STRING --sql FOLDER [--design NAME] [--items N] [--events N] [--over FOLDER].."

/* For the design where --design says nothing: a file for crash points runs over each of them. */
#define DESIGN_VARIABLE "COUNTERPROOF_DESIGN"

enum
{
	ITEMS_MAX = 99, /* labels have two digits */
	EVENTS_MAX = 1000000,
	FOLDERS_MAX = 8
};

typedef struct
{
	const char *conninfo, *sql, *design;
	int64_t items, events;
	const char *over[FOLDERS_MAX];
	int over_count;
} Options;

static bool
number_read(const char *name, const char *value, int64_t most, int64_t *number)
{
	if (!string_to_int64(value, 1, most, number))
	{
		report_error("--%s takes a number from 1 to %" PRId64 ", not \"%s\"", name, most, value);
		return false;
	}
	return true;
}

static bool
over_add(Options *options, const char *folder)
{
	if (options->over_count == FOLDERS_MAX)
	{
		report_error("--over can be given %d times", FOLDERS_MAX);
		return false;
	}
	options->over[options->over_count++] = folder;
	return true;
}

static bool
options_read(int argc, char **argv, Options *options)
{
	static const struct option known[] = {{"conninfo", required_argument, NULL, 'c'},
										  {"sql", required_argument, NULL, 's'},
										  {"items", required_argument, NULL, 'i'},
										  {"events", required_argument, NULL, 'e'},
										  {"over", required_argument, NULL, 'o'},
										  {"design", required_argument, NULL, 'd'},
										  {NULL, 0, NULL, 0}};
	int option;
	bool ok = true;

	*options = (Options){.items = 1, .design = getenv(DESIGN_VARIABLE)};
	opterr = 0;
	while (ok && (option = getopt_long(argc, argv, "", known, NULL)) != -1)
	{
		switch (option)
		{
			case 'c':
				options->conninfo = optarg;
				break;
			case 's':
				options->sql = optarg;
				break;
			case 'i':
				ok = number_read("items", optarg, ITEMS_MAX, &options->items);
				break;
			case 'e':
				ok = number_read("events", optarg, EVENTS_MAX, &options->events);
				break;
			case 'o':
				ok = over_add(options, optarg);
				break;
			case 'd':
				options->design = optarg;
				break;
			default:
				report_error("unknown option or missing value: %s; " USAGE, argv[optind - 1]);
				ok = false;
		}
	}
	if (ok && (optind < argc || options->conninfo == NULL || options->sql == NULL))
	{
		report_error(USAGE);
		ok = false;
	}
	return ok && like_design_known(options->design);
}

static bool
items_add(Session *session, int64_t items)
{
	bool ok = true;

	for (int64_t item = 1; ok && item <= items; item++)
	{
		char label[32];

		snprintf(label, sizeof(label), "item-lab-%02d", (int) item);
		ok = like_add_item(session, item, label);
	}
	return ok;
}

/* In one transaction: they are the same events with one commit. */
static bool
events_write(Session *session, int64_t items, int64_t events)
{
	bool ok = like_prepare(session) && session_begin(session, READ_COMMITTED);

	for (int64_t event = 1; ok && event <= events; event++)
	{
		LikeResult result = {0};

		ok = like_set_within(session, event, 1 + (event - 1) % items, true, &result);
		if (ok && result.outcome != LIKE_CHANGED)
		{
			report_error("event %" PRId64 " was not written: %s", event, result.sqlstate);
			ok = false;
		}
	}
	if (ok && session_commit(session) != SQL_OK)
	{
		report_error("the events were not committed: %s", session_error(session)->message);
		ok = false;
	}
	return ok;
}

/* The files of a folder in the order of their names. A folder without any is a mistake in its name. */
static bool
folder_load(Session *session, const Options *options, const char *folder)
{
	size_t loaded;

	if (!like_design_load_over(session, like_design_find(options->design), options->sql, folder, &loaded))
	{
		return false;
	}
	if (loaded == 0)
	{
		report_error("there is no file *.sql in %s", folder);
	}
	return loaded > 0;
}

int
main(int argc, char **argv)
{
	Options options;
	Session *session;
	bool ok;

	streams_hold();
	notice_set_prefix("like-setup");
	if (!options_read(argc, argv, &options))
	{
		return EXIT_CODE_USAGE;
	}
	session = session_open(options.conninfo, "like-setup");
	ok = session != NULL && like_design_create(session, like_design_find(options.design), options.sql) &&
		 items_add(session, options.items) && events_write(session, options.items, options.events);
	for (int i = 0; ok && i < options.over_count; i++)
	{
		ok = folder_load(session, &options, options.over[i]);
	}
	session_close(session);
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
