#include "cluster_private.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEFAULT_ACCOUNT "nobody"
#define VERSION_MS 20000


/* --- running something as the server's account --- */

const char *
kit_last_line(Text *output)
{
	char *newline;

	while (output->length > 0 && output->data[output->length - 1] == '\n')
	{
		output->data[--output->length] = '\0';
	}
	newline = output->length > 0 ? strrchr(output->data, '\n') : NULL;
	return newline != NULL ? newline + 1 : text_get(output);
}

bool
kit_run(const char *purpose, const char *const *argv, const Account *account, const char *directory, int64_t ms)
{
	ProcessSpec spec = {.argv = argv, .account = account, .directory = directory, .own_group = true};
	ProcessEnd end;
	Text output = {0};
	Text how = {0};
	bool done = process_run(&spec, deadline_in_ms(ms), &output, &end);

	if (done && (end.how != ENDED_EXIT || end.code != 0))
	{
		process_end_describe(end, &how);
		report_error("cannot %s: %s: %s: %s", purpose, argv[0], text_get(&how), kit_last_line(&output));
		done = false;
	}
	text_free(&output);
	text_free(&how);
	return done;
}

const Account *
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
	ProcessSpec spec = {.argv = argv, .account = kit_account(kit), .directory = "/", .own_group = true};
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
	ProcessSpec spec = {.argv = argv, .account = kit_account(kit), .directory = "/", .own_group = true};
	ProcessEnd end;
	Text output = {0};
	bool done;

	snprintf(postgres, sizeof(postgres), "%s/postgres", kit->bindir);
	done = process_run(&spec, deadline_in_ms(VERSION_MS), &output, &end);
	if (done && (end.how != ENDED_EXIT || end.code != 0 ||
				 !version_parse(text_get(&output), kit->version, sizeof(kit->version))))
	{
		report_error("%s --version does not name a PostgreSQL version: %s", postgres, kit_last_line(&output));
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

/* Bytes that can be had for a memory file system, as the kernel guesses; 0 when it does not say. */
static int64_t
memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long long kilobytes = 0;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL && kilobytes == 0)
	{
		if (sscanf(line, "MemAvailable: %lld kB", &kilobytes) != 1)
		{
			kilobytes = 0;
		}
	}
	if (file != NULL)
	{
		fclose(file);
	}
	return (int64_t) kilobytes * 1024;
}

void
server_kit_prefer_memory(ServerKit *kit, int64_t bytes)
{
	static const char memory[] = "/dev/shm";
	const char *wanted = getenv("TMPDIR");
	struct statfs system;

	if ((wanted != NULL && wanted[0] != '\0') || statfs(memory, &system) != 0 || system.f_type != TMPFS_MAGIC ||
		access(memory, W_OK | X_OK) != 0)
	{
		return;
	}
	if ((int64_t) system.f_bavail * system.f_bsize / 2 >= bytes && memory_available() / 2 >= bytes)
	{
		snprintf(kit->scratch, sizeof(kit->scratch), "%s", memory);
		kit->in_memory = true;
	}
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

bool
kit_check_trusted(const char *what, const char *path, const struct stat *status)
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
	done = kit_check_trusted("the cache folder", kit->cache, &status) &&
		   check_reachable(kit, kit->cache, "the cache folder");
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
