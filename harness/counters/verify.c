#include "verify.h"

#include <stdlib.h>

#include "chunk.h"
#include "find.h"

#define PASSES_MAX 4
#define LOOK_KEYS 5000
#define OLD_MS 60000     /* how long transactions are waited for that wrote to the table before rows were inserted */
#define ASK_AGAIN_MS 100 /* reading pg_locks is not free for others */

/* What is left wrong goes to another pass, except what the mode cannot repair, and what could not be had. */
#define REOPENED "run = $1 AND remainder IS NOT NULL AND outcome NOT IN ('refused', 'busy')"

typedef struct
{
	Session *session;
	const CountersRequest *request;
	const Counter *counter;
	Run *run;
	bool inside;
} Verify;


/* --- waiting --- */

typedef struct
{
	Session *session;
	char *writing;
	Deadline ask; /* not before */
} Writers;

static ProbeAnswer
writers_gone(void *context, Text *seen)
{
	Writers *writers = context;
	SqlResult *result;
	bool gone;

	text_append(seen, "%s", writers->writing);
	if (!deadline_passed(writers->ask))
	{
		return PROBE_AGAIN;
	}
	if (session_try_prepared(writers->session, &result, "counters_gone", ARGS(arg_text(writers->writing))) != SQL_OK)
	{
		return PROBE_FAILED;
	}
	gone = sql_bool(result, 0, 0);
	sql_free(result);
	writers->ask = deadline_in_ms(ASK_AGAIN_MS);
	return gone ? PROBE_DONE : PROBE_AGAIN;
}

/* false: the session failed, or an interrupt; writers that go on are told of, and no failure. */
static bool
await_writers(Session *session, const CounterTable *table)
{
	Writers writers = {.session = session, .ask = deadline_in_ms(0)};
	SqlResult *result;
	bool able = session_try_prepared(session, &result, "counters_writing", ARGS(arg_int(table->oid))) == SQL_OK;

	if (able)
	{
		writers.writing = string_copy(sql_text(result, 0, 0));
		sql_free(result);
		if (!wait_until("those to end who write to the table", deadline_in_ms(OLD_MS), writers_gone, &writers))
		{
			report_warning("what transactions older than the inserted rows still do is not verified");
		}
		free(writers.writing);
	}
	else
	{
		report_error("cannot see who writes to %s: %s", table->quoted, session_error(session)->message);
	}
	return able && !session_is_lost(session) && !interrupt_presses();
}


/* --- reading again --- */

typedef bool (*ChunkStep)(Chunk *chunk);

static bool
look_again(Chunk *chunk)
{
	return chunk_look(chunk, LOOK_KEYS);
}

static bool
add_late(Chunk *chunk)
{
	return chunk_add_late(chunk, LOOK_KEYS);
}

static bool
each_chunk(const Verify *verify, ChunkStep step)
{
	Chunk chunk;
	bool able;

	chunk_prepare(&chunk, verify->session, verify->counter, verify->run, true);
	do
	{
		able = step(&chunk);
	} while (able && chunk.keys > 0 && !interrupt_presses());
	chunk_free(&chunk);
	return able && !interrupt_presses();
}

/* Keys of rows that a transaction wrote which the run's snapshot did not see; $1 the run. */
static void
append_written_since(Text *sql, const Counter *counter, const CounterTable *table,
					 const CounterColumn columns[COUNTER_KEY_MAX])
{
	text_append(sql, "SELECT ARRAY[");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%s", i > 0 ? ", " : "");
		counter_append_key_text(sql, counter, i, "t", columns[i].quoted);
	}
	text_append(sql,
				"] COLLATE \"C\" AS key FROM %s t WHERE age(t.xmin) <= "
				"(SELECT age(horizon::xid) FROM counterproof.run WHERE run = $1)",
				table->quoted);
}

static bool
has_xmin(Session *session, const CounterTable *table, bool *answer)
{
	int64_t count;

	if (!session_query_int(session, &count,
						   "SELECT count(*) FROM pg_attribute WHERE attrelid = $1::oid AND attname = 'xmin'",
						   ARGS(arg_int(table->oid))))
	{
		return false;
	}
	*answer = count > 0;
	return true;
}

static bool
list_late(const Verify *verify, int64_t *count)
{
	const Counter *counter = verify->counter;
	Text sql = {0};
	bool done;

	text_append(&sql, "CREATE TEMPORARY TABLE counterproof_late AS SELECT row_number() OVER () AS place, key FROM (");
	append_written_since(&sql, counter, &counter->target, counter->key);
	if (counter->parent.quoted != NULL)
	{
		text_append(&sql, " UNION ");
		append_written_since(&sql, counter, &counter->parent, counter->parent_key);
	}
	text_append(&sql, ") w WHERE NOT EXISTS (SELECT FROM counterproof.drift d WHERE d.run = $1 AND d.key = w.key)");
	done = session_query(verify->session, NULL, "DROP TABLE IF EXISTS pg_temp.counterproof_late", NO_ARGS) &&
		   session_query(verify->session, NULL, text_get(&sql), ARGS(arg_int(verify->run->run))) &&
		   session_query_int(verify->session, count, "SELECT count(*) FROM pg_temp.counterproof_late", NO_ARGS);
	text_free(&sql);
	return done;
}

/* The last pass: what was written behind the reading, and is wrong, becomes part of the run. */
static bool
find_late(const Verify *verify)
{
	const Counter *counter = verify->counter;
	bool visible = false;
	int64_t late;

	if (verify->run->one_key != NULL || verify->inside)
	{
		return true;
	}
	if (!has_xmin(verify->session, &counter->target, &visible))
	{
		return false;
	}
	if (!visible)
	{
		report_warning("%s: which rows are new cannot be seen in %s", verify->run->counter, counter->target.quoted);
		return true;
	}
	return list_late(verify, &late) && (late == 0 || each_chunk(verify, add_late)) &&
		   session_query(verify->session, NULL, "UPDATE counterproof.run SET late = greatest(late, $2) WHERE run = $1",
						 ARGS(arg_int(verify->run->run), arg_int(late))) &&
		   find_print_late(verify->session, counter, verify->run, late);
}


/* --- the end of a pass --- */

/* A writer that updates a row only if it is there may have missed one that was not there yet: its commit is waited for. */
static bool
await_writers_of_inserted(const Verify *verify)
{
	RunSummary summary;

	return run_summary(verify->session, verify->run, &summary) &&
		   (summary.inserted == 0 || verify->inside || await_writers(verify->session, &verify->counter->target));
}

static bool
read_again(const Verify *verify)
{
	return await_writers_of_inserted(verify) && each_chunk(verify, look_again) && find_late(verify);
}

static bool
conclude(const Verify *verify)
{
	Session *session = verify->session;
	SqlArg number = arg_int(verify->run->run);
	int64_t more = 0;

	if (!session_query(session, NULL,
					   "UPDATE counterproof.drift SET outcome = 'healed' WHERE run = $1 AND remainder IS NULL AND "
					   "outcome IN ('refused', 'busy', 'left')",
					   ARGS(number)) ||
		(verify->run->pass < PASSES_MAX &&
		 !session_query_int(session, &more,
							"WITH reopened AS (UPDATE counterproof.drift SET outcome = NULL WHERE " REOPENED
							" RETURNING 1) SELECT count(*) FROM reopened",
							ARGS(number))))
	{
		return false;
	}
	if (more > 0)
	{
		return session_query(session, NULL, "UPDATE counterproof.run SET pass = pass + 1 WHERE run = $1", ARGS(number));
	}
	return session_query(session, NULL, "UPDATE counterproof.drift SET outcome = 'left' WHERE " REOPENED,
						 ARGS(number)) &&
		   session_query(session, NULL,
						 "UPDATE counterproof.run SET state = 'finished', ended = clock_timestamp() WHERE run = $1",
						 ARGS(number));
}

/* What the pass ends with is one transaction: a kill before it leaves a pass that ends again. */
static bool
conclude_whole(const Verify *verify)
{
	if (verify->inside)
	{
		return conclude(verify);
	}
	if (!session_begin(verify->session, READ_COMMITTED) || !conclude(verify))
	{
		session_rollback(verify->session);
		return false;
	}
	if (session_commit(verify->session) != SQL_OK)
	{
		report_error("%s: cannot end a pass: %s", verify->run->counter, session_error(verify->session)->message);
		return false;
	}
	return true;
}

bool
verify_pass(Session *session, const CountersRequest *request, const Counter *counter, Run *run, bool inside)
{
	Verify verify = {.session = session, .request = request, .counter = counter, .run = run, .inside = inside};
	int pass = run->pass;
	bool able;

	if (!run_close_begin(session, run))
	{
		return false;
	}
	able = run->state != RUN_REPAIRING || run->pass != pass || (read_again(&verify) && conclude_whole(&verify));
	return run_close_end(session, run) && able;
}
