/*
 * One look at a counter, in transactions that only read: Repeatable Read, so that what is said of a chunk is of one moment. Only
 * for writers of two transactions there is a second look, at what differed.
 */
#include "finding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../progress.h"
#include "connect.h"

#define CHUNK_KEYS 10000 /* that a plan in chunks is priced with */
#define SECOND_LOOK_KEYS 500
#define OPEN_TRANSACTIONS_MS 60000
#define ASK_AGAIN_MS 100 /* reading pg_locks is not free for others */
#define MS_PER_S 1000
#define NS_PER_MS 1000000

typedef struct
{
	Session *session;
	const CountersRequest *request;
	Finding *finding;
	const Counter *counter;
	char *xmax, *open; /* what counters_ended takes: the transactions that were open after the first look */
	Deadline ask;      /* not before */
	bool broken;       /* what went wrong was reported, and is not the counter's */
} Look;


/* --- what goes wrong --- */

/* The first one stays. Always false. */
static bool
obstruct(Look *look, const char *why)
{
	if (look->finding->obstacle == NULL)
	{
		look->finding->obstacle = string_copy(why);
	}
	return false;
}

/* A statement failed: the counter's affair, unless the session is gone. */
static bool
obstruct_by_error(Look *look)
{
	const SqlError *error = session_error(look->session);
	char *why;

	if (session_is_lost(look->session))
	{
		report_error("%s: session lost: %s (%s)", look->counter->spec->name, error->message, error->sqlstate);
		look->broken = true;
	}
	if (look->broken)
	{
		return false;
	}
	why = string_format("%s (%s)", error->message, error->sqlstate);
	look->finding->denied = look->finding->denied || strcmp(error->sqlstate, "42501") == 0;
	(void) obstruct(look, why);
	free(why);
	return false;
}

static bool
query(Look *look, SqlResult **result, const char *sql, const SqlArg *args, int count)
{
	return session_try(look->session, result, sql, args, count) == SQL_OK || obstruct_by_error(look);
}

static bool
begin(Look *look)
{
	return counters_begin_reading(look->session) == SQL_OK || obstruct_by_error(look);
}

/* There is nothing to commit. */
static void
end(Look *look)
{
	session_rollback(look->session);
}


/* --- scanning --- */

static bool
hear(void *context, const Counter *counter, const CounterDrift *drift)
{
	Look *look = context;

	if (drift->class == CLASS_LAG)
	{
		return true;
	}
	look->broken = !spool_add(look->finding->rows, counter, drift);
	return !look->broken;
}

static bool
scan(Look *look, CounterKeys keys, const SqlArg *args, int count)
{
	return counter_scan(look->session, look->counter, keys, args, count, &look->finding->totals, hear, look) ==
			   SQL_OK ||
		   obstruct_by_error(look);
}

static bool
scan_list(Look *look, const CounterKeyList *list)
{
	SqlArg args[COUNTER_KEY_MAX];
	int count = key_list_args(list, look->counter, args);

	return scan(look, (CounterKeys){.kind = KEYS_LIST}, args, count);
}

static bool
scan_all(Look *look)
{
	char *what = string_format("%s  one pass over about %.0f keys", look->counter->spec->name,
							   look->counter->target.rows > 0 ? look->counter->target.rows : 0);
	ProgressMeter meter;
	bool done;

	look->finding->read = READ_ONE_PASS;
	progress_meter_begin(&meter, what, 0);
	done = scan(look, (CounterKeys){.kind = KEYS_ALL}, NO_ARGS);
	progress_meter_end(&meter);
	free(what);
	return done;
}

static bool
scan_one(Look *look)
{
	CounterKeyList list = {0};
	bool done = key_list_add_written(&list, look->counter, look->request->id) && scan_list(look, &list);

	look->finding->read = READ_ONE_KEY;
	if (done && totals_scanned(&look->finding->totals) == 0)
	{
		done = obstruct(look, "there is no such key");
	}
	key_list_free(&list);
	return done || obstruct(look, "not a key of this counter");
}

/* All are of one snapshot: what was drawn has to be found again, else nothing was looked at, and nothing is right. */
static bool
all_found(Look *look, int drawn)
{
	return look->counter->spec->target_where != NULL || totals_scanned(&look->finding->totals) >= drawn ||
		   obstruct(look, "the key's text does not stand for the key");
}

/* Drawn by a hash with the seed in it: the same keys for the same seed, whatever the order on disk. */
static bool
scan_sample(Look *look)
{
	bool parent = look->counter->parent.quoted != NULL;
	CounterKeys keys = {.kind = KEYS_ALL};
	CounterKeyList list = {0};
	SqlResult *result = NULL;
	Text sql = {0};
	bool done;

	look->finding->read = READ_SAMPLE;
	text_append(&sql, "SELECT ");
	counter_append_keys(&sql, look->counter, "d", "text");
	text_append(&sql, " FROM (");
	if (parent)
	{
		counter_append_parent(&sql, look->counter, keys);
	}
	else
	{
		counter_append_target(&sql, look->counter, keys);
	}
	text_append(&sql, ") d%s ORDER BY hashtextextended(ROW(", parent ? "" : " WHERE chosen");
	counter_append_keys(&sql, look->counter, "d", NULL);
	text_append(&sql, ")::text, $1::bigint) LIMIT $2::integer");
	done = query(look, &result, text_get(&sql),
				 ARGS(arg_int((int64_t) look->request->seed), arg_int(look->request->sample)));
	for (int row = 0; done && row < sql_rows(result); row++)
	{
		const char *key[COUNTER_KEY_MAX];

		for (int i = 0; i < look->counter->key_count; i++)
		{
			key[i] = sql_is_null(result, row, i) ? NULL : sql_text(result, row, i);
		}
		key_list_add(&list, look->counter, key);
	}
	done = done && scan_list(look, &list) && all_found(look, list.count);
	sql_free(result);
	key_list_free(&list);
	text_free(&sql);
	return done;
}


/* --- chunks --- */

/* Bounds of a chunk: the lower one, above which it begins, then the upper. */
typedef struct
{
	char *values[2 * COUNTER_KEY_MAX];
	bool lower, upper;
} Bounds;

static void
bounds_free(Bounds *bounds)
{
	for (size_t i = 0; i < LENGTH_OF(bounds->values); i++)
	{
		free(bounds->values[i]);
	}
}

static int
bounds_args(const Bounds *bounds, int key_count, SqlArg args[2 * COUNTER_KEY_MAX])
{
	int count = 0;

	for (int i = bounds->lower ? 0 : key_count; i < (bounds->upper ? 2 : 1) * key_count; i++)
	{
		args[count++] = arg_text(bounds->values[i]);
	}
	return count;
}

/* The upper bound of the next chunk of so many keys; without one the chunk is the last. */
static bool
bounds_find_upper(Look *look, Bounds *bounds, int keys)
{
	int key_count = look->counter->key_count;
	SqlArg args[2 * COUNTER_KEY_MAX];
	SqlResult *result;
	Text sql = {0};
	bool done;

	bounds->upper = false;
	counter_append_bound(&sql, look->counter, bounds->lower, keys);
	done = query(look, &result, text_get(&sql), args, bounds_args(bounds, key_count, args));
	if (done)
	{
		bounds->upper = sql_rows(result) == 1;
		for (int i = 0; bounds->upper && i < key_count; i++)
		{
			free(bounds->values[key_count + i]);
			bounds->values[key_count + i] = string_copy(sql_text(result, 0, i));
		}
		sql_free(result);
	}
	text_free(&sql);
	return done;
}

static void
bounds_advance(Bounds *bounds, int key_count)
{
	for (int i = 0; i < key_count; i++)
	{
		free(bounds->values[i]);
		bounds->values[i] = bounds->values[key_count + i];
		bounds->values[key_count + i] = NULL;
	}
	bounds->lower = true;
	bounds->upper = false;
}

/* A key that is another one when it comes back as a text would be found above itself for ever. */
static bool
bounds_grow(Look *look, const Bounds *bounds)
{
	int key_count = look->counter->key_count;
	bool same = bounds->lower && bounds->upper;

	for (int i = 0; same && i < key_count; i++)
	{
		same = strcmp(bounds->values[i], bounds->values[key_count + i]) == 0;
	}
	return !same || obstruct(look, "the key's text does not stand for the key");
}

static bool
scan_chunk(Look *look, Bounds *bounds, int keys)
{
	SqlArg args[2 * COUNTER_KEY_MAX];
	bool done = begin(look) && bounds_find_upper(look, bounds, keys) && bounds_grow(look, bounds);

	if (done)
	{
		CounterKeys range = {.kind = KEYS_RANGE, .lower = bounds->lower, .upper = bounds->upper};

		done = scan(look, range, args, bounds_args(bounds, look->counter->key_count, args));
	}
	end(look);
	return done;
}

static bool
scan_nulls(Look *look)
{
	bool done = begin(look) && scan(look, (CounterKeys){.kind = KEYS_NULL}, NO_ARGS);

	end(look);
	return done;
}

static bool
scan_chunks(Look *look, int keys)
{
	char *what = string_format("%s  keys", look->counter->spec->name);
	Finding *finding = look->finding;
	Bounds bounds = {0};
	ProgressMeter meter;
	bool done;

	finding->read = READ_CHUNKS;
	finding->chunk_keys = keys;
	progress_meter_begin(&meter, what, look->counter->target.rows);
	do
	{
		done = scan_chunk(look, &bounds, keys);
		finding->chunks++;
		progress_meter_at(&meter, (double) totals_scanned(&finding->totals));
		if (!done || !bounds.upper)
		{
			break;
		}
		bounds_advance(&bounds, look->counter->key_count);
	} while (done);
	done = done && scan_nulls(look);
	progress_meter_end(&meter);
	bounds_free(&bounds);
	free(what);
	return done;
}

/* What the planner believes that the first chunk costs; infinite where there are no two. */
static bool
chunk_cost(Look *look, double *cost)
{
	SqlArg args[2 * COUNTER_KEY_MAX];
	Bounds bounds = {0};
	SqlResult *result;
	Text sql = {0};
	bool done = bounds_find_upper(look, &bounds, CHUNK_KEYS);

	*cost = 0;
	if (done && bounds.upper)
	{
		CounterKeys range = {.kind = KEYS_RANGE, .parameter = 1, .upper = true};

		text_append(&sql, "EXPLAIN\n");
		counter_append_scan(&sql, look->counter, range);
		done = query(look, &result, text_get(&sql), args, bounds_args(&bounds, look->counter->key_count, args));
		if (done)
		{
			const char *dots = strstr(sql_text(result, 0, 0), "..");

			*cost = dots != NULL ? strtod(dots + 2, NULL) : 0;
			sql_free(result);
		}
	}
	text_free(&sql);
	bounds_free(&bounds);
	return done;
}

/* Sets *keys to the size of a chunk, 0 for one pass. */
static bool
choose_chunks(Look *look, int *keys)
{
	double rows = look->counter->parent.quoted != NULL ? look->counter->parent.rows : look->counter->target.rows;
	double cost = 0;
	bool done = true;

	*keys = look->request->chunk;
	if (*keys == 0 && rows > 2 * CHUNK_KEYS)
	{
		done = begin(look) && chunk_cost(look, &cost);
		end(look);
		*keys = cost > 0 && cost * (rows / CHUNK_KEYS) < look->counter->cost ? CHUNK_KEYS : 0;
	}
	return done;
}


/* --- lag: what the log says against what took effect, never 0 because something could not be read --- */

/* The one number of a one-row table; false: why is set. */
static bool
read_place(Look *look, const CounterTable *table, const CounterColumn *column, int64_t *number, bool *known)
{
	char *sql = string_format("SELECT %s::bigint FROM %s LIMIT 2", column->quoted, table->quoted);
	Finding *finding = look->finding;
	SqlResult *result;
	bool done = query(look, &result, sql, NO_ARGS);

	*known = done && sql_rows(result) == 1 && !sql_is_null(result, 0, 0);
	if (*known)
	{
		*number = sql_int(result, 0, 0);
	}
	else if (done)
	{
		finding->lag = LAG_UNKNOWN;
		free(finding->lag_why);
		finding->lag_why = string_format("%s has %s", table->quoted,
										 sql_rows(result) == 0   ? "no row"
										 : sql_rows(result) == 1 ? "NULL"
																 : "several rows");
	}
	if (done)
	{
		sql_free(result);
	}
	free(sql);
	return done;
}

/* Without a row that has it, the last number is the greatest in the log; an empty log has none, which is 0. */
static bool
read_last(Look *look, bool *known)
{
	const Counter *counter = look->counter;
	char *sql;
	SqlResult *result;
	bool done;

	if (counter->last.quoted != NULL)
	{
		return read_place(look, &counter->last, &counter->last_column, &look->finding->last, known);
	}
	sql = string_format("SELECT coalesce(max(%s), 0)::bigint FROM %s", counter->seq.quoted, counter->outbox.quoted);
	done = query(look, &result, sql, NO_ARGS);
	*known = done;
	if (done)
	{
		look->finding->last = sql_int(result, 0, 0);
		sql_free(result);
	}
	free(sql);
	return done;
}

/* Without a watermark: the events that are registered nowhere. */
static bool
count_unprocessed(Look *look)
{
	const Counter *counter = look->counter;
	char *sql = string_format("SELECT count(*) FROM %s o WHERE NOT EXISTS (SELECT FROM %s p WHERE p.%s = o.%s)",
							  counter->outbox.quoted, counter->processed.quoted, counter->processed_seq.quoted,
							  counter->seq.quoted);
	SqlResult *result;
	bool done = query(look, &result, sql, NO_ARGS);

	if (done)
	{
		look->finding->lag = LAG_KNOWN;
		look->finding->behind = sql_int(result, 0, 0);
		sql_free(result);
	}
	free(sql);
	return done;
}

static bool
read_lag(Look *look)
{
	const Counter *counter = look->counter;
	Finding *finding = look->finding;
	bool last_known;
	bool watermark_known;

	if (counter->outbox.quoted == NULL)
	{
		return true;
	}
	if (counter->watermark.quoted == NULL)
	{
		return count_unprocessed(look);
	}
	if (!read_last(look, &last_known) ||
		!read_place(look, &counter->watermark, &counter->watermark_column, &finding->watermark, &watermark_known))
	{
		return false;
	}
	if (last_known && watermark_known)
	{
		finding->behind = finding->last - finding->watermark;
		finding->lag = finding->behind < 0 ? LAG_AHEAD : LAG_KNOWN;
	}
	return watermark_known || counter->processed.quoted != NULL ||
		   obstruct(look, "lag unknown: nothing says which events took effect");
}


/* --- the second look, for writers of two transactions --- */

static ProbeAnswer
probe_all_ended(void *context, Text *seen)
{
	Look *look = context;
	SqlResult *result;
	bool ended;

	text_append(seen, "transactions are open");
	if (!deadline_passed(look->ask))
	{
		return PROBE_AGAIN;
	}
	if (session_try_prepared(look->session, &result, "counters_ended",
							 ARGS(arg_text(look->xmax), arg_text(look->open))) != SQL_OK)
	{
		return PROBE_FAILED;
	}
	ended = sql_bool(result, 0, 0);
	sql_free(result);
	look->ask = deadline_in_ms(ASK_AGAIN_MS);
	return ended ? PROBE_DONE : PROBE_AGAIN;
}

static ProbeAnswer
probe_settled(void *context, Text *seen)
{
	const Deadline *settled = context;

	text_append(seen, "settling");
	return deadline_passed(*settled) ? PROBE_DONE : PROBE_AGAIN;
}

/* Until every transaction of the first look has ended, and the time passed that an application needs for its next one. */
static bool
wait_for_second_look(Look *look)
{
	int64_t began_ns = time_now_ns();
	Deadline settled;
	bool ended;

	notice_expect_errors(true);
	ended = wait_until("the end of all transactions of the first look", deadline_in_ms(OPEN_TRANSACTIONS_MS),
					   probe_all_ended, look);
	notice_expect_errors(false);
	if (session_is_lost(look->session))
	{
		return obstruct_by_error(look);
	}
	look->finding->still_open = !ended;
	settled = deadline_in_ms((int64_t) look->request->settle_s * MS_PER_S);
	if (ended && !wait_until("the time to settle", deadline_in_ms((int64_t) (look->request->settle_s + 60) * MS_PER_S),
							 probe_settled, &settled))
	{
		look->broken = true; /* an interrupt */
	}
	look->finding->waited_ms = (time_now_ns() - began_ns) / NS_PER_MS;
	return !look->broken;
}

/* What differed, and how it differs now. */
typedef struct
{
	Look *look;
	CounterDrift rows[SECOND_LOOK_KEYS]; /* of the first look, in memory of their own */
	bool seen[SECOND_LOOK_KEYS];
	int count;
	Spool *kept;
} SecondLook;

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
same_key(const Counter *counter, const CounterDrift *a, const CounterDrift *b)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		if (!same_text(a->key[i], b->key[i]))
		{
			return false;
		}
	}
	return true;
}

static void
drift_copy(CounterDrift *copy, const Counter *counter, const CounterDrift *drift)
{
	*copy = *drift;
	for (int i = 0; i < counter->key_count; i++)
	{
		copy->key[i] = string_copy(drift->key[i]);
	}
	copy->stored = string_copy(drift->stored);
	copy->actual = string_copy(drift->actual);
	copy->pending = string_copy(drift->pending);
	copy->diff = string_copy(drift->diff);
}

static void
drift_release(CounterDrift *drift)
{
	for (int i = 0; i < COUNTER_KEY_MAX; i++)
	{
		free((char *) drift->key[i]);
	}
	free((char *) drift->stored);
	free((char *) drift->actual);
	free((char *) drift->pending);
	free((char *) drift->diff);
}

/* The same kind by the same amount is drift, though stored and actual may both have moved on. */
static bool
hear_again(void *context, const Counter *counter, const CounterDrift *drift)
{
	SecondLook *second = context;
	Finding *finding = second->look->finding;

	for (int i = 0; i < second->count; i++)
	{
		CounterDrift *first = &second->rows[i];

		if (second->seen[i] || !same_key(counter, first, drift))
		{
			continue;
		}
		second->seen[i] = true;
		if (first->class == drift->class && same_text(first->diff, drift->diff))
		{
			second->look->broken = !spool_add(second->kept, counter, drift);
			return !second->look->broken;
		}
		finding->totals.keys[first->class]--;
		finding->totals.not_checkable++;
		finding->moving++;
		return true;
	}
	return true;
}

static bool
look_again_at_batch(SecondLook *second)
{
	Look *look = second->look;
	CounterKeyList list = {0};
	CounterTotals ignored = {0};
	SqlArg args[COUNTER_KEY_MAX];
	bool done;

	for (int i = 0; i < second->count; i++)
	{
		key_list_add(&list, look->counter, second->rows[i].key);
	}
	done = counter_scan(look->session, look->counter, (CounterKeys){.kind = KEYS_LIST}, args,
						key_list_args(&list, look->counter, args), &ignored, hear_again, second) == SQL_OK ||
		   obstruct_by_error(look);
	for (int i = 0; i < second->count; i++)
	{
		if (done && !second->seen[i])
		{
			look->finding->totals.keys[second->rows[i].class]--;
			look->finding->totals.keys[CLASS_CORRECT]++;
			look->finding->arrived++;
		}
		drift_release(&second->rows[i]);
		second->seen[i] = false;
	}
	second->count = 0;
	key_list_free(&list);
	return done;
}

static bool
is_worth_a_second_look(CounterClass class)
{
	return counter_class_drifted(class) || class == CLASS_MISSING;
}

static bool
look_again_at_rows(Look *look, Spool *kept)
{
	SecondLook *second = memory_get(sizeof(*second));
	CounterDrift drift = {0};
	bool done = spool_rewind(look->finding->rows);

	*second = (SecondLook){.look = look, .kept = kept};
	look->broken = !done;
	while (done && spool_next(look->finding->rows, look->counter, &drift))
	{
		if (!is_worth_a_second_look(drift.class))
		{
			done = spool_add(kept, look->counter, &drift);
			look->broken = !done;
			continue;
		}
		drift_copy(&second->rows[second->count++], look->counter, &drift);
		done = second->count < SECOND_LOOK_KEYS || look_again_at_batch(second);
	}
	done = done && (second->count == 0 || look_again_at_batch(second));
	free(second);
	return done;
}

/* What differed cannot be told from what is under way. */
static void
give_up_telling(Finding *finding)
{
	for (int class = 0; class < COUNTER_CLASSES; class ++)
	{
		if (is_worth_a_second_look((CounterClass) class))
		{
			finding->totals.not_checkable += finding->totals.keys[class];
			finding->totals.keys[class] = 0;
		}
	}
}

static bool
look_again(Look *look)
{
	Finding *finding = look->finding;
	Spool *kept;
	bool done;

	if (look->counter->spec->writers != WRITERS_SEPARATE_TRANSACTION ||
		totals_drifted(&finding->totals) + finding->totals.keys[CLASS_MISSING] == 0)
	{
		return true;
	}
	finding->looked_twice = true;
	if (!wait_for_second_look(look))
	{
		return false;
	}
	if (finding->still_open)
	{
		give_up_telling(finding);
		return true;
	}
	kept = spool_open();
	look->broken = kept == NULL;
	done = kept != NULL && begin(look) && look_again_at_rows(look, kept);
	end(look);
	spool_close(finding->rows);
	finding->rows = kept;
	return done;
}


/* --- the whole --- */

/* So that the line still says how many there are of which nothing can be said. */
static void
count_unchecked(Look *look)
{
	Finding *finding = look->finding;
	SqlResult *result;
	Text sql = {0};

	finding->totals = (CounterTotals){0};
	if (look->counter->target.quoted == NULL || look->request->id != NULL)
	{
		return;
	}
	text_append(&sql, "SELECT count(*) FROM %s WHERE true", look->counter->target.quoted);
	counter_append_target_where(&sql, look->counter);
	if (begin(look) && session_try(look->session, &result, text_get(&sql), NO_ARGS) == SQL_OK)
	{
		finding->totals.not_checkable = sql_int(result, 0, 0);
		sql_free(result);
	}
	end(look);
	text_free(&sql);
}

static bool
remember_open(Look *look)
{
	SqlResult *result;

	if (look->counter->spec->writers != WRITERS_SEPARATE_TRANSACTION)
	{
		return true;
	}
	if (session_try_prepared(look->session, &result, "counters_open", NO_ARGS) != SQL_OK)
	{
		return obstruct_by_error(look);
	}
	look->xmax = string_copy(sql_text(result, 0, 0));
	look->open = string_copy(sql_text(result, 0, 1));
	sql_free(result);
	return true;
}

static bool
first_look(Look *look)
{
	int keys = 0;
	bool done;

	if (look->request->id == NULL && look->request->sample == 0 && !choose_chunks(look, &keys))
	{
		return false;
	}
	/* The lag of one pass is of its snapshot; that of chunks of the first one's. */
	done = begin(look) && read_lag(look);
	if (done && keys == 0)
	{
		done = look->request->id != NULL    ? scan_one(look)
			   : look->request->sample != 0 ? scan_sample(look)
											: scan_all(look);
	}
	if (done && keys > 0)
	{
		end(look);
		done = scan_chunks(look, keys) && begin(look);
	}
	done = done && remember_open(look);
	end(look);
	return done;
}

Finding *
finding_make(Session *session, const CounterSpec *spec, const CountersRequest *request)
{
	Finding *finding = memory_get(sizeof(*finding));
	Look look = {.session = session, .request = request, .finding = finding};

	finding->counter = counter_resolve(session, spec);
	finding->rows = spool_open();
	look.counter = finding->counter;
	look.broken = finding->counter == NULL || finding->rows == NULL;
	if (!look.broken && finding->counter->obstacle != NULL)
	{
		finding->denied = finding->counter->denied;
		(void) obstruct(&look, finding->counter->obstacle);
	}
	else if (!look.broken)
	{
		(void) (first_look(&look) && look_again(&look));
	}
	if (!look.broken && finding->obstacle != NULL)
	{
		finding->read = READ_NOTHING;
		count_unchecked(&look);
	}
	free(look.xmax);
	free(look.open);
	if (look.broken || session_is_lost(session))
	{
		finding_free(finding);
		return NULL;
	}
	return finding;
}

void
finding_free(Finding *finding)
{
	if (finding != NULL)
	{
		counter_free(finding->counter);
		spool_close(finding->rows);
		free(finding->obstacle);
		free(finding->lag_why);
		free(finding);
	}
}

ExitCode
finding_code(const Finding *finding)
{
	if (totals_drifted(&finding->totals) > 0 || finding->totals.keys[CLASS_MISSING] > 0 || finding->lag == LAG_AHEAD)
	{
		return EXIT_CODE_FAIL;
	}
	if (finding->obstacle != NULL)
	{
		return finding->denied ? EXIT_CODE_BROKEN : EXIT_CODE_INCONCLUSIVE;
	}
	return finding->lag == LAG_UNKNOWN || totals_not_checkable(&finding->totals) > 0 ? EXIT_CODE_INCONCLUSIVE
																					 : EXIT_CODE_PASS;
}
