#include "site.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "../reaper.h"

#define TEMPLATE "cp_template"
#define START_MS 60000
#define CLONE_MS 60000
#define SETUP_MS 600000
#define REMOVE_MS 60000
#define STRAYS_MS 5000
#define STRAYS_MAX 64
#define DISK_LEAST_BYTES (8 << 20) /* half of a segment of the log */

/* A database is about 8 MB, and dropping one costs a checkpoint: so many, then everything goes at once. */
#define DATABASES_MAX 64

struct Site
{
	SiteSetup setup;
	Cluster *cluster;
	Proxy *proxy;
	Session *control; /* to the maintenance database; a stop of the server takes it along */
	char *folder;
	int folder_slot;
	int made;     /* databases asked for */
	bool pending; /* the last of them is not known to be ready */
	char database[32];
	char *work;
};


/* --- the template --- */

static bool
run_setup_sql(Site *site)
{
	const CrashPlan *plan = site->setup.plan;
	Session *session = session_open(cluster_conninfo(site->cluster, TEMPLATE), "crashpoints setup");
	bool done = session != NULL && (plan->setup == NULL || session_execute(session, plan->setup)) &&
				(plan->setup_file == NULL || session_execute_file(session, plan->setup_file));

	if (session != NULL && !done)
	{
		report_error("%s: its setup failed", plan->path);
	}
	session_close(session);
	return done;
}

/* The last line that a program left in a file, for a report. */
static void
last_line(const char *path, Text *line)
{
	Text output = {0};
	const char *newline;

	if (file_read(path, &output))
	{
		while (output.length > 0 && output.data[output.length - 1] == '\n')
		{
			output.data[--output.length] = '\0';
		}
		newline = strrchr(text_get(&output), '\n');
		text_append(line, "%s", newline != NULL ? newline + 1 : text_get(&output));
	}
	text_free(&output);
}

static bool
run_setup_program(Site *site)
{
	const CrashPlan *plan = site->setup.plan;
	char *output = string_format("%s/setup.out", site->folder);
	Surroundings around = site_surroundings_past(site);
	Program program;
	Text end = {0};
	ProcessEnd how;
	bool done;

	around.database = TEMPLATE;
	around.work = site->folder;
	around.output = output;
	done = program_start(&program, &plan->setup_program, &around);
	if (done)
	{
		done = process_wait(program.process, deadline_in_ms(SETUP_MS), &how);
		done = program_end(&program) && done && program_succeeded(&program);
		if (!done)
		{
			process_end_describe(program.end, &end);
			text_append(&end, "; last line: ");
			last_line(output, &end);
			report_error("%s: its setup_program failed: %s", plan->path, text_get(&end));
		}
	}
	text_free(&end);
	free(output);
	return done;
}

/* CREATE DATABASE looks at intervals of 100 ms whether its template is free: better to know before. */
static ProbeAnswer
probe_template_free(void *context, Text *seen)
{
	Site *site = context;
	int64_t users;

	if (!session_query_int(site->control, &users, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1",
						   ARGS(arg_text(TEMPLATE))))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "%d sessions", (int) users);
	return users == 0 ? PROBE_DONE : PROBE_AGAIN;
}

static bool
make_template(Site *site)
{
	return session_execute(site->control, "CREATE DATABASE " TEMPLATE) && run_setup_sql(site) &&
		   (site->setup.plan->setup_program.argv == NULL || run_setup_program(site)) &&
		   wait_until("the setup's sessions to end", deadline_in_ms(START_MS), probe_template_free, site);
}


/* --- life --- */

static bool
open_control(Site *site)
{
	session_close(site->control);
	site->control = session_open(cluster_conninfo(site->cluster, "postgres"), "crashpoints");
	return site->control != NULL;
}

static bool
start_server(Site *site)
{
	const CrashPlan *plan = site->setup.plan;
	char *settle = string_format("client_connection_check_interval = %d", plan->settle_ms);
	bool done;

	site->cluster = cluster_create(site->setup.kit, plan->id);
	done = site->cluster != NULL && cluster_configure(site->cluster, settle) &&
		   (plan->server == NULL || cluster_configure(site->cluster, plan->server)) &&
		   cluster_start(site->cluster, deadline_in_ms(START_MS)) && open_control(site);
	free(settle);
	return done;
}

static bool
open_proxy(Site *site)
{
	char *upstream = string_format("%s/.s.PGSQL.%d", cluster_directory(site->cluster), CLUSTER_PORT);
	ProxyConfig config = {
		.upstream = upstream, .directory = site->setup.plan->tcp ? NULL : site->folder, .port = CLUSTER_PORT};

	site->proxy = proxy_open(&config);
	free(upstream);
	return site->proxy != NULL;
}

static bool
make_folder(Site *site)
{
	char *path = string_format("%s/cx-XXXXXX", site->setup.kit->scratch);

	site->folder_slot = reaper_make_directory(path);
	if (site->folder_slot < 0)
	{
		free(path);
		return false;
	}
	site->folder = path;
	return true;
}

Site *
site_open(const SiteSetup *setup)
{
	Site *site = memory_get(sizeof(*site));

	site->setup = *setup;
	site->folder_slot = -1;
	if (!make_folder(site) || !start_server(site) || !open_proxy(site) || !make_template(site) ||
		!site_clone_ahead(site))
	{
		(void) site_close(site);
		return NULL;
	}
	return site;
}

bool
site_close(Site *site)
{
	bool done;

	if (site == NULL)
	{
		return true;
	}
	session_close(site->control);
	proxy_free(site->proxy);
	done = cluster_free(site->cluster);
	if (site->folder != NULL)
	{
		done = process_remove_directory(site->folder, deadline_in_ms(REMOVE_MS)) && done;
		reaper_leave(site->folder_slot);
	}
	free(site->folder);
	free(site->work);
	free(site);
	return done;
}

bool
site_is_used_up(const Site *site)
{
	return site->made >= DATABASES_MAX;
}


/* --- runs --- */

/*
 * Copied as files, a clone leaves no log that a recovery would have to replay, but each of its 300 files is synced: that
 * costs nothing in memory. Before 15 there is no other way, and no word for it.
 */
static const char *
clone_strategy(const Site *site)
{
	return site->setup.kit->in_memory && site->setup.kit->major >= 15 ? " STRATEGY file_copy" : "";
}

bool
site_clone_ahead(Site *site)
{
	char *sql;

	if (site->pending)
	{
		return true;
	}
	sql = string_format("CREATE DATABASE cp_run_%d TEMPLATE " TEMPLATE "%s", ++site->made, clone_strategy(site));
	site->pending = session_send(site->control, sql, NO_ARGS);
	free(sql);
	return site->pending;
}

static bool
await_clone(Site *site)
{
	SqlStatus status;

	if (!site_clone_ahead(site))
	{
		return false;
	}
	status = session_await(site->control, NULL, deadline_in_ms(CLONE_MS));
	site->pending = false;
	if (status != SQL_OK)
	{
		report_error("a database cannot be cloned: %s: %s", sql_status_name(status),
					 session_error(site->control)->message);
		return false;
	}
	snprintf(site->database, sizeof(site->database), "cp_run_%d", site->made);
	return true;
}

bool
site_begin_run(Site *site)
{
	if (!await_clone(site))
	{
		return false;
	}
	free(site->work);
	site->work = string_format("%s/%s", site->folder, site->database);
	if (mkdir(site->work, 0700) != 0)
	{
		report_error("cannot make %s: %s", site->work, strerror(errno));
		return false;
	}
	proxy_forget(site->proxy);
	return true;
}

/* Again and again: the children of one that is ended become ours. */
void
site_end_strays(const Site *site)
{
	Deadline deadline = deadline_in_ms(STRAYS_MS);
	pid_t pids[STRAYS_MAX];
	bool left = true;

	while (left && !deadline_passed(deadline))
	{
		int count = process_children(pids, STRAYS_MAX);

		left = false;
		for (int i = 0; i < count; i++)
		{
			if (pids[i] != cluster_postmaster(site->cluster))
			{
				(void) kill(pids[i], SIGKILL);
				left = true;
			}
		}
		if (left)
		{
			backoff_us(200);
		}
	}
}

bool
site_restart(Site *site)
{
	bool done;

	if (site->pending)
	{
		report_error("the server is to be stopped while it clones a database");
		return false;
	}
	proxy_cut_all(site->proxy);
	done = cluster_stop_immediate(site->cluster) && cluster_start(site->cluster, deadline_in_ms(START_MS)) &&
		   open_control(site);
	proxy_cut_all(site->proxy);
	return done;
}

const char *
site_database(const Site *site)
{
	return site->database;
}

char *
site_conninfo(const Site *site)
{
	return string_copy(cluster_conninfo(site->cluster, site->database));
}

Surroundings
site_surroundings_past(const Site *site)
{
	return (Surroundings){.host = cluster_directory(site->cluster),
						  .port = CLUSTER_PORT,
						  .database = site->database,
						  .programs = site->setup.run->programs,
						  .directory = site->setup.plan->directory,
						  .work = site->work};
}

Surroundings
site_surroundings(const Site *site)
{
	Surroundings around = site_surroundings_past(site);

	around.host = proxy_host(site->proxy);
	around.port = proxy_port(site->proxy);
	return around;
}

const char *
site_folder(const Site *site)
{
	return site->folder;
}

Proxy *
site_proxy(const Site *site)
{
	return site->proxy;
}

const CrashPlan *
site_plan(const Site *site)
{
	return site->setup.plan;
}

int
site_timeout_ms(const Site *site)
{
	return site->setup.run->timeout_s > 0 ? site->setup.run->timeout_s * 1000 : site->setup.plan->timeout_ms;
}

bool
site_disk_was_full(const Site *site)
{
	Text log = {0};
	struct statvfs room;
	bool full = statvfs(site->folder, &room) == 0 && room.f_bavail * room.f_frsize < DISK_LEAST_BYTES;

	full = full || (file_read(cluster_log(site->cluster), &log) && strstr(text_get(&log), strerror(ENOSPC)) != NULL);
	text_free(&log);
	return full;
}
