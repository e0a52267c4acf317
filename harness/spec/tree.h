/*
 * What a scenario file says: sessions of steps, permutations of them, and in the judged language what must hold.
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

typedef enum
{
	FAULT_KILL = 1, /* the client vanishes */
	FAULT_TERMINATE,
	FAULT_CANCEL,
	FAULT_PAUSE, /* the client does nothing until FAULT_RESUME */
	FAULT_RESUME,
	FAULT_RESTART /* of the server, by an immediate stop */
} SpecFaultKind;

/* A step of a session, or a fault, which is used as one. */
struct SpecStep
{
	const char *name;
	const char *sql;     /* of a fault: what it does */
	int session;         /* index; of a fault the one that it strikes, -1: all */
	SpecFaultKind fault; /* 0: a step */
	const char *target;  /* of a fault: its session's name, NULL: all */
	bool reads;          /* marked `read` by the author */
	bool used;           /* in a written permutation */
	SpecTurn turn;       /* the step without marks, for orders that nobody wrote */
	SpecPlace place;
};

typedef struct
{
	const char *name;
	SpecBlock *setup, *teardown; /* NULL: none */
	SpecStep **steps;
	int step_count;
	int retries; /* after 40001 or 40P01 */
	SpecPlace place;
} SpecSession;

typedef struct
{
	const char *sqlstate; /* NULL: no step fails */
	const char *name;     /* of the step */
	const SpecStep *step; /* found by spec_link() */
	SpecPlace place;
} SpecExpect;

typedef struct
{
	SpecTurn **turns;
	int turn_count;
	SpecExpect **expects;
	int expect_count;
	SpecPlace place;
} SpecPermutation;

typedef struct
{
	const char *name;
	const char *sql; /* returns rows only when it is violated */
	bool always;     /* after each step, too */
	SpecPlace place;
} SpecInvariant;

typedef struct
{
	const char *session;
	int times;
	SpecPlace place;
} SpecRetry;

typedef enum
{
	EXPLORE_NONE = 0,
	EXPLORE_ALL,
	EXPLORE_BOUND,
	EXPLORE_SAMPLE
} SpecExploreKind;

typedef struct
{
	SpecExploreKind kind;
	int number;  /* of preemptions, or of samples */
	bool faults; /* each at every place */
	SpecPlace faults_place;
} SpecExplore;

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
	SpecStep **faults;
	int fault_count;
	SpecInvariant **invariants;
	int invariant_count;
	SpecBlock *observe; /* NULL: none */
	SpecRetry **retries;
	int retry_count;
	SpecExplore explore;
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

typedef enum
{
	SPEC_COMPATIBLE = 1, /* what PostgreSQL's isolationtester takes */
	SPEC_JUDGED          /* and invariant, observe, expect, retry, fault, explore */
} SpecLanguage;

/* Read a file's text, in any encoding that has ASCII in it. NULL: *error says why, reports nothing. */
extern Spec *spec_read(const char *text, size_t length, SpecLanguage language, SpecError *error) MUST_CHECK;
extern void spec_free(Spec *spec); /* NULL allowed */
extern void spec_error_free(SpecError *error);

/* Find the steps that permutations name. false: *error says what is undefined, or defined twice; reports nothing. */
extern bool spec_link(Spec *spec, SpecError *error) MUST_CHECK;

/* A session's index by its name, -1: there is none. */
extern int spec_find_session(const Spec *spec, const char *name);

/* A step or fault by its name; of a linked file. NULL: there is none. */
extern const SpecStep *spec_find_step(const Spec *spec, const char *name);

/* The longest permutation's turns: steps of all sessions when all orders are meant. */
extern int spec_turns_max(const Spec *spec);

#endif
