/*
 * The model of a run: what cases say comes in here, is kept until its turn, and is counted.
 */
#include "evidence.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence_model.h"
#include "report.h"

const char *
evidence_line_word(const EvidenceLine *line)
{
	static const char *const words[] = {
		[LINE_UNSET] = "note", [LINE_STEP] = "step",   [LINE_NOTE] = "note",   [LINE_PASS] = "PASS",
		[LINE_FAIL] = "FAIL",  [LINE_AUDIT] = "audit", [LINE_FAULT] = "fault",
	};

	return words[line->kind];
}

void
evidence_line_text(const EvidenceLine *line, Text *text)
{
	text_append(text, "%s", line->text);
	if (line->kind == LINE_PASS || line->kind == LINE_FAIL)
	{
		text_append(text, "; expected %s, got %s", line->expected == NULL ? "" : line->expected,
					line->actual == NULL ? "" : line->actual);
	}
}

const char *
result_name(Result result)
{
	static const char *const names[] = {
		[RESULT_UNSET] = "UNSET",     [RESULT_PASS] = "PASS",     [RESULT_FAIL] = "FAIL",
		[RESULT_UNKNOWN] = "UNKNOWN", [RESULT_BROKEN] = "BROKEN", [RESULT_SKIP] = "SKIP",
	};

	return (size_t) result < LENGTH_OF(names) ? names[result] : "UNSET";
}

bool
evidence_failed(const Evidence *evidence)
{
	return evidence->failed;
}

bool
evidence_fail(Evidence *evidence, const char *format, ...)
{
	Text text = {0};
	va_list args;

	if (!evidence->failed)
	{
		va_start(args, format);
		text_append_va(&text, format, args);
		va_end(args);
		report_error("%s", text_get(&text));
		text_free(&text);
	}
	evidence->failed = true;
	return false;
}

/* Length of the UTF-8 character at `bytes`, 0 when there is none that XML takes. */
static int
character_length(const unsigned char *bytes)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t point = bytes[0];
	int length = 1;

	if (point < 0x80)
	{
		return point < 0x20 || point == 0x7f ? 0 : 1;
	}
	length = point >= 0xf0 ? 4 : point >= 0xe0 ? 3 : 2;
	if (point < 0xc2 || point > 0xf4)
	{
		return 0;
	}
	point &= 0xffu >> (length + 1);
	for (int i = 1; i < length; i++)
	{
		if ((bytes[i] & 0xc0) != 0x80)
		{
			return 0;
		}
		point = point << 6 | (bytes[i] & 0x3fu);
	}
	if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) || point == 0xfffe ||
		point == 0xffff)
	{
		return 0;
	}
	return length;
}

void
visible_append(Text *text, const char *string)
{
	const unsigned char *at = (const unsigned char *) string;

	while (*at != '\0')
	{
		int length = character_length(at);

		if (length > 0)
		{
			text_append_bytes(text, (const char *) at, (size_t) length);
			at += length;
			continue;
		}
		if (*at == '\n' || *at == '\r' || *at == '\t')
		{
			text_append_bytes(text, " ", 1);
		}
		else
		{
			text_append(text, "#x%02X", *at);
		}
		at++;
	}
}

void
live_case_free(LiveCase *live)
{
	if (live == NULL)
	{
		return;
	}
	text_free(&live->pending);
	json_decref(live->checks);
	json_decref(live->faults);
	json_decref(live->lines);
	json_decref(live->series);
	free(live->entry);
	text_free(&live->trace);
	free(live);
}

bool
suite_passed(const Suite *suite)
{
	return suite->scenarios_failed == 0 && suite->totals.unknown == 0 && suite->totals.broken == 0;
}

static int
suite_index(Evidence *evidence, const char *name)
{
	for (int i = 0; i < evidence->suite_count; i++)
	{
		if (strcmp(evidence->suites[i].name, name) == 0)
		{
			return i;
		}
	}
	evidence->suites = memory_grow(evidence->suites, sizeof(*evidence->suites) * ((size_t) evidence->suite_count + 1));
	evidence->suites[evidence->suite_count] =
		(Suite){.name = name, .output = {.fd = -1}, .entries = {.fd = -1}, .trace = {.fd = -1}};
	return evidence->suite_count++;
}

static bool
open_suites(Evidence *evidence)
{
	for (int i = 0; i < evidence->suite_count; i++)
	{
		Suite *suite = &evidence->suites[i];

		suite->folder = string_format("%s/%s", evidence->folder, suite->name);
		if (!folder_make(evidence, suite->folder) ||
			!output_open(evidence, &suite->output, suite->folder, EVIDENCE_OUTPUT) ||
			!output_open(evidence, &suite->entries, suite->folder, EVIDENCE_ENTRIES))
		{
			return false;
		}
	}
	return true;
}

static void
set_environment(Evidence *evidence, const char *name, const char *value)
{
	Text visible_name = {0};
	Text visible_value = {0};

	visible_append(&visible_name, name);
	visible_append(&visible_value, value == NULL ? "" : value);
	json_object_set_new(evidence->environment, text_get(&visible_name), json_string(text_get(&visible_value)));
	text_free(&visible_name);
	text_free(&visible_value);
}

static bool
write_environment(Evidence *evidence)
{
	const char *name;
	json_t *value;
	Text text = {0};
	bool done = true;

	json_object_foreach(evidence->environment, name, value)
	{
		text_append(&text, "%s=%s\n", name, json_string_value(value));
	}
	for (int i = 0; i < evidence->suite_count && done; i++)
	{
		OutputFile file = {.fd = -1};

		done = output_open(evidence, &file, evidence->suites[i].folder, EVIDENCE_ENVIRONMENT) &&
			   output_write(evidence, &file, text.data, text.length);
		output_close(&file);
		free(file.path);
	}
	text_free(&text);
	return done;
}

Evidence *
evidence_open(const EvidenceRun *run)
{
	Evidence *evidence;
	char *seed = string_format("%llu", (unsigned long long) run->seed);

	/* Memory that cannot be had ends the program in memory_get(), so jansson's answers need no check for it. */
	json_set_alloc_funcs(memory_get, free);
	evidence = memory_get(sizeof(*evidence));
	evidence->run = *run;
	evidence->lock = -1;
	evidence->output.fd = -1;
	evidence->final_path = string_format("%s/%s", run->root, EVIDENCE_OUTPUT);
	evidence->cases = memory_get(sizeof(*evidence->cases) * ((size_t) run->case_count + 1));
	evidence->environment = json_object();
	set_environment(evidence, "seed", seed);
	set_environment(evidence, "replay", run->replay);
	free(seed);
	for (int i = 0; i < run->case_count; i++)
	{
		evidence->cases[i].suite = suite_index(evidence, run->cases[i].suite);
	}
	if (folder_open(evidence) && output_open(evidence, &evidence->output, evidence->folder, EVIDENCE_OUTPUT) &&
		open_suites(evidence) && write_environment(evidence) && folder_point(evidence))
	{
		return evidence;
	}
	if (evidence->folder != NULL)
	{
		folder_remove(evidence->folder);
	}
	evidence_free(evidence);
	return NULL;
}

bool
evidence_add_settings(Evidence *evidence, const EvidenceSetting *settings, int count)
{
	for (int i = 0; i < count; i++)
	{
		set_environment(evidence, settings[i].name, settings[i].value);
	}
	return write_environment(evidence);
}

char *
case_folder_name(const char *id, int repetition)
{
	char *name = repetition > 1 ? string_format("%s#%d", id, repetition) : string_copy(id);

	for (char *at = name; *at != '\0'; at++)
	{
		*at = *at == '/' ? '-' : *at;
	}
	return name;
}

const char *
evidence_case_folder(Evidence *evidence, int index)
{
	CaseRecord *record = &evidence->cases[index];
	const EvidenceCase *about = &evidence->run.cases[index];
	char *name;

	if (record->folder != NULL)
	{
		return record->folder;
	}
	name = case_folder_name(about->id, about->repetition);
	record->folder = string_format("%s/%s", evidence->suites[record->suite].folder, name);
	free(name);
	if (!folder_make(evidence, record->folder))
	{
		free(record->folder);
		record->folder = NULL;
	}
	return record->folder;
}

void
evidence_case_begin(Evidence *evidence, int index)
{
	CaseRecord *record = &evidence->cases[index];
	const EvidenceCase *about = &evidence->run.cases[index];
	LiveCase *live;

	if (record->live != NULL || record->written)
	{
		return;
	}
	live = record->live = memory_get(sizeof(*live));
	live->checks = json_array();
	live->faults = json_array();
	live->lines = json_array();
	live->series = json_array();
	text_append(&live->pending, "== %s", about->id);
	if (about->repetition > 1)
	{
		text_append(&live->pending, " #%d", about->repetition);
	}
	text_append(&live->pending, "  ");
	visible_append(&live->pending, about->title);
	text_append(&live->pending, "\n");
	stream_line(live, "claim", about->claim == NULL ? "" : about->claim);
	stream_flush(evidence);
}

static json_t *
visible_json(const char *string)
{
	Text text = {0};
	json_t *value;

	visible_append(&text, string == NULL ? "" : string);
	value = json_string(text_get(&text));
	text_free(&text);
	return value;
}

/* The structured side of a line: what tools read without parsing sentences. */
static void
record_line(LiveCase *live, const EvidenceLine *line)
{
	json_t *object;

	if (line->kind == LINE_FAULT)
	{
		object = json_object();
		json_object_set_new(object, "text", visible_json(line->text));
		json_object_set_new(object, "fired", json_integer(line->fired));
		json_array_append_new(live->faults, object);
	}
	else if (line->kind == LINE_PASS || line->kind == LINE_FAIL)
	{
		live->passed += line->kind == LINE_PASS;
		live->failed += line->kind == LINE_FAIL;
		object = json_object();
		json_object_set_new(object, "text", visible_json(line->text));
		json_object_set_new(object, "ok", json_boolean(line->kind == LINE_PASS));
		json_object_set_new(object, "expected", visible_json(line->expected));
		json_object_set_new(object, "actual", visible_json(line->actual));
		json_array_append_new(live->checks, object);
	}
}

void
evidence_case_line(Evidence *evidence, int index, const EvidenceLine *line)
{
	CaseRecord *record = &evidence->cases[index];
	Text text = {0};

	evidence_case_begin(evidence, index);
	if (record->live == NULL || record->live->entry != NULL)
	{
		report_debug("a line of %s came after its end: %s", evidence->run.cases[index].id, line->text);
		return;
	}
	evidence_line_text(line, &text);
	record_line(record->live, line);
	stream_line(record->live, evidence_line_word(line), text_get(&text));
	text_free(&text);
	stream_flush(evidence);
}

void
evidence_case_series(Evidence *evidence, int index, const EvidenceSeries *series)
{
	LiveCase *live;
	json_t *object = json_object();
	json_t *values = json_array();

	json_object_set_new(object, "plot", visible_json(series->plot));
	json_object_set_new(object, "name", visible_json(series->name));
	json_object_set_new(object, "values", values);
	for (size_t i = 0; i < series->count; i++)
	{
		json_array_append_new(values, json_integer(series->values[i]));
	}
	evidence_case_begin(evidence, index);
	live = evidence->cases[index].live;
	if (live != NULL && live->entry == NULL)
	{
		json_array_append(live->series, object);
	}
	json_decref(object);
}

void
evidence_case_retries(Evidence *evidence, int index, int64_t retries_40001, int64_t retries_40p01)
{
	Suite *suite = &evidence->suites[evidence->cases[index].suite];
	LiveCase *live;

	evidence_case_begin(evidence, index);
	live = evidence->cases[index].live;
	if (live == NULL || live->entry != NULL)
	{
		return;
	}
	live->retries_40001 += retries_40001;
	live->retries_40p01 += retries_40p01;
	suite->totals.retries_40001 += retries_40001;
	suite->totals.retries_40p01 += retries_40p01;
}

static void
count_case(Suite *suite, const LiveCase *live, Result result, int64_t duration_ms)
{
	suite->totals.scenarios++;
	suite->totals.passed += live->passed;
	suite->totals.failed += live->failed;
	suite->totals.unknown += result == RESULT_UNKNOWN;
	suite->totals.broken += result == RESULT_BROKEN;
	suite->totals.skipped += result == RESULT_SKIP;
	suite->scenarios_failed += result == RESULT_FAIL;
	suite->duration_ms += duration_ms;
}

/* Of many repetitions the first has one, and those that did not pass: else a night of them would fill the disk. */
static void
take_trace(Evidence *evidence, int index, Result result)
{
	CaseRecord *record = &evidence->cases[index];
	char *path = record->folder == NULL ? NULL : string_format("%s/%s", record->folder, EVIDENCE_TRACE);

	if (path != NULL && access(path, F_OK) == 0 &&
		(result != RESULT_PASS || evidence->run.cases[index].repetition == 1) && !file_read(path, &record->live->trace))
	{
		(void) evidence_fail(evidence, "the trace of %s is lost", evidence->run.cases[index].id);
	}
	free(path);
}

void
evidence_case_end(Evidence *evidence, int index, Result result, const char *reason, int64_t duration_ms)
{
	CaseRecord *record = &evidence->cases[index];
	LiveCase *live;
	Text visible = {0};
	Text text = {0};

	evidence_case_begin(evidence, index);
	live = record->live;
	if (live == NULL || live->entry != NULL)
	{
		return;
	}
	visible_append(&visible, result == RESULT_PASS || reason == NULL ? "" : reason);
	text_append(&text, "%s passed=%d failed=%d", result_name(result), live->passed, live->failed);
	if (visible.length > 0)
	{
		text_append(&text, " reason: %s", text_get(&visible));
	}
	stream_line(live, "result", text_get(&text));
	live->entry = results_entry(&evidence->run.cases[index], live, result, text_get(&visible), duration_ms);
	count_case(&evidence->suites[record->suite], live, result, duration_ms);
	take_trace(evidence, index, result);
	if (result == RESULT_PASS && !evidence->run.keep && record->folder != NULL)
	{
		folder_remove(record->folder);
	}
	text_free(&visible);
	text_free(&text);
	stream_flush(evidence);
}

void
evidence_conclude(Evidence *evidence, const char *conclusion)
{
	free(evidence->conclusion);
	evidence->conclusion = string_copy(conclusion);
}

EvidenceTotals
evidence_totals(const Evidence *evidence)
{
	EvidenceTotals sum = {0};

	for (int i = 0; i < evidence->suite_count; i++)
	{
		const EvidenceTotals *part = &evidence->suites[i].totals;

		sum.passed += part->passed;
		sum.failed += part->failed;
		sum.unknown += part->unknown;
		sum.broken += part->broken;
		sum.skipped += part->skipped;
		sum.scenarios += part->scenarios;
		sum.retries_40001 += part->retries_40001;
		sum.retries_40p01 += part->retries_40p01;
	}
	return sum;
}

const char *
evidence_output_path(const Evidence *evidence)
{
	return evidence->in_place ? evidence->final_path : evidence->output.path;
}

static bool
write_report(Evidence *evidence, const Suite *suite)
{
	ReportEnd end = report_write(suite->folder);

	evidence->pageless = evidence->pageless || end == REPORT_UNREADABLE;
	evidence->failed = evidence->failed || end == REPORT_UNWRITABLE;
	return !evidence->failed;
}

static bool
write_suite(Evidence *evidence, Suite *suite, const char *server_log)
{
	OutputFile log = {.fd = -1};
	bool done;

	if (!results_write(evidence, suite) || !junit_write(evidence, suite) || !write_report(evidence, suite))
	{
		return false;
	}
	if (server_log == NULL || (suite_passed(suite) && !evidence->run.keep))
	{
		return true;
	}
	done = output_open(evidence, &log, suite->folder, "server.log") && output_copy(evidence, &log, server_log);
	output_close(&log);
	free(log.path);
	return done;
}

bool
evidence_close(Evidence *evidence, const char *server_log, bool interrupted)
{
	stream_drain(evidence);
	for (int i = 0; i < evidence->suite_count && interrupted && !evidence->failed; i++)
	{
		(void) write_report(evidence, &evidence->suites[i]);
	}
	if (interrupted || evidence->failed)
	{
		return !evidence->failed;
	}
	for (int i = 0; i < evidence->suite_count; i++)
	{
		if (!write_suite(evidence, &evidence->suites[i], server_log))
		{
			return false;
		}
	}
	if (!stream_end(evidence))
	{
		return false;
	}
	for (int i = 0; i < evidence->suite_count; i++)
	{
		if (!folder_install(evidence, &evidence->suites[i]))
		{
			return false;
		}
	}
	if (rename(evidence->output.path, evidence->final_path) != 0)
	{
		return evidence_fail(evidence, "cannot move %s to %s: %m", evidence->output.path, evidence->final_path);
	}
	evidence->in_place = true;
	folder_remove(evidence->folder);
	return !evidence->pageless;
}

void
evidence_free(Evidence *evidence)
{
	if (evidence == NULL)
	{
		return;
	}
	for (int i = 0; i < evidence->run.case_count; i++)
	{
		live_case_free(evidence->cases[i].live);
		free(evidence->cases[i].folder);
	}
	for (int i = 0; i < evidence->suite_count; i++)
	{
		output_close(&evidence->suites[i].output);
		output_close(&evidence->suites[i].entries);
		output_close(&evidence->suites[i].trace);
		free(evidence->suites[i].output.path);
		free(evidence->suites[i].entries.path);
		free(evidence->suites[i].trace.path);
		free(evidence->suites[i].folder);
	}
	output_close(&evidence->output);
	if (evidence->lock >= 0)
	{
		close(evidence->lock);
	}
	json_decref(evidence->environment);
	free(evidence->conclusion);
	free(evidence->output.path);
	free(evidence->final_path);
	free(evidence->folder);
	free(evidence->suites);
	free(evidence->cases);
	free(evidence);
}
