/*
 * The SQL of the modes. In each, what is claimed, repaired and closed is one transaction: a kill at any point leaves a key
 * open and untouched, or closed and repaired.
 */
#include "chunk.h"

#include <stdlib.h>
#include <string.h>

#include "find.h"

/*
 * A chunk of several keys must not hold those it has while it waits for the next: after this it is given back, before
 * deadlock_timeout, so that no writer is ever the victim. One key alone holds nothing else while it waits.
 */
#define LOCK_MANY_MS 500
#define LOCK_ONE_MS 1000
#define STATEMENT_MS 60000

/* What a row n of `now` is wrong by; what is pending will still be added. */
#define DIFF "n.stored + coalesce(n.pending, 0) - n.actual"


/* --- SQL --- */

/* `ARRAY[alias.k1::text, ...]`: a key as the table of drift has it. */
static void
append_key_array(Text *sql, const Counter *counter, const char *alias)
{
	text_append(sql, "ARRAY[");
	for (int i = 0; i < counter->key_count; i++)
	{
		char *name = string_format("k%d", i + 1);

		text_append(sql, "%s", i > 0 ? ", " : "");
		counter_append_key_text(sql, counter, i, alias, name);
		free(name);
	}
	text_append(sql, "] COLLATE \"C\"");
}

static CounterKeys
keys_listed(void)
{
	return (CounterKeys){.kind = KEYS_LIST, .parameter = 1};
}

/* The target's rows, in the order of their key. NO KEY UPDATE: whoever inserts a row that refers to one of them goes on. */
static void
append_lock(Text *sql, const Counter *counter)
{
	text_append(sql, "SELECT count(*) FROM (SELECT FROM %s t WHERE ", counter->target.quoted);
	counter_append_target_listed(sql, counter, 1);
	text_append(sql, " ORDER BY ");
	counter_append_target_key(sql, counter, "t");
	text_append(sql, " FOR NO KEY UPDATE) locked");
}

static bool
has_baseline(const Counter *counter)
{
	return counter->base_seq.quoted != NULL && counter->last.quoted != NULL;
}

/* `now`: what is so in the snapshot of this statement, of the keys listed, those that are right included. */
static void
append_now(Text *sql, const Counter *counter)
{
	text_append(sql, "WITH now AS MATERIALIZED (SELECT j.*, ");
	append_key_array(sql, counter, "j");
	text_append(sql, " AS key FROM (\n");
	counter_append_joined(sql, counter, keys_listed());
	text_append(sql, "\n) j)");
}

/*
 * The count that is right now. With an outbox the facts are ahead of what was applied: a baseline contains all events up to the
 * last one of this snapshot, which are COVERED when they are delivered; where the rows have none, what is pending is still to come.
 */
static void
append_value(Text *sql, const Counter *counter)
{
	bool ahead = counter->outbox.quoted != NULL && !has_baseline(counter);

	text_append(sql, ahead ? "n.actual - coalesce(n.pending, 0)" : "n.actual");
}

static void
append_update(Text *sql, const Counter *counter)
{
	text_append(sql, ", written AS (UPDATE %s t SET %s = ", counter->target.quoted, counter->column.quoted);
	append_value(sql, counter);
	if (has_baseline(counter))
	{
		text_append(sql, ", %s = ", counter->base_seq.quoted);
		find_append_last_event(sql, counter);
	}
	text_append(sql, " FROM now n WHERE n.class BETWEEN 2 AND 5 AND ");
	counter_append_match_target(sql, counter, "t", "n");
	if (has_baseline(counter))
	{
		text_append(sql, " AND t.%s <= ", counter->base_seq.quoted);
		find_append_last_event(sql, counter);
	}
	text_append(sql, " RETURNING n.key, t.%s::text AS became)", counter->column.quoted);
}

static void
append_insert(Text *sql, const Counter *counter)
{
	text_append(sql, ", added AS (INSERT INTO %s AS t (", counter->target.quoted);
	counter_append_target_key(sql, counter, NULL);
	text_append(sql, ", %s", counter->column.quoted);
	if (has_baseline(counter))
	{
		text_append(sql, ", %s", counter->base_seq.quoted);
	}
	text_append(sql, ") SELECT ");
	counter_append_keys(sql, counter, "n", NULL);
	text_append(sql, ", ");
	append_value(sql, counter);
	if (has_baseline(counter))
	{
		text_append(sql, ", ");
		find_append_last_event(sql, counter);
	}
	text_append(sql, " FROM now n WHERE n.class = 6 AND %s ON CONFLICT DO NOTHING RETURNING ARRAY[",
				counter->unique ? "true" : "false");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%s", i > 0 ? ", " : "");
		counter_append_key_text(sql, counter, i, "t", counter->key[i].quoted);
	}
	text_append(sql, "] COLLATE \"C\" AS key, t.%s::text AS became)", counter->column.quoted);
}

/*
 * `mine`: the claimed keys, and where their rows of drift are; parameters behind the keys: the run and the places. How many there
 * are the planner knows from the arrays alone: what it believes of drift is of the runs before this one. OFFSET 0: a probe for
 * each, whatever it believes.
 */
static void
append_mine(Text *sql, const Counter *counter)
{
	int next = counter->key_count + 1;

	text_append(sql, ", mine AS MATERIALIZED (SELECT d.at, ARRAY[");
	counter_append_keys(sql, counter, "u", NULL);
	text_append(sql, "] COLLATE \"C\" AS key, d.wrong FROM unnest($%d::bigint[]", next + 1);
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, ", $%d::text[]", i + 1);
	}
	text_append(sql, ") u(place, ");
	counter_append_keys(sql, counter, NULL, NULL);
	text_append(sql,
				") CROSS JOIN LATERAL (SELECT x.ctid AS at, NULLIF(coalesce(x.remainder, x.diff), 'none') AS wrong "
				"FROM counterproof.drift x WHERE x.run = $%d AND x.place = u.place OFFSET 0) d)",
				next);
}

/* The claimed keys are closed. */
static void
append_close(Text *sql)
{
	text_append(
		sql,
		" UPDATE counterproof.drift d SET became = coalesce(w.became, a.became), repaired = clock_timestamp(), "
		"outcome = CASE WHEN w.key IS NOT NULL THEN 'updated' WHEN a.key IS NOT NULL THEN 'inserted' "
		"WHEN n.class BETWEEN 2 AND 7 THEN 'left' ELSE 'healed' END, "
		"changed = d.changed OR n.stored::text IS DISTINCT FROM d.stored OR n.actual::text IS DISTINCT FROM d.actual "
		"FROM mine m LEFT JOIN now n ON n.key = m.key LEFT JOIN written w ON w.key = m.key "
		"LEFT JOIN added a ON a.key = m.key WHERE d.ctid = m.at");
}

/* Recount and write what is wrong now; the old value decides nothing but whether there is anything to write. */
static void
append_absolute(Text *sql, const Counter *counter)
{
	append_now(sql, counter);
	append_update(sql, counter);
	append_insert(sql, counter);
	append_mine(sql, counter);
	append_close(sql);
}

/* Take off what the row was wrong by in the reading, if it had a number to be wrong. Closing the key in the same transaction is what makes it once. */
static void
append_relative(Text *sql, const Counter *counter)
{
	const char *column = counter->column.quoted;

	text_append(sql, "WITH now AS MATERIALIZED (SELECT k.*, ");
	append_key_array(sql, counter, "k");
	text_append(sql, " AS key FROM (");
	counter_append_key_table(sql, counter, 1);
	text_append(sql, ") k)");
	append_mine(sql, counter);
	text_append(
		sql,
		", written AS (UPDATE %s t SET %s = t.%s - m.wrong::numeric FROM now n JOIN mine m USING (key) WHERE t.%s IS NOT NULL AND m.wrong IS NOT NULL AND ",
		counter->target.quoted, column, column, column);
	counter_append_match_target(sql, counter, "t", "n");
	text_append(sql,
				" RETURNING n.key, t.%s::text AS became, t.%s + m.wrong::numeric AS was) "
				"UPDATE counterproof.drift d SET became = w.became, repaired = clock_timestamp(), "
				"outcome = CASE WHEN w.key IS NOT NULL THEN 'updated' ELSE 'left' END, "
				"changed = d.changed OR w.was IS DISTINCT FROM d.stored::numeric "
				"FROM mine m LEFT JOIN written w ON w.key = m.key WHERE d.ctid = m.at",
				column, column);
}

void
chunk_prepare(Chunk *chunk, Session *session, const Counter *counter, const Run *run, bool one_transaction)
{
	*chunk = (Chunk){.session = session, .counter = counter, .run = run, .one_transaction = one_transaction};
	append_lock(&chunk->lock, counter);
	if (run->mode->mode == MODE_RELATIVE)
	{
		append_relative(&chunk->write, counter);
	}
	else
	{
		append_absolute(&chunk->write, counter);
	}
}

void
chunk_free(Chunk *chunk)
{
	text_free(&chunk->lock);
	text_free(&chunk->write);
}


/* --- a claim --- */

typedef struct
{
	int64_t keys, last;
	char *places;                     /* bigint[] */
	char *columns[COUNTER_KEY_MAX];   /* text[] each */
	SqlArg args[COUNTER_KEY_MAX + 2]; /* the columns, the run, the places */
	int count;
} Claim;

static void
claim_free(Claim *claim)
{
	free(claim->places);
	for (int i = 0; i < COUNTER_KEY_MAX; i++)
	{
		free(claim->columns[i]);
	}
}

/* `rows` are the rows of drift to take, as `place, key`, with the parameters $1 run, $2 from, $3 most. */
static SqlStatus
claim_keys(Chunk *chunk, const char *rows, int64_t most, Claim *claim)
{
	int columns = chunk->counter->key_count;
	SqlResult *result;
	Text sql = {0};
	SqlStatus status;

	*claim = (Claim){0};
	text_append(&sql, "WITH c AS (%s) SELECT count(*), coalesce(max(place), 0), array_agg(place ORDER BY place)", rows);
	for (int i = 0; i < columns; i++)
	{
		text_append(&sql, ", array_agg(key[%d] ORDER BY place)", i + 1);
	}
	text_append(&sql, " FROM c");
	status = session_try(chunk->session, &result, text_get(&sql),
						 ARGS(arg_int(chunk->run->run), arg_int(chunk->from), arg_int(most)));
	text_free(&sql);
	if (status != SQL_OK)
	{
		return status;
	}
	claim->keys = sql_int(result, 0, 0);
	claim->last = sql_int(result, 0, 1);
	claim->places = string_copy(sql_text(result, 0, 2));
	for (int i = 0; i < columns; i++)
	{
		claim->columns[i] = string_copy(sql_text(result, 0, 3 + i));
		claim->args[i] = arg_text(claim->columns[i]);
	}
	claim->args[columns] = arg_int(chunk->run->run);
	claim->args[columns + 1] = arg_text(claim->places);
	claim->count = columns + 2;
	sql_free(result);
	return SQL_OK;
}


/* --- repairing --- */

/* Keys are known: each is looked up, where an index has it. Priced by pages from a disk, some thousands of them make a scan of the whole table. */
static SqlStatus
set_limits(Session *session, int64_t lock_ms, int64_t statement_ms)
{
	return session_try(session, NULL,
					   "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true), "
					   "set_config('enable_seqscan', 'off', true)",
					   ARGS(arg_int(lock_ms), arg_int(statement_ms)));
}

static bool
locks_rows(const Chunk *chunk)
{
	CounterMode mode = chunk->run->mode->mode;

	return mode == MODE_LOCK || mode == MODE_RELATIVE || mode == MODE_OUTBOX;
}

/* Each lock is waited for so long, and all locks of one chunk together no longer. */
static SqlStatus
lock_claimed(Chunk *chunk, const Claim *claim)
{
	int64_t ms = claim->keys > 1 ? LOCK_MANY_MS : LOCK_ONE_MS;
	SqlStatus status = set_limits(chunk->session, ms, locks_rows(chunk) ? ms : STATEMENT_MS);

	if (status == SQL_OK && locks_rows(chunk))
	{
		status = session_try(chunk->session, NULL, text_get(&chunk->lock), claim->args, chunk->counter->key_count);
		status = status != SQL_OK ? status : set_limits(chunk->session, ms, STATEMENT_MS);
	}
	return status;
}

static SqlStatus
repair_claimed(Chunk *chunk, const Claim *claim)
{
	SqlStatus status = chunk->one_transaction ? SQL_OK : lock_claimed(chunk, claim);

	return status != SQL_OK ? status
							: session_try(chunk->session, NULL, text_get(&chunk->write), claim->args, claim->count);
}

static SqlStatus
repair_in_transaction(Chunk *chunk, int64_t most, Claim *claim)
{
	SqlStatus status = claim_keys(chunk,
								  "SELECT place, key FROM counterproof.drift WHERE run = $1 AND outcome IS NULL AND "
								  "place > $2 ORDER BY place LIMIT $3 FOR UPDATE SKIP LOCKED",
								  most, claim);

	if (status == SQL_OK && claim->keys > 0)
	{
		status = repair_claimed(chunk, claim);
	}
	return status;
}

/* Errors that say that somebody was in the way. */
static bool
in_the_way(Session *session)
{
	static const char *const states[] = {"40001", "40P01", "55P03", "57014"};

	for (size_t i = 0; i < LENGTH_OF(states); i++)
	{
		if (strcmp(session_error(session)->sqlstate, states[i]) == 0)
		{
			return true;
		}
	}
	return false;
}

/* Errors of a value, in a statement that writes many: out of range, against a constraint, refused by a trigger or a view. */
static bool
is_of_a_value(Session *session)
{
	static const char *const classes[] = {"22", "23", "44", "P0"};

	for (size_t i = 0; i < LENGTH_OF(classes); i++)
	{
		if (strncmp(session_error(session)->sqlstate, classes[i], 2) == 0)
		{
			return true;
		}
	}
	return false;
}

static ChunkEnd
chunk_end(Chunk *chunk, SqlStatus status)
{
	Session *session = chunk->session;

	if (status == SQL_ERROR && !chunk->one_transaction)
	{
		session_rollback(session);
		if (in_the_way(session))
		{
			return CHUNK_AGAIN;
		}
		if (is_of_a_value(session))
		{
			return CHUNK_REFUSED;
		}
	}
	if (status != SQL_OK)
	{
		report_error("%s: a chunk of run %lld failed: %s (%s)", chunk->run->counter, (long long) chunk->run->run,
					 session_error(session)->message, session_error(session)->sqlstate);
		return CHUNK_FAILED;
	}
	return CHUNK_DONE;
}

ChunkEnd
chunk_repair(Chunk *chunk, int64_t most)
{
	Isolation isolation = chunk->run->mode->mode == MODE_SNAPSHOT ? REPEATABLE_READ : READ_COMMITTED;
	Claim claim = {0};
	SqlStatus status;
	ChunkEnd end;

	if (!chunk->one_transaction && !session_begin(chunk->session, isolation))
	{
		return CHUNK_FAILED;
	}
	status = repair_in_transaction(chunk, most, &claim);
	if (status == SQL_OK && !chunk->one_transaction)
	{
		status = session_commit(chunk->session);
	}
	end = chunk_end(chunk, status);
	chunk->keys = claim.keys;
	chunk->places = claim.last;
	if (end == CHUNK_DONE && claim.keys > 0)
	{
		chunk->from = claim.last;
	}
	claim_free(&claim);
	return end;
}

/* Only while it is open, and nobody else has it. */
static bool
close_last(Chunk *chunk, const char *outcome, SqlResult **closed)
{
	Text sql = {0};
	bool done;

	text_append(&sql, "UPDATE counterproof.drift d SET outcome = $3 FROM (SELECT ctid AS at FROM counterproof.drift "
					  "WHERE run = $1 AND place = $2 AND outcome IS NULL FOR UPDATE SKIP LOCKED) mine "
					  "WHERE d.ctid = mine.at RETURNING ");
	for (int i = 0; i < chunk->counter->key_count; i++)
	{
		text_append(&sql, "%skey[%d]", i > 0 ? ", " : "", i + 1);
	}
	done = session_query(chunk->session, closed, text_get(&sql),
						 ARGS(arg_int(chunk->run->run), arg_int(chunk->places), arg_text(outcome)));
	text_free(&sql);
	chunk->from = chunk->places;
	return done;
}

bool
chunk_give_up(Chunk *chunk)
{
	SqlResult *closed;

	if (!close_last(chunk, "busy", &closed))
	{
		return false;
	}
	if (sql_rows(closed) > 0)
	{
		report_warning("%s: a key is held by others again and again: it stays as it is", chunk->run->counter);
	}
	sql_free(closed);
	return true;
}

bool
chunk_refuse(Chunk *chunk)
{
	const SqlError *error = session_error(chunk->session);
	char *why = string_format("%s (%s)", error->message, error->sqlstate);
	SqlResult *closed;
	bool done = close_last(chunk, "refused", &closed);

	if (done && sql_rows(closed) > 0)
	{
		Text key = {0};

		key_append_row(&key, chunk->counter, closed, 0, 0);
		report_error("%s: %s cannot be written: %s", chunk->run->counter, text_get(&key), why);
		text_free(&key);
	}
	if (done)
	{
		sql_free(closed);
	}
	free(why);
	return done;
}


/* --- reading again --- */

static void
append_look(Text *sql, const Counter *counter)
{
	append_now(sql, counter);
	append_mine(sql, counter);
	text_append(sql,
				" UPDATE counterproof.drift d SET remainder = r.remainder FROM (SELECT m.at, CASE WHEN n.class BETWEEN "
				"2 AND 7 THEN coalesce((" DIFF ")::text, 'none') END AS remainder "
				"FROM mine m LEFT JOIN now n ON n.key = m.key) r "
				"WHERE d.ctid = r.at AND d.remainder IS DISTINCT FROM r.remainder");
}

static bool
look_failed(const Chunk *chunk)
{
	report_error("%s: cannot read again for run %lld: %s (%s)", chunk->run->counter, (long long) chunk->run->run,
				 session_error(chunk->session)->message, session_error(chunk->session)->sqlstate);
	return false;
}

/* `rows` as for claim_keys(); `sql` with `count` parameters more than the keys: the run, the places. */
static bool
look_at(Chunk *chunk, const char *rows, int64_t most, const Text *sql, int count)
{
	Claim claim = {0};
	bool done = claim_keys(chunk, rows, most, &claim) == SQL_OK;

	if (done && claim.keys > 0)
	{
		done =
			session_try(chunk->session, NULL, text_get(sql), claim.args, chunk->counter->key_count + count) == SQL_OK;
		chunk->from = claim.last;
	}
	chunk->keys = claim.keys;
	claim_free(&claim);
	return done || look_failed(chunk);
}

bool
chunk_look(Chunk *chunk, int64_t most)
{
	Text sql = {0};
	bool done;

	append_look(&sql, chunk->counter);
	done = look_at(chunk,
				   "SELECT place, key FROM counterproof.drift WHERE run = $1 AND place > $2 ORDER BY place LIMIT $3",
				   most, &sql, 2);
	text_free(&sql);
	return done;
}

bool
chunk_add_late(Chunk *chunk, int64_t most)
{
	const char *rows = "SELECT place, key FROM pg_temp.counterproof_late WHERE $1::bigint IS NOT NULL AND place > $2 "
					   "ORDER BY place LIMIT $3";
	int run = chunk->counter->key_count + 1;
	Text sql = {0};
	bool done;

	append_now(&sql, chunk->counter);
	text_append(
		&sql,
		" INSERT INTO counterproof.drift (run, place, key, class, stored, actual, pending, diff, pass, outcome, "
		"remainder) SELECT r.run, (SELECT coalesce(max(place), 0) FROM counterproof.drift d WHERE d.run = r.run) + "
		"row_number() OVER (ORDER BY n.key), n.key, n.class, n.stored, n.actual, n.pending, " DIFF
		", r.pass + 1, 'left', coalesce((" DIFF ")::text, 'none') FROM now n, counterproof.run r "
		"WHERE n.class BETWEEN 2 AND 6 AND r.run = $%d",
		run);
	done = look_at(chunk, rows, most, &sql, 1);
	text_free(&sql);
	return done;
}
