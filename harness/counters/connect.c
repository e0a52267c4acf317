#include "connect.h"

#include <stdlib.h>
#include <string.h>

static bool
run_file(Session *session, const CountersRequest *request, const char *file)
{
	char *path = string_format("%s/counters/%s", request->sql, file);
	bool done = session_execute_file(session, path);

	free(path);
	return done;
}

Session *
counters_connect(const CountersRequest *request)
{
	Session *session = session_open(request->conninfo != NULL ? request->conninfo : "", "counterproof counters");

	if (session == NULL)
	{
		return NULL;
	}
	if (!run_file(session, request, "session.sql") || !run_file(session, request, "catalog.sql") ||
		!run_file(session, request, "open.sql"))
	{
		session_close(session);
		return NULL;
	}
	/* A query whose client was interrupted ends soon; not every server's platform can. */
	(void) session_try(session, NULL, "SET client_connection_check_interval = '1s'", NO_ARGS);
	if (request->verbose)
	{
		session_show_sql(session);
	}
	return session;
}

SqlStatus
counters_begin_reading(Session *session)
{
	return session_try(session, NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NO_ARGS);
}

static bool
has_counter(const CounterConfig *config, const char *name)
{
	const char **names = memory_get(sizeof(char *) * (config->count + 1));
	bool found = false;

	for (unsigned i = 0; i < config->count; i++)
	{
		names[i] = config->counters[i].name;
		found = found || strcmp(names[i], name) == 0;
	}
	if (!found)
	{
		report_error("no counter of the file is named \"%s\"; the nearest is \"%s\"", name,
					 string_nearest(name, names));
	}
	free(names);
	return found;
}

CounterConfig *
counters_read(const CountersRequest *request)
{
	CounterConfig *config = counter_config_read(request->file);

	for (int i = 0; config != NULL && i < request->name_count; i++)
	{
		if (!has_counter(config, request->names[i]))
		{
			counter_config_free(config);
			return NULL;
		}
	}
	return config;
}

bool
counters_selected(const CountersRequest *request, const CounterSpec *spec)
{
	for (int i = 0; i < request->name_count; i++)
	{
		if (strcmp(request->names[i], spec->name) == 0)
		{
			return true;
		}
	}
	return request->name_count == 0;
}

ExitCode
counters_look(const CountersRequest *request, CountersLook look)
{
	CounterConfig *config = counters_read(request);
	Session *session = config != NULL ? counters_connect(request) : NULL;
	ExitCode code = config == NULL    ? EXIT_CODE_USAGE
					: session == NULL ? EXIT_CODE_BROKEN
									  : look(session, config, request);

	session_close(session);
	counter_config_free(config);
	return code;
}

ExitCode
counters_worse(ExitCode a, ExitCode b)
{
	static const ExitCode order[] = {EXIT_CODE_FAIL, EXIT_CODE_BROKEN, EXIT_CODE_INCONCLUSIVE};

	for (size_t i = 0; i < LENGTH_OF(order); i++)
	{
		if (a == order[i] || b == order[i])
		{
			return order[i];
		}
	}
	return a != EXIT_CODE_PASS ? a : b;
}
