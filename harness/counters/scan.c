#include "scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const CLASS_NAMES[] = {[CLASS_CORRECT] = "correct",   [CLASS_LAG] = "lag",
										  [CLASS_OVER] = "over",         [CLASS_UNDER] = "under",
										  [CLASS_NEGATIVE] = "negative", [CLASS_NULL] = "null",
										  [CLASS_MISSING] = "missing",   [CLASS_AMBIGUOUS] = "ambiguous",
										  [CLASS_ORPHAN] = "orphan",     [CLASS_NO_PARENT] = "no parent",
										  [CLASS_STRAY] = "stray"};

const char *
counter_class_name(CounterClass class)
{
	return CLASS_NAMES[class];
}

bool
counter_class_drifted(CounterClass class)
{
	return class == CLASS_OVER || class == CLASS_UNDER || class == CLASS_NEGATIVE || class == CLASS_NULL;
}


/* --- totals --- */

int64_t
totals_drifted(const CounterTotals *totals)
{
	int64_t drifted = 0;

	for (int class = 0; class < COUNTER_CLASSES; class ++)
	{
		drifted += counter_class_drifted((CounterClass) class) ? totals->keys[class] : 0;
	}
	return drifted;
}

int64_t
totals_correct(const CounterTotals *totals)
{
	return totals->keys[CLASS_CORRECT] + totals->keys[CLASS_LAG];
}

int64_t
totals_not_checkable(const CounterTotals *totals)
{
	return totals->keys[CLASS_AMBIGUOUS] + totals->not_checkable;
}

int64_t
totals_scanned(const CounterTotals *totals)
{
	return totals_correct(totals) + totals_drifted(totals) + totals->keys[CLASS_MISSING] + totals_not_checkable(totals);
}

void
totals_add(CounterTotals *totals, const CounterTotals *more)
{
	for (int class = 0; class < COUNTER_CLASSES; class ++)
	{
		totals->keys[class] += more->keys[class];
	}
	totals->orphan_rows += more->orphan_rows;
	totals->no_parent_rows += more->no_parent_rows;
	totals->not_checkable += more->not_checkable;
}


/* --- the scan --- */

/* Columns of counter_append_scan(): these, then the key's, then the rest. */
enum
{
	COLUMN_CLASS = 0,
	COLUMN_KEYS,
	COLUMN_SOURCE_ROWS,
	COLUMN_FIRST_KEY
};

typedef struct
{
	const Counter *counter;
	CounterTotals *totals;
	DriftListener listener;
	void *context;
} Scan;

static const char *
text_or_null(const SqlResult *row, int column)
{
	return sql_is_null(row, 0, column) ? NULL : sql_text(row, 0, column);
}

static bool
take_row(void *context, const SqlResult *row)
{
	Scan *scan = context;
	int64_t number = sql_int(row, 0, COLUMN_CLASS);
	int64_t keys = sql_int(row, 0, COLUMN_KEYS);
	int at = COLUMN_FIRST_KEY + scan->counter->key_count;
	CounterDrift drift = {.class = (CounterClass) number, .rows = sql_int(row, 0, COLUMN_SOURCE_ROWS)};

	if (number < 0)
	{
		return true; /* out of target_where */
	}
	scan->totals->keys[number] += keys;
	scan->totals->orphan_rows += number == CLASS_ORPHAN ? drift.rows * keys : 0;
	scan->totals->no_parent_rows += number == CLASS_NO_PARENT ? drift.rows * keys : 0;
	if (number == CLASS_CORRECT || scan->listener == NULL)
	{
		return true;
	}
	for (int i = 0; i < scan->counter->key_count; i++)
	{
		drift.key[i] = text_or_null(row, COLUMN_FIRST_KEY + i);
	}
	drift.stored = text_or_null(row, at);
	drift.actual = text_or_null(row, at + 1);
	drift.pending = text_or_null(row, at + 2);
	drift.diff = text_or_null(row, at + 3);
	return scan->listener(scan->context, scan->counter, &drift);
}

SqlStatus
counter_scan(Session *session, const Counter *counter, CounterKeys keys, const SqlArg *args, int arg_count,
			 CounterTotals *totals, DriftListener listener, void *context)
{
	CounterTotals found = {0};
	Scan scan = {.counter = counter, .totals = &found, .listener = listener, .context = context};
	Text sql = {0};
	SqlStatus status;

	keys.parameter = 1;
	counter_append_scan(&sql, counter, keys);
	status = session_stream(session, text_get(&sql), args, arg_count, take_row, &scan);
	if (status == SQL_OK)
	{
		totals_add(totals, &found);
	}
	text_free(&sql);
	return status;
}


/* --- one line --- */

void
drift_append(Text *text, const Counter *counter, const CounterDrift *drift)
{
	key_append(text, counter, drift->key);
	if (drift->class == CLASS_ORPHAN || drift->class == CLASS_NO_PARENT)
	{
		text_append(text, " rows=%" PRId64, drift->rows);
		return;
	}
	text_append(text, " stored=%s actual=%s",
				drift->class == CLASS_MISSING ? "none"
				: drift->stored != NULL       ? drift->stored
											  : "NULL",
				drift->actual != NULL ? drift->actual : "0");
	if (drift->pending != NULL)
	{
		text_append(text, " pending=%s%s", strchr("-0", drift->pending[0]) != NULL ? "" : "+", drift->pending);
	}
	if (drift->diff != NULL)
	{
		text_append(text, " diff=%s%s", strchr("-0", drift->diff[0]) != NULL ? "" : "+", drift->diff);
	}
}
