#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a row of the report begins with. */
static const char *
word_of(CounterClass class)
{
	return counter_class_drifted(class) ? "drift" : counter_class_name(class);
}

void
report_append_totals(Text *text, const CounterTotals *totals, bool tail)
{
	text_append(text, "Scanned: %" PRId64 "  Correct: %" PRId64 "  Drifted: %" PRId64 "  Missing: %" PRId64,
				totals_scanned(totals), totals_correct(totals), totals_drifted(totals), totals->keys[CLASS_MISSING]);
	if (tail)
	{
		text_append(text, "  Orphans: %" PRId64 "  Not checkable: %" PRId64, totals->orphan_rows,
					totals_not_checkable(totals));
	}
}


/* --- lines --- */

static void
print_read(FILE *stream, const Finding *finding)
{
	switch (finding->read)
	{
		case READ_NOTHING:
			break;
		case READ_ONE_PASS:
			fprintf(stream, "  read  one pass, one snapshot\n");
			break;
		case READ_CHUNKS:
			fprintf(stream, "  read  %" PRId64 " chunks of %" PRId64 " keys, a snapshot each\n", finding->chunks,
					finding->chunk_keys);
			break;
		case READ_SAMPLE:
			fprintf(stream, "  read  a sample, one snapshot; orphans were not looked for\n");
			break;
		case READ_ONE_KEY:
			fprintf(stream, "  read  one key, one snapshot\n");
			break;
	}
}

static void
print_kinds(FILE *stream, const CounterTotals *totals)
{
	if (totals_drifted(totals) > 0)
	{
		fprintf(stream, "  over: %" PRId64 "  under: %" PRId64 "  negative: %" PRId64 "  NULL: %" PRId64 "\n",
				totals->keys[CLASS_OVER], totals->keys[CLASS_UNDER], totals->keys[CLASS_NEGATIVE],
				totals->keys[CLASS_NULL]);
	}
	if (totals->orphan_rows > 0)
	{
		fprintf(stream, "  source rows whose key is nowhere: %" PRId64 ", of %" PRId64 " keys\n", totals->orphan_rows,
				totals->keys[CLASS_ORPHAN]);
	}
	if (totals->no_parent_rows > 0)
	{
		fprintf(stream, "  source rows with NULL in their key: %" PRId64 "\n", totals->no_parent_rows);
	}
	if (totals->keys[CLASS_STRAY] > 0)
	{
		fprintf(stream, "  rows whose parent does not exist: %" PRId64 ", not scanned\n", totals->keys[CLASS_STRAY]);
	}
	if (totals->keys[CLASS_AMBIGUOUS] > 0)
	{
		fprintf(stream, "  not checkable: %" PRId64 " rows whose key is there more than once\n",
				totals->keys[CLASS_AMBIGUOUS]);
	}
}

static void
print_lag(FILE *stream, const Finding *finding)
{
	switch (finding->lag)
	{
		case LAG_NONE:
			return;
		case LAG_UNKNOWN:
			fprintf(stream, "  lag  unknown: %s\n", finding->lag_why);
			return;
		case LAG_AHEAD:
			fprintf(stream,
					"  lag  error: the watermark %" PRId64 " is ahead of the log, which ends at %" PRId64
					", by %" PRId64 "\n",
					finding->watermark, finding->last, -finding->behind);
			return;
		case LAG_KNOWN:
			break;
	}
	fprintf(stream, "  lag  %" PRId64 " events", finding->behind);
	if (finding->counter->watermark.quoted != NULL)
	{
		fprintf(stream, ": last %" PRId64 ", watermark %" PRId64, finding->last, finding->watermark);
	}
	fprintf(stream, "; %" PRId64 " keys lag by exactly what is pending\n", finding->totals.keys[CLASS_LAG]);
}

static void
print_in_flight(FILE *stream, const Finding *finding)
{
	if (!finding->looked_twice)
	{
		return;
	}
	if (finding->still_open)
	{
		fprintf(stream, "  in flight  unknown: transactions of the first look were still open after %.1f s\n",
				(double) finding->waited_ms / 1000);
		return;
	}
	fprintf(stream,
			"  in flight  %" PRId64 ", of which %" PRId64 " are right and %" PRId64
			" differ otherwise in a second look %.1f s later\n",
			finding->arrived + finding->moving, finding->arrived, finding->moving, (double) finding->waited_ms / 1000);
}

void
report_print_row(FILE *stream, const Counter *counter, const CounterDrift *drift)
{
	Text line = {0};

	drift_append(&line, counter, drift);
	fprintf(stream, "  %s  %s\n", word_of(drift->class), text_get(&line));
	text_free(&line);
}

void
report_print_more(FILE *stream, int64_t more)
{
	if (more > 0)
	{
		fprintf(stream, "  and %" PRId64 " more (--limit-report 0 prints all)\n", more);
	}
}

static bool
print_rows(FILE *stream, const Finding *finding, int limit)
{
	CounterDrift drift = {0};
	int64_t shown = 0;

	if (finding->obstacle != NULL)
	{
		return true;
	}
	if (!spool_rewind(finding->rows))
	{
		return false;
	}
	while ((limit == 0 || shown < limit) && spool_next(finding->rows, finding->counter, &drift))
	{
		report_print_row(stream, finding->counter, &drift);
		shown++;
	}
	report_print_more(stream, spool_count(finding->rows) - shown);
	return true;
}

bool
report_print(FILE *stream, const Finding *finding, int limit)
{
	Text line = {0};

	report_append_totals(&line, &finding->totals, true);
	fprintf(stream, "%s  %s\n", finding->counter->spec->name, text_get(&line));
	text_free(&line);
	if (finding->obstacle != NULL)
	{
		fprintf(stream, "  not checkable: %s\n", finding->obstacle);
	}
	print_read(stream, finding);
	print_kinds(stream, &finding->totals);
	print_lag(stream, finding);
	print_in_flight(stream, finding);
	return print_rows(stream, finding, limit);
}


/* --- JSON --- */

/* A number where it is a whole one that fits, else the digits as a text; NULL is null. */
static json_t *
json_number(const char *text)
{
	int64_t value;

	if (text == NULL)
	{
		return json_null();
	}
	return string_to_int64(text, INT64_MIN, INT64_MAX, &value) ? json_integer(value) : json_string(text);
}

static json_t *
json_text(const char *text)
{
	return text != NULL ? json_string(text) : json_null();
}

static json_t *
json_row(const Finding *finding, const CounterDrift *drift)
{
	json_t *row = json_object();
	json_t *key = json_object();

	for (int i = 0; i < finding->counter->key_count; i++)
	{
		(void) json_object_set_new(key, finding->counter->spec->key[i], json_text(drift->key[i]));
	}
	(void) json_object_set_new(row, "class", json_string(counter_class_name(drift->class)));
	(void) json_object_set_new(row, "key", key);
	if (drift->class == CLASS_ORPHAN || drift->class == CLASS_NO_PARENT)
	{
		(void) json_object_set_new(row, "rows", json_integer(drift->rows));
		return row;
	}
	(void) json_object_set_new(row, "stored", json_number(drift->stored));
	(void) json_object_set_new(row, "actual", json_number(drift->actual));
	(void) json_object_set_new(row, "diff", json_number(drift->diff));
	if (drift->pending != NULL)
	{
		(void) json_object_set_new(row, "pending", json_number(drift->pending));
	}
	return row;
}

static json_t *
json_rows(const Finding *finding, int limit)
{
	json_t *rows = json_array();
	CounterDrift drift = {0};

	if (finding->obstacle != NULL)
	{
		return rows;
	}
	if (!spool_rewind(finding->rows))
	{
		json_decref(rows);
		return NULL;
	}
	while ((limit == 0 || json_array_size(rows) < (size_t) limit) &&
		   spool_next(finding->rows, finding->counter, &drift))
	{
		(void) json_array_append_new(rows, json_row(finding, &drift));
	}
	return rows;
}

static json_t *
json_totals(const CounterTotals *totals)
{
	const struct
	{
		const char *name;
		int64_t value;
	} rows[] = {{"scanned", totals_scanned(totals)},
				{"correct", totals_correct(totals)},
				{"drifted", totals_drifted(totals)},
				{"missing", totals->keys[CLASS_MISSING]},
				{"not_checkable", totals_not_checkable(totals)},
				{"over", totals->keys[CLASS_OVER]},
				{"under", totals->keys[CLASS_UNDER]},
				{"negative", totals->keys[CLASS_NEGATIVE]},
				{"null", totals->keys[CLASS_NULL]},
				{"ambiguous", totals->keys[CLASS_AMBIGUOUS]},
				{"lagging", totals->keys[CLASS_LAG]},
				{"orphans", totals->orphan_rows},
				{"orphan_keys", totals->keys[CLASS_ORPHAN]},
				{"no_parent", totals->no_parent_rows},
				{"strays", totals->keys[CLASS_STRAY]}};
	json_t *object = json_object();

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		(void) json_object_set_new(object, rows[i].name, json_integer(rows[i].value));
	}
	return object;
}

static json_t *
json_lag(const Finding *finding)
{
	json_t *lag = json_object();

	if (finding->lag == LAG_UNKNOWN)
	{
		(void) json_object_set_new(lag, "unknown", json_string(finding->lag_why));
		return lag;
	}
	(void) json_object_set_new(lag, finding->lag == LAG_AHEAD ? "ahead" : "events",
							   json_integer(finding->lag == LAG_AHEAD ? -finding->behind : finding->behind));
	if (finding->counter->watermark.quoted != NULL)
	{
		(void) json_object_set_new(lag, "last", json_integer(finding->last));
		(void) json_object_set_new(lag, "watermark", json_integer(finding->watermark));
	}
	return lag;
}

static json_t *
json_read(const Finding *finding)
{
	static const char *const names[] = {[READ_NOTHING] = "nothing",
										[READ_ONE_PASS] = "one pass",
										[READ_CHUNKS] = "chunks",
										[READ_SAMPLE] = "sample",
										[READ_ONE_KEY] = "one key"};
	json_t *read = json_object();

	(void) json_object_set_new(read, "how", json_string(names[finding->read]));
	if (finding->read == READ_CHUNKS)
	{
		(void) json_object_set_new(read, "chunks", json_integer(finding->chunks));
		(void) json_object_set_new(read, "chunk_keys", json_integer(finding->chunk_keys));
	}
	return read;
}

static json_t *
json_in_flight(const Finding *finding)
{
	json_t *in_flight = json_object();

	(void) json_object_set_new(in_flight, "waited_ms", json_integer(finding->waited_ms));
	(void) json_object_set_new(in_flight, "known", json_boolean(!finding->still_open));
	(void) json_object_set_new(in_flight, "arrived", json_integer(finding->arrived));
	(void) json_object_set_new(in_flight, "moving", json_integer(finding->moving));
	return in_flight;
}

json_t *
report_json(const Finding *finding, int limit)
{
	json_t *object = json_object();
	json_t *rows = json_rows(finding, limit);

	if (rows == NULL)
	{
		json_decref(object);
		return NULL;
	}
	(void) json_object_set_new(object, "name", json_string(finding->counter->spec->name));
	(void) json_object_set_new(object, "totals", json_totals(&finding->totals));
	(void) json_object_set_new(object, "obstacle", json_text(finding->obstacle));
	(void) json_object_set_new(object, "read", json_read(finding));
	(void) json_object_set_new(object, "lag", finding->lag == LAG_NONE ? json_null() : json_lag(finding));
	(void) json_object_set_new(object, "in_flight", finding->looked_twice ? json_in_flight(finding) : json_null());
	(void) json_object_set_new(
		object, "rows_left_out",
		json_integer(finding->obstacle != NULL ? 0 : spool_count(finding->rows) - (int64_t) json_array_size(rows)));
	(void) json_object_set_new(object, "rows", rows);
	return object;
}
