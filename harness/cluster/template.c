#include "cluster_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../reaper.h"

#define INITDB_MS 120000
#define REMOVE_MS 30000

/* What a template was made with is part of its name: another way of making it is another template. */
#define INITDB_OPTIONS "--no-locale", "-E", "UTF8", "-U", CLUSTER_USER, "-A", "trust", "--no-sync"


/* --- private directories --- */

/*
 * ext4 gives out no inode that was freed within the last minutes, and looks through all of these for each new file: a run
 * soon after another, whose thousands of files were just removed, spent a third of its time there (measured). A
 * directory that is the top of a hierarchy has its own directories spread over the disk. A hint: where it is not
 * taken, nothing is lost but time.
 */
static void
spread_below(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int flags;

	if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0)
	{
		flags |= FS_TOPDIR_FL;
		(void) ioctl(fd, FS_IOC_SETFLAGS, &flags);
	}
	if (fd >= 0)
	{
		close(fd);
	}
}

char *
private_directory_make(const ServerKit *kit, int *slot)
{
	char *path = string_format("%s/" PRIVATE_NAME, kit->scratch);

	*slot = reaper_make_directory(path);
	if (*slot < 0)
	{
		free(path);
		return NULL;
	}
	spread_below(path);
	if (kit->drops && chown(path, kit->account.uid, kit->account.gid) != 0)
	{
		report_error("cannot give %s to account %s: %s", path, kit->account_name, strerror(errno));
		(void) rmdir(path);
		reaper_leave(*slot);
		free(path);
		return NULL;
	}
	return path;
}

bool
private_directory_remove(char *path, int slot)
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
	done = kit_run("create a data directory", argv, kit_account(kit), private, INITDB_MS);
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
	char *beside = string_format("%s/.new-XXXXXX", kit->cache);
	int slot = reaper_make_directory(beside);
	char *source;
	char *copy;
	bool done;

	if (slot < 0)
	{
		free(beside);
		return false;
	}
	source = string_format("%s/data", private);
	copy = string_format("%s/data", beside);
	done = kit_run("copy a new data directory into the cache",
				   (const char *[]){"/bin/sh", "-c", script, "sh", source, copy, NULL}, NULL, "/", COPY_MS) &&
		   sync_folder(copy);
	if (done && rename(copy, template) != 0 && errno != EEXIST && errno != ENOTEMPTY)
	{
		report_error("cannot put the template to %s: %s", template, strerror(errno));
		done = false;
	}
	done = private_directory_remove(beside, slot) && done;
	free(source);
	free(copy);
	return done;
}

static bool
template_make(const ServerKit *kit, const char *template)
{
	int slot;
	char *private = private_directory_make(kit, &slot);
	bool done;

	if (private == NULL)
	{
		return false;
	}
	done = run_initdb(kit, private) && template_publish(kit, private, template);
	return private_directory_remove(private, slot) && done;
}

bool
cluster_template_ensure(const ServerKit *kit, char *path, size_t size)
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
	return kit_check_trusted("the template", path, &status);
}
