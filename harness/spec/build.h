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
} Reading;

extern char *build_string(Reading *reading, const char *bytes, size_t length); /* ends at a NUL byte, too */

/* Of several complaints the first counts. `detail` may be NULL. */
extern void build_refuse(Reading *reading, SpecPlace place, const char *message, const char *detail);

extern SpecBlock *build_block(Reading *reading, const char *sql, SpecPlace place);
extern void build_setup(Reading *reading, SpecBlock *block); /* one of several, of the whole file */
extern void build_session(Reading *reading, const char *name, SpecPlace place);
extern void build_step(Reading *reading, const char *name, const char *sql, SpecPlace place);
extern void build_permutation(Reading *reading, SpecPlace place);
extern void build_turn(Reading *reading, const char *name, SpecPlace place);
extern void build_mark(Reading *reading, SpecMark mark);

extern SpecSession *build_last_session(const Reading *reading);

/* In parser.y. false: refused. */
extern bool build_parse(Reading *reading, const char *text, size_t length) MUST_CHECK;

#endif
