/*
 * results.json read back, case by case, so that a run of any length takes the memory of one: what a run before this one, or
 * beside it, has found. Nothing in it is trusted: a file that was damaged, cut or written by another is told from ours.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence_model.h"

typedef struct
{
	const ResultsVisit *visit;
	void *context;
	char *path; /* of what is read */
	FILE *file;
	char *line;
	size_t size;
	int number; /* of the line, from 1 */
	json_t *head;
	json_int_t cases;
} Scan;

static bool scan_refuse(const Scan *scan, const char *format, ...) PRINTF_LIKE(2, 3);

static bool
scan_refuse(const Scan *scan, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	report_error("cannot read %s: line %d: %s", scan->path, scan->number, text_get(&text));
	text_free(&text);
	return false;
}

static bool
next_line(Scan *scan, size_t *length)
{
	ssize_t got = getline(&scan->line, &scan->size, scan->file);

	*length = got > 0 ? (size_t) got : 0;
	scan->number += got > 0;
	return got > 0;
}


/* --- the head --- */

static bool
check_head(const Scan *scan)
{
	json_error_t error;
	int format;
	json_int_t seed;
	const char *suite;
	json_t *environment, *cases;

	if (json_unpack_ex(scan->head, &error, 0, "{s:i}", "format", &format) != 0)
	{
		return scan_refuse(scan, "%s", error.text);
	}
	if (format != RESULTS_FORMAT)
	{
		return scan_refuse(scan, "its format is %d, and this program knows %d", format, RESULTS_FORMAT);
	}
	return json_unpack_ex(scan->head, &error, 0, "{s:s, s:I, s:o, s:{s:i}, s:o}", "suite", &suite, "seed", &seed,
						  "environment", &environment, "totals", "scenarios", &format, "cases", &cases) == 0 ||
		   scan_refuse(scan, "%s", error.text);
}

/* Everything before the cases. */
static bool
read_head(Scan *scan)
{
	Text text = {0};
	json_error_t error = {.text = "it has no cases, each on a line"};
	bool opened = false;
	size_t length;

	while (!opened && next_line(scan, &length))
	{
		text_append_bytes(&text, scan->line, length);
		opened = strcmp(scan->line, RESULTS_CASES_BEGIN) == 0;
	}
	if (opened)
	{
		text_append(&text, RESULTS_CASES_END);
		scan->head = json_loadb(text.data, text.length, JSON_REJECT_DUPLICATES, &error);
	}
	text_free(&text);
	if (scan->head == NULL)
	{
		return scan_refuse(scan, "%s", error.text);
	}
	return check_head(scan);
}


/* --- the cases --- */

static bool
check_lists(const json_t *entry, json_error_t *error)
{
	const json_t *value;
	size_t i;

	json_array_foreach(json_object_get(entry, "checks"), i, value)
	{
		const char *text, *expected, *actual;
		int ok;

		if (json_unpack_ex((json_t *) value, error, 0, "{s:s, s:b, s:s, s:s}", "text", &text, "ok", &ok, "expected",
						   &expected, "actual", &actual) != 0)
		{
			return false;
		}
	}
	json_array_foreach(json_object_get(entry, "lines"), i, value)
	{
		const char *line;

		if (json_unpack_ex((json_t *) value, error, 0, "s", &line) != 0)
		{
			return false;
		}
	}
	return true;
}

static bool
visit_entry(Scan *scan, size_t length)
{
	json_error_t error;
	const char *id, *result;
	int repetition, passed, failed, duration;
	json_t *checks, *faults, *lines;
	/* Past the value stands the comma of the list, if anything. */
	json_t *entry = json_loadb(scan->line, length, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
	bool done = entry != NULL &&
				json_unpack_ex(entry, &error, 0, "{s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "id", &id, "result",
							   &result, "repetition", &repetition, "passed", &passed, "failed", &failed, "duration_ms",
							   &duration, "checks", &checks, "faults", &faults, "lines", &lines) == 0 &&
				check_lists(entry, &error);

	if (!done)
	{
		(void) scan_refuse(scan, "%s", error.text);
	}
	scan->cases++;
	done = done && scan->visit->entry(scan->context, scan->head, entry);
	json_decref(entry);
	return done;
}

static bool
read_entries(Scan *scan)
{
	json_int_t wanted = json_integer_value(json_object_get(json_object_get(scan->head, "totals"), "scenarios"));
	size_t length = 0;
	bool closed = false;

	while (!closed && next_line(scan, &length))
	{
		closed = strcmp(scan->line, RESULTS_CASES_END) == 0;
		if (!closed && length > 1 && scan->line[0] != '{') /* an empty line: a suite without any case */
		{
			return scan_refuse(scan, "neither a case nor the end");
		}
		if (!closed && length > 1 && !visit_entry(scan, length))
		{
			return false;
		}
	}
	if (!closed)
	{
		return scan_refuse(scan, "it ends before its end");
	}
	if (scan->cases != wanted)
	{
		return scan_refuse(scan, "%" PRId64 " cases, and its head says %" PRId64, (int64_t) scan->cases,
						   (int64_t) wanted);
	}
	return !next_line(scan, &length) || scan_refuse(scan, "something stands behind its end");
}


/* --- what a run that was cut short has left --- */

/* Its last part, which is the suite's name. */
static const char *
name_of(const char *folder)
{
	const char *slash = strrchr(folder, '/');

	return slash != NULL ? slash + 1 : folder;
}

/* env.txt has what the head would have had. */
static bool
read_environment(Scan *scan, const char *folder)
{
	json_t *environment = json_object();
	char *path = string_format("%s/" EVIDENCE_ENVIRONMENT, folder);
	Text text = {0};
	bool done = file_read(path, &text);
	char *rest = text.data;
	char *line;
	const char *seed;

	while (done && rest != NULL && (line = strsep(&rest, "\n")) != NULL)
	{
		char *value = strchr(line, '=');

		if (value != NULL)
		{
			*value = '\0';
			json_object_set_new(environment, line, json_string(value + 1));
		}
	}
	seed = json_string_value(json_object_get(environment, "seed"));
	scan->head = json_pack("{s:i, s:s, s:I, s:o}", "format", RESULTS_FORMAT, "suite", name_of(folder), "seed",
						   (json_int_t) (seed != NULL ? strtoll(seed, NULL, 10) : 0), "environment", environment);
	text_free(&text);
	free(path);
	return done;
}

/* The lines of output.txt from where the last case without a result begins. */
static bool
read_running(Scan *scan, const char *folder)
{
	json_t *running = json_array();
	char *path = string_format("%s/" EVIDENCE_OUTPUT, folder);
	Text text = {0};
	bool done = file_read(path, &text);
	char *rest = text.data;
	char *line;

	while (done && rest != NULL && (line = strsep(&rest, "\n")) != NULL)
	{
		if (strncmp(line, "== ", 3) == 0 || strncmp(line, "result ", 7) == 0)
		{
			json_array_clear(running);
		}
		if (line[0] != '\0' && strncmp(line, "result ", 7) != 0)
		{
			json_array_append_new(running, json_string(line)); /* half a character at the end is left out */
		}
	}
	json_object_set_new(scan->head, "cut_short", running);
	text_free(&text);
	free(path);
	return done;
}

/* The last line may have been cut with the run: without its end it is no case yet. */
static bool
read_left_entries(Scan *scan)
{
	size_t length;
	size_t end;

	while (next_line(scan, &length))
	{
		end = strcspn(scan->line, "\n");
		end -= end > 0 && scan->line[end - 1] == ',';
		if (end == 0 || scan->line[end - 1] != '}')
		{
			return getc(scan->file) == EOF || scan_refuse(scan, "it is no case");
		}
		if (!visit_entry(scan, length))
		{
			return false;
		}
	}
	return true;
}


/* --- the whole --- */

static bool
scan_open(Scan *scan, const char *folder, const char *name)
{
	free(scan->path);
	scan->path = string_format("%s/%s", folder, name);
	scan->file = fopen(scan->path, "re");
	return scan->file != NULL;
}

static bool
scan_left(Scan *scan, const char *folder)
{
	return read_environment(scan, folder) && read_running(scan, folder) &&
		   (scan->visit->head == NULL || scan->visit->head(scan->context, scan->head)) && read_left_entries(scan);
}

static bool
scan_whole(Scan *scan)
{
	return read_head(scan) && (scan->visit->head == NULL || scan->visit->head(scan->context, scan->head)) &&
		   read_entries(scan);
}

bool
evidence_scan(const char *folder, bool cut_short, const ResultsVisit *visit, void *context)
{
	Scan scan = {.visit = visit, .context = context};
	bool done;

	if (scan_open(&scan, folder, EVIDENCE_RESULTS))
	{
		done = scan_whole(&scan);
	}
	else if (errno == ENOENT && cut_short && scan_open(&scan, folder, EVIDENCE_ENTRIES))
	{
		done = scan_left(&scan, folder);
	}
	else
	{
		int reason = errno;

		done = false;
		report_error("cannot read %s/" EVIDENCE_RESULTS ": %s", folder, strerror(reason));
	}
	if (scan.file != NULL)
	{
		fclose(scan.file);
	}
	json_decref(scan.head);
	free(scan.line);
	free(scan.path);
	return done;
}


/* --- the same for those who want no JSON --- */

typedef struct
{
	RecordedVisit visit;
	void *context;
} PlainVisit;

const char *
results_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text != NULL ? text : "";
}

Result
results_result(const char *name)
{
	for (Result result = RESULT_PASS; result <= RESULT_SKIP; result++)
	{
		if (strcmp(name, result_name(result)) == 0)
		{
			return result;
		}
	}
	return RESULT_UNSET;
}

static bool
visit_plain(void *context, const json_t *head, const json_t *entry)
{
	const PlainVisit *plain = context;
	const json_t *checks = json_object_get(entry, "checks");
	RecordedCheck *recorded = memory_get((json_array_size(checks) + 1) * sizeof(*recorded));
	const json_t *check;
	size_t i;

	(void) head;
	json_array_foreach(checks, i, check)
	{
		recorded[i] = (RecordedCheck){.text = results_text(check, "text"),
									  .expected = results_text(check, "expected"),
									  .actual = results_text(check, "actual"),
									  .held = json_is_true(json_object_get(check, "ok"))};
	}
	plain->visit(plain->context, &(RecordedCase){.id = results_text(entry, "id"),
												 .result = results_result(results_text(entry, "result")),
												 .reason = results_text(entry, "reason"),
												 .passed = (int) json_integer_value(json_object_get(entry, "passed")),
												 .failed = (int) json_integer_value(json_object_get(entry, "failed")),
												 .checks = recorded,
												 .check_count = json_array_size(checks)});
	free(recorded);
	return true;
}

bool
evidence_read(const char *folder, RecordedVisit visit, void *context)
{
	static const ResultsVisit each = {.entry = visit_plain};

	return evidence_scan(folder, false, &each, &(PlainVisit){visit, context});
}
