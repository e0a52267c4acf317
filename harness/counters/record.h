/*
 * What repair keeps in the database: its runs, and the keys that each of them found wrong. sql/counters/record.sql has the
 * tables and says what they promise.
 *
 * Who works on a run holds an advisory lock on its number, which ends with the session: exclusive while the keys are looked for,
 * shared while they are repaired. A run that nobody holds has stopped, and may be resumed, or is superseded by the next one.
 */
#ifndef COUNTERPROOF_COUNTERS_RECORD_H
#define COUNTERPROOF_COUNTERS_RECORD_H

#include "counter.h"
#include "mode.h"
#include "scan.h"

typedef enum
{
	RUN_FINDING = 1,
	RUN_REPAIRING,
	RUN_FINISHED,
	RUN_SUPERSEDED
} RunState;

typedef struct
{
	int64_t run;
	char *counter;
	char *definition;
	char *one_key; /* NULL: all keys */
	const CounterModeRow *mode;
	RunState state;
	int pass;
} Run;

/* A run in numbers of keys; see the view of this name. */
typedef struct
{
	int64_t drifted, updated, inserted, healed, still_drifted, open, changed, found_late;
	int64_t not_checkable;
	int64_t late; /* keys written behind the reading that were looked at */
} RunSummary;

/* Make the tables where they are not there. false: reported. */
extern bool record_install(Session *session, const char *folder) MUST_CHECK;

/*
 * A new run, held alone. Runs of the counter that have stopped are superseded. NULL: reported; somebody is at work on
 * this counter, or the session failed.
 */
extern Run *run_begin(Session *session, const Counter *counter, const CounterModeRow *mode,
					  const char *one_key) MUST_CHECK;

/* One that only keeps what was found, and supersedes nothing. */
extern Run *run_begin_dry(Session *session, const Counter *counter, const CounterModeRow *mode,
						  const char *one_key) MUST_CHECK;

/* The session takes the run's time zone. NULL: reported, there is none of this number. */
extern Run *run_load(Session *session, int64_t number) MUST_CHECK;
extern bool run_reload(Session *session, Run *run) MUST_CHECK; /* state and pass; false: reported */
extern void run_free(Run *run);                                /* NULL allowed */

/* The latest run of a counter that has not ended, 0 when there is none. false: reported. */
extern bool run_latest_open(Session *session, const char *counter, int64_t *number) MUST_CHECK;

/*
 * Hold a run together with others, once the keys have been found. *alone: they have not, nobody else holds it, and the
 * caller has to find them, and then to run_open() it. false: reported, or interrupted.
 */
extern bool run_enter(Session *session, Run *run, bool *alone) MUST_CHECK;
extern bool run_open(Session *session, Run *run) MUST_CHECK;

/* For each further session that works on it, in the run's time zone. false: reported. */
extern bool run_share(Session *session, const Run *run) MUST_CHECK;

/* Between these, which wait for each other, one session ends a pass. false: reported, or interrupted. */
extern bool run_close_begin(Session *session, Run *run) MUST_CHECK;
extern bool run_close_end(Session *session, Run *run) MUST_CHECK;

extern bool run_summary(Session *session, const Run *run, RunSummary *summary) MUST_CHECK;

/* What a file says of a counter, all of it, as one text. */
extern void definition_append(Text *text, const CounterSpec *spec);

#endif
