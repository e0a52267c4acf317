/*
 * Files and folders of the evidence: writing that notices a full disk, the run's own folder, and closing by rename.
 *
 * A run's folder is told from a dead run's by a lock on a file in it, which the kernel drops when the run ends, however
 * it ends. Making a folder and looking for dead ones both happen under one lock of the root, so that no run ever sees
 * another's folder before it is locked.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence_model.h"

#define RUN_PREFIX ".run-"
#define ROOT_LOCK ".lock"
#define ROOT_LOCK_MS 10000
#define INSTALL_ATTEMPTS 100
#define COPY_BYTES 65536


/* --- files --- */

bool
output_open(Evidence *evidence, OutputFile *file, const char *folder, const char *name)
{
	file->path = string_format("%s/%s", folder, name);
	file->fd = open(file->path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (file->fd < 0)
	{
		return evidence_fail(evidence, "cannot write evidence: %s: %m", file->path);
	}
	return true;
}

/* Silent and without effect after a failure: what follows a hole would read as if it followed the line before. */
bool
output_write(Evidence *evidence, OutputFile *file, const char *bytes, size_t length)
{
	if (evidence->failed)
	{
		return false;
	}
	return file_write(file->fd, bytes, length) || evidence_fail(evidence, "cannot write evidence: %s: %m", file->path);
}

bool
output_copy(Evidence *evidence, OutputFile *file, const char *source)
{
	char *buffer = memory_get(COPY_BYTES);
	int fd = open(source, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;
	bool done = true;

	while (fd >= 0 && done && (got = read(fd, buffer, COPY_BYTES)) > 0)
	{
		done = output_write(evidence, file, buffer, (size_t) got);
	}
	if (done && got < 0)
	{
		done = evidence_fail(evidence, "cannot read %s for the evidence: %m", source);
	}
	if (fd >= 0)
	{
		close(fd);
	}
	free(buffer);
	return done;
}

void
output_close(OutputFile *file)
{
	if (file->fd >= 0)
	{
		close(file->fd);
		file->fd = -1;
	}
}


/* --- folders --- */

/* Make a folder and those above it. */
bool
folder_make(Evidence *evidence, const char *path)
{
	char *part = string_copy(path);
	struct stat info;
	bool done = true;

	for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
	{
		*slash = '\0';
		/* Only the last mkdir() decides: one above may be refused although it is there. */
		(void) !mkdir(part, 0777);
		*slash = '/';
	}
	if (mkdir(part, 0777) != 0)
	{
		int reason = errno;

		if (reason != EEXIST || stat(part, &info) != 0 || !S_ISDIR(info.st_mode))
		{
			done = evidence_fail(evidence, "cannot make evidence folder %s: %s", path,
								 reason == EEXIST ? "a file is in the way" : strerror(reason));
		}
	}
	free(part);
	return done;
}

static int
remove_one(const char *path, const struct stat *info, int type, struct FTW *position)
{
	(void) info;
	(void) position;
	/* What cannot be removed, or another run has removed meanwhile, stays hidden and is tried again by the next run. */
	(void) !(type == FTW_DP ? rmdir(path) : unlink(path));
	return 0;
}

void
folder_remove(const char *path)
{
	(void) nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Lock the file of this name in the folder. -1: errno says why, EWOULDBLOCK that another holds it. */
static int
lock_take(const char *folder, const char *name, int flags)
{
	char *path = string_format("%s/%s", folder, name);
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0666);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
	{
		int reason = errno;

		close(fd);
		errno = reason;
		fd = -1;
	}
	free(path);
	return fd;
}

typedef struct
{
	const char *root;
	int fd;
} RootLock;

static ProbeAnswer
probe_root_lock(void *context, Text *seen)
{
	RootLock *lock = context;

	lock->fd = lock_take(lock->root, ROOT_LOCK, O_CREAT);
	if (lock->fd >= 0)
	{
		return PROBE_DONE;
	}
	if (errno == EWOULDBLOCK || errno == EINTR)
	{
		text_append(seen, "another run holds %s/%s", lock->root, ROOT_LOCK);
		return PROBE_AGAIN;
	}
	report_error("cannot write evidence: %s/%s: %m", lock->root, ROOT_LOCK);
	return PROBE_FAILED;
}

/* Make and lock <root>/.run-<pid>-<n>. The process number alone may come again, in another container say. */
static bool
make_run_folder(Evidence *evidence)
{
	for (int n = 0;; n++)
	{
		free(evidence->folder);
		evidence->folder = string_format("%s/%s%d-%d", evidence->run.root, RUN_PREFIX, (int) getpid(), n);
		if (mkdir(evidence->folder, 0777) == 0)
		{
			break;
		}
		if (errno != EEXIST)
		{
			evidence_fail(evidence, "cannot make evidence folder %s: %m", evidence->folder);
			free(evidence->folder);
			evidence->folder = NULL;
			return false;
		}
	}
	evidence->lock = lock_take(evidence->folder, "lock", O_CREAT);
	if (evidence->lock < 0)
	{
		return evidence_fail(evidence, "cannot write evidence: %s/lock: %m", evidence->folder);
	}
	return true;
}

static void
remove_dead_runs(const Evidence *evidence)
{
	DIR *root = opendir(evidence->run.root);
	const struct dirent *entry;

	while (root != NULL && (entry = readdir(root)) != NULL)
	{
		char *path = string_format("%s/%s", evidence->run.root, entry->d_name);

		if (strncmp(entry->d_name, RUN_PREFIX, strlen(RUN_PREFIX)) == 0 && strcmp(path, evidence->folder) != 0)
		{
			int fd = lock_take(path, "lock", 0);

			/* Without a lock file it was killed before it locked, or half removed. */
			if (fd >= 0 || errno == ENOENT)
			{
				folder_remove(path);
			}
			if (fd >= 0)
			{
				close(fd);
			}
		}
		free(path);
	}
	if (root != NULL)
	{
		closedir(root);
	}
}

bool
folder_open(Evidence *evidence)
{
	RootLock lock = {.root = evidence->run.root, .fd = -1};
	bool done;

	if (!folder_make(evidence, evidence->run.root))
	{
		return false;
	}
	if (!wait_until("the lock of the evidence folder", deadline_in_ms(ROOT_LOCK_MS), probe_root_lock, &lock))
	{
		evidence->failed = true;
		return false;
	}
	done = make_run_folder(evidence);
	if (done)
	{
		remove_dead_runs(evidence);
	}
	close(lock.fd);
	return done;
}

bool
folder_point(Evidence *evidence)
{
	char *link = string_format("%s/link", evidence->folder);
	char *target = string_format("%s/%s", strrchr(evidence->folder, '/') + 1, EVIDENCE_OUTPUT);
	bool done = true;

	for (int i = 0; i < evidence->suite_count && done; i++)
	{
		char *place = string_format("%s/%s", evidence->run.root, evidence->suites[i].name);
		struct stat info;

		/* Better said before the cases run than when the folder is to be moved there. */
		if (lstat(place, &info) == 0 && !S_ISDIR(info.st_mode))
		{
			done = evidence_fail(evidence, "cannot make evidence folder %s: a file is in the way", place);
		}
		free(place);
	}
	if (done && (symlink(target, link) != 0 || rename(link, evidence->final_path) != 0))
	{
		done = evidence_fail(evidence, "cannot write evidence: %s: %m", evidence->final_path);
	}
	free(link);
	free(target);
	return done;
}

bool
folder_install(Evidence *evidence, const Suite *suite)
{
	char *place = string_format("%s/%s", evidence->run.root, suite->name);
	char *aside = string_format("%s/replaced-%s", evidence->folder, suite->name);
	bool done = false;

	/* Another run that ends at the same moment may put its folder there, or take it away, between two of these. */
	for (int attempt = 0; attempt < INSTALL_ATTEMPTS && !done; attempt++)
	{
		if (rename(suite->folder, place) == 0 ||
			renameat2(AT_FDCWD, suite->folder, AT_FDCWD, place, RENAME_EXCHANGE) == 0)
		{
			done = true;
		}
		else if ((errno == EINVAL || errno == ENOSYS) && rename(place, aside) != 0 && errno != ENOENT)
		{
			break;
		}
		else if (errno != EINVAL && errno != ENOSYS && errno != ENOENT)
		{
			break;
		}
	}
	if (!done)
	{
		evidence_fail(evidence, "cannot move %s to %s: %m", suite->folder, place);
	}
	free(place);
	free(aside);
	return done;
}
