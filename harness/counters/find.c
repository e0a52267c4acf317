#include "find.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Its rows that a repair is meant for (over, under, negative, NULL, missing) have a place, in the order of their keys. */
#define FOUND "pg_temp.counterproof_found"

/* How much of the keys one difference must make up to be called systematic, and of how many at least. */
#define SYSTEMATIC_PERCENT 50
#define SYSTEMATIC_KEYS 3


/* --- reading --- */

static CounterKeys
keys_meant(const char *one_key)
{
	return (CounterKeys){.kind = one_key != NULL ? KEYS_LIST : KEYS_ALL, .parameter = 1};
}

/* The keys are texts in what a scan says; their order is that of their types. */
static void
append_typed_keys(Text *sql, const Counter *counter)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%sk%d::%s", i > 0 ? ", " : "", i + 1, counter->key[i].type);
	}
}

static void
append_reading(Text *sql, const Counter *counter, CounterKeys keys)
{
	text_append(sql, "CREATE TEMPORARY TABLE counterproof_found AS SELECT f.*, CASE WHEN class BETWEEN 2 AND 6 THEN "
					 "row_number() OVER (PARTITION BY class BETWEEN 2 AND 6 ORDER BY ");
	append_typed_keys(sql, counter);
	text_append(sql, ") END AS place FROM (\n");
	counter_append_scan(sql, counter, keys);
	text_append(sql, "\n) f");
}

static bool
read_keys(Session *session, const Counter *counter, const char *one_key)
{
	CounterKeyList list = {0};
	SqlArg args[COUNTER_KEY_MAX];
	Text sql = {0};
	int count = 0;
	bool done = true;

	if (one_key != NULL)
	{
		done = key_list_add_written(&list, counter, one_key);
		count = done ? key_list_args(&list, counter, args) : 0;
	}
	append_reading(&sql, counter, keys_meant(one_key));
	done = done && session_query(session, NULL, "DROP TABLE IF EXISTS " FOUND, NO_ARGS) &&
		   session_query(session, NULL, text_get(&sql), args, count);
	text_free(&sql);
	key_list_free(&list);
	return done;
}

static bool
read_totals(Session *session, CounterTotals *totals)
{
	SqlResult *result;

	if (!session_query(session, &result,
					   "SELECT class, sum(keys)::bigint, sum(keys * source_rows)::bigint FROM " FOUND
					   " WHERE class >= 0 GROUP BY class",
					   NO_ARGS))
	{
		return false;
	}
	for (int row = 0; row < sql_rows(result); row++)
	{
		int64_t class = sql_int(result, row, 0);

		totals->keys[class] = sql_int(result, row, 1);
		totals->orphan_rows += class == CLASS_ORPHAN ? sql_int(result, row, 2) : 0;
		totals->no_parent_rows += class == CLASS_NO_PARENT ? sql_int(result, row, 2) : 0;
	}
	sql_free(result);
	return true;
}

bool
find_keys(Session *session, const Counter *counter, const CounterModeRow *mode, const char *one_key, Found *found)
{
	bool relative = mode->mode == MODE_RELATIVE;
	int64_t missing;

	*found = (Found){0};
	if (!read_keys(session, counter, one_key) || !read_totals(session, &found->totals) ||
		!session_query_int(session, &found->zeroed,
						   "SELECT count(*) FROM " FOUND " WHERE class BETWEEN 2 AND 4 AND stored::numeric <> 0 AND "
						   "coalesce(actual::numeric, 0) = 0",
						   NO_ARGS))
	{
		return false;
	}
	missing = found->totals.keys[CLASS_MISSING];
	found->nulls = found->totals.keys[CLASS_NULL];
	found->would_update = totals_drifted(&found->totals) - (relative ? found->nulls : 0);
	found->would_insert = relative || !counter->unique ? 0 : missing;
	found->would_refuse = totals_drifted(&found->totals) + missing - found->would_update - found->would_insert;
	return true;
}


/* --- recording --- */

void
find_append_last_event(Text *sql, const Counter *counter)
{
	bool row = counter->last.quoted != NULL;

	text_append(sql, "(SELECT max(%s) FROM %s)", row ? counter->last_column.quoted : counter->seq.quoted,
				row ? counter->last.quoted : counter->outbox.quoted);
}

/* The last event, and the last before which all took effect, as of this snapshot; NULL without an outbox. */
static void
append_event_numbers(Text *sql, const Counter *counter)
{
	if (counter->outbox.quoted == NULL)
	{
		text_append(sql, "NULL::bigint, NULL::bigint");
		return;
	}
	find_append_last_event(sql, counter);
	text_append(sql, ", ");
	if (counter->watermark.quoted != NULL)
	{
		text_append(sql, "(SELECT max(%s) FROM %s)", counter->watermark_column.quoted, counter->watermark.quoted);
		return;
	}
	text_append(sql, "(SELECT coalesce(min(o.%s) - 1, ", counter->seq.quoted);
	find_append_last_event(sql, counter);
	text_append(sql, ") FROM %s o WHERE NOT EXISTS (SELECT FROM %s p WHERE p.%s = o.%s))", counter->outbox.quoted,
				counter->processed.quoted, counter->processed_seq.quoted, counter->seq.quoted);
}

static bool
record_totals(Session *session, const Counter *counter, const Run *run, const Found *found)
{
	const CounterTotals *totals = &found->totals;
	Text sql = {0};
	bool done;

	text_append(&sql, "UPDATE counterproof.run SET state = 'repairing', found = now(), "
					  "horizon = pg_snapshot_xmin(pg_current_snapshot()), scanned = $2, correct = $3, missing = $4, "
					  "not_checkable = $5, orphans = $6, zeroed = $7, (last_seq, applied_seq) = (SELECT ");
	append_event_numbers(&sql, counter);
	text_append(&sql, ") WHERE run = $1");
	done = session_query(session, NULL, text_get(&sql),
						 ARGS(arg_int(run->run), arg_int(totals_scanned(totals)), arg_int(totals_correct(totals)),
							  arg_int(totals->keys[CLASS_MISSING]), arg_int(totals_not_checkable(totals)),
							  arg_int(totals->keys[CLASS_ORPHAN]), arg_int(found->zeroed)));
	text_free(&sql);
	return done;
}

bool
find_record(Session *session, const Counter *counter, const Run *run, const Found *found)
{
	Text sql = {0};
	bool done;

	text_append(&sql, "INSERT INTO counterproof.drift (run, place, key, class, stored, actual, pending, diff, outcome) "
					  "SELECT $1, place, ARRAY[");
	counter_append_keys(&sql, counter, NULL, "text");
	text_append(&sql, "], class, stored, actual, pending, diff, CASE ");
	if (run->mode->mode == MODE_RELATIVE)
	{
		text_append(&sql, "WHEN class IN (5, 6) THEN 'refused' ");
	}
	text_append(&sql, "WHEN class = 6 AND NOT $2 THEN 'refused' END FROM " FOUND " WHERE place IS NOT NULL");
	done = record_totals(session, counter, run, found) &&
		   session_query(session, NULL, text_get(&sql), ARGS(arg_int(run->run), arg_bool(counter->unique)));
	text_free(&sql);
	return done;
}


/* --- printing --- */

static const char *
text_or_null(const SqlResult *row, int column)
{
	return sql_is_null(row, 0, column) ? NULL : sql_text(row, 0, column);
}

static bool
print_row(void *context, const SqlResult *row)
{
	const Counter *counter = context;
	CounterDrift drift = {.class = (CounterClass) sql_int(row, 0, 0)};
	int column = 1;

	while (column <= counter->key_count)
	{
		drift.key[column - 1] = text_or_null(row, column);
		column++;
	}
	drift.stored = text_or_null(row, column);
	drift.actual = text_or_null(row, column + 1);
	drift.pending = text_or_null(row, column + 2);
	drift.diff = text_or_null(row, column + 3);
	drift.rows = sql_int(row, 0, column + 4);
	report_print_row(stdout, counter, &drift);
	return true;
}

static bool
print_rows(Session *session, const Counter *counter, int limit)
{
	Text sql = {0};
	SqlStatus status;
	int64_t rows;

	text_append(&sql, "SELECT class, ");
	counter_append_keys(&sql, counter, NULL, "text");
	text_append(&sql,
				", stored, actual, pending, diff, source_rows FROM " FOUND " WHERE class > 1 ORDER BY place, class, ");
	append_typed_keys(&sql, counter);
	text_append(&sql, " LIMIT NULLIF($1::bigint, 0)");
	status = session_stream(session, text_get(&sql), ARGS(arg_int(limit)), print_row, (void *) counter);
	if (status != SQL_OK)
	{
		report_error("cannot read what was found: %s", session_error(session)->message);
	}
	text_free(&sql);
	if (status != SQL_OK ||
		!session_query_int(session, &rows, "SELECT count(*) FROM " FOUND " WHERE class > 1", NO_ARGS))
	{
		return false;
	}
	report_print_more(stdout, limit > 0 ? rows - limit : 0);
	return true;
}

static bool
append_range(Session *session, const Counter *counter, Text *line)
{
	SqlResult *result;
	Text sql = {0};
	bool done;

	text_append(&sql, "SELECT ");
	counter_append_keys(&sql, counter, NULL, "text");
	text_append(&sql, " FROM " FOUND " WHERE place IN (1, (SELECT max(place) FROM " FOUND ")) ORDER BY place");
	done = session_query(session, &result, text_get(&sql), NO_ARGS);
	text_free(&sql);
	if (!done)
	{
		return false;
	}
	key_append_row(line, counter, result, 0, 0);
	if (sql_rows(result) > 1)
	{
		text_append(line, " to ");
		key_append_row(line, counter, result, 1, 0);
	}
	sql_free(result);
	return true;
}

static const char *
shape_name(int64_t keys, int64_t same)
{
	if (keys == 1)
	{
		return "one stale row";
	}
	return same >= SYSTEMATIC_KEYS && same * 100 >= keys * SYSTEMATIC_PERCENT ? "one difference on most: systematic"
																			  : "no difference prevails: single rows";
}

static bool
print_shape(Session *session, const Counter *counter, int64_t keys)
{
	SqlResult *result;
	Text line = {0};

	text_append(&line, "%lld %s, ", (long long) keys, keys == 1 ? "key" : "keys");
	if (!append_range(session, counter, &line) ||
		!session_query(session, &result,
					   "SELECT CASE WHEN diff::numeric > 0 THEN '+' ELSE '' END || diff, count(*) FROM " FOUND
					   " WHERE place IS NOT NULL AND diff IS NOT NULL GROUP BY diff ORDER BY 2 DESC, diff LIMIT 1",
					   NO_ARGS))
	{
		text_free(&line);
		return false;
	}
	if (sql_rows(result) == 1)
	{
		text_append(&line, ", most frequent diff %s (%lld of %lld): %s", sql_text(result, 0, 0),
					(long long) sql_int(result, 0, 1), (long long) keys, shape_name(keys, sql_int(result, 0, 1)));
	}
	printf("  shape  %s\n", text_get(&line));
	text_free(&line);
	sql_free(result);
	return true;
}

bool
find_print(Session *session, const Counter *counter, const Found *found, int limit)
{
	int64_t keys = totals_drifted(&found->totals) + found->totals.keys[CLASS_MISSING];

	return print_rows(session, counter, limit) && (keys == 0 || print_shape(session, counter, keys));
}

bool
find_print_late(Session *session, const Counter *counter, const Run *run, int64_t late)
{
	Text sql = {0};
	SqlStatus status;

	if (late == 0)
	{
		return true;
	}
	printf("  late   %lld keys were written after the reading, and looked at\n", (long long) late);
	text_append(&sql, "SELECT class");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(&sql, ", key[%d]", i + 1);
	}
	text_append(&sql, ", stored, actual, pending, diff, 0::bigint FROM counterproof.drift WHERE run = $1 AND "
					  "pass = $2 ORDER BY place");
	status = session_stream(session, text_get(&sql), ARGS(arg_int(run->run), arg_int(run->pass + 1)), print_row,
							(void *) counter);
	text_free(&sql);
	if (status != SQL_OK)
	{
		report_error("cannot read what was found late: %s", session_error(session)->message);
	}
	return status == SQL_OK;
}
