/*
 * Memory of a tree, and its growth while a file is read.
 */
#include "build.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 16384
#define ALIGNMENT_BYTES 16


/* --- memory: chunks, each as large as the largest piece in it wants; freed all at once --- */

struct SpecMemory
{
	SpecMemory *before;
	size_t used, size;
	_Alignas(ALIGNMENT_BYTES) char bytes[];
};

void *
build_take(Spec *spec, size_t bytes)
{
	SpecMemory *memory = spec->memory;
	void *piece;

	bytes = (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
	if (memory == NULL || memory->size - memory->used < bytes)
	{
		size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		memory = memory_get(sizeof(SpecMemory) + size);
		memory->before = spec->memory;
		memory->size = size;
		spec->memory = memory;
	}
	piece = memory->bytes + memory->used;
	memory->used += bytes;
	return piece;
}

void
spec_free(Spec *spec)
{
	while (spec != NULL && spec->memory != NULL)
	{
		SpecMemory *memory = spec->memory;

		spec->memory = memory->before;
		free(memory);
	}
	free(spec);
}

char *
build_string(Reading *reading, const char *bytes, size_t length)
{
	char *string = build_take(reading->spec, length + 1);

	memcpy(string, bytes, length);
	return string;
}

/* Room for one more pointer in an array of `count`, whose capacity is the next power of two. */
void *
build_grown(Spec *spec, void *items, int count)
{
	void *larger;

	if (count > 0 && (count & (count - 1)) != 0)
	{
		return items;
	}
	larger = build_take(spec, sizeof(void *) * (count == 0 ? 1 : (size_t) count * 2));
	if (count > 0)
	{
		memcpy(larger, items, sizeof(void *) * (size_t) count);
	}
	return larger;
}


/* --- what the parser adds --- */

void
build_refuse(Reading *reading, SpecPlace place, const char *message, const char *detail)
{
	SpecError *error = reading->error;
	size_t length = strlen(message);

	if (error->message != NULL)
	{
		return;
	}
	text_append_bytes(&error->text, message, length + 1);
	text_append(&error->text, "%s", detail != NULL ? detail : "");
	error->message = error->text.data;
	error->detail = detail != NULL ? error->text.data + length + 1 : NULL;
	error->place = place;
	error->line_read = reading->next.line;
}

SpecBlock *
build_block(Reading *reading, const char *sql, SpecPlace place)
{
	SpecBlock *block = build_take(reading->spec, sizeof(SpecBlock));

	*block = (SpecBlock){.sql = sql, .place = place};
	return block;
}

void
build_setup(Reading *reading, SpecBlock *block)
{
	Spec *spec = reading->spec;

	BUILD_APPEND(spec, spec->setups, spec->setup_count, block);
}

void
build_session(Reading *reading, const char *name, SpecPlace place)
{
	Spec *spec = reading->spec;
	SpecSession *session = build_take(spec, sizeof(SpecSession));

	*session = (SpecSession){.name = name, .place = place};
	BUILD_APPEND(spec, spec->sessions, spec->session_count, session);
}

SpecSession *
build_last_session(const Reading *reading)
{
	return reading->spec->sessions[reading->spec->session_count - 1];
}

SpecStep *
build_step(Reading *reading, const char *name, const char *sql, SpecPlace place)
{
	Spec *spec = reading->spec;
	SpecSession *session = build_last_session(reading);
	SpecStep *step = build_take(spec, sizeof(SpecStep));

	*step = (SpecStep){.name = name, .sql = sql, .session = spec->session_count - 1, .place = place};
	step->turn = (SpecTurn){.name = name, .step = step, .place = place};
	BUILD_APPEND(spec, session->steps, session->step_count, step);
	BUILD_APPEND(spec, spec->steps, spec->step_count, step);
	return step;
}

void
build_permutation(Reading *reading, SpecPlace place)
{
	Spec *spec = reading->spec;
	SpecPermutation *permutation = build_take(spec, sizeof(SpecPermutation));

	*permutation = (SpecPermutation){.place = place};
	BUILD_APPEND(spec, spec->permutations, spec->permutation_count, permutation);
}

void
build_turn(Reading *reading, const char *name, SpecPlace place)
{
	Spec *spec = reading->spec;
	SpecPermutation *permutation = spec->permutations[spec->permutation_count - 1];
	SpecTurn *turn = build_take(spec, sizeof(SpecTurn));

	*turn = (SpecTurn){.name = name, .place = place};
	BUILD_APPEND(spec, permutation->turns, permutation->turn_count, turn);
}

void
build_mark(Reading *reading, SpecMark mark)
{
	Spec *spec = reading->spec;
	SpecPermutation *permutation = spec->permutations[spec->permutation_count - 1];
	SpecTurn *turn = permutation->turns[permutation->turn_count - 1];
	SpecMark *copy = build_take(spec, sizeof(SpecMark));

	*copy = mark;
	BUILD_APPEND(spec, turn->marks, turn->mark_count, copy);
}
