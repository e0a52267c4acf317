/*
 * output.txt, written as a run goes: every line at once for the case at the front, in the order of the selection.
 */
#include <stdlib.h>

#include "evidence_model.h"
#include "trace.h"

/* Every kind stands in a column of its own, so that the text of all lines begins at the same place. */
void
stream_line(LiveCase *live, const char *word, const char *text)
{
	Text line = {0};

	text_append(&line, "%-8s ", word);
	visible_append(&line, text);
	json_array_append_new(live->lines, json_string(text_get(&line)));
	text_append(&live->pending, "%s\n", text_get(&line));
	text_free(&line);
}

static void
write_pending(Evidence *evidence, CaseRecord *record)
{
	Suite *suite = &evidence->suites[record->suite];
	Text *pending = &record->live->pending;

	if (pending->length > 0 && output_write(evidence, &evidence->output, pending->data, pending->length) &&
		output_write(evidence, &suite->output, pending->data, pending->length))
	{
		text_clear(pending);
	}
}

static void
write_entry(Evidence *evidence, CaseRecord *record)
{
	Suite *suite = &evidence->suites[record->suite];
	Text text = {0};

	text_append(&text, "%s%s", suite->entries_written > 0 ? ",\n" : "", record->live->entry);
	if (output_write(evidence, &suite->entries, text.data, text.length))
	{
		suite->entries_written++;
	}
	text_free(&text);
}

void
trace_label(const char *id, int repetition, Text *text)
{
	text_append(text, "=== %s", id);
	if (repetition > 1)
	{
		text_append(text, " #%d", repetition);
	}
	text_append(text, " ===\n");
}

static void
write_trace(Evidence *evidence, CaseRecord *record)
{
	Suite *suite = &evidence->suites[record->suite];
	const EvidenceCase *about = &evidence->run.cases[record - evidence->cases];
	Text label = {0};

	if (record->live->trace.length == 0)
	{
		return;
	}
	if (suite->trace.fd < 0 && output_open(evidence, &suite->trace, suite->folder, EVIDENCE_TRACE))
	{
		text_append(&label, "%s", TRACE_HEADER);
	}
	trace_label(about->id, about->repetition, &label);
	(void) (output_write(evidence, &suite->trace, label.data, label.length) &&
			output_write(evidence, &suite->trace, record->live->trace.data, record->live->trace.length));
	text_free(&label);
}

/* Write the case at the front; true when that was all of it. */
static bool
write_front(Evidence *evidence)
{
	CaseRecord *record = &evidence->cases[evidence->front];

	if (record->live == NULL)
	{
		return false;
	}
	write_pending(evidence, record);
	if (record->live->entry == NULL)
	{
		return false;
	}
	write_entry(evidence, record);
	write_trace(evidence, record);
	live_case_free(record->live);
	record->live = NULL;
	record->written = true;
	return true;
}

void
stream_flush(Evidence *evidence)
{
	while (evidence->front < evidence->run.case_count && write_front(evidence))
	{
		evidence->front++;
	}
}

void
stream_drain(Evidence *evidence)
{
	for (; evidence->front < evidence->run.case_count; evidence->front++)
	{
		(void) write_front(evidence);
	}
}

static void
append_summary(const Evidence *evidence, const EvidenceTotals *totals, Text *text)
{
	if (evidence->conclusion != NULL)
	{
		text_append(text, "%-8s %s", "SUMMARY", evidence->conclusion);
		return;
	}
	text_append(text, "%-8s passed=%d failed=%d unknown=%d skipped=%d scenarios=%d", "SUMMARY", totals->passed,
				totals->failed, totals->unknown, totals->skipped, totals->scenarios);
	text_append(text, " retries_40001=%lld retries_40P01=%lld", (long long) totals->retries_40001,
				(long long) totals->retries_40p01);
	if (totals->broken > 0)
	{
		text_append(text, " broken=%d", totals->broken);
	}
	text_append(text, " seed=%llu", (unsigned long long) evidence->run.seed);
}

void
evidence_summary(const Evidence *evidence, Text *text)
{
	EvidenceTotals totals = evidence_totals(evidence);

	append_summary(evidence, &totals, text);
}

/* The last lines of an output.txt: how to run it again when something did not pass, and the sum of all. */
static bool
write_end(Evidence *evidence, OutputFile *file, const EvidenceTotals *totals, bool all_passed)
{
	Text text = {0};
	bool done;

	if (!all_passed && evidence->run.replay != NULL)
	{
		text_append(&text, "%-8s ", "replay");
		visible_append(&text, evidence->run.replay);
		text_append(&text, "\n");
	}
	append_summary(evidence, totals, &text);
	text_append(&text, "\n");
	done = output_write(evidence, file, text.data, text.length);
	text_free(&text);
	return done;
}

bool
stream_end(Evidence *evidence)
{
	EvidenceTotals totals = evidence_totals(evidence);
	bool all_passed = true;

	for (int i = 0; i < evidence->suite_count; i++)
	{
		Suite *suite = &evidence->suites[i];

		all_passed = all_passed && suite_passed(suite);
		if (!write_end(evidence, &suite->output, &suite->totals, suite_passed(suite)))
		{
			return false;
		}
	}
	return write_end(evidence, &evidence->output, &totals, all_passed);
}
