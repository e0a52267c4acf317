/*
 * Fuzzes the parser of the scenario language: no bytes make it read or write where it must not, or hang; a file that is
 * refused says why, at a place inside it; one that is taken can be written out again and means the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "spec/permute.h"
#include "spec/tree.h"

#define ORDERS_MOST 100

extern int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length);

static void
require(bool holds, const char *what)
{
	if (!holds)
	{
		report_error("%s", what);
		abort();
	}
}


/* --- writing out --- */

static void
append_name(Text *text, const char *name)
{
	text_append(text, " \"");
	for (; *name != '\0'; name++)
	{
		text_append_bytes(text, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
	}
	text_append(text, "\"");
}

static void
append_block(Text *text, const char *word, const SpecBlock *block)
{
	if (block != NULL)
	{
		text_append(text, " %s {%s}", word, block->sql);
	}
}

static void
append_mark(Text *text, const SpecMark *mark, bool first)
{
	text_append(text, "%s", first ? " (" : ",");
	if (mark->kind == MARK_ONCE)
	{
		text_append(text, "*");
		return;
	}
	append_name(text, mark->name);
	if (mark->kind == MARK_NOTICES)
	{
		/* the scanner knows no sign; what was cut to a negative number cannot be written */
		text_append(text, " notices %d", mark->notices < 0 ? 0 : mark->notices);
	}
}

static void
append_permutation(Text *text, const SpecPermutation *permutation)
{
	text_append(text, " permutation");
	for (int i = 0; i < permutation->turn_count; i++)
	{
		const SpecTurn *turn = permutation->turns[i];

		append_name(text, turn->name);
		for (int k = 0; k < turn->mark_count; k++)
		{
			append_mark(text, turn->marks[k], k == 0);
		}
		text_append(text, "%s", turn->mark_count > 0 ? ")" : "");
	}
}

static void
append_spec(Text *text, const Spec *spec)
{
	for (int i = 0; i < spec->setup_count; i++)
	{
		append_block(text, "setup", spec->setups[i]);
	}
	append_block(text, "teardown", spec->teardown);
	for (int i = 0; i < spec->session_count; i++)
	{
		const SpecSession *session = spec->sessions[i];

		text_append(text, " session");
		append_name(text, session->name);
		append_block(text, "setup", session->setup);
		for (int k = 0; k < session->step_count; k++)
		{
			text_append(text, " step");
			append_name(text, session->steps[k]->name);
			text_append(text, " {%s}", session->steps[k]->sql);
		}
		append_block(text, "teardown", session->teardown);
	}
	for (int i = 0; i < spec->permutation_count; i++)
	{
		append_permutation(text, spec->permutations[i]);
	}
}


/* --- what must hold --- */

static void
check_refusal(const SpecError *error, const unsigned char *bytes, size_t length)
{
	int lines = 1;

	for (size_t i = 0; i < length; i++)
	{
		lines += bytes[i] == '\n';
	}
	require(error->message != NULL && error->message[0] != '\0', "refused without a reason");
	require(error->place.line >= 1 && error->place.line <= lines, "refused at a line that is not there");
	require(error->line_read <= lines, "read further than there is");
	require(error->place.column >= 1 && (size_t) error->place.column <= length + 1, "refused at no column");
}

static void
check_round_trip(const Spec *spec)
{
	Text once = {0};
	Text twice = {0};
	SpecError error;
	Spec *again;

	append_spec(&once, spec);
	again = spec_read(text_get(&once), once.length, SPEC_COMPATIBLE, &error);
	require(again != NULL, "what was written out is refused");
	append_spec(&twice, again);
	require(strcmp(text_get(&once), text_get(&twice)) == 0, "what was written out means something else");
	spec_free(again);
	spec_error_free(&error);
	text_free(&once);
	text_free(&twice);
}

static void
check_orders(const Spec *spec)
{
	const SpecTurn **turns = memory_get(sizeof(SpecTurn *) * (size_t) spec->step_count);
	uint64_t count = permute_count(spec);
	uint64_t seen = 0;
	Permute permute;

	permute_begin(&permute, spec);
	while (seen < ORDERS_MOST && permute_next(&permute, turns))
	{
		seen++;
	}
	require(seen == (count < ORDERS_MOST ? count : ORDERS_MOST), "orders are miscounted");
	permute_end(&permute);
	free(turns);
}

/* The words of the judged language are not written again; that it is read and linked, or refused somewhere in it, is all. */
static void
check_judged(const unsigned char *bytes, size_t length)
{
	SpecError error;
	Spec *spec = spec_read((const char *) bytes, length, SPEC_JUDGED, &error);

	if (spec == NULL || !spec_link(spec, &error))
	{
		check_refusal(&error, bytes, length);
	}
	spec_error_free(&error);
	spec_free(spec);
}

int
LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
	SpecError error;
	Spec *spec = spec_read((const char *) bytes, length, SPEC_COMPATIBLE, &error);

	if (spec == NULL)
	{
		check_refusal(&error, bytes, length);
	}
	else
	{
		/* a block is trimmed as a whole and then ends at a NUL byte, with blanks before it that nobody can write */
		if (memchr(bytes, '\0', length) == NULL)
		{
			check_round_trip(spec);
		}
		check_orders(spec);
		if (!spec_link(spec, &error))
		{
			check_refusal(&error, bytes, length);
		}
	}
	spec_error_free(&error);
	spec_free(spec);
	check_judged(bytes, length);
	return 0;
}
