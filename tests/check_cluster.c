#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "server_suite.h"
#include "session.h"

static void
assert_last_error_has(const char *part)
{
	char last[1024];

	notice_last_error(last, sizeof(last));
	ck_assert_msg(strstr(last, part) != NULL, "\"%s\" is not in the last error: %s", part, last);
}

static void
find_kit(ServerKit *kit)
{
	ck_assert(server_kit_find(kit, bindir, 16));
}

static Cluster *
create_and_start(const ServerKit *kit)
{
	Cluster *cluster = cluster_create(kit, "test");

	ck_assert_ptr_nonnull(cluster);
	ck_assert(cluster_start(cluster, soon()));
	return cluster;
}

static int
count_entries(const char *folder, const char *prefix)
{
	DIR *directory = opendir(folder);
	const struct dirent *entry;
	int count = 0;

	ck_assert_ptr_nonnull(directory);
	while ((entry = readdir(directory)) != NULL)
	{
		count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 ? 1 : 0;
	}
	closedir(directory);
	return count;
}

/* The shared memory that this server's postmaster has mapped; another server's is not looked at. */
static void
find_shared_memory(pid_t postmaster, Text *name)
{
	char *path = string_format("/proc/%d/maps", (int) postmaster);
	FILE *file = fopen(path, "re");
	char line[512];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		const char *found = strstr(line, "/dev/shm/PostgreSQL.");

		if (found != NULL && name->length == 0)
		{
			text_append(name, "%.*s", (int) strcspn(found, " \n"), found);
		}
	}
	fclose(file);
	free(path);
	ck_assert_uint_gt(name->length, 0);
	ck_assert_int_eq(access(text_get(name), F_OK), 0);
}

static int64_t
ask_int(Cluster *cluster, const char *sql)
{
	Session *session = session_open(cluster_conninfo(cluster, "postgres"), "test");
	SqlResult *result = NULL;
	int64_t value = 0;

	ck_assert_ptr_nonnull(session);
	ck_assert(session_query(session, &result, sql, NO_ARGS));
	ck_assert(string_to_int64(sql_text(result, 0, 0), INT64_MIN, INT64_MAX, &value));
	sql_free(result);
	session_close(session);
	return value;
}

static void
assert_no_child(void)
{
	pid_t pids[16];

	ck_assert_int_eq(process_children(pids, 16), 0);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

START_TEST(kit_is_found)
{
	ServerKit kit;

	find_kit(&kit);
	ck_assert_int_eq(kit.major, 16);
	ck_assert_int_eq(strncmp(kit.version, "16.", 3), 0);
	ck_assert_str_eq(kit.cache, cache);
	ck_assert_int_eq(kit.drops, geteuid() == 0);
	ck_assert_str_eq(kit.account.name, kit.account_name);
	ck_assert_uint_ne(kit.account.uid, 0);
}
END_TEST

START_TEST(kit_refuses_binaries)
{
	ServerKit kit;

	ck_assert(!server_kit_find(&kit, "/nonexistent", 16));
	assert_last_error_has("no PostgreSQL binaries in /nonexistent: No such file");
	ck_assert(!server_kit_find(&kit, "/usr/share", 16));
	assert_last_error_has("/usr/share/postgres: No such file");
	ck_assert(!server_kit_find(&kit, bindir, 15));
	assert_last_error_has("holds PostgreSQL 16.");
	assert_last_error_has(", not 15");
}
END_TEST

START_TEST(kit_refuses_accounts)
{
	ServerKit kit;

	if (geteuid() != 0)
	{
		return;
	}
	setenv("COUNTERPROOF_USER", "no such account", 1);
	ck_assert(!server_kit_find(&kit, bindir, 16));
	assert_last_error_has("there is no account \"no such account\"");
	setenv("COUNTERPROOF_USER", "root", 1);
	ck_assert(!server_kit_find(&kit, bindir, 16));
	assert_last_error_has("PostgreSQL refuses to run as root");
}
END_TEST

START_TEST(kit_refuses_scratch_folders)
{
	ServerKit kit;
	char *deep = string_format("%s/%080d", cache, 1);
	char *comma = string_format("%s/a,b", cache);

	ck_assert_int_eq(mkdir(deep, 0755), 0);
	ck_assert_int_eq(mkdir(comma, 0755), 0);
	setenv("TMPDIR", deep, 1);
	ck_assert(!server_kit_find(&kit, bindir, 16));
	assert_last_error_has("is too long: its socket's path would have");
	assert_last_error_has("bytes of 107");
	setenv("TMPDIR", comma, 1);
	ck_assert(!server_kit_find(&kit, bindir, 16));
	assert_last_error_has("in its name, which PostgreSQL cannot take");
	setenv("TMPDIR", "/nonexistent", 1);
	ck_assert(!server_kit_find(&kit, bindir, 16));
	assert_last_error_has("/nonexistent: No such file");
	rmdir(deep);
	rmdir(comma);
	free(deep);
	free(comma);
}
END_TEST

START_TEST(kit_names_the_folder_that_is_closed)
{
	ServerKit kit;
	char *closed = string_format("%s/closed", cache);
	char *inner = string_format("%s/closed/inner", cache);

	if (geteuid() == 0)
	{
		ck_assert_int_eq(mkdir(closed, 0700), 0);
		ck_assert_int_eq(mkdir(inner, 0755), 0);
		setenv("TMPDIR", inner, 1);
		ck_assert(!server_kit_find(&kit, bindir, 16));
		assert_last_error_has("/closed/inner is out of reach for account nobody");
		assert_last_error_has("/closed is closed to it");
		unsetenv("TMPDIR");
		setenv("COUNTERPROOF_CACHE", inner, 1);
		ck_assert(!server_kit_find(&kit, bindir, 16));
		assert_last_error_has("the cache folder");
		assert_last_error_has("/closed is closed to it");
		rmdir(inner);
		rmdir(closed);
	}
	free(closed);
	free(inner);
}
END_TEST

START_TEST(kit_refuses_caches)
{
	ServerKit kit;
	char *folder = string_format("%s/a/b", cache);
	char *parent = string_format("%s/a", cache);
	struct stat status;

	umask(077);
	setenv("COUNTERPROOF_CACHE", folder, 1);
	find_kit(&kit);
	ck_assert_str_eq(kit.cache, folder);
	ck_assert_int_eq(stat(folder, &status), 0);
	ck_assert_uint_eq(status.st_mode & 0777, 0755);

	ck_assert_int_eq(chmod(folder, 0775), 0);
	ck_assert(!server_kit_find(&kit, bindir, 16));
	assert_last_error_has("is writable by others (mode 775)");
	ck_assert_int_eq(chmod(folder, 0755), 0);
	if (geteuid() == 0)
	{
		ck_assert_int_eq(chown(folder, 65534, 65534), 0);
		ck_assert(!server_kit_find(&kit, bindir, 16));
		assert_last_error_has("is owned by uid 65534, not by the caller (uid 0)");
	}
	else
	{
		setenv("COUNTERPROOF_CACHE", "/proc/counterproof", 1);
		ck_assert(!server_kit_find(&kit, bindir, 16));
		assert_last_error_has("cannot make the cache folder /proc/counterproof");
	}
	rmdir(folder);
	rmdir(parent);
	free(folder);
	free(parent);
}
END_TEST

START_TEST(start_and_free_leave_nothing)
{
	ServerKit kit;
	Cluster *cluster;
	Text memory = {0};
	char *directory;
	struct stat status;
	pid_t postmaster;

	find_kit(&kit);
	cluster = cluster_create(&kit, "test");
	ck_assert_ptr_nonnull(cluster);
	ck_assert_int_eq(cluster_state(cluster), CLUSTER_STOPPED);
	ck_assert_int_eq(cluster_postmaster(cluster), 0);
	ck_assert_int_eq(stat(cluster_directory(cluster), &status), 0);
	ck_assert_uint_eq(status.st_mode & 0777, 0700);
	ck_assert_uint_eq(status.st_uid, kit.account.uid);

	ck_assert(cluster_start(cluster, soon()));
	ck_assert_int_eq(cluster_state(cluster), CLUSTER_RUNNING);
	ck_assert(cluster_verify_running(cluster));
	postmaster = cluster_postmaster(cluster);
	ck_assert_int_eq(getsid(postmaster), postmaster);
	ck_assert(!cluster_start(cluster, soon()));
	assert_last_error_has("runs already");
	find_shared_memory(postmaster, &memory);
	ck_assert_int_eq(stat(cluster_log(cluster), &status), 0);
	ck_assert_uint_eq(status.st_uid, kit.account.uid);

	directory = string_copy(cluster_directory(cluster));
	ck_assert(cluster_free(cluster));
	ck_assert_int_eq(access(directory, F_OK), -1);
	ck_assert_int_eq(access(text_get(&memory), F_OK), -1);
	assert_no_child();
	text_free(&memory);
	free(directory);
	ck_assert(cluster_free(NULL));
}
END_TEST

START_TEST(settings_are_the_safe_ones)
{
	ServerKit kit;
	Cluster *cluster;

	setenv("PGPORT", "6543", 1);
	find_kit(&kit);
	cluster = cluster_create(&kit, "test");
	ck_assert(cluster_configure(cluster, "work_mem = '7MB'"));
	ck_assert(cluster_start(cluster, soon()));
	ck_assert(!cluster_configure(cluster, "work_mem = '8MB'"));
	assert_last_error_has("comes too late");
	ck_assert_int_eq(ask_int(cluster, "SELECT count(*) FROM pg_settings WHERE setting = 'on' AND name IN ('fsync', "
									  "'synchronous_commit', 'full_page_writes', 'autovacuum')"),
					 4);
	ck_assert_int_eq(ask_int(cluster, "SELECT setting FROM pg_settings WHERE name = 'work_mem'"), 7168);
	ck_assert_int_eq(ask_int(cluster, "SELECT count(*) FROM pg_settings WHERE (name, setting) IN "
									  "(('listen_addresses', ''), ('unix_socket_permissions', '0700'), "
									  "('port', '5432'), ('recovery_init_sync_method', 'syncfs'), "
									  "('server_encoding', 'UTF8'), ('log_line_prefix', '%m [%p] %a '))"),
					 6);
	ck_assert_int_ge(ask_int(cluster, "SELECT setting FROM pg_settings WHERE name = 'max_connections'"), 63);
	ck_assert_int_eq(ask_int(cluster, "SELECT count(*) FROM pg_user WHERE usename = 'counterproof' AND usesuper"), 1);
	ck_assert(cluster_free(cluster));
}
END_TEST

START_TEST(a_second_cluster_needs_no_initdb)
{
	ServerKit kit;
	Cluster *one;
	Cluster *two;

	find_kit(&kit);
	one = create_and_start(&kit);
	two = create_and_start(&kit);
	ck_assert_int_eq(count_entries(cache, "template-16."), 1);
	ck_assert_int_eq(count_entries(cache, "."), 2); /* the folder and its parent: nothing half made */
	ck_assert_str_ne(cluster_directory(one), cluster_directory(two));
	ck_assert(cluster_free(one));
	ck_assert(cluster_verify_running(two));
	ck_assert(cluster_free(two));
}
END_TEST

START_TEST(restart_immediate_changes_the_postmaster)
{
	ServerKit kit;
	Cluster *cluster;
	char *directory;
	pid_t before;

	find_kit(&kit);
	cluster = create_and_start(&kit);
	directory = string_copy(cluster_directory(cluster));
	for (int round = 0; round < 2; round++)
	{
		before = cluster_postmaster(cluster);
		ck_assert(cluster_restart_immediate(cluster, soon()));
		ck_assert_int_ne(cluster_postmaster(cluster), before);
		ck_assert_int_eq(kill(before, 0), -1);
		ck_assert_int_eq(errno, ESRCH);
		ck_assert(cluster_verify_running(cluster));
		ck_assert_int_eq(ask_int(cluster, "SELECT 41 + 1"), 42);
	}
	ck_assert(cluster_free(cluster));
	ck_assert_int_eq(access(directory, F_OK), -1);
	assert_no_child();
	free(directory);
}
END_TEST

START_TEST(restart_needs_a_running_server)
{
	ServerKit kit;
	Cluster *cluster;

	find_kit(&kit);
	cluster = cluster_create(&kit, "test");
	ck_assert(!cluster_restart_immediate(cluster, soon()));
	assert_last_error_has("server test does not run");
	ck_assert(cluster_free(cluster));
}
END_TEST

START_TEST(stop_immediate_keeps_what_was_committed_and_starts_again)
{
	ServerKit kit;
	Cluster *cluster;
	Session *session;
	pid_t before;

	find_kit(&kit);
	cluster = create_and_start(&kit);
	for (int round = 0; round < 2; round++)
	{
		before = cluster_postmaster(cluster);
		session = session_open(cluster_conninfo(cluster, "postgres"), "test");
		ck_assert_ptr_nonnull(session);
		ck_assert(session_execute(session, "CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1)"));
		ck_assert(session_execute(session, "BEGIN; INSERT INTO kept VALUES (2)"));
		ck_assert(cluster_stop_immediate(cluster));
		ck_assert_int_eq(cluster_state(cluster), CLUSTER_STOPPED);
		ck_assert_int_eq(kill(before, 0), -1);
		ck_assert_int_eq(errno, ESRCH);
		ck_assert_int_eq(session_try(session, NULL, "SELECT 1", NO_ARGS), SQL_LOST);
		session_close(session);
		ck_assert(cluster_start(cluster, soon()));
		ck_assert_int_ne(cluster_postmaster(cluster), before);
		ck_assert_int_eq(ask_int(cluster, "SELECT sum(n) FROM kept"), round + 1);
	}
	ck_assert(cluster_free(cluster));
	assert_no_child();
}
END_TEST

START_TEST(stop_immediate_needs_the_server_that_was_started)
{
	ServerKit kit;
	Cluster *cluster;

	find_kit(&kit);
	cluster = cluster_create(&kit, "test");
	ck_assert(!cluster_stop_immediate(cluster));
	assert_last_error_has("server test is to be stopped and does not run");
	ck_assert(cluster_start(cluster, soon()));
	ck_assert_int_eq(kill(cluster_postmaster(cluster), SIGKILL), 0);
	ck_assert(!cluster_stop_immediate(cluster));
	assert_last_error_has("the postmaster of server test was ended by someone else: signal 9");
	ck_assert_int_eq(cluster_state(cluster), CLUSTER_CRASHED);
	ck_assert(!cluster_free(cluster)); /* it says that once more: its end was not in order */
}
END_TEST

static void
execute(Cluster *cluster, const char *sql)
{
	Session *session = session_open(cluster_conninfo(cluster, "postgres"), "test");

	ck_assert_ptr_nonnull(session);
	ck_assert(session_execute(session, sql));
	session_close(session);
}

typedef struct
{
	Session *session;
	atomic_bool stop;
	int64_t rows;
	bool failed;
} Load;

/* Files grow, come and go beneath the copy. */
static void *
load_run(void *context)
{
	Load *load = context;

	while (!load->failed && !atomic_load(&load->stop))
	{
		load->failed = !session_execute(load->session, "INSERT INTO kept SELECT 1 FROM generate_series(1, 100)") ||
					   !session_execute(load->session, "CREATE TABLE passing AS SELECT FROM kept") ||
					   !session_execute(load->session, "DROP TABLE passing");
		load->rows += 100;
	}
	return NULL;
}

typedef struct
{
	Cluster *cluster;
	const char *sql;
	int64_t expected;
} Await;

static ProbeAnswer
probe_answer(void *context, Text *seen)
{
	const Await *await = context;
	int64_t value = ask_int(await->cluster, await->sql);

	text_append(seen, "%d", (int) value);
	return value == await->expected ? PROBE_DONE : PROBE_AGAIN;
}

static void
await_answer(Cluster *cluster, const char *sql, int64_t expected)
{
	Await await = {cluster, sql, expected};

	ck_assert(wait_until(sql, soon(), probe_answer, &await));
}

static Cluster *
standby_of(Cluster *primary)
{
	Cluster *standby = cluster_create_standby(primary, "stand'by");

	ck_assert_ptr_nonnull(standby);
	ck_assert(cluster_start(standby, soon()));
	return standby;
}

START_TEST(a_standby_is_made_under_load_streams_and_is_promoted)
{
	ServerKit kit;
	Cluster *primary, *standby;
	Load load = {.failed = false};
	pthread_t thread;

	find_kit(&kit);
	primary = create_and_start(&kit);
	execute(primary, "CREATE TABLE kept (n int)");
	load.session = session_open(cluster_conninfo(primary, "postgres"), "load");
	ck_assert_ptr_nonnull(load.session);
	ck_assert_int_eq(pthread_create(&thread, NULL, load_run, &load), 0);
	standby = standby_of(primary);
	atomic_store(&load.stop, true);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	session_close(load.session);
	ck_assert(!load.failed);
	await_answer(standby, "SELECT count(*) FROM kept", load.rows);
	ck_assert_int_eq(ask_int(primary, "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'stand''by'"),
					 1);
	ck_assert_int_eq(ask_int(standby, "SELECT pg_is_in_recovery()::int"), 1);

	ck_assert(cluster_stop_immediate(primary));
	ck_assert(cluster_promote(standby, soon()));
	execute(standby, "INSERT INTO kept VALUES (1)");
	ck_assert_int_eq(ask_int(standby, "SELECT count(*) FROM kept"), load.rows + 1);
	ck_assert(!cluster_promote(standby, soon()));
	assert_last_error_has("recovery is not in progress");
	ck_assert(cluster_free(primary));
	ck_assert(cluster_free(standby));
	assert_no_child();
}
END_TEST

START_TEST(a_standby_needs_a_running_primary)
{
	ServerKit kit;
	Cluster *primary;

	find_kit(&kit);
	primary = cluster_create(&kit, "test");
	ck_assert_ptr_null(cluster_create_standby(primary, "standby"));
	assert_last_error_has("server test does not run");
	ck_assert(cluster_free(primary));
}
END_TEST

START_TEST(a_standby_that_was_killed_leaves_nothing)
{
	ServerKit kit;
	Cluster *primary, *standby;
	Text memory = {0};
	char *directory;

	find_kit(&kit);
	primary = create_and_start(&kit);
	standby = standby_of(primary);
	directory = string_copy(cluster_directory(standby));
	find_shared_memory(cluster_postmaster(standby), &memory);
	ck_assert_int_eq(kill(cluster_postmaster(standby), SIGKILL), 0);
	ck_assert(!cluster_stop_immediate(standby));
	ck_assert(!cluster_free(standby)); /* its end was not in order */
	ck_assert_int_eq(access(directory, F_OK), -1);
	ck_assert_int_eq(access(text_get(&memory), F_OK), -1);
	ck_assert(cluster_free(primary));
	text_free(&memory);
	free(directory);
}
END_TEST

START_TEST(memory_is_preferred_where_there_is_room)
{
	ServerKit kit;
	char before[sizeof(kit.scratch)];

	unsetenv("TMPDIR");
	find_kit(&kit);
	snprintf(before, sizeof(before), "%s", kit.scratch);
	server_kit_prefer_memory(&kit, INT64_MAX);
	ck_assert_str_eq(kit.scratch, before);
	setenv("TMPDIR", before, 1);
	server_kit_prefer_memory(&kit, 1);
	ck_assert_str_eq(kit.scratch, before);
	unsetenv("TMPDIR");
	server_kit_prefer_memory(&kit, 1);
	ck_assert_str_eq(kit.scratch, kit.in_memory ? "/dev/shm" : before);
	ck_assert(cluster_free(create_and_start(&kit)));
	assert_no_child();
}
END_TEST

START_TEST(a_server_that_dies_at_start_shows_its_log)
{
	ServerKit kit;
	Cluster *cluster;
	char *shown = string_format("%s/stderr", cache);
	Text text = {0};

	find_kit(&kit);
	cluster = cluster_create(&kit, "test");
	ck_assert(cluster_configure(cluster, "no_such_setting = 1"));
	ck_assert_ptr_nonnull(freopen(shown, "w", stderr));
	ck_assert(!cluster_start(cluster, soon()));
	assert_last_error_has("died before it accepted connections: exit 1");
	ck_assert(file_read(shown, &text));
	ck_assert_ptr_nonnull(strstr(text_get(&text), "unrecognized configuration parameter \"no_such_setting\""));
	ck_assert_int_eq(cluster_state(cluster), CLUSTER_STOPPED);
	ck_assert(cluster_free(cluster));
	assert_no_child();
	unlink(shown);
	text_free(&text);
	free(shown);
}
END_TEST

START_TEST(a_start_past_its_deadline_is_stopped)
{
	ServerKit kit;
	Cluster *cluster;

	find_kit(&kit);
	cluster = cluster_create(&kit, "test");
	ck_assert(!cluster_start(cluster, deadline_in_ms(0)));
	assert_last_error_has("the server to accept connections");
	assert_no_child();
	ck_assert(cluster_start(cluster, soon()));
	ck_assert(cluster_free(cluster));
}
END_TEST

START_TEST(a_postmaster_killed_by_hand_is_noticed)
{
	ServerKit kit;
	Cluster *cluster;
	Text memory = {0};
	char *directory;

	ck_assert(process_adopt_orphans());
	find_kit(&kit);
	cluster = create_and_start(&kit);
	directory = string_copy(cluster_directory(cluster));
	find_shared_memory(cluster_postmaster(cluster), &memory);
	ck_assert_int_eq(kill(cluster_postmaster(cluster), SIGKILL), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t) cluster_postmaster(cluster), &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	ck_assert(!cluster_verify_running(cluster));
	assert_last_error_has("has ended: signal 9");
	ck_assert_int_eq(cluster_state(cluster), CLUSTER_CRASHED);
	ck_assert(!cluster_restart_immediate(cluster, soon()));
	ck_assert(cluster_free(cluster));
	ck_assert_int_eq(access(directory, F_OK), -1);
	ck_assert_int_eq(access(text_get(&memory), F_OK), -1);
	assert_no_child();
	text_free(&memory);
	free(directory);
}
END_TEST

/* By hand, under a running server, and under one that is killed as well: then nothing can clear its memory. */
START_TEST(a_data_directory_removed_by_hand)
{
	ServerKit kit;
	Cluster *cluster;
	Text memory = {0};
	char *directory;
	char *data;

	ck_assert(process_adopt_orphans());
	find_kit(&kit);
	for (int killed = 0; killed < 2; killed++)
	{
		cluster = create_and_start(&kit);
		directory = string_copy(cluster_directory(cluster));
		data = string_format("%s/data", directory);
		text_clear(&memory);
		find_shared_memory(cluster_postmaster(cluster), &memory);
		ck_assert(process_remove_directory(data, soon()));
		if (killed == 1)
		{
			ck_assert_int_eq(kill(cluster_postmaster(cluster), SIGKILL), 0);
			ck_assert_int_eq(waitid(P_PID, (id_t) cluster_postmaster(cluster), &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
			ck_assert(!cluster_free(cluster));
			assert_last_error_has("the shared memory of server test may be left");
			ck_assert_int_eq(unlink(text_get(&memory)), 0);
		}
		else
		{
			ck_assert(cluster_free(cluster));
			ck_assert_int_eq(access(text_get(&memory), F_OK), -1);
		}
		ck_assert_int_eq(access(directory, F_OK), -1);
		free(directory);
		free(data);
	}
	text_free(&memory);
}
END_TEST

START_TEST(a_server_to_keep_stays)
{
	ServerKit kit;
	Cluster *cluster;
	char *directory;
	Process *postmaster;
	ProcessEnd end;
	Text ending = {0};
	char *expected;
	pid_t pid;

	find_kit(&kit);
	cluster = create_and_start(&kit);
	directory = string_copy(cluster_directory(cluster));
	pid = cluster_postmaster(cluster);
	cluster_keep(cluster, &ending);
	expected = string_format("kill -INT %d; tail --pid=%d -f /dev/null; rm -rf '%s'", (int) pid, (int) pid, directory);
	ck_assert_str_eq(text_get(&ending), expected);
	free(expected);
	text_free(&ending);
	ck_assert(cluster_free(cluster));
	ck_assert_int_eq(access(directory, F_OK), 0);
	postmaster = process_adopt(pid);
	ck_assert_ptr_nonnull(postmaster);
	ck_assert(!process_poll(postmaster, &end));
	ck_assert_int_eq(kill(pid, SIGQUIT), 0);
	ck_assert(process_wait(postmaster, soon(), &end));
	process_free(postmaster);
	ck_assert(process_remove_directory(directory, soon()));
	free(directory);
}
END_TEST

START_TEST(a_template_that_others_can_change_is_refused)
{
	ServerKit kit;
	Cluster *cluster;
	const char *open_argv[] = {"/bin/sh", "-c", "chmod g+w \"$1\"/template-*", "sh", cache, NULL};
	const char *close_argv[] = {"/bin/sh", "-c", "chmod g-w \"$1\"/template-*", "sh", cache, NULL};
	ProcessEnd end;

	find_kit(&kit);
	cluster = cluster_create(&kit, "test");
	ck_assert(cluster_free(cluster));
	ck_assert(process_run(&(ProcessSpec){.argv = open_argv}, soon(), NULL, &end));
	ck_assert_int_eq(end.code, 0);
	ck_assert_ptr_null(cluster_create(&kit, "test"));
	assert_last_error_has("is writable by others (mode 775)");
	ck_assert(process_run(&(ProcessSpec){.argv = close_argv}, soon(), NULL, &end));
	ck_assert_int_eq(end.code, 0);
}
END_TEST

/* Both find no template and make one; both must end with a server that runs. */
START_TEST(two_first_runs_side_by_side)
{
	ServerKit kit;
	char *folder = string_format("%s/fresh", cache);
	pid_t runs[2];
	int status;

	setenv("COUNTERPROOF_CACHE", folder, 1);
	find_kit(&kit);
	for (size_t i = 0; i < LENGTH_OF(runs); i++)
	{
		runs[i] = fork();
		if (runs[i] == 0)
		{
			Cluster *cluster = cluster_create(&kit, "test");
			bool done = cluster != NULL && cluster_start(cluster, soon());

			_exit(cluster_free(cluster) && done ? 0 : 1);
		}
	}
	for (size_t i = 0; i < LENGTH_OF(runs); i++)
	{
		ck_assert_int_eq(waitpid(runs[i], &status, 0), runs[i]);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(count_entries(folder, "template-16."), 1);
	ck_assert_int_eq(count_entries(folder, "."), 2);
	ck_assert(process_remove_directory(folder, soon()));
	free(folder);
}
END_TEST

START_TEST(folders_with_odd_names)
{
	ServerKit kit;
	Cluster *cluster;
	char *folder = string_format("%s/it's a folder", cache);

	ck_assert_int_eq(mkdir(folder, 0755), 0);
	setenv("TMPDIR", folder, 1);
	find_kit(&kit);
	cluster = create_and_start(&kit);
	ck_assert_int_eq(ask_int(cluster, "SELECT 42"), 42);
	ck_assert(cluster_restart_immediate(cluster, soon()));
	ck_assert(cluster_free(cluster));
	ck_assert_int_eq(rmdir(folder), 0);
	free(folder);
}
END_TEST

static TCase *
cases(void)
{
	TCase *tcase = tcase_create("cluster");

	tcase_set_timeout(tcase, 180);
	tcase_add_test(tcase, kit_is_found);
	tcase_add_test(tcase, kit_refuses_binaries);
	tcase_add_test(tcase, kit_refuses_accounts);
	tcase_add_test(tcase, kit_refuses_scratch_folders);
	tcase_add_test(tcase, kit_names_the_folder_that_is_closed);
	tcase_add_test(tcase, kit_refuses_caches);
	tcase_add_test(tcase, start_and_free_leave_nothing);
	tcase_add_test(tcase, settings_are_the_safe_ones);
	tcase_add_test(tcase, a_second_cluster_needs_no_initdb);
	tcase_add_test(tcase, restart_immediate_changes_the_postmaster);
	tcase_add_test(tcase, restart_needs_a_running_server);
	tcase_add_test(tcase, stop_immediate_keeps_what_was_committed_and_starts_again);
	tcase_add_test(tcase, stop_immediate_needs_the_server_that_was_started);
	tcase_add_test(tcase, a_standby_is_made_under_load_streams_and_is_promoted);
	tcase_add_test(tcase, a_standby_needs_a_running_primary);
	tcase_add_test(tcase, a_standby_that_was_killed_leaves_nothing);
	tcase_add_test(tcase, memory_is_preferred_where_there_is_room);
	tcase_add_test(tcase, a_server_that_dies_at_start_shows_its_log);
	tcase_add_test(tcase, a_start_past_its_deadline_is_stopped);
	tcase_add_test(tcase, a_postmaster_killed_by_hand_is_noticed);
	tcase_add_test(tcase, a_data_directory_removed_by_hand);
	tcase_add_test(tcase, a_server_to_keep_stays);
	tcase_add_test(tcase, a_template_that_others_can_change_is_refused);
	tcase_add_test(tcase, two_first_runs_side_by_side);
	tcase_add_test(tcase, folders_with_odd_names);
	return tcase;
}

int
main(void)
{
	Suite *suite = suite_create("cluster");

	suite_add_tcase(suite, cases());
	return suite_run_with_servers(suite);
}
