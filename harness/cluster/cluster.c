#include "cluster_private.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../reaper.h"
#include "../session.h"

#define LOG_TAIL_LINES 12
#define STOP_MS 10000 /* after 5 s the postmaster itself kills children that do not obey */


/* --- creating --- */

void
cluster_append_quoted(Text *text, const char *value)
{
	for (; *value != '\0'; value++)
	{
		text_append(text, "%s%c", *value == '\'' || *value == '\\' ? "\\" : "", *value);
	}
}

/*
 * What differs from initdb's file. fsync, synchronous_commit and full_page_writes are not touched: they decide truth.
 * The port is set because PGPORT would be asked otherwise.
 */
void
cluster_append_settings(Text *text, const char *directory, const char *more)
{
	text_append(text, "listen_addresses = ''\nport = %d\nunix_socket_directories = '\"", CLUSTER_PORT);
	cluster_append_quoted(text, directory);
	text_append(text, "\"'\nunix_socket_permissions = 0700\nmax_connections = 400\n"
					  "log_line_prefix = '%%m [%%p] %%a '\nrecovery_init_sync_method = syncfs\n");
	if (more != NULL)
	{
		text_append(text, "%s\n", more);
	}
}

/*
 * As the account: in a folder that belongs to it, a file of root's making could be swapped for a link. Made under a
 * name of its own each time, because the name decides where on the disk ext4 puts it; see spread_below().
 */
static bool
copy_template(const Cluster *cluster, const char *template)
{
	static const char script[] = "umask 077; fresh=$(mktemp -d \"$2.XXXXXXXX\") && mv \"$fresh\" \"$2\" && "
								 "cp -R \"$1/.\" \"$2\" && chmod 0700 \"$2\" && "
								 "printf '%s' \"$3\" >> \"$2/postgresql.conf\"";
	Text settings = {0};
	bool done;

	cluster_append_settings(&settings, cluster->directory, cluster->kit->settings);
	{
		const char *argv[] = {"/bin/sh", "-c", script, "sh", template, cluster->data, settings.data, NULL};

		done = kit_run("create a data directory", argv, kit_account(cluster->kit), cluster->directory, COPY_MS);
	}
	text_free(&settings);
	return done;
}

Cluster *
cluster_make(const ServerKit *kit, const char *name)
{
	Cluster *cluster = memory_get(sizeof(*cluster));

	cluster->kit = kit;
	cluster->name = string_copy(name);
	cluster->state = CLUSTER_STOPPED;
	cluster->directory = private_directory_make(kit, &cluster->slot);
	if (cluster->directory == NULL)
	{
		(void) cluster_free(cluster);
		return NULL;
	}
	cluster->data = string_format("%s/data", cluster->directory);
	cluster->log = string_format("%s/server.log", cluster->directory);
	return cluster;
}

Cluster *
cluster_create(const ServerKit *kit, const char *name)
{
	char template[PATH_MAX];
	Cluster *cluster = cluster_template_ensure(kit, template, sizeof(template)) ? cluster_make(kit, name) : NULL;

	if (cluster != NULL && !copy_template(cluster, template))
	{
		(void) cluster_free(cluster);
		return NULL;
	}
	return cluster;
}

bool
cluster_configure(Cluster *cluster, const char *line)
{
	const char *argv[] = {"/bin/sh", "-c", "printf '%s\\n' \"$2\" >> \"$1/postgresql.conf\"", "sh", cluster->data,
						  line,      NULL};

	if (cluster->state != CLUSTER_STOPPED)
	{
		report_error("server %s: \"%s\" comes too late, it has been started", cluster->name, line);
		return false;
	}
	return kit_run("write postgresql.conf", argv, kit_account(cluster->kit), cluster->directory, COPY_MS);
}


/* --- starting and restarting --- */

/* The first and the eighth line of postmaster.pid: whose it is, and what it is doing. false: not there, or half written. */
static bool
pid_file_read(const Cluster *cluster, pid_t *pid, char *doing, size_t size)
{
	char *path = string_format("%s/postmaster.pid", cluster->data);
	FILE *file = fopen(path, "re");
	char line[PATH_MAX];
	int64_t number = 0;
	int lines = 0;

	doing[0] = '\0';
	while (file != NULL && lines < 8 && fgets(line, sizeof(line), file) != NULL)
	{
		line[strcspn(line, " \n")] = '\0';
		lines++;
		if (lines == 1 && !string_to_int64(line, 1, INT32_MAX, &number))
		{
			break;
		}
		if (lines == 8)
		{
			snprintf(doing, size, "%.*s", (int) size - 1, line);
		}
	}
	if (file != NULL)
	{
		fclose(file);
	}
	free(path);
	*pid = (pid_t) number;
	return number > 0;
}

static void
show_log_tail(const Cluster *cluster)
{
	FILE *file = fopen(cluster->log, "re");
	char *lines[LOG_TAIL_LINES] = {0};
	size_t capacity = 0;
	char *line = NULL;
	size_t count = 0;

	while (file != NULL && getline(&line, &capacity, file) >= 0)
	{
		free(lines[count % LOG_TAIL_LINES]);
		lines[count % LOG_TAIL_LINES] = string_copy(line);
		count++;
	}
	for (size_t i = count > LOG_TAIL_LINES ? count - LOG_TAIL_LINES : 0; i < count; i++)
	{
		report_info("server.log: %s", lines[i % LOG_TAIL_LINES]);
	}
	for (size_t i = 0; i < LOG_TAIL_LINES; i++)
	{
		free(lines[i]);
	}
	free(line);
	if (file != NULL)
	{
		fclose(file);
	}
}

static const char *
announce_log_tail(const Cluster *cluster)
{
	struct stat status;

	return stat(cluster->log, &status) == 0 && status.st_size == 0 ? "its log is empty" : "the end of its log follows";
}

static bool
postmaster_ended(Cluster *cluster, Text *how)
{
	ProcessEnd end;

	if (!process_poll(cluster->postmaster, &end))
	{
		return false;
	}
	process_end_describe(end, how);
	return true;
}

static ProbeAnswer
probe_accepts(void *context, Text *seen)
{
	Cluster *cluster = context;
	Text how = {0};
	char doing[32];
	pid_t pid;

	if (postmaster_ended(cluster, &how))
	{
		report_error("server %s died before it accepted connections: %s; %s", cluster->name, text_get(&how),
					 announce_log_tail(cluster));
		show_log_tail(cluster);
		text_free(&how);
		return PROBE_FAILED;
	}
	if (!pid_file_read(cluster, &pid, doing, sizeof(doing)) || pid != process_pid(cluster->postmaster))
	{
		text_append(seen, "it has not written postmaster.pid");
		return PROBE_AGAIN;
	}
	text_append(seen, "postmaster.pid says \"%s\"", doing);
	return strcmp(doing, "ready") == 0 && server_accepts(cluster_conninfo(cluster, "postgres")) ? PROBE_DONE
																								: PROBE_AGAIN;
}

/* The binary that was chosen and the server that answers are not one by nature: postgres looks for its own files. */
static bool
check_version(Cluster *cluster)
{
	Session *session = session_open(cluster_conninfo(cluster, "postgres"), "counterproof start");
	SqlResult *result = NULL;
	char version[64];
	bool done = false;

	if (session != NULL && session_query(session, &result, "SHOW server_version", NO_ARGS))
	{
		snprintf(version, sizeof(version), "%s", sql_text(result, 0, 0));
		version[strcspn(version, " ")] = '\0';
		done = strcmp(version, cluster->kit->version) == 0;
		if (!done)
		{
			report_error("server %s answers as version %s, but %s/postgres is %s", cluster->name, version,
						 cluster->kit->bindir, cluster->kit->version);
		}
	}
	sql_free(result);
	session_close(session);
	return done;
}

/* It leads a group of its own: a script that stands in its place may have children. */
static void
postmaster_signal(const Process *postmaster, int signal_number)
{
	pid_t pid = process_pid(postmaster);

	if (kill(-pid, signal_number) != 0)
	{
		(void) kill(pid, signal_number);
	}
}

/*
 * Immediate shutdown, then by force. A server on its way up that has not written postmaster.pid yet has no shared
 * memory to clear away either, and may be a script that does not mind SIGQUIT. false: it is still there.
 */
static bool
postmaster_end(Cluster *cluster, Process *postmaster, ProcessEnd *end)
{
	char doing[32];
	pid_t pid;
	bool up = cluster->state == CLUSTER_RUNNING ||
			  (pid_file_read(cluster, &pid, doing, sizeof(doing)) && pid == process_pid(postmaster));

	postmaster_signal(postmaster, up ? SIGQUIT : SIGKILL);
	if (process_wait(postmaster, deadline_in_ms(STOP_MS), end))
	{
		return true;
	}
	cluster->ended_badly = true;
	postmaster_signal(postmaster, SIGKILL);
	return process_wait(postmaster, deadline_in_ms(STOP_MS), end);
}

/* A server that was not there any more is gone too. false: reported, it is still there. */
static bool
postmaster_stop(Cluster *cluster)
{
	Process *postmaster = cluster->postmaster;
	ProcessEnd end;
	bool asked;
	bool gone;

	cluster->postmaster = NULL;
	if (postmaster == NULL)
	{
		return true;
	}
	interrupt_defer();
	asked = !process_poll(postmaster, &end);
	gone = !asked || postmaster_end(cluster, postmaster, &end);
	interrupt_resume();
	if (gone && cluster->state == CLUSTER_RUNNING && !cluster->ended_badly && (!asked || end.how != ENDED_EXIT))
	{
		Text how = {0};

		process_end_describe(end, &how);
		report_error("the postmaster of server %s was ended by someone else: %s", cluster->name, text_get(&how));
		text_free(&how);
		cluster->ended_badly = true;
	}
	if (cluster->ended_badly)
	{
		cluster->state = CLUSTER_CRASHED;
	}
	if (gone)
	{
		process_free(postmaster);
	}
	else
	{
		process_release(postmaster);
	}
	return gone;
}

bool
cluster_start(Cluster *cluster, Deadline deadline)
{
	char postgres[PATH_MAX];
	const char *argv[] = {postgres, "-D", cluster->data, NULL};
	ProcessSpec spec = {.argv = argv,
						.account = kit_account(cluster->kit),
						.directory = cluster->directory,
						.output_file = cluster->log,
						.own_session = true};

	if (cluster->state == CLUSTER_RUNNING)
	{
		report_error("server %s is to be started and runs already", cluster->name);
		return false;
	}
	(void) postmaster_stop(cluster);
	/* by its absolute path, argv[0] too: else it finds another installation's libraries through PATH */
	snprintf(postgres, sizeof(postgres), "%s/postgres", cluster->kit->bindir);
	cluster->postmaster = process_start(&spec);
	if (cluster->postmaster == NULL)
	{
		return false;
	}
	if (!wait_until("the server to accept connections", deadline, probe_accepts, cluster) || !check_version(cluster))
	{
		(void) postmaster_stop(cluster);
		return false;
	}
	cluster->state = CLUSTER_RUNNING;
	return true;
}

static bool
run_restart(const Cluster *cluster, Deadline deadline)
{
	char pg_ctl[PATH_MAX];
	char seconds[16];
	const char *argv[] = {pg_ctl,  "restart", "-m",          "immediate", "-w",         "-t",
						  seconds, "-D",      cluster->data, "-l",        cluster->log, NULL};
	int left_ms = deadline_left_ms(deadline);

	snprintf(pg_ctl, sizeof(pg_ctl), "%s/pg_ctl", cluster->kit->bindir);
	snprintf(seconds, sizeof(seconds), "%d", left_ms / 1000 + 1);
	if (!kit_run("restart the server", argv, kit_account(cluster->kit), cluster->directory, left_ms))
	{
		show_log_tail(cluster);
		return false;
	}
	return true;
}

/* The old postmaster has ended; the new one, an orphan since pg_ctl ended, is this process's child. */
static bool
take_over_restarted(Cluster *cluster, Deadline deadline)
{
	pid_t old_pid = process_pid(cluster->postmaster);
	ProcessEnd end;
	char doing[32];
	pid_t pid = 0;

	if (!process_wait(cluster->postmaster, deadline, &end))
	{
		return false;
	}
	if (!pid_file_read(cluster, &pid, doing, sizeof(doing)) || pid == old_pid)
	{
		report_error("server %s: after the restart postmaster.pid names pid %d, before it was %d", cluster->name,
					 (int) pid, (int) old_pid);
		return false;
	}
	process_free(cluster->postmaster);
	cluster->postmaster = process_adopt(pid);
	return cluster->postmaster != NULL &&
		   wait_until("the restarted server to accept connections", deadline, probe_accepts, cluster);
}

bool
cluster_restart_immediate(Cluster *cluster, Deadline deadline)
{
	if (!cluster_verify_running(cluster) || !process_adopt_orphans())
	{
		return false;
	}
	if (!run_restart(cluster, deadline) || !take_over_restarted(cluster, deadline))
	{
		cluster->state = CLUSTER_CRASHED;
		return false;
	}
	return true;
}

bool
cluster_stop_immediate(Cluster *cluster)
{
	if (cluster->state != CLUSTER_RUNNING)
	{
		report_error("server %s is to be stopped and does not run", cluster->name);
		return false;
	}
	if (!postmaster_stop(cluster) || cluster->ended_badly)
	{
		cluster->state = CLUSTER_CRASHED;
		return false;
	}
	cluster->state = CLUSTER_STOPPED;
	return true;
}

bool
cluster_verify_running(Cluster *cluster)
{
	Text how = {0};
	char doing[32];
	pid_t pid = 0;
	bool running = false;

	if (cluster->state != CLUSTER_RUNNING || cluster->postmaster == NULL)
	{
		report_error("server %s does not run", cluster->name);
	}
	else if (postmaster_ended(cluster, &how))
	{
		report_error("the postmaster of server %s (pid %d) has ended: %s", cluster->name,
					 (int) process_pid(cluster->postmaster), text_get(&how));
		cluster->state = CLUSTER_CRASHED;
	}
	else if (!pid_file_read(cluster, &pid, doing, sizeof(doing)) || pid != process_pid(cluster->postmaster))
	{
		report_error("server %s: postmaster.pid names pid %d, but %d was started", cluster->name, (int) pid,
					 (int) process_pid(cluster->postmaster));
		cluster->state = CLUSTER_CRASHED;
	}
	else if (!server_accepts(cluster_conninfo(cluster, "postgres")))
	{
		/* a postmaster with a SIGKILL under way still counts as a process, and one that recovers turns clients away */
		report_error("server %s accepts no connections, but should be running", cluster->name);
		cluster->state = CLUSTER_CRASHED;
	}
	else
	{
		running = true;
	}
	text_free(&how);
	return running;
}


/* --- looking at it --- */

ClusterState
cluster_state(const Cluster *cluster)
{
	return cluster->state;
}

pid_t
cluster_postmaster(const Cluster *cluster)
{
	return cluster->postmaster != NULL ? process_pid(cluster->postmaster) : 0;
}

const char *
cluster_directory(const Cluster *cluster)
{
	return cluster->directory;
}

const char *
cluster_name(const Cluster *cluster)
{
	return cluster->name;
}

const char *
cluster_log(const Cluster *cluster)
{
	return cluster->log;
}

void
cluster_save_log(const Cluster *cluster, const char *path)
{
	Text log = {0};

	if (!file_read(cluster->log, &log) || !file_replace(path, text_get(&log)))
	{
		report_warning("the log of server %s is not saved", cluster->name);
	}
	text_free(&log);
}

const char *
cluster_conninfo(Cluster *cluster, const char *database)
{
	text_clear(&cluster->conninfo);
	text_append(&cluster->conninfo, "host='");
	cluster_append_quoted(&cluster->conninfo, cluster->directory);
	text_append(&cluster->conninfo, "' port=%d user=" CLUSTER_USER " dbname='", CLUSTER_PORT);
	cluster_append_quoted(&cluster->conninfo, database);
	text_append(&cluster->conninfo, "'");
	return text_get(&cluster->conninfo);
}


/* --- the end --- */

/*
 * A postmaster that was killed leaves its shared memory behind for good once the data directory is removed. A server
 * that starts on it, alone and without clients, clears it away; the orphans of the killed one hinder it for a second or two.
 */
static ProbeAnswer
probe_cleared(void *context, Text *seen)
{
	Cluster *cluster = context;
	char postgres[PATH_MAX];
	const char *argv[] = {postgres, "--single", "-D", cluster->data, "postgres", NULL};
	ProcessSpec spec = {
		.argv = argv, .account = kit_account(cluster->kit), .directory = cluster->directory, .own_group = true};
	char *version = string_format("%s/PG_VERSION", cluster->data);
	bool there = access(version, F_OK) == 0;
	Text output = {0};
	ProcessEnd end;
	bool ran;

	free(version);
	if (!there)
	{
		report_error("the shared memory of server %s may be left: its data directory %s has gone", cluster->name,
					 cluster->data);
		return PROBE_FAILED;
	}
	snprintf(postgres, sizeof(postgres), "%s/postgres", cluster->kit->bindir);
	ran = process_run(&spec, deadline_in_ms(STOP_MS), &output, &end);
	if (ran)
	{
		text_append(seen, "%s", kit_last_line(&output));
	}
	text_free(&output);
	if (!ran)
	{
		return PROBE_FAILED;
	}
	return end.how == ENDED_EXIT && end.code == 0 ? PROBE_DONE : PROBE_AGAIN;
}

void
cluster_keep(Cluster *cluster, Text *ending)
{
	cluster->keep = true;
	text_append(ending, "kill -INT %d; tail --pid=%d -f /dev/null; rm -rf '%s'", (int) process_pid(cluster->postmaster),
				(int) process_pid(cluster->postmaster), cluster->directory);
}

static bool
clear_memory(Cluster *cluster)
{
	char *what = string_format("the shared memory of server %s to be cleared, which may now be left", cluster->name);
	bool done = wait_until(what, deadline_in_ms(STOP_MS), probe_cleared, cluster);

	free(what);
	return done;
}

/*
 * Where the server is still there, its directory is left to the reaper; where only its memory may be, nobody could clear
 * that later, and the directory goes.
 */
static bool
end_and_remove(Cluster *cluster)
{
	bool cleared = true;

	if (!postmaster_stop(cluster))
	{
		report_warning("the directory of server %s is left: %s", cluster->name, cluster->directory);
		free(cluster->directory);
		return false;
	}
	if (cluster->directory == NULL)
	{
		return true;
	}
	if (cluster->state == CLUSTER_CRASHED)
	{
		cleared = cluster_stand_alone(cluster) && clear_memory(cluster);
	}
	return private_directory_remove(cluster->directory, cluster->slot) && cleared && !cluster->ended_badly;
}

bool
cluster_free(Cluster *cluster)
{
	bool done = true;

	if (cluster == NULL)
	{
		return true;
	}
	if (cluster->keep)
	{
		process_release(cluster->postmaster);
		reaper_leave(cluster->slot);
		free(cluster->directory);
	}
	else
	{
		interrupt_defer();
		done = end_and_remove(cluster);
		interrupt_resume();
	}
	text_free(&cluster->conninfo);
	free(cluster->name);
	free(cluster->data);
	free(cluster->log);
	free(cluster);
	return done;
}
