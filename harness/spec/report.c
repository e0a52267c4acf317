#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OUTCOMES_MAX 500
#define WRONG_CLASS "42" /* syntax error or access rule violation */
#define NO_PERMISSION "42501"

/* How a step has ended, each time that it did. */
struct SpecMet
{
	bool sound; /* otherwise, too, or as it was expected to */
	char sqlstate[6];
	Text complaint;
};


/* --- life --- */

static void
add_check(SpecReport *report, char *what)
{
	report->checks[report->check_count++] = (SpecCheck){.what = what};
}

/* Where a permutation's check is. The others come before it, in the order of the file. */
static char *
name_expect(const SpecPermutation *permutation)
{
	return string_format("expect of the permutation in line %d", permutation->place.line);
}

SpecReport *
report_new(const Spec *spec, SpecPart part, int permutation)
{
	SpecReport *report = memory_get(sizeof(*report));

	report->checks =
		memory_get(sizeof(SpecCheck) * ((size_t) spec->invariant_count + (size_t) spec->permutation_count + 1));
	report->outcomes = memory_get(sizeof(SpecOutcome) * OUTCOMES_MAX);
	report->step_count = spec->step_count;
	report->met = memory_get(sizeof(struct SpecMet) * ((size_t) spec->step_count + 1));
	report->fault_count = spec->fault_count;
	report->fired = memory_get(sizeof(uint64_t) * ((size_t) spec->fault_count + 1));
	report->fault_names = memory_get(sizeof(char *) * ((size_t) spec->fault_count + 1));
	for (int i = 0; i < spec->fault_count; i++)
	{
		report->fault_names[i] = string_format("%s: %s", spec->faults[i]->name, spec->faults[i]->sql);
	}
	for (int i = 0; i < spec->invariant_count; i++)
	{
		add_check(report, string_format("invariant %s", spec->invariants[i]->name));
	}
	if (spec->observe != NULL)
	{
		add_check(report, string_copy("serializable"));
	}
	for (int i = 0; i < spec->permutation_count; i++)
	{
		if (spec->permutations[i]->expect_count > 0 && (part == SPEC_ALL || (part == SPEC_WRITTEN && i == permutation)))
		{
			add_check(report, name_expect(spec->permutations[i]));
		}
	}
	return report;
}

void
spec_report_free(SpecReport *report)
{
	if (report == NULL)
	{
		return;
	}
	for (int i = 0; i < report->check_count; i++)
	{
		free(report->checks[i].what);
		text_free(&report->checks[i].order);
		text_free(&report->checks[i].detail);
		text_free(&report->checks[i].story);
	}
	for (int i = 0; i < report->outcome_count; i++)
	{
		free(report->outcomes[i].text);
		free(report->outcomes[i].errors);
		text_free(&report->outcomes[i].order);
	}
	for (int i = 0; i < report->fault_count; i++)
	{
		free(report->fault_names[i]);
	}
	for (int i = 0; i < report->step_count; i++)
	{
		text_free(&report->met[i].complaint);
	}
	text_free(&report->unknown);
	text_free(&report->refused);
	text_free(&report->broken);
	free(report->fault_names);
	free(report->fired);
	free(report->met);
	free(report->checks);
	free(report->outcomes);
	free(report);
}

const SpecCheck *
spec_report_find(const SpecReport *report, const char *what)
{
	for (int i = 0; i < report->check_count; i++)
	{
		if (strcmp(report->checks[i].what, what) == 0)
		{
			return &report->checks[i];
		}
	}
	return NULL;
}

Result
spec_report_result(const SpecReport *report)
{
	uint64_t held = 0;
	uint64_t violated = 0;

	for (int i = 0; i < report->check_count; i++)
	{
		held += report->checks[i].held;
		violated += report->checks[i].violated;
	}
	return violated > 0                                              ? RESULT_FAIL
		   : report->broken.length > 0 || report->refused.length > 0 ? RESULT_BROKEN
		   : report->unknown.length > 0 || held == 0                 ? RESULT_UNKNOWN
																	 : RESULT_PASS;
}

void
report_say(Text *reason, const char *words)
{
	if (reason->length == 0)
	{
		text_append(reason, "%s", words);
	}
}


/* --- one interleaving more --- */

/* Of two interleavings the one to show: the shorter, and of equals always the same, whichever came first. */
static bool
is_better(int launched, const char *order, int kept_launched, const Text *kept)
{
	return kept->length == 0 || launched < kept_launched ||
		   (launched == kept_launched && strcmp(order, text_get(kept)) < 0);
}

static void
keep(Text *text, const char *words)
{
	text_clear(text);
	text_append(text, "%s", words);
}

static void
violate(SpecCheck *check, const Record *record, const char *detail)
{
	const char *order = text_get(&record->order);

	check->violated++;
	if (is_better(record->launched, order, check->launched, &check->order))
	{
		check->launched = record->launched;
		keep(&check->order, order);
		keep(&check->detail, detail);
		keep(&check->story, text_get(&record->story));
	}
}

static void
hold_or_violate(SpecCheck *check, const Record *record, bool held, const char *detail)
{
	if (held)
	{
		check->held++;
	}
	else
	{
		violate(check, record, detail);
	}
}

static void
add_serial(SpecCheck *check, const Record *record, const SerialVerdict *serial)
{
	char *detail = string_format("not serializable%s%s; nearest is the serial order %s: %s",
								 serial->anomaly != NULL ? ", " : "", serial->anomaly != NULL ? serial->anomaly : "",
								 text_get(&serial->order), text_get(&serial->difference));

	hold_or_violate(check, record, serial->explained, detail);
	free(detail);
}

static void
append_outcome(Text *text, const Spec *spec, const Judged *judged)
{
	for (int i = 0; i < spec->session_count; i++)
	{
		if (trial_record(judged->trial)->parts[i].deed_count > 0)
		{
			text_append(text, "%s%s ", text->length > 0 ? "; " : "", spec->sessions[i]->name);
			trial_fate(judged->trial, i, text);
		}
	}
	text_append(text, "%s", text->length == 0 ? "nobody did anything" : "");
	if (judged->serial != NULL && judged->serial->explained)
	{
		text_append(text, "; as in the serial order %s", text_get(&judged->serial->order));
	}
	else if (judged->serial != NULL)
	{
		text_append(text, "; not serializable%s%s", judged->serial->anomaly != NULL ? ": " : "",
					judged->serial->anomaly != NULL ? judged->serial->anomaly : "");
	}
	for (int i = 0; i < spec->invariant_count; i++)
	{
		if (judge_holding(judged->judge, i)->violated)
		{
			text_append(text, "; violates %s", spec->invariants[i]->name);
		}
	}
}

static char *
join_errors(const Spec *spec, const Record *record)
{
	Text text = {0};

	for (int i = 0; i < spec->session_count; i++)
	{
		const Text *errors = &record->parts[i].errors;

		text_append(&text, "%s%s", text.length > 0 && errors->length > 0 ? "; " : "", text_get(errors));
	}
	return text.data;
}

static void
count_outcome(SpecReport *report, const Spec *spec, const char *text, const Record *record)
{
	SpecOutcome *outcome;
	int place = 0;

	while (place < report->outcome_count && strcmp(report->outcomes[place].text, text) != 0)
	{
		place++;
	}
	if (place == OUTCOMES_MAX)
	{
		report->others++;
		return;
	}
	outcome = &report->outcomes[place];
	if (place == report->outcome_count)
	{
		*outcome = (SpecOutcome){.text = string_copy(text), .errors = join_errors(spec, record)};
		report->outcome_count++;
	}
	outcome->count++;
	if (is_better(record->launched, text_get(&record->order), outcome->launched, &outcome->order))
	{
		outcome->launched = record->launched;
		keep(&outcome->order, text_get(&record->order));
	}
}

static void
add_checks(SpecReport *report, const Spec *spec, const Judged *judged)
{
	const Record *record = trial_record(judged->trial);

	for (int i = 0; i < spec->invariant_count; i++)
	{
		const Holding *holding = judge_holding(judged->judge, i);

		hold_or_violate(&report->checks[i], record, !holding->violated, text_get(&holding->rows));
	}
	if (judged->serial != NULL)
	{
		add_serial(&report->checks[spec->invariant_count], record, judged->serial);
	}
	if (judged->permutation != NULL && judged->permutation->expect_count > 0)
	{
		char *what = name_expect(judged->permutation);

		for (int i = spec->invariant_count; i < report->check_count; i++)
		{
			if (strcmp(report->checks[i].what, what) == 0)
			{
				hold_or_violate(&report->checks[i], record, judged->missed[0] == '\0', judged->missed);
			}
		}
		free(what);
	}
}

/* What fails by the words of a step, not by what others did: a permission that is missing may be meant. */
static bool
is_wrong(const Deed *deed)
{
	return strncmp(deed->sqlstate, WRONG_CLASS, strlen(WRONG_CLASS)) == 0 && strcmp(deed->sqlstate, NO_PERMISSION) != 0;
}

static bool
is_expected(const SpecPermutation *permutation, const SpecStep *step)
{
	for (int i = 0; permutation != NULL && i < permutation->expect_count; i++)
	{
		if (permutation->expects[i]->step == step)
		{
			return true;
		}
	}
	return false;
}

static void
meet(struct SpecMet *met, const Deed *deed, const SpecPermutation *permutation)
{
	met->sound = met->sound || !is_wrong(deed) || is_expected(permutation, deed->step);
	if (!met->sound && met->sqlstate[0] == '\0')
	{
		memcpy(met->sqlstate, deed->sqlstate, sizeof(met->sqlstate));
		keep(&met->complaint, text_get(&deed->complaint));
	}
}

static void
meet_steps(SpecReport *report, const Spec *spec, const Judged *judged)
{
	for (int i = 0; i < spec->step_count; i++)
	{
		const Part *part = &trial_record(judged->trial)->parts[spec->steps[i]->session];

		for (int k = 0; k < part->deed_count && !report->met[i].sound; k++)
		{
			const Deed *deed = &part->deeds[k];

			if (deed->step == spec->steps[i] && deed->answered && strcmp(deed->sqlstate, FAILED_ALREADY) != 0)
			{
				meet(&report->met[i], deed, judged->permutation);
			}
		}
	}
}

void
report_refuse_wrong(SpecReport *report, const Spec *spec, const char *path)
{
	for (int i = 0; i < spec->step_count; i++)
	{
		const struct SpecMet *met = &report->met[i];
		const SpecStep *step = spec->steps[i];

		if (!met->sound && met->sqlstate[0] != '\0')
		{
			char *words = string_format("%s:%d:%d: step %s is wrong: each time that it was run it failed with %s, %s",
										path, step->place.line, step->place.column, step->name, met->sqlstate,
										text_get(&met->complaint));

			report_say(&report->refused, words);
			free(words);
		}
	}
}

void
report_add(SpecReport *report, const Spec *spec, const Judged *judged)
{
	const Record *record = trial_record(judged->trial);
	Text outcome = {0};

	report->run++;
	report->waits += (uint64_t) record->waits;
	report->retries_40001 += record->retries_40001;
	report->retries_40p01 += record->retries_40p01;
	report->false_conflicts += record->false_conflicts;
	for (int i = 0; i < report->fault_count; i++)
	{
		report->fired[i] += record->fired[i] > 0 ? 1 : 0;
	}
	if (record->unknown.length > 0)
	{
		report_say(&report->unknown, text_get(&record->unknown));
		return;
	}
	append_outcome(&outcome, spec, judged);
	count_outcome(report, spec, text_get(&outcome), record);
	add_checks(report, spec, judged);
	meet_steps(report, spec, judged);
	text_free(&outcome);
}
