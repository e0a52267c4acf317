#include "offset_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTENT_BYTES 64 /* a number has 19 digits at the most */

/* Neither a pipe that nobody writes nor a device without end may be read. */
static bool
content_read(int fd, const char *path, char content[CONTENT_BYTES + 1])
{
	struct stat status;
	ssize_t length;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
	{
		report_error("offset file %s is not a regular file", path);
		return false;
	}
	if (status.st_size > CONTENT_BYTES)
	{
		report_error("offset file %s holds no event number: it has %lld bytes", path, (long long) status.st_size);
		return false;
	}
	do
	{
		length = read(fd, content, CONTENT_BYTES);
	} while (length < 0 && errno == EINTR);
	if (length < 0)
	{
		report_error("cannot read offset file %s: %s", path, strerror(errno));
		return false;
	}
	content[length] = '\0';
	if (strlen(content) != (size_t) length)
	{
		report_error("offset file %s holds no event number: a zero byte follows \"%s\"", path, content);
		return false;
	}
	return true;
}

/* Anything else than a number must not be taken for one. */
static bool
offset_parse(char *content, const char *path, int64_t *offset)
{
	size_t length = strlen(content);

	if (length > 0 && content[length - 1] == '\n')
	{
		content[length - 1] = '\0';
	}
	if (!string_to_int64(content, 0, INT64_MAX, offset))
	{
		report_error("offset file %s holds no event number: \"%s\"", path, content);
		return false;
	}
	return true;
}

/* A link to nothing is refused: where a file belongs that is not there yet, it does not say for certain. */
static bool
not_there_yet(OffsetFile *file, const char *path)
{
	struct stat status;

	if (lstat(path, &status) == 0)
	{
		report_error("offset file %s is a link to a file that does not exist", path);
		return false;
	}
	file->path = string_copy(path);
	return true;
}

static bool
existing_read(OffsetFile *file, int fd, const char *path)
{
	char content[CONTENT_BYTES + 1];

	if (!content_read(fd, path, content) || !offset_parse(content, path, &file->offset))
	{
		return false;
	}
	file->path = realpath(path, NULL);
	if (file->path == NULL)
	{
		report_error("cannot find the place of offset file %s: %s", path, strerror(errno));
		return false;
	}
	return true;
}

bool
offset_file_open(OffsetFile *file, const char *path)
{
	bool ok = false;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	*file = (OffsetFile){0};
	if (fd >= 0)
	{
		ok = existing_read(file, fd, path);
		close(fd);
	}
	else if (errno == ENOENT)
	{
		ok = not_there_yet(file, path);
	}
	else
	{
		report_error("cannot open offset file %s: %s", path, strerror(errno));
	}
	return ok && offset_file_write(file, file->offset);
}

bool
offset_file_write(OffsetFile *file, int64_t offset)
{
	char *content = string_format("%" PRId64 "\n", offset);
	bool ok = file_replace(file->path, content);

	free(content);
	if (ok)
	{
		file->offset = offset;
	}
	return ok;
}

void
offset_file_close(OffsetFile *file)
{
	free(file->path);
	*file = (OffsetFile){0};
}
