#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trial.h"

#define FILE_BYTES_MAX (1024 * 1024)

static bool
check_size(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
	{
		report_error("%s: %s", path, strerror(errno));
		return false;
	}
	if (!S_ISREG(status.st_mode) || status.st_size > FILE_BYTES_MAX)
	{
		report_error("%s:1:1: %s", path, S_ISREG(status.st_mode) ? "longer than a megabyte" : "not a file");
		return false;
	}
	return true;
}

/* Bytes above 127 may be of any encoding. */
static bool
check_bytes(const char *path, const Text *text)
{
	int line = 1;
	size_t begin = 0;

	for (size_t i = 0; i < text->length; i++)
	{
		unsigned char byte = (unsigned char) text->data[i];

		if ((byte < ' ' && strchr("\t\n\r\f", byte) == NULL) || byte == 0 || byte == 127)
		{
			report_error("%s:%d:%d: not text: byte %d", path, line, (int) (i - begin) + 1, byte);
			return false;
		}
		if (byte == '\n')
		{
			line++;
			begin = i + 1;
		}
	}
	return true;
}

static bool
refuse(const char *path, SpecPlace place, const char *what, const char *name)
{
	report_error("%s:%d:%d: %s: %s", path, place.line, place.column, what, name);
	return false;
}

static bool
check_sessions(const char *path, const Spec *spec)
{
	for (int i = 0; i < spec->session_count; i++)
	{
		const SpecSession *session = spec->sessions[i];

		if (spec_find_session(spec, session->name) != i)
		{
			return refuse(path, session->place, "duplicate session name", session->name);
		}
		if (i == TRIAL_ACTORS_MAX)
		{
			return refuse(path, session->place, "too many sessions", session->name);
		}
	}
	return true;
}

static bool
check_faults(const char *path, const Spec *spec)
{
	return !spec->explore.faults || spec->fault_count > 0 ||
		   refuse(path, spec->explore.faults_place, "explore faults", "the file has none");
}

/* Of several the first in the file. */
static bool
check_used(const char *path, const Spec *spec)
{
	const SpecStep *first = NULL;

	if (spec->permutation_count == 0 || spec->explore.kind != EXPLORE_NONE || spec->explore.faults)
	{
		return true;
	}
	for (int i = 0; i < spec->step_count + spec->fault_count; i++)
	{
		const SpecStep *step = i < spec->step_count ? spec->steps[i] : spec->faults[i - spec->step_count];

		if (!step->used && (first == NULL || step->place.line < first->place.line))
		{
			first = step;
		}
	}
	return first == NULL || refuse(path, first->place, first->fault != 0 ? "unused fault" : "unused step", first->name);
}

static bool
read_spec(SpecFile *file, const Text *text)
{
	SpecError error;
	bool done;

	file->spec = spec_read(text_get(text), text->length, SPEC_JUDGED, &error);
	done = file->spec != NULL && spec_link(file->spec, &error);
	if (!done)
	{
		report_error("%s:%d:%d: %s%s%s", file->path, error.place.line, error.place.column, error.message,
					 error.detail != NULL ? ": " : "", error.detail != NULL ? error.detail : "");
	}
	spec_error_free(&error);
	return done;
}

SpecFile *
spec_file_read(const char *path)
{
	SpecFile *file = memory_get(sizeof(*file));
	Text text = {0};
	bool done;

	file->path = string_copy(path);
	done = check_size(path) && file_read(path, &text) && check_bytes(path, &text) && read_spec(file, &text) &&
		   check_sessions(path, file->spec) && check_faults(path, file->spec) && check_used(path, file->spec);
	text_free(&text);
	if (!done)
	{
		spec_file_free(file);
		return NULL;
	}
	return file;
}

void
spec_file_free(SpecFile *file)
{
	if (file != NULL)
	{
		spec_free(file->spec);
		free(file->path);
	}
	free(file);
}

int
spec_file_permutations(const SpecFile *file)
{
	return file->spec->permutation_count;
}

bool
spec_file_explores(const SpecFile *file)
{
	const Spec *spec = file->spec;

	return spec->permutation_count == 0 || spec->explore.kind != EXPLORE_NONE || spec->explore.faults;
}

bool
spec_file_restarts(const SpecFile *file)
{
	for (int i = 0; i < file->spec->fault_count; i++)
	{
		if (file->spec->faults[i]->fault == FAULT_RESTART)
		{
			return true;
		}
	}
	return false;
}

bool
spec_file_shares(const SpecFile *file)
{
	static const char *const words[] = {"CREATE ROLE",     "CREATE USER",  "CREATE TABLESPACE",
										"CREATE DATABASE", "ALTER SYSTEM", "CREATE SUBSCRIPTION"};

	for (int i = 0; i < file->spec->setup_count; i++)
	{
		for (size_t k = 0; k < LENGTH_OF(words); k++)
		{
			if (strcasestr(file->spec->setups[i]->sql, words[k]) != NULL)
			{
				return true;
			}
		}
	}
	return false;
}
