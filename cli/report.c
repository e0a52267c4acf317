/*
 * report: the page of a suite's evidence again, or one of what differs between two runs.
 */
#include "report.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "evidence.h"
#include "proc.h"

#define COMPARISON "compare.html"

static bool
has_file(const char *folder, const char *name)
{
	char *path = string_format("%s/%s", folder, name);
	bool there = access(path, R_OK) == 0;

	free(path);
	return there;
}

/* A folder by its path, or a suite by its name. The caller frees. */
static char *
find_folder(const Options *options, const char *word)
{
	char *suite = string_format("%s/%s", options->runner.evidence_root, word);

	if (strchr(word, '/') == NULL && !has_file(word, EVIDENCE_RESULTS) && has_file(suite, EVIDENCE_RESULTS))
	{
		return suite;
	}
	free(suite);
	return string_copy(word);
}

static void
open_page(const char *path)
{
	char *opener = process_find_program("xdg-open", NULL);
	const char *const argv[] = {opener, path, NULL};
	Process *process = opener != NULL ? process_start(&(ProcessSpec){.argv = argv, .output_file = "/dev/null"}) : NULL;

	if (opener == NULL)
	{
		report_warning("nothing here opens pages (xdg-open): open it in a browser yourself");
	}
	process_release(process);
	free(opener);
}

static ExitCode
tell(const Options *options, ReportEnd end, const char *path)
{
	if (end == REPORT_WRITTEN)
	{
		printf("report    %s\n", path);
		fflush(stdout);
	}
	if (end == REPORT_WRITTEN && options->open)
	{
		open_page(path);
	}
	return end == REPORT_WRITTEN ? EXIT_CODE_PASS : end == REPORT_UNREADABLE ? EXIT_CODE_USAGE : EXIT_CODE_BROKEN;
}

static ExitCode
rebuild(const Options *options, const char *folder)
{
	char *path = string_format("%s/" REPORT_PAGE, folder);
	ExitCode code = tell(options, report_write(folder), path);

	free(path);
	return code;
}

/* Every suite of which there is evidence. Those that can be read are made, whatever becomes of others. */
static ExitCode
rebuild_all(const Options *options)
{
	const char *root = options->runner.evidence_root;
	struct dirent **entries;
	int count = scandir(root, &entries, NULL, alphasort);
	ExitCode code = EXIT_CODE_NO_MATCH;

	for (int i = 0; i < count; i++)
	{
		char *folder = string_format("%s/%s", root, entries[i]->d_name);

		if (entries[i]->d_name[0] != '.' && has_file(folder, EVIDENCE_RESULTS))
		{
			ExitCode one = rebuild(options, folder);

			code = one != EXIT_CODE_PASS || code == EXIT_CODE_NO_MATCH ? one : code;
		}
		free(folder);
		free(entries[i]);
	}
	if (count >= 0)
	{
		free(entries);
	}
	if (code == EXIT_CODE_NO_MATCH)
	{
		report_error("no evidence in %s", root);
	}
	return code;
}

static ExitCode
compare(const Options *options, const char *const *words)
{
	char *before = find_folder(options, words[0]);
	char *after = find_folder(options, words[1]);
	char *path = string_format("%s/" COMPARISON, after);
	ExitCode code = tell(options, report_compare(before, after, path), path);

	free(before);
	free(after);
	free(path);
	return code;
}

/* As a run of all the parts would have ended. */
static ExitCode
merge(const Options *options, const char *const *words, int word_count)
{
	EvidenceTotals totals;
	Text summary = {0};
	ExitCode code = EXIT_CODE_USAGE;

	if (evidence_merge(options->runner.evidence_root, words, word_count, &totals, &summary))
	{
		printf("%s\n", text_get(&summary));
		fflush(stdout);
		code = runner_exit_code(&totals);
	}
	text_free(&summary);
	return code;
}

static bool
words_fit(const Options *options, int word_count)
{
	if (options->compare && (word_count != 2 || options->merge))
	{
		report_error("--compare is for two folders: ./run.sh report --compare BEFORE AFTER");
		return false;
	}
	if (options->merge && word_count < 2)
	{
		report_error("--merge is for the folders of parts: ./run.sh report --merge PART PART...");
		return false;
	}
	if (word_count > 1 && !options->compare && !options->merge)
	{
		report_error("report takes one folder, or more with --compare or --merge");
		return false;
	}
	return true;
}

ExitCode
command_report(const Options *options, const char *const *words, int word_count)
{
	ExitCode code;
	char *folder;

	if (!words_fit(options, word_count))
	{
		return EXIT_CODE_USAGE;
	}
	if (options->merge)
	{
		return merge(options, words, word_count);
	}
	if (options->compare)
	{
		return compare(options, words);
	}
	if (word_count == 0)
	{
		return rebuild_all(options);
	}
	folder = find_folder(options, words[0]);
	code = rebuild(options, folder);
	free(folder);
	return code;
}
