/* Comparing: one statement over one snapshot, which sends what is not right and how many are. */
#ifndef COUNTERPROOF_COUNTERS_SCAN_H
#define COUNTERPROOF_COUNTERS_SCAN_H

#include "counter.h"

/* In SQL by these numbers. */
typedef enum
{
	CLASS_CORRECT = 0,
	CLASS_LAG = 1, /* outbox: wrong by exactly what is pending; counts as correct */
	CLASS_OVER = 2,
	CLASS_UNDER = 3,
	CLASS_NEGATIVE = 4, /* below zero, whatever it ought to be */
	CLASS_NULL = 5,
	CLASS_MISSING = 6,   /* a key of the parent without a row in the target */
	CLASS_AMBIGUOUS = 7, /* several rows with one key, or truth names it twice: not checkable */
	CLASS_ORPHAN = 8,    /* source rows whose key is in neither target nor parent; not scanned */
	CLASS_NO_PARENT = 9, /* source rows with a NULL in their key; not scanned */
	CLASS_STRAY = 10     /* a row of the target whose parent does not exist; not scanned */
} CounterClass;

#define COUNTER_CLASSES 11

extern const char *counter_class_name(CounterClass class); /* "over" */
extern bool counter_class_drifted(CounterClass class);     /* over, under, negative, NULL */

typedef struct
{
	int64_t keys[COUNTER_CLASSES];
	int64_t orphan_rows;    /* of the source */
	int64_t no_parent_rows; /* of the source */
	int64_t not_checkable;  /* besides CLASS_AMBIGUOUS: for a reason outside of the row */
} CounterTotals;

extern int64_t totals_drifted(const CounterTotals *totals);
extern int64_t totals_correct(const CounterTotals *totals);
extern int64_t totals_not_checkable(const CounterTotals *totals);
extern int64_t totals_scanned(const CounterTotals *totals); /* Correct + Drifted + Missing + Not checkable */
extern void totals_add(CounterTotals *totals, const CounterTotals *more);

/* A key that is not right. Texts live until the listener returns. */
typedef struct
{
	CounterClass class;
	const char *key[COUNTER_KEY_MAX]; /* NULL: SQL NULL */
	const char *stored;               /* NULL: SQL NULL, or no row */
	const char
		*actual; /* what the source says, an outbox counter's pending events included; NULL: no source row counted */
	const char *pending; /* outbox: sum of the deltas not applied yet; NULL elsewhere */
	const char *diff;    /* stored - actual; NULL when there is nothing stored */
	int64_t rows;        /* of the source, for CLASS_ORPHAN and CLASS_NO_PARENT */
} CounterDrift;

/* false ends the scan, which then fails; the listener has reported why. */
typedef bool (*DriftListener)(void *context, const Counter *counter, const CounterDrift *drift);

/*
 * Run in the caller's transaction; what it tells is of one snapshot, of the statement's start in Read Committed. Adds to
 * *totals. `args` are the parameters of `keys`, which begin at $1. `listener` (may be NULL) hears of every key that is not
 * CLASS_CORRECT, in no order. The session is busy until it returns, the listener must not use it. SQL_OK, or as session_try()
 * says, not reported.
 */
extern SqlStatus counter_scan(Session *session, const Counter *counter, CounterKeys keys, const SqlArg *args,
							  int arg_count, CounterTotals *totals, DriftListener listener, void *context) MUST_CHECK;

/* `id=42 stored=7 actual=5 diff=+2`, with the names of the file. */
extern void drift_append(Text *text, const Counter *counter, const CounterDrift *drift);

#endif
