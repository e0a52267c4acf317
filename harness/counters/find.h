/*
 * Which keys are wrong: one reading over one snapshot into a temporary table of the session, from which they are printed and, where
 * a run is to repair them, recorded. Nothing of it goes through the client but what is printed.
 */
#ifndef COUNTERPROOF_COUNTERS_FIND_H
#define COUNTERPROOF_COUNTERS_FIND_H

#include "record.h"

typedef struct
{
	CounterTotals totals;
	int64_t would_update, would_insert, would_refuse;
	int64_t zeroed; /* keys whose count would go from something to nothing */
	int64_t nulls;  /* NULL where a number ought to be: a column that is being filled */
} Found;

/*
 * Read; `one_key` NULL means all of them. Inside a transaction in Repeatable Read, or one that holds locks which keep
 * everything as it is. false: reported.
 */
extern bool find_keys(Session *session, const Counter *counter, const CounterModeRow *mode, const char *one_key,
					  Found *found) MUST_CHECK;

/* Into the run, in the transaction of find_keys(), which makes it a run that repairs. false: reported. */
extern bool find_record(Session *session, const Counter *counter, const Run *run, const Found *found) MUST_CHECK;

/* Print the keys, `limit` at most (0: all), and the line on their shape; outside or inside a transaction. false: reported. */
extern bool find_print(Session *session, const Counter *counter, const Found *found, int limit) MUST_CHECK;

/* The same for those that the last pass of the run has found, of `late` keys that it looked at. false: reported. */
extern bool find_print_late(Session *session, const Counter *counter, const Run *run, int64_t late) MUST_CHECK;

/* The number of the last event, in parentheses. */
extern void find_append_last_event(Text *sql, const Counter *counter);

#endif
