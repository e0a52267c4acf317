/*
 * Reading a file, and finding what its permutations name.
 */
#include "tree.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

Spec *
spec_read(const char *text, size_t length, SpecLanguage language, SpecError *error)
{
	Reading reading = {
		.spec = memory_get(sizeof(Spec)), .error = error, .next = {.line = 1, .column = 1}, .language = language};
	bool read;

	*error = (SpecError){0};
	if (length > INT_MAX)
	{
		build_refuse(&reading, reading.next, "file too long", NULL);
	}
	read = length <= INT_MAX && build_parse(&reading, text, length);
	text_free(&reading.text);
	if (!read)
	{
		spec_free(reading.spec);
		return NULL;
	}
	return reading.spec;
}

void
spec_error_free(SpecError *error)
{
	text_free(&error->text);
	*error = (SpecError){0};
}


/* --- names --- */

static bool PRINTF_LIKE(3, 4) refuse(SpecError *error, SpecPlace place, const char *format, ...)
{
	va_list args;

	*error = (SpecError){.place = place};
	va_start(args, format);
	text_append_va(&error->text, format, args);
	va_end(args);
	error->message = error->text.data;
	return false;
}

static int
compare_steps(const void *a, const void *b)
{
	const SpecStep *left = *(const SpecStep *const *) a;
	const SpecStep *right = *(const SpecStep *const *) b;
	int order = strcmp(left->name, right->name);

	/* of two with one name the later is the one to refuse */
	if (order == 0)
	{
		order = left->place.line != right->place.line ? (left->place.line > right->place.line) * 2 - 1
													  : (left->place.column > right->place.column) * 2 - 1;
	}
	return order;
}

static int
compare_name(const void *name, const void *step)
{
	return strcmp(name, (*(const SpecStep *const *) step)->name);
}

static SpecStep *
find_step(const Spec *spec, const char *name)
{
	SpecStep **found = bsearch(name, spec->steps, (size_t) spec->step_count, sizeof(SpecStep *), compare_name);

	for (int i = 0; found == NULL && i < spec->fault_count; i++)
	{
		if (strcmp(spec->faults[i]->name, name) == 0)
		{
			return spec->faults[i];
		}
	}
	return found != NULL ? *found : NULL;
}

const SpecStep *
spec_find_step(const Spec *spec, const char *name)
{
	return find_step(spec, name);
}

int
spec_find_session(const Spec *spec, const char *name)
{
	for (int i = 0; i < spec->session_count; i++)
	{
		if (strcmp(spec->sessions[i]->name, name) == 0)
		{
			return i;
		}
	}
	return -1;
}

static bool
sort_steps(Spec *spec, SpecError *error)
{
	qsort(spec->steps, (size_t) spec->step_count, sizeof(SpecStep *), compare_steps);
	for (int i = 1; i < spec->step_count; i++)
	{
		if (strcmp(spec->steps[i - 1]->name, spec->steps[i]->name) == 0)
		{
			return refuse(error, spec->steps[i]->place, "duplicate step name: %s", spec->steps[i]->name);
		}
	}
	return true;
}


/* --- what is judged --- */

static bool
link_faults(Spec *spec, SpecError *error)
{
	for (int i = 0; i < spec->fault_count; i++)
	{
		SpecStep *fault = spec->faults[i];

		if (find_step(spec, fault->name) != fault)
		{
			return refuse(error, fault->place, "duplicate step name: %s", fault->name);
		}
		fault->session = fault->target == NULL ? -1 : spec_find_session(spec, fault->target);
		if (fault->target != NULL && fault->session < 0)
		{
			return refuse(error, fault->place, "undefined session \"%s\" in fault \"%s\"", fault->target, fault->name);
		}
	}
	return true;
}

static bool
link_retries(const Spec *spec, SpecError *error)
{
	for (int i = 0; i < spec->retry_count; i++)
	{
		const SpecRetry *retry = spec->retries[i];
		int session = spec_find_session(spec, retry->session);

		if (session < 0)
		{
			return refuse(error, retry->place, "undefined session \"%s\" to retry", retry->session);
		}
		spec->sessions[session]->retries = retry->times;
	}
	return true;
}

static bool
link_expects(const Spec *spec, const SpecPermutation *permutation, SpecError *error)
{
	for (int i = 0; i < permutation->expect_count; i++)
	{
		SpecExpect *expect = permutation->expects[i];
		bool taken = false;

		if (expect->sqlstate == NULL)
		{
			continue;
		}
		expect->step = find_step(spec, expect->name);
		for (int k = 0; k < permutation->turn_count; k++)
		{
			taken = taken || permutation->turns[k]->step == expect->step;
		}
		if (expect->step == NULL || expect->step->fault != 0 || !taken)
		{
			return refuse(error, expect->place, "expected of \"%s\", which is no step of the permutation",
						  expect->name);
		}
	}
	return true;
}


/* --- permutations --- */

static bool
link_mark(const SpecPermutation *permutation, const SpecTurn *turn, SpecMark *mark, SpecError *error)
{
	for (int i = 0; i < permutation->turn_count && mark->step == NULL; i++)
	{
		if (strcmp(permutation->turns[i]->name, mark->name) == 0)
		{
			mark->step = permutation->turns[i]->step;
		}
	}
	if (mark->step == NULL)
	{
		return refuse(error, mark->place, "undefined blocking step \"%s\" referenced in permutation step \"%s\"",
					  mark->name, turn->name);
	}
	if (mark->step->fault != 0 || turn->step->fault != 0)
	{
		return refuse(error, mark->place, "a fault neither waits nor is waited for");
	}
	if (mark->step->session == turn->step->session)
	{
		return refuse(error, mark->place, "permutation step \"%s\" cannot block on its own session", turn->name);
	}
	return true;
}

static bool
link_permutation(const Spec *spec, SpecPermutation *permutation, SpecError *error)
{
	for (int i = 0; i < permutation->turn_count; i++)
	{
		SpecTurn *turn = permutation->turns[i];
		SpecStep *step = find_step(spec, turn->name);

		if (step == NULL)
		{
			return refuse(error, turn->place, "undefined step \"%s\" specified in permutation", turn->name);
		}
		turn->step = step;
		step->used = true;
	}
	for (int i = 0; i < permutation->turn_count; i++)
	{
		const SpecTurn *turn = permutation->turns[i];

		for (int k = 0; k < turn->mark_count; k++)
		{
			if (turn->marks[k]->kind != MARK_ONCE && !link_mark(permutation, turn, turn->marks[k], error))
			{
				return false;
			}
		}
	}
	return link_expects(spec, permutation, error);
}

bool
spec_link(Spec *spec, SpecError *error)
{
	*error = (SpecError){0};
	if (!sort_steps(spec, error) || !link_faults(spec, error) || !link_retries(spec, error))
	{
		return false;
	}
	for (int i = 0; i < spec->permutation_count; i++)
	{
		if (!link_permutation(spec, spec->permutations[i], error))
		{
			return false;
		}
	}
	return true;
}

int
spec_turns_max(const Spec *spec)
{
	int most = spec->permutation_count > 0 ? 0 : spec->step_count;

	for (int i = 0; i < spec->permutation_count; i++)
	{
		most = spec->permutations[i]->turn_count > most ? spec->permutations[i]->turn_count : most;
	}
	return most;
}
