#include "folders.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of this program, in memory of its own. */
static char *
program_folder(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (length <= 0)
	{
		return string_copy(".");
	}
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL && slash != path)
	{
		*slash = '\0';
	}
	return string_copy(path);
}

/* Above the build's folder, which may be build/ or build/<preset>/: the first folder with sql/ in it. */
static char *
find_home(const char *programs)
{
	char *home = string_copy(programs);
	char *slash;

	while ((slash = strrchr(home, '/')) != NULL && slash != home)
	{
		char *sql;
		bool found;

		*slash = '\0';
		sql = string_format("%s/sql", home);
		found = access(sql, X_OK) == 0;
		free(sql);
		if (found)
		{
			return home;
		}
	}
	free(home);
	return string_copy(programs);
}

/* Programs of a case have working folders of their own, so a path from here would not be theirs. */
static char *
absolute(const char *path)
{
	char here[PATH_MAX];

	if (path[0] == '/' || getcwd(here, sizeof(here)) == NULL)
	{
		return string_copy(path);
	}
	return string_format("%s/%s", here, path);
}

/* Takes the path over, for options_free(). */
static const char *
keep(Options *options, char *path)
{
	options->paths[options->path_count++] = path;
	return path;
}

void
folders_find(Options *options)
{
	RunnerConfig *runner = &options->runner;
	bool from_run = options->home != NULL;
	const char *pg_bin = runner->pg_bin != NULL ? runner->pg_bin : getenv("PG_BIN");

	runner->programs = keep(options, runner->programs != NULL ? absolute(runner->programs) : program_folder());
	options->home = keep(options, from_run ? absolute(options->home) : find_home(runner->programs));
	runner->sql = keep(options, runner->sql != NULL ? absolute(runner->sql) : string_format("%s/sql", options->home));
	if (runner->evidence_root == NULL && from_run)
	{
		runner->evidence_root = keep(options, string_format("%s/evidence", options->home));
	}
	else
	{
		runner->evidence_root =
			keep(options, absolute(runner->evidence_root != NULL ? runner->evidence_root : "evidence"));
	}
	runner->pg_bin = pg_bin != NULL ? keep(options, absolute(pg_bin)) : NULL;
}
