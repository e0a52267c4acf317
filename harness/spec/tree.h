/*
 * What a scenario file says: sessions of steps, and permutations of them.
 *
 * A tree is made once and read only from then on, by as many threads as like. All of it, strings too, lies in memory
 * of the Spec and goes with it.
 */
#ifndef COUNTERPROOF_SPEC_TREE_H
#define COUNTERPROOF_SPEC_TREE_H

#include "../base.h"

typedef struct Spec Spec;
typedef struct SpecStep SpecStep;
typedef struct SpecMemory SpecMemory;

typedef struct
{
	int line, column; /* from 1; columns are bytes */
} SpecPlace;

typedef struct
{
	const char *sql;
	SpecPlace place;
} SpecBlock;

typedef enum
{
	MARK_ONCE = 1, /* (*): say that it waits, whether it does or not */
	MARK_STEP,     /* not complete while that step is under way */
	MARK_NOTICES   /* not complete before that step's session has sent so many notices more */
} SpecMarkKind;

typedef struct
{
	SpecMarkKind kind;
	const char *name;     /* of the step, not for MARK_ONCE */
	int notices;          /* MARK_NOTICES */
	const SpecStep *step; /* found by spec_link() */
	SpecPlace place;
} SpecMark;

/* A step in its place in a permutation. */
typedef struct
{
	const char *name;
	const SpecStep *step; /* found by spec_link() */
	SpecMark **marks;
	int mark_count;
	SpecPlace place;
} SpecTurn;

struct SpecStep
{
	const char *name;
	const char *sql;
	int session;   /* index */
	bool used;     /* in a written permutation */
	SpecTurn turn; /* the step without marks, for orders that nobody wrote */
	SpecPlace place;
};

typedef struct
{
	const char *name;
	SpecBlock *setup, *teardown; /* NULL: none */
	SpecStep **steps;
	int step_count;
	SpecPlace place;
} SpecSession;

typedef struct
{
	SpecTurn **turns;
	int turn_count;
	SpecPlace place;
} SpecPermutation;

struct Spec
{
	SpecBlock **setups;
	int setup_count;
	SpecBlock *teardown; /* NULL: none */
	SpecSession **sessions;
	int session_count;
	SpecPermutation **permutations;
	int permutation_count; /* 0: all orders are meant */
	SpecStep **steps;      /* of all sessions, sorted by name once spec_link() was there */
	int step_count;
	SpecMemory *memory;
};

/* Why a file is refused. */
typedef struct
{
	SpecPlace place;     /* where the word begins that is wrong; line 0: the file as a whole */
	int line_read;       /* how far the reader had come */
	const char *message; /* "syntax error" */
	const char *detail;  /* more about it; NULL: nothing */
	Text text;           /* their memory */
} SpecError;

/* Read a file's text, in any encoding that has ASCII in it. NULL: *error says why, reports nothing. */
extern Spec *spec_read(const char *text, size_t length, SpecError *error) MUST_CHECK;
extern void spec_free(Spec *spec); /* NULL allowed */
extern void spec_error_free(SpecError *error);

/* Find the steps that permutations name. false: *error says what is undefined, or defined twice; reports nothing. */
extern bool spec_link(Spec *spec, SpecError *error) MUST_CHECK;

/* The longest permutation's turns: steps of all sessions when all orders are meant. */
extern int spec_turns_max(const Spec *spec);

#endif
