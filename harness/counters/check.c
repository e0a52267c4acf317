/* check: a look at each counter that is asked for, and what was seen. */
#include <stdio.h>
#include <stdlib.h>

#include "connect.h"
#include "report.h"

/* With `list` into it, else printed at once. */
static ExitCode
check_one(Session *session, const CounterSpec *spec, const CountersRequest *request, json_t *list)
{
	Finding *finding = finding_make(session, spec, request);
	ExitCode code;
	json_t *object;

	if (finding == NULL)
	{
		return EXIT_CODE_BROKEN;
	}
	code = finding_code(finding);
	if (list == NULL)
	{
		code = report_print(stdout, finding, request->report_limit) ? code : EXIT_CODE_BROKEN;
		fflush(stdout);
	}
	else
	{
		object = report_json(finding, request->report_limit);
		code = object != NULL && json_array_append_new(list, object) == 0 ? code : EXIT_CODE_BROKEN;
	}
	finding_free(finding);
	return code;
}

static ExitCode
check_all(Session *session, const CounterConfig *config, const CountersRequest *request)
{
	json_t *list = request->json ? json_array() : NULL;
	ExitCode code = EXIT_CODE_PASS;
	json_t *document;

	for (unsigned i = 0; i < config->count && !session_is_lost(session); i++)
	{
		if (counters_selected(request, &config->counters[i]))
		{
			code = counters_worse(code, check_one(session, &config->counters[i], request, list));
		}
	}
	if (list != NULL)
	{
		document = json_pack("{s:o, s:i}", "counters", list, "exit", (int) code);
		(void) json_dumpf(document, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
		printf("\n");
		json_decref(document);
	}
	return code;
}

ExitCode
counters_check(const CountersRequest *request)
{
	return counters_look(request, check_all);
}
