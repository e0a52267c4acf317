/*
 * One interleaving: steps and faults in an order that is given or chosen on the way; what each session did, what came of
 * it, and the story. A trial has connections of its own and is used again for the next interleaving.
 */
#ifndef COUNTERPROOF_SPEC_TRIAL_H
#define COUNTERPROOF_SPEC_TRIAL_H

#include "faults.h"

typedef struct Trial Trial;

#define FAILED_ALREADY "25P02" /* only follows from another error */

/* A step that a session has sent. */
typedef struct
{
	const SpecStep *step;
	Text answer;      /* what the server answered, as it can be compared: rows are sorted */
	Text complaint;   /* its words for the error */
	char sqlstate[6]; /* "": no error */
	bool answered;
	bool waited;     /* for another session */
	bool dependency; /* refused for what it read and others wrote, or the other way around; by no row that both wrote */
	bool commits;    /* a COMMIT did */
	bool rolls_back; /* the last end of a transaction was a ROLLBACK, or a COMMIT that had to be one */
	int follow;      /* so many statements follow that end in the same step */
	bool begins;     /* a BEGIN among them */
	bool in_effect;  /* of a transaction that has committed */
	bool uncertain;  /* the session was lost while it may have committed */
} Deed;

/* What became of a session. */
typedef struct
{
	Deed *deeds;
	int deed_count, deed_capacity;
	int decided;                /* so many deeds belong to transactions that have ended */
	int next;                   /* its step that comes next */
	int attempt;                /* retries so far */
	int begun;                  /* deed that this attempt begins with */
	int refused, refused_count; /* what an attempt that was refused for a dependency had done before; 0: none */
	bool again;                 /* it is to run again from its first step */
	bool paused, lost, open;
	int doubtful; /* deeds from here on may be in effect: the session was lost while they committed; -1: none */
	Text errors;  /* "40001 at w2 after a wait", for each but 25P02, which only follows from another */
} Part;

typedef enum
{
	TRIAL_DONE = 1,
	TRIAL_GIVEN_UP, /* by the pilot */
	TRIAL_REFUSED,  /* the permutation, or one of its steps, cannot run as it is written */
	TRIAL_STOPPED   /* the lab, or the file's setup, does not work: the trial is of no more use */
} TrialEnd;

typedef struct
{
	Part *parts;  /* of each session */
	Text order;   /* names of steps and faults, as they were launched */
	int launched; /* so many */
	Text story;
	Text unknown; /* why nothing can be said; empty: all went well */
	Text trouble; /* for TRIAL_REFUSED and TRIAL_STOPPED */
	int waits;    /* steps that waited for another session */
	int retries_40001, retries_40p01;
	int false_conflicts; /* of the former: the session then read and did just the same */
	int *fired;          /* of each fault, how often it met something */
} Record;

typedef struct
{
	const Spec *spec;
	const char *path; /* for refusals */
	const char *conninfo;
	Cluster *cluster; /* NULL: not to be restarted */
	int64_t step_limit_ms;
} TrialConfig;

/* Whoever decides what runs, and looks on. Actors are sessions; the number after the last one is the fault. */
typedef struct
{
	void *context;
	/* One of the enabled ones, as bits; -1: give up. Not asked for written orders. */
	int (*choose)(void *context, const Trial *trial, uint64_t enabled);
	bool (*after)(void *context, Trial *trial); /* after each step; false: stop, reported. NULL allowed */
	void *after_context;
} TrialPilot;

#define TRIAL_ACTORS_MAX 63

/* NULL: reported. */
extern Trial *trial_open(const TrialConfig *config) MUST_CHECK;
extern void trial_close(Trial *trial); /* NULL allowed */

/* With the other's connections, in turns: what the other has recorded stays. Closed before it. */
extern Trial *trial_open_beside(const Trial *other) MUST_CHECK;

/*
 * Set up and run to the end, but do not tear down: what is to be judged is there. Unless it is stopped
 * trial_end() follows, and the trial can be used again. `faults`: those that the fault actor does, one after another.
 */
extern TrialEnd trial_follow(Trial *trial, const SpecPermutation *permutation, const TrialPilot *pilot);
extern TrialEnd trial_explore(Trial *trial, const SpecStep *const *faults, int fault_count, const TrialPilot *pilot);

/* Sessions one after another, each doing the steps given, as a serial order has it. */
typedef struct
{
	int session;
	const SpecStep *const *steps;
	int count;
} SerialPart;

extern TrialEnd trial_serial(Trial *trial, const SerialPart *parts, int count);

/* Each step marked `read` once in a read-only subtransaction, in a serial order. TRIAL_REFUSED: one is more than a read. */
extern TrialEnd trial_try_reads(Trial *trial);

extern bool trial_end(Trial *trial); /* false: the file's teardown failed, and the record's trouble says how */

extern const Record *trial_record(const Trial *trial);
extern const Spec *trial_spec(const Trial *trial);
extern Executor *trial_executor(Trial *trial);

/* Of the session's part, how much is left to do. */
extern int trial_left(const Trial *trial, int actor);

/* What became of the session, in words: "committed", "40001 at w2". "": it had no part. */
extern void trial_fate(const Trial *trial, int session, Text *text);

extern bool part_is_in_effect(const Part *part); /* some of it */

/* Rows sorted, values as text; a command by its tag, an error by its SQLSTATE. */
extern void trial_append_answer(const SqlResult *result, Text *text);

#endif
