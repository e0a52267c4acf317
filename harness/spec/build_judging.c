/*
 * Growth of a tree by the words of the judged language.
 */
#include "build.h"

#include <stdio.h>
#include <string.h>

#define RETRIES_MAX 1000
#define NUMBER_MAX 1000000000
#define SQLSTATE_LENGTH 5

static bool
refuse(Reading *reading, SpecPlace place, const char *message, const char *detail)
{
	build_refuse(reading, place, message, detail);
	return false;
}

bool
build_is_step(const Reading *reading, const char *name)
{
	const Spec *spec = reading->spec;

	for (int i = 0; i < spec->step_count; i++)
	{
		if (strcmp(spec->steps[i]->name, name) == 0)
		{
			return true;
		}
	}
	for (int i = 0; i < spec->fault_count; i++)
	{
		if (strcmp(spec->faults[i]->name, name) == 0)
		{
			return true;
		}
	}
	return false;
}

bool
build_reads(Reading *reading, const char *word, SpecPlace place)
{
	if (reading->language == SPEC_COMPATIBLE || strcmp(word, "read") != 0)
	{
		return refuse(reading, place, "syntax error", NULL);
	}
	return true;
}

bool
build_invariant(Reading *reading, const char *name, const char *word, const char *sql, SpecPlace place,
				SpecPlace word_place)
{
	Spec *spec = reading->spec;
	SpecInvariant *invariant = build_take(spec, sizeof(SpecInvariant));

	if (word != NULL && strcmp(word, "always") != 0)
	{
		return refuse(reading, word_place, "syntax error", "only \"always\" can stand before an invariant's SQL");
	}
	for (int i = 0; i < spec->invariant_count; i++)
	{
		if (strcmp(spec->invariants[i]->name, name) == 0)
		{
			return refuse(reading, place, "duplicate invariant name", name);
		}
	}
	*invariant = (SpecInvariant){.name = name, .sql = sql, .always = word != NULL, .place = place};
	BUILD_APPEND(spec, spec->invariants, spec->invariant_count, invariant);
	return true;
}

bool
build_observe(Reading *reading, SpecBlock *block, SpecPlace place)
{
	if (reading->spec->observe != NULL)
	{
		return refuse(reading, place, "observe is there twice", NULL);
	}
	reading->spec->observe = block;
	return true;
}


/* --- expect: of the permutation before it --- */

static bool
add_expect(Reading *reading, SpecExpect expect)
{
	Spec *spec = reading->spec;
	SpecExpect *copy = build_take(spec, sizeof(SpecExpect));
	SpecPermutation *permutation;

	if (spec->permutation_count == 0)
	{
		return refuse(reading, expect.place, "expect has to follow a permutation", NULL);
	}
	permutation = spec->permutations[spec->permutation_count - 1];
	if (permutation->expect_count > 0 && (expect.sqlstate == NULL || permutation->expects[0]->sqlstate == NULL))
	{
		return refuse(reading, expect.place, "expect none has to be the only one of its permutation", NULL);
	}
	*copy = expect;
	BUILD_APPEND(spec, permutation->expects, permutation->expect_count, copy);
	return true;
}

bool
build_expect_none(Reading *reading, const char *word, SpecPlace place)
{
	if (strcmp(word, "none") != 0)
	{
		return refuse(reading, place, "syntax error", "expect takes SQLSTATE at STEP, or none");
	}
	return add_expect(reading, (SpecExpect){.place = place});
}

bool
build_expect(Reading *reading, const char *sqlstate, const char *word, const char *step, SpecPlace place,
			 SpecPlace word_place)
{
	static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (strlen(sqlstate) != SQLSTATE_LENGTH || strspn(sqlstate, letters) != SQLSTATE_LENGTH ||
		strncmp(sqlstate, "00", 2) == 0)
	{
		return refuse(reading, place, "this is no SQLSTATE of an error", sqlstate);
	}
	if (strcmp(word, "at") != 0)
	{
		return refuse(reading, word_place, "syntax error", "expect takes SQLSTATE at STEP, or none");
	}
	return add_expect(reading, (SpecExpect){.sqlstate = sqlstate, .name = step, .place = place});
}

/* The scanner takes five digits for a number. Others are no SQLSTATE by their length. */
char *
build_sqlstate(Reading *reading, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%0*d", reading->digits < 10 ? reading->digits : 10, number);
	return build_string(reading, text, strlen(text));
}


/* --- what is done to sessions --- */

bool
build_retry(Reading *reading, const char *session, int times, SpecPlace place, SpecPlace times_place)
{
	Spec *spec = reading->spec;
	SpecRetry *retry = build_take(spec, sizeof(SpecRetry));

	if (times < 1 || times > RETRIES_MAX)
	{
		return refuse(reading, times_place, "a session is retried 1 to 1000 times", NULL);
	}
	for (int i = 0; i < spec->retry_count; i++)
	{
		if (strcmp(spec->retries[i]->session, session) == 0)
		{
			return refuse(reading, place, "retry of this session is there twice", session);
		}
	}
	*retry = (SpecRetry){.session = session, .times = times, .place = place};
	BUILD_APPEND(spec, spec->retries, spec->retry_count, retry);
	return true;
}

bool
build_fault(Reading *reading, const char *name, const char *kind, const char *target, SpecPlace place,
			SpecPlace kind_place)
{
	static const char *const kinds[] = {
		[FAULT_KILL] = "kill",   [FAULT_TERMINATE] = "terminate", [FAULT_CANCEL] = "cancel",
		[FAULT_PAUSE] = "pause", [FAULT_RESUME] = "resume",       [FAULT_RESTART] = "restart"};
	Spec *spec = reading->spec;
	SpecStep *fault = build_take(spec, sizeof(SpecStep));
	SpecFaultKind found = FAULT_KILL;
	char *sql;

	while (found < FAULT_RESTART && strcmp(kinds[found], kind) != 0)
	{
		found++;
	}
	if (strcmp(kinds[found], kind) != 0 || (found == FAULT_RESTART && strcmp(target, "immediate") != 0))
	{
		return refuse(reading, kind_place, "syntax error",
					  "a fault is kill, terminate, cancel, pause or resume SESSION, or restart immediate");
	}
	sql = build_take(spec, strlen(kind) + strlen(target) + 2);
	snprintf(sql, strlen(kind) + strlen(target) + 2, "%s %s", kind, target);
	*fault = (SpecStep){.name = name,
						.sql = sql,
						.session = -1,
						.fault = found,
						.target = found == FAULT_RESTART ? NULL : target,
						.place = place};
	fault->turn = (SpecTurn){.name = name, .step = fault, .place = place};
	BUILD_APPEND(spec, spec->faults, spec->fault_count, fault);
	return true;
}

bool
build_explore(Reading *reading, const char *word, int number, SpecPlace place)
{
	SpecExplore *explore = &reading->spec->explore;
	SpecExploreKind kind = strcmp(word, "all") == 0      ? EXPLORE_ALL
						   : strcmp(word, "bound") == 0  ? EXPLORE_BOUND
						   : strcmp(word, "sample") == 0 ? EXPLORE_SAMPLE
														 : EXPLORE_NONE;
	bool numbered = kind == EXPLORE_BOUND || kind == EXPLORE_SAMPLE;

	if ((kind == EXPLORE_NONE && strcmp(word, "faults") != 0) || numbered != (number >= 0) || number > NUMBER_MAX ||
		(kind == EXPLORE_SAMPLE && number < 1))
	{
		return refuse(reading, place, "syntax error", "explore takes all, bound K, sample N or faults");
	}
	if (kind == EXPLORE_NONE ? explore->faults : explore->kind != EXPLORE_NONE)
	{
		return refuse(reading, place, "explore is there twice", NULL);
	}
	if (kind == EXPLORE_NONE)
	{
		explore->faults = true;
		explore->faults_place = place;
		return true;
	}
	explore->kind = kind;
	explore->number = numbered ? number : 0;
	return true;
}
