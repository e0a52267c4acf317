/*
 * A page: the template that the build has made, with the evidence as JSON in its middle. What is shown, and how, is the
 * business of the scripts in page/.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evidence.h"
#include "parts.h"

/* A page that is longer than this opens slowly: of what passed it then has the sums only. */
#define WHOLE_BYTES (48 << 20)

typedef struct
{
	FILE *file;
	bool shortened;
	size_t cases;
} Page;


/* --- JSON that no browser takes for markup --- */

static int
write_escaped(const char *bytes, size_t length, void *context)
{
	FILE *page = context;

	for (const char *end = bytes + length; bytes < end;)
	{
		const char *bracket = memchr(bytes, '<', (size_t) (end - bytes));
		const char *stop = bracket != NULL ? bracket : end;

		(void) !fwrite(bytes, 1, (size_t) (stop - bytes), page);
		if (bracket != NULL)
		{
			fputs("\\u003c", page);
		}
		bytes = stop + (bracket != NULL);
	}
	return 0;
}

void
page_json(FILE *page, const json_t *value)
{
	(void) json_dump_callback(value, write_escaped, page, JSON_COMPACT | JSON_ENCODE_ANY);
}


/* --- one run --- */

static bool
write_head(void *context, const json_t *head)
{
	const Page *page = context;

	fputs(",\"head\":", page->file);
	page_json(page->file, head);
	fputs(",\"cases\":[", page->file);
	return true;
}

static bool
write_entry(void *context, const json_t *head, const json_t *entry)
{
	static const char *const long_members[] = {"checks", "lines", "series"};
	Page *page = context;
	json_t *shown = json_copy((json_t *) entry);
	const char *result = json_string_value(json_object_get(entry, "result"));

	(void) head;
	for (size_t i = 0; page->shortened && strcmp(result, "PASS") == 0 && i < LENGTH_OF(long_members); i++)
	{
		json_object_del(shown, long_members[i]);
	}
	fputs(page->cases++ > 0 ? ",\n" : "\n", page->file);
	page_json(page->file, shown);
	json_decref(shown);
	return true;
}

static bool
is_long(const char *folder)
{
	char *path = string_format("%s/" EVIDENCE_RESULTS, folder);
	struct stat info;
	bool longer = stat(path, &info) == 0 && info.st_size > WHOLE_BYTES;

	free(path);
	return longer;
}

/* Its element for the scripts, which find it by its class. */
static bool
write_run(FILE *file, const char *folder)
{
	static const ResultsVisit visit = {write_head, write_entry};
	Page page = {.file = file, .shortened = is_long(folder)};
	char *trace = string_format("%s/" EVIDENCE_TRACE, folder);
	json_t *name = json_string(folder);
	bool done;

	fputs("<script type=\"application/json\" class=\"run\">{\"folder\":", file);
	page_json(file, name);
	fprintf(file, ",\"shortened\":%s", page.shortened ? "true" : "false");
	done = evidence_scan(folder, true, &visit, &page);
	fputs("],\"traces\":[", file);
	done = done && executions_write(trace, file);
	fputs("]}</script>\n", file);
	json_decref(name);
	free(trace);
	return done;
}


/* --- the page --- */

static bool
write_runs(FILE *file, const char *const *folders, int count)
{
	const char *page = (const char *) report_page;
	const char *gap = strstr(page, PAGE_DATA);
	bool done = true;

	(void) !fwrite(page, 1, (size_t) (gap - page), file);
	for (int i = 0; i < count && done; i++)
	{
		done = write_run(file, folders[i]);
	}
	fputs(gap + strlen(PAGE_DATA), file);
	return done;
}

/* Close, and give the page its name, or leave nothing. */
static ReportEnd
finish(FILE *file, bool readable, const char *aside, const char *path)
{
	bool written = fflush(file) == 0 && ferror(file) == 0;
	int reason = errno;
	ReportEnd end = !readable ? REPORT_UNREADABLE : REPORT_UNWRITABLE;

	if (fclose(file) != 0 && written)
	{
		written = false;
		reason = errno;
	}
	if (readable && written && rename(aside, path) == 0)
	{
		return REPORT_WRITTEN;
	}
	if (readable)
	{
		report_error("cannot write %s: %s", path, strerror(written ? errno : reason));
	}
	(void) unlink(aside);
	return end;
}

static ReportEnd
write_page(const char *const *folders, int count, const char *path)
{
	char *aside = string_format("%s.%d", path, (int) getpid());
	FILE *file = fopen(aside, "we");
	ReportEnd end;

	if (file == NULL)
	{
		end = errno == ENOENT || errno == ENOTDIR ? REPORT_UNREADABLE : REPORT_UNWRITABLE;
		report_error(end == REPORT_UNREADABLE ? "there is no evidence to make %s of: %m" : "cannot write %s: %m", path);
	}
	else
	{
		end = finish(file, write_runs(file, folders, count), aside, path);
	}
	free(aside);
	return end;
}

ReportEnd
report_write(const char *folder)
{
	char *path = string_format("%s/" REPORT_PAGE, folder);
	ReportEnd end = write_page(&folder, 1, path);

	free(path);
	return end;
}

ReportEnd
report_compare(const char *before, const char *after, const char *path)
{
	const char *folders[] = {before, after};

	return write_page(folders, (int) LENGTH_OF(folders), path);
}
