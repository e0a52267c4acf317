#include "cluster.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "reaper.h"
#include "session.h"

#define SUPERUSER "counterproof"
#define DEFAULT_ACCOUNT "nobody"
#define PORT 5432 /* part of the socket's name; nothing listens on TCP */
#define PRIVATE_NAME "cp-XXXXXX"
#define LOG_TAIL_LINES 12
#define VERSION_MS 20000
#define INITDB_MS 120000
#define COPY_MS 60000
#define STOP_MS 5000
#define REMOVE_MS 30000

/* What a template was made with is part of its name: another way of making it is another template. */
#define INITDB_OPTIONS "--no-locale", "-E", "UTF8", "-U", SUPERUSER, "-A", "trust", "--no-sync"

struct Cluster
{
	const ServerKit *kit;
	char *name;
	char *directory;
	char *data;
	char *log;
	Text conninfo;
	Process *postmaster;
	ClusterState state;
	int slot; /* with the reaper */
	bool keep;
};


/* --- running something as the server's account --- */

/* One line, for a message: what the program said last. */
static const char *
last_line(Text *output)
{
	char *newline;

	while (output->length > 0 && output->data[output->length - 1] == '\n')
	{
		output->data[--output->length] = '\0';
	}
	newline = output->length > 0 ? strrchr(output->data, '\n') : NULL;
	return newline != NULL ? newline + 1 : text_get(output);
}

/* false: reported with `purpose` and what the program said. */
static bool
run_checked(const char *purpose, const char *const *argv, const Account *account, const char *directory, int64_t ms)
{
	ProcessSpec spec = {.argv = argv, .account = account, .directory = directory};
	ProcessEnd end;
	Text output = {0};
	Text how = {0};
	bool done = process_run(&spec, deadline_in_ms(ms), &output, &end);

	if (done && (end.how != ENDED_EXIT || end.code != 0))
	{
		process_end_describe(end, &how);
		report_error("cannot %s: %s: %s: %s", purpose, argv[0], text_get(&how), last_line(&output));
		done = false;
	}
	text_free(&output);
	text_free(&how);
	return done;
}

static const Account *
kit_account(const ServerKit *kit)
{
	return kit->drops ? &kit->account : NULL;
}


/* --- the kit: binaries, account, directories --- */

static bool
kit_find_account(ServerKit *kit)
{
	const char *wanted = getenv("COUNTERPROOF_USER");
	const struct passwd *entry;

	kit->drops = geteuid() == 0;
	if (kit->drops)
	{
		wanted = wanted != NULL && wanted[0] != '\0' ? wanted : DEFAULT_ACCOUNT;
		entry = getpwnam(wanted);
		if (entry == NULL)
		{
			report_error("COUNTERPROOF_USER: there is no account \"%s\"", wanted);
			return false;
		}
		if (entry->pw_uid == 0)
		{
			report_error(
				"COUNTERPROOF_USER: PostgreSQL refuses to run as root; name an unprivileged account, not \"%s\"",
				wanted);
			return false;
		}
	}
	else
	{
		entry = getpwuid(geteuid());
		if (entry == NULL)
		{
			report_error("uid %d has no passwd entry, and initdb needs one", (int) geteuid());
			return false;
		}
	}
	snprintf(kit->account_name, sizeof(kit->account_name), "%s", entry->pw_name);
	kit->account = (Account){.uid = entry->pw_uid, .gid = entry->pw_gid, .name = kit->account_name};
	return true;
}

static bool
may_execute(const struct stat *status, const Account *account)
{
	if (status->st_uid == account->uid)
	{
		return (status->st_mode & S_IXUSR) != 0;
	}
	if (status->st_gid == account->gid)
	{
		return (status->st_mode & S_IXGRP) != 0;
	}
	return (status->st_mode & S_IXOTH) != 0;
}

/* The first part of the path whose mode keeps the account out, into `closed`. false: there is none. */
static bool
find_closed_part(const char *path, const Account *account, char *closed, size_t size)
{
	struct stat status;

	for (const char *next = path; next != NULL;)
	{
		next = strchr(next + 1, '/');
		snprintf(closed, size, "%.*s", (int) (next != NULL ? next - path : (ptrdiff_t) strlen(path)), path);
		if (stat(closed, &status) != 0 || !may_execute(&status, account))
		{
			return true;
		}
	}
	return false;
}

/* The modes explain; the kernel decides, which also knows access lists. */
static bool
check_reachable(const ServerKit *kit, const char *path, const char *what)
{
	const char *argv[] = {"/usr/bin/test", "-x", path, NULL};
	ProcessSpec spec = {.argv = argv, .account = kit_account(kit), .directory = "/"};
	ProcessEnd end;
	char closed[PATH_MAX];

	if (access(path, X_OK) != 0)
	{
		report_error("%s %s: %s", what, path, strerror(errno));
		return false;
	}
	if (!kit->drops || !find_closed_part(path, &kit->account, closed, sizeof(closed)))
	{
		return true;
	}
	if (!process_run(&spec, deadline_in_ms(VERSION_MS), NULL, &end))
	{
		return false;
	}
	if (end.how != ENDED_EXIT || end.code != 0)
	{
		report_error("%s %s is out of reach for account %s, which the server runs as: %s is closed to it", what, path,
					 kit->account_name, closed);
		return false;
	}
	return true;
}

/* "postgres (PostgreSQL) 16.14 (Debian ...)" -> "16.14" */
static bool
version_parse(const char *output, char *version, size_t size)
{
	static const char mark[] = "(PostgreSQL) ";
	const char *start = strstr(output, mark);

	if (start == NULL || !isdigit((unsigned char) start[sizeof(mark) - 1]))
	{
		return false;
	}
	start += sizeof(mark) - 1;
	snprintf(version, size, "%.*s", (int) strcspn(start, " \n"), start);
	return true;
}

static bool
kit_find_version(ServerKit *kit, int major)
{
	char postgres[PATH_MAX];
	const char *argv[] = {postgres, "--version", NULL};
	ProcessSpec spec = {.argv = argv, .account = kit_account(kit), .directory = "/"};
	ProcessEnd end;
	Text output = {0};
	bool done;

	snprintf(postgres, sizeof(postgres), "%s/postgres", kit->bindir);
	done = process_run(&spec, deadline_in_ms(VERSION_MS), &output, &end);
	if (done && (end.how != ENDED_EXIT || end.code != 0 ||
				 !version_parse(text_get(&output), kit->version, sizeof(kit->version))))
	{
		report_error("%s --version does not name a PostgreSQL version: %s", postgres, last_line(&output));
		done = false;
	}
	if (done)
	{
		kit->major = atoi(kit->version);
		done = kit->major == major;
		if (!done)
		{
			report_error("%s holds PostgreSQL %s, not %d", kit->bindir, kit->version, major);
		}
	}
	text_free(&output);
	return done;
}

static bool
kit_find_binaries(ServerKit *kit, const char *bindir)
{
	static const char *const needed[] = {"postgres", "initdb", "pg_ctl"};
	char absolute[PATH_MAX];
	char path[PATH_MAX + 16];

	if (realpath(bindir, absolute) == NULL)
	{
		report_error("no PostgreSQL binaries in %s: %s", bindir, strerror(errno));
		return false;
	}
	if (strlen(absolute) >= sizeof(kit->bindir))
	{
		report_error("the folder of PostgreSQL's programs %s has too long a name", absolute);
		return false;
	}
	snprintf(kit->bindir, sizeof(kit->bindir), "%.*s", (int) sizeof(kit->bindir) - 1, absolute);
	for (size_t i = 0; i < LENGTH_OF(needed); i++)
	{
		snprintf(path, sizeof(path), "%s/%s", kit->bindir, needed[i]);
		if (!check_reachable(kit, path, "PostgreSQL's program"))
		{
			return false;
		}
	}
	return true;
}

/* Where private directories go. The socket's path must fit what the kernel takes, so this is known before any work. */
static bool
kit_find_scratch(ServerKit *kit)
{
	const char *wanted = getenv("TMPDIR");
	char absolute[PATH_MAX];
	size_t length;
	size_t most = sizeof(((struct sockaddr_un *) NULL)->sun_path) - 1;

	wanted = wanted != NULL && wanted[0] != '\0' ? wanted : "/tmp";
	if (realpath(wanted, absolute) == NULL)
	{
		report_error("the folder for servers (TMPDIR) %s: %s", wanted, strerror(errno));
		return false;
	}
	length = strlen(absolute) + strlen("/" PRIVATE_NAME "/.s.PGSQL.5432");
	if (length > most || strlen(absolute) >= sizeof(kit->scratch))
	{
		report_error("the folder for servers (TMPDIR) %s is too long: its socket's path would have %zu bytes of %zu",
					 absolute, length, most);
		return false;
	}
	/* a comma separates socket folders, and pg_ctl hands names to a shell in double quotes */
	if (strpbrk(absolute, ",\"\\$`\n") != NULL)
	{
		report_error(
			"the folder for servers (TMPDIR) %s has one of , \" \\ $ ` in its name, which PostgreSQL cannot take",
			absolute);
		return false;
	}
	snprintf(kit->scratch, sizeof(kit->scratch), "%.*s", (int) sizeof(kit->scratch) - 1, absolute);
	return check_reachable(kit, kit->scratch, "the folder for servers (TMPDIR)");
}

/* Each missing folder of the path; mode 0755 whatever the umask. */
static bool
make_folders(const char *path)
{
	char part[PATH_MAX];

	for (const char *next = path; next != NULL;)
	{
		next = strchr(next + 1, '/');
		snprintf(part, sizeof(part), "%.*s", (int) (next != NULL ? next - path : (ptrdiff_t) strlen(path)), path);
		if (mkdir(part, 0755) == 0)
		{
			if (chmod(part, 0755) != 0)
			{
				report_error("cannot open the cache folder %s for reading: %s", part, strerror(errno));
				return false;
			}
		}
		else if (errno != EEXIST)
		{
			report_error("cannot make the cache folder %s: %s", part, strerror(errno));
			return false;
		}
	}
	return true;
}

/* What others can change, or put there, must not become a server of ours. */
static bool
check_trusted(const char *what, const char *path, const struct stat *status)
{
	if (!S_ISDIR(status->st_mode))
	{
		report_error("%s %s is no directory", what, path);
		return false;
	}
	if (status->st_uid != geteuid())
	{
		report_error("%s %s is owned by uid %d, not by the caller (uid %d)", what, path, (int) status->st_uid,
					 (int) geteuid());
		return false;
	}
	if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
	{
		report_error("%s %s is writable by others (mode %03o)", what, path, (unsigned) (status->st_mode & 0777));
		return false;
	}
	return true;
}

static char *
cache_wanted(void)
{
	const char *set = getenv("COUNTERPROOF_CACHE");
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	const struct passwd *entry;
	char here[PATH_MAX];

	if (set != NULL && set[0] == '/')
	{
		return string_copy(set);
	}
	if (set != NULL && set[0] != '\0')
	{
		return string_format("%s/%s", getcwd(here, sizeof(here)) != NULL ? here : "", set);
	}
	if (geteuid() == 0)
	{
		return string_copy("/var/cache/counterproof");
	}
	if (xdg != NULL && xdg[0] == '/')
	{
		return string_format("%s/counterproof", xdg);
	}
	if (home == NULL || home[0] != '/')
	{
		entry = getpwuid(geteuid());
		home = entry != NULL ? entry->pw_dir : "";
	}
	return string_format("%s/.cache/counterproof", home);
}

static bool
kit_find_cache(ServerKit *kit)
{
	char *wanted = cache_wanted();
	char absolute[PATH_MAX];
	struct stat status;
	bool done = false;

	if (!make_folders(wanted))
	{
		goto out;
	}
	if (realpath(wanted, absolute) == NULL || stat(absolute, &status) != 0 || strlen(absolute) >= sizeof(kit->cache))
	{
		report_error("cannot use the cache folder %s: %s", wanted, strerror(errno));
		goto out;
	}
	snprintf(kit->cache, sizeof(kit->cache), "%.*s", (int) sizeof(kit->cache) - 1, absolute);
	done =
		check_trusted("the cache folder", kit->cache, &status) && check_reachable(kit, kit->cache, "the cache folder");
out:
	free(wanted);
	return done;
}

bool
server_kit_find(ServerKit *kit, const char *bindir, int major)
{
	*kit = (ServerKit){0};
	return kit_find_account(kit) && kit_find_binaries(kit, bindir) && kit_find_version(kit, major) &&
		   kit_find_scratch(kit) && kit_find_cache(kit);
}


/* --- private directories --- */

/* Owned by the account, 0700, and known to the reaper. The path is the caller's to free. NULL: reported. */
static char *
private_make(const ServerKit *kit, int *slot)
{
	char *path = string_format("%s/" PRIVATE_NAME, kit->scratch);

	if (mkdtemp(path) == NULL)
	{
		report_error("cannot make a directory for a server in %s: %s", kit->scratch, strerror(errno));
		free(path);
		return NULL;
	}
	*slot = reaper_enter_directory(path);
	if (*slot < 0)
	{
		goto undo;
	}
	if (kit->drops && chown(path, kit->account.uid, kit->account.gid) != 0)
	{
		report_error("cannot give %s to account %s: %s", path, kit->account_name, strerror(errno));
		reaper_leave(*slot);
		goto undo;
	}
	return path;
undo:
	(void) rmdir(path);
	free(path);
	return NULL;
}

static bool
private_remove(char *path, int slot)
{
	bool done = process_remove_directory(path, deadline_in_ms(REMOVE_MS));

	reaper_leave(slot);
	free(path);
	return done;
}


/* --- the template: one initdb per machine and version --- */

static uint64_t
hash_bytes(uint64_t hash, const char *bytes)
{
	for (; *bytes != '\0'; bytes++)
	{
		hash = (hash ^ (unsigned char) *bytes) * UINT64_C(1099511628211); /* FNV-1a */
	}
	return hash;
}

/* Size and time of the programs that make it stand for the build: two builds of one version are not mixed up. */
static bool
template_name(const ServerKit *kit, char *path, size_t size)
{
	static const char *const programs[] = {"initdb", "postgres"};
	static const char *const options[] = {INITDB_OPTIONS};
	uint64_t hash = UINT64_C(14695981039346656037);
	char text[PATH_MAX + 16];
	struct stat status;

	for (size_t i = 0; i < LENGTH_OF(programs); i++)
	{
		snprintf(text, sizeof(text), "%s/%s", kit->bindir, programs[i]);
		if (stat(text, &status) != 0)
		{
			report_error("cannot look at %s: %s", text, strerror(errno));
			return false;
		}
		snprintf(text, sizeof(text), "%s %lld %lld.%09ld;", programs[i], (long long) status.st_size,
				 (long long) status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
		hash = hash_bytes(hash, text);
	}
	for (size_t i = 0; i < LENGTH_OF(options); i++)
	{
		hash = hash_bytes(hash_bytes(hash, options[i]), " ");
	}
	snprintf(path, size, "%s/template-%s-%016llx", kit->cache, kit->version, (unsigned long long) hash);
	return true;
}

static bool
run_initdb(const ServerKit *kit, const char *private)
{
	char initdb[PATH_MAX];
	char *data = string_format("%s/data", private);
	const char *argv[] = {initdb, INITDB_OPTIONS, "-D", data, NULL};
	bool done;

	snprintf(initdb, sizeof(initdb), "%s/initdb", kit->bindir);
	report_debug("making the template of PostgreSQL %s, once on this machine", kit->version);
	done = run_checked("create a data directory", argv, kit_account(kit), private, INITDB_MS);
	free(data);
	return done;
}

/* A rename that is on disk before what it names would leave a damaged template behind for ever. */
static bool
sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool done = fd >= 0 && syncfs(fd) == 0;

	if (!done)
	{
		report_error("cannot sync %s: %s", path, strerror(errno));
	}
	if (fd >= 0)
	{
		close(fd);
	}
	return done;
}

/* Where another run was faster, its template is as good: the rename onto a full directory fails. */
static bool
template_publish(const ServerKit *kit, const char *private, const char *template)
{
	static const char script[] = "umask 022; cp -R \"$1\" \"$2\" && chmod -R u=rwX,go=rX \"$2\"";
	char *source = string_format("%s/data", private);
	char *beside = string_format("%s/.new-XXXXXX", kit->cache);
	char *copy = NULL;
	int slot = -1;
	bool done = false;

	if (mkdtemp(beside) == NULL)
	{
		report_error("cannot make a directory in the cache %s: %s", kit->cache, strerror(errno));
		free(source);
		free(beside);
		return false;
	}
	slot = reaper_enter_directory(beside);
	copy = string_format("%s/data", beside);
	if (slot >= 0)
	{
		const char *argv[] = {"/bin/sh", "-c", script, "sh", source, copy, NULL};

		done = run_checked("copy a new data directory into the cache", argv, NULL, "/", COPY_MS) && sync_folder(copy);
	}
	if (done && rename(copy, template) != 0 && errno != EEXIST && errno != ENOTEMPTY)
	{
		report_error("cannot put the template to %s: %s", template, strerror(errno));
		done = false;
	}
	done = private_remove(beside, slot) && done;
	free(source);
	free(copy);
	return done;
}

static bool
template_make(const ServerKit *kit, const char *template)
{
	int slot;
	char *private = private_make(kit, &slot);
	bool done;

	if (private == NULL)
	{
		return false;
	}
	done = run_initdb(kit, private) && template_publish(kit, private, template);
	return private_remove(private, slot) && done;
}

static bool
template_ensure(const ServerKit *kit, char *path, size_t size)
{
	struct stat status;

	if (!template_name(kit, path, size))
	{
		return false;
	}
	if (lstat(path, &status) != 0)
	{
		if (errno != ENOENT)
		{
			report_error("cannot look at the template %s: %s", path, strerror(errno));
			return false;
		}
		if (!template_make(kit, path))
		{
			return false;
		}
		if (lstat(path, &status) != 0)
		{
			report_error("the template %s has gone again: %s", path, strerror(errno));
			return false;
		}
	}
	return check_trusted("the template", path, &status);
}


/* --- creating --- */

/* Inside single quotes, where an apostrophe and a backslash stand behind a backslash, in postgresql.conf as in conninfo. */
static void
append_quoted(Text *text, const char *value)
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
static void
settings_append(Text *text, const char *directory)
{
	text_append(text, "listen_addresses = ''\nport = %d\nunix_socket_directories = '\"", PORT);
	append_quoted(text, directory);
	text_append(text, "\"'\nunix_socket_permissions = 0700\nmax_connections = 100\n"
					  "log_line_prefix = '%%m [%%p] %%a '\nrecovery_init_sync_method = syncfs\n");
}

/* As the account: in a folder that belongs to it, a file of root's making could be swapped for a link. */
static bool
copy_template(const Cluster *cluster, const char *template)
{
	static const char script[] = "umask 077; cp -R \"$1\" \"$2\" && chmod 0700 \"$2\" && "
								 "printf '%s' \"$3\" >> \"$2/postgresql.conf\"";
	Text settings = {0};
	bool done;

	settings_append(&settings, cluster->directory);
	{
		const char *argv[] = {"/bin/sh", "-c", script, "sh", template, cluster->data, settings.data, NULL};

		done = run_checked("create a data directory", argv, kit_account(cluster->kit), cluster->directory, COPY_MS);
	}
	text_free(&settings);
	return done;
}

Cluster *
cluster_create(const ServerKit *kit, const char *name)
{
	char template[PATH_MAX];
	Cluster *cluster;

	if (!template_ensure(kit, template, sizeof(template)))
	{
		return NULL;
	}
	cluster = memory_get(sizeof(*cluster));
	cluster->kit = kit;
	cluster->name = string_copy(name);
	cluster->state = CLUSTER_STOPPED;
	cluster->directory = private_make(kit, &cluster->slot);
	if (cluster->directory != NULL)
	{
		cluster->data = string_format("%s/data", cluster->directory);
		cluster->log = string_format("%s/server.log", cluster->directory);
	}
	if (cluster->directory == NULL || !copy_template(cluster, template))
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
	return run_checked("write postgresql.conf", argv, kit_account(cluster->kit), cluster->directory, COPY_MS);
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
		report_error("server %s died before it accepted connections: %s; the end of its log follows", cluster->name,
					 text_get(&how));
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

/* Immediate shutdown, then by force. A server that was not there any more is gone too. */
static bool
postmaster_stop(Cluster *cluster)
{
	Process *postmaster = cluster->postmaster;
	ProcessEnd end;
	bool gone;

	cluster->postmaster = NULL;
	if (postmaster == NULL)
	{
		return true;
	}
	gone = process_poll(postmaster, &end);
	if (!gone)
	{
		(void) kill(process_pid(postmaster), SIGQUIT);
		gone = process_wait(postmaster, deadline_in_ms(STOP_MS), &end);
	}
	if (!gone)
	{
		cluster->state = CLUSTER_CRASHED;
	}
	process_free(postmaster);
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
	if (!run_checked("restart the server", argv, kit_account(cluster->kit), cluster->directory, left_ms))
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
cluster_log(const Cluster *cluster)
{
	return cluster->log;
}

const char *
cluster_conninfo(Cluster *cluster, const char *database)
{
	text_clear(&cluster->conninfo);
	text_append(&cluster->conninfo, "host='");
	append_quoted(&cluster->conninfo, cluster->directory);
	text_append(&cluster->conninfo, "' port=%d user=" SUPERUSER " dbname='", PORT);
	append_quoted(&cluster->conninfo, database);
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
	ProcessSpec spec = {.argv = argv, .account = kit_account(cluster->kit), .directory = cluster->directory};
	Text output = {0};
	ProcessEnd end;
	bool ran;

	snprintf(postgres, sizeof(postgres), "%s/postgres", cluster->kit->bindir);
	ran = process_run(&spec, deadline_in_ms(STOP_MS), &output, &end);
	if (ran)
	{
		text_append(seen, "%s", last_line(&output));
	}
	text_free(&output);
	if (!ran)
	{
		return PROBE_FAILED;
	}
	return end.how == ENDED_EXIT && end.code == 0 ? PROBE_DONE : PROBE_AGAIN;
}

void
cluster_keep(Cluster *cluster)
{
	cluster->keep = true;
}

/* Where the server may still be there, its directory is left to the reaper, which knows how to end it. */
static bool
end_and_remove(Cluster *cluster)
{
	bool stopped = postmaster_stop(cluster);

	if (cluster->state == CLUSTER_CRASHED)
	{
		stopped = wait_until("the memory of a killed server to be cleared", deadline_in_ms(STOP_MS), probe_cleared,
							 cluster) &&
				  stopped;
	}
	if (cluster->directory == NULL)
	{
		return stopped;
	}
	if (!stopped)
	{
		report_warning("the directory of server %s is left: %s", cluster->name, cluster->directory);
		free(cluster->directory);
		return false;
	}
	return private_remove(cluster->directory, cluster->slot);
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
		done = end_and_remove(cluster);
	}
	text_free(&cluster->conninfo);
	free(cluster->name);
	free(cluster->data);
	free(cluster->log);
	free(cluster);
	return done;
}
