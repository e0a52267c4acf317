#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SETTINGS_MAX 40

extern char **environ;

/* The settings that decide what a crash or a race can show, and those that bound the run. */
static const char settings_sql[] =
	"SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'fsync', 'synchronous_commit',"
	" 'full_page_writes', 'wal_level', 'wal_sync_method', 'default_transaction_isolation', 'autovacuum',"
	" 'client_connection_check_interval', 'deadlock_timeout', 'max_connections', 'shared_buffers',"
	" 'recovery_init_sync_method', 'restart_after_crash', 'lc_collate', 'server_encoding') ORDER BY name";

typedef struct
{
	EvidenceSetting rows[SETTINGS_MAX];
	char *values[SETTINGS_MAX];
	int count;
} Settings;

static bool
is_foreign(const char *variable)
{
	static const char *const prefixes[] = {"PG", "LC_", "LANG=", "LANGUAGE=", "TZ="};

	for (size_t i = 0; i < LENGTH_OF(prefixes); i++)
	{
		if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
		{
			return true;
		}
	}
	return false;
}

void
environment_scrub(void)
{
	size_t i = 0;

	while (environ != NULL && environ[i] != NULL)
	{
		if (is_foreign(environ[i]))
		{
			char *name = string_copy(environ[i]);

			name[strcspn(name, "=")] = '\0';
			unsetenv(name); /* moves the rest down: look at the same place again */
			free(name);
		}
		else
		{
			i++;
		}
	}
	setenv("LC_ALL", "C", 1);
	setenv("TZ", "UTC", 1);
}

/* `name` must outlive the settings; `value` is taken over. */
static void
add(Settings *settings, const char *name, char *value)
{
	if (settings->count == SETTINGS_MAX)
	{
		free(value);
		return;
	}
	settings->values[settings->count] = value;
	settings->rows[settings->count] = (EvidenceSetting){name, value};
	settings->count++;
}

static void
add_machine(Settings *settings, const RunnerConfig *config)
{
	struct utsname machine;

	add(settings, "counterproof", string_copy(COUNTERPROOF_VERSION));
	add(settings, "commit", string_copy(config->commit));
	add(settings, "jobs", string_format("%d", config->jobs));
	add(settings, "scale", string_format("%g", config->scale));
	add(settings, "variant", string_copy(config->variant != NULL ? config->variant : "none"));
	add(settings, "design", string_copy(config->design != NULL ? config->design : "default"));
	add(settings, "compiler", string_copy(__VERSION__));
	add(settings, "libpq", string_copy(session_library_version()));
	if (uname(&machine) == 0)
	{
		add(settings, "system", string_format("%s %s %s", machine.sysname, machine.release, machine.machine));
	}
	add(settings, "processors", string_format("%ld", sysconf(_SC_NPROCESSORS_ONLN)));
}

static bool
check_major(const RunnerConfig *config, Session *session)
{
	int64_t number;

	if (!session_query_int(session, &number, "SELECT current_setting('server_version_num')::int", NO_ARGS))
	{
		return false;
	}
	if (number / 10000 != config->pg_major)
	{
		report_error("the server is PostgreSQL %d, not %d; another major version must be asked for with --pg",
					 (int) (number / 10000), config->pg_major);
		return false;
	}
	return true;
}

bool
environment_record(const RunnerConfig *config, const char *server, Evidence *evidence)
{
	Settings settings = {.count = 0};
	Session *session = NULL;
	SqlResult *result = NULL;
	bool done = true;

	add_machine(&settings, config);
	if (server != NULL)
	{
		session = session_open(server, "counterproof");
		done =
			session != NULL && check_major(config, session) && session_query(session, &result, settings_sql, NO_ARGS);
		for (int i = 0; done && i < sql_rows(result); i++)
		{
			add(&settings, sql_text(result, i, 0), string_copy(sql_text(result, i, 1)));
		}
	}
	done = done && evidence_add_settings(evidence, settings.rows, settings.count);
	for (int i = 0; i < settings.count; i++)
	{
		free(settings.values[i]);
	}
	sql_free(result);
	session_close(session);
	return done;
}
