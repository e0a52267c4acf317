/*
 * results.json read back: what a run before this one, or beside it, has found.
 */
#include <stdlib.h>
#include <string.h>

#include "evidence_model.h"

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text != NULL ? text : "";
}

static Result
result_of(const char *name)
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

static void
visit_case(const json_t *entry, RecordedVisit visit, void *context)
{
	const json_t *checks = json_object_get(entry, "checks");
	RecordedCheck *recorded = memory_get((json_array_size(checks) + 1) * sizeof(*recorded));
	const json_t *check;
	size_t i;

	json_array_foreach(checks, i, check)
	{
		recorded[i] = (RecordedCheck){.text = text_of(check, "text"),
									  .expected = text_of(check, "expected"),
									  .actual = text_of(check, "actual"),
									  .held = json_is_true(json_object_get(check, "ok"))};
	}
	visit(context, &(RecordedCase){.id = text_of(entry, "id"),
								   .result = result_of(text_of(entry, "result")),
								   .reason = text_of(entry, "reason"),
								   .passed = (int) json_integer_value(json_object_get(entry, "passed")),
								   .failed = (int) json_integer_value(json_object_get(entry, "failed")),
								   .checks = recorded,
								   .check_count = json_array_size(checks)});
	free(recorded);
}

bool
evidence_read(const char *folder, RecordedVisit visit, void *context)
{
	char *path = string_format("%s/" EVIDENCE_RESULTS, folder);
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);
	json_t *cases = json_object_get(root, "cases");
	const json_t *entry;
	size_t i;
	bool known = json_is_array(cases);

	if (!known)
	{
		report_error("cannot read %s: %s", path, root == NULL ? error.text : "it has no cases");
	}
	json_array_foreach(cases, i, entry)
	{
		visit_case(entry, visit, context);
	}
	json_decref(root);
	free(path);
	return known;
}
