/*
 * results.json: one document for each suite, with one case on a line, so that a reader may also go case by case.
 */
#include <stdlib.h>
#include <unistd.h>

#include "evidence_model.h"

/* Gives the live case's lists away to the entry's text. */
char *
results_entry(const EvidenceCase *about, LiveCase *live, Result result, const char *reason, int64_t duration_ms)
{
	json_t *entry = json_object();
	const char *texts[][2] = {
		{"id", about->id},         {"title", about->title},         {"claim", about->claim},
		{"kind", about->kind},     {"guarantee", about->guarantee}, {"observed", about->observed},
		{"method", about->method}, {"expect", about->expect},       {"not_shown", about->not_shown}};
	char *text;

	for (size_t i = 0; i < LENGTH_OF(texts); i++)
	{
		Text visible = {0};

		visible_append(&visible, texts[i][1] == NULL ? "" : texts[i][1]);
		json_object_set_new(entry, texts[i][0], json_string(text_get(&visible)));
		text_free(&visible);
	}
	json_object_set_new(entry, "repetition", json_integer(about->repetition));
	json_object_set_new(entry, "result", json_string(result_name(result)));
	json_object_set_new(entry, "reason", json_string(reason));
	json_object_set_new(entry, "passed", json_integer(live->passed));
	json_object_set_new(entry, "failed", json_integer(live->failed));
	json_object_set_new(entry, "retries_40001", json_integer(live->retries_40001));
	json_object_set_new(entry, "retries_40P01", json_integer(live->retries_40p01));
	json_object_set_new(entry, "duration_ms", json_integer(duration_ms));
	json_object_set(entry, "checks", live->checks);
	json_object_set(entry, "faults", live->faults);
	json_object_set(entry, "lines", live->lines);
	json_object_set(entry, "series", live->series);
	text = json_dumps(entry, JSON_COMPACT);
	json_decref(entry);
	json_array_clear(live->checks);
	json_array_clear(live->faults);
	json_array_clear(live->lines);
	json_array_clear(live->series);
	return text;
}

static json_t *
totals_of(const Suite *suite)
{
	const EvidenceTotals *totals = &suite->totals;
	json_t *object = json_object();
	const struct
	{
		const char *name;
		int64_t value;
	} rows[] = {
		{"passed", totals->passed},
		{"failed", totals->failed},
		{"scenarios", totals->scenarios},
		{"scenarios_failed", suite->scenarios_failed},
		{"unknown", totals->unknown},
		{"broken", totals->broken},
		{"skipped", totals->skipped},
		{"retries_40001", totals->retries_40001},
		{"retries_40P01", totals->retries_40p01},
		{"duration_ms", suite->duration_ms},
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		json_object_set_new(object, rows[i].name, json_integer(rows[i].value));
	}
	return object;
}

/* All that stands before the cases, a member on a line; the last opens their list. */
static void
append_head(const Evidence *evidence, const Suite *suite, Text *text)
{
	json_t *head = json_object();
	const char *name;
	json_t *value;

	json_object_set_new(head, "format", json_integer(RESULTS_FORMAT));
	json_object_set_new(head, "suite", json_string(suite->name));
	json_object_set_new(head, "seed", json_integer((json_int_t) evidence->run.seed));
	json_object_set(head, "environment", evidence->environment);
	json_object_set_new(head, "totals", totals_of(suite));
	text_append(text, "{\n");
	json_object_foreach(head, name, value)
	{
		char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		text_append(text, "\"%s\": %s,\n", name, dumped);
		free(dumped);
	}
	text_append(text, "%s", RESULTS_CASES_BEGIN);
	json_decref(head);
}

bool
results_write(Evidence *evidence, Suite *suite)
{
	static const char end[] = "\n" RESULTS_CASES_END;
	OutputFile file = {.fd = -1};
	Text head = {0};
	bool done;

	append_head(evidence, suite, &head);
	done = output_open(evidence, &file, suite->folder, EVIDENCE_RESULTS) &&
		   output_write(evidence, &file, head.data, head.length) && output_copy(evidence, &file, suite->entries.path) &&
		   output_write(evidence, &file, end, sizeof(end) - 1);
	output_close(&file);
	output_close(&suite->entries);
	if (done && unlink(suite->entries.path) != 0)
	{
		done = evidence_fail(evidence, "cannot remove %s: %m", suite->entries.path);
	}
	free(file.path);
	text_free(&head);
	return done;
}
