/* The table of designs, and loading the SQL of one. */
#include "design.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const LikeDesign like_designs[] = {
	{.name = "row",
	 .idea = "writers take numbers from one locked row",
	 .left_in = "like_outbox",
	 .counted_in = "like_seq"},
	{.name = "sequencer",
	 .idea = "writers leave events without a number, one sequencer numbers what is committed",
	 .numbers_later = true,
	 .left_in = "like_unnumbered",
	 .counted_in = "like_seq"},
	{.name = "per-item",
	 .idea = "each item has a number row and a watermark of its own",
	 .left_in = "like_outbox",
	 .own_events = true,
	 .counted_in = "like_seq"},
	{.name = "wal",
	 .idea = "no number at all: a replication slot has events in the order of their commits",
	 .left_in = "like_outbox",
	 .counted_in = "counter_watermark",
	 .own_events = true,
	 .server_settings = LIKE_WAL_SETTINGS,
	 .made_ready_by = "SELECT like_feed_open()"},
	{.name = NULL},
};

#define SCHEMA "schema.sql"

/* In the order in which they are loaded: functions name the tables and functions before them. */
static const char *const SQL_FILES[] = {
	SCHEMA,
	"add_item.sql",
	"write.sql",
	"number.sql",
	"position.sql",
	"pull.sql",
	"log.sql",
	"consume.sql",
	"rebuild_snapshot.sql",
	"rebuild_install.sql",
	"rebuild_chunk.sql",
	"accept_log.sql",
	"audit_write_side.sql",
	"audit_read_side.sql",
	"read_count.sql",
};

const LikeDesign *
like_design_find(const char *name)
{
	for (const LikeDesign *design = like_designs; design->name != NULL; design++)
	{
		if (name == NULL || name[0] == '\0' || strcmp(design->name, name) == 0)
		{
			return design;
		}
	}
	return NULL;
}

bool
like_design_known(const char *name)
{
	const char *names[LENGTH_OF(like_designs)];

	for (size_t i = 0; i < LENGTH_OF(like_designs); i++)
	{
		names[i] = like_designs[i].name;
	}
	if (like_design_find(name) == NULL)
	{
		report_error("there is no design \"%s\"; the nearest is \"%s\" (see: help)", name, string_nearest(name, names));
		return false;
	}
	return true;
}

/* Of a file or folder; NULL where the design has none of that name. The caller frees. */
static char *
own_path(const LikeDesign *design, const char *sql_folder, const char *name)
{
	char *path = string_format("%s/designs/%s/%s", sql_folder, design->name, name);

	if (access(path, R_OK) != 0)
	{
		free(path);
		return NULL;
	}
	return path;
}

/* A schema adds to the one before; every other file takes the place of the one of its name. */
static bool
adds(const char *name)
{
	return strcmp(name, SCHEMA) == 0;
}

/* false: the server refused it. *own counts the design's files. */
static bool
load_file(Session *session, const LikeDesign *design, const char *sql_folder, const char *name, size_t *own)
{
	char *common = string_format("%s/%s", sql_folder, name);
	char *over = own_path(design, sql_folder, name);
	bool done = ((over != NULL && !adds(name)) || session_execute_file(session, common)) &&
				(over == NULL || session_execute_file(session, over));

	*own += over != NULL;
	free(common);
	free(over);
	return done;
}

bool
like_design_create(Session *session, const LikeDesign *design, const char *sql_folder)
{
	char *folder = string_format("%s/designs/%s", sql_folder, design->name);
	size_t own = 0, own_files = 0;
	char **files = NULL;
	bool done = folder_files(folder, ".sql", &files, &own_files);

	for (size_t i = 0; done && i < LENGTH_OF(SQL_FILES); i++)
	{
		done = load_file(session, design, sql_folder, SQL_FILES[i], &own);
	}
	if (done && own != own_files)
	{
		report_error("%zu of %zu files of %s are named like a file of %s", own, own_files, folder, sql_folder);
		done = false;
	}
	paths_free(files, own_files);
	free(folder);
	return done && (design->made_ready_by == NULL || session_execute(session, design->made_ready_by));
}

static bool
may_load(const LikeDesign *design, const char *sql_folder, const char *file)
{
	const char *name = strrchr(file, '/') + 1;
	char *own = own_path(design, sql_folder, name);
	bool refused = own != NULL && !adds(name);

	if (refused)
	{
		report_error("%s is not for design %s, which has a %s of its own", file, design->name, name);
	}
	free(own);
	return !refused;
}

/* The functions name what it adds. The others stay in their order. */
static void
schema_to_front(char **files, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (strcmp(strrchr(files[i], '/') + 1, SCHEMA) == 0)
		{
			char *schema = files[i];

			memmove(files + 1, files, i * sizeof(*files));
			files[0] = schema;
			return;
		}
	}
}

bool
like_design_load_over(Session *session, const LikeDesign *design, const char *sql_folder, const char *folder,
					  size_t *loaded)
{
	char *own = folder[0] == '/' ? NULL : own_path(design, sql_folder, folder);
	char *path = own != NULL        ? own
				 : folder[0] == '/' ? string_copy(folder)
									: string_format("%s/%s", sql_folder, folder);
	char **files;
	bool done = folder_files(path, ".sql", &files, loaded);

	schema_to_front(files, *loaded);
	for (size_t i = 0; done && i < *loaded; i++)
	{
		done = (own != NULL || may_load(design, sql_folder, files[i])) && session_execute_file(session, files[i]);
	}
	paths_free(files, *loaded);
	free(path);
	return done;
}

char *
like_design_file(const LikeDesign *design, const char *sql_folder, const char *file)
{
	char *path = own_path(design, sql_folder, file);

	if (path == NULL)
	{
		path = string_format("%s/%s", sql_folder, file);
	}
	if (access(path, R_OK) != 0)
	{
		free(path);
		return NULL;
	}
	return path;
}
