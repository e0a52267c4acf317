/*
 * How the parser makes a tree: in the order of the file, each word is added to what was begun last.
 */
#ifndef COUNTERPROOF_SPEC_BUILD_H
#define COUNTERPROOF_SPEC_BUILD_H

#include "tree.h"

/* What scanner and parser carry with them. */
typedef struct
{
	Spec *spec;
	SpecError *error;
	SpecPlace next;  /* of the scanner */
	SpecPlace begun; /* where a block or quoted name under way began */
	Text text;       /* of a block or quoted name under way */
	SpecLanguage language;
	bool wants_name; /* after a word that a name follows */
	bool in_turns;   /* of a permutation */
	int digits;      /* of the last number */
} Reading;

extern void *build_take(Spec *spec, size_t bytes); /* of the tree's memory */
extern void *build_grown(Spec *spec, void *items, int count);

/* Room for one more pointer in an array of the tree, and the pointer. */
#define BUILD_APPEND(spec, items, count, item)                                                                         \
	do                                                                                                                 \
	{                                                                                                                  \
		(items) = build_grown((spec), (items), (count));                                                               \
		(items)[(count)++] = (item);                                                                                   \
	} while (0)

extern char *build_string(Reading *reading, const char *bytes, size_t length); /* ends at a NUL byte, too */

/* Of several complaints the first counts. `detail` may be NULL. */
extern void build_refuse(Reading *reading, SpecPlace place, const char *message, const char *detail);

extern SpecBlock *build_block(Reading *reading, const char *sql, SpecPlace place);
extern void build_setup(Reading *reading, SpecBlock *block); /* one of several, of the whole file */
extern void build_session(Reading *reading, const char *name, SpecPlace place);
extern SpecStep *build_step(Reading *reading, const char *name, const char *sql, SpecPlace place);
extern void build_permutation(Reading *reading, SpecPlace place);
extern void build_turn(Reading *reading, const char *name, SpecPlace place);
extern void build_mark(Reading *reading, SpecMark mark);

extern SpecSession *build_last_session(const Reading *reading);

/*
 * The judged language's own words; false: refused. Words that are none elsewhere come as names, `word` below, and are
 * looked at here.
 */
extern bool build_is_step(const Reading *reading, const char *name);                     /* known so far; faults, too */
extern bool build_reads(Reading *reading, const char *word, SpecPlace place) MUST_CHECK; /* before its step is built */
extern bool build_invariant(Reading *reading, const char *name, const char *word, const char *sql, SpecPlace place,
							SpecPlace word_place) MUST_CHECK;
extern bool build_observe(Reading *reading, SpecBlock *block, SpecPlace place) MUST_CHECK;
extern bool build_expect_none(Reading *reading, const char *word, SpecPlace place) MUST_CHECK;
extern bool build_expect(Reading *reading, const char *sqlstate, const char *word, const char *step, SpecPlace place,
						 SpecPlace word_place) MUST_CHECK;
extern char *build_sqlstate(Reading *reading, int number);
extern bool build_retry(Reading *reading, const char *session, int times, SpecPlace place,
						SpecPlace times_place) MUST_CHECK;
extern bool build_fault(Reading *reading, const char *name, const char *kind, const char *target, SpecPlace place,
						SpecPlace kind_place) MUST_CHECK;
extern bool build_explore(Reading *reading, const char *word, int number, SpecPlace place) MUST_CHECK; /* -1: none */

/* In parser.y. false: refused. */
extern bool build_parse(Reading *reading, const char *text, size_t length) MUST_CHECK;

#endif
