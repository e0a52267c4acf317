/* history: the runs of repair, and since when keys have been wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect.h"
#include "counter.h"

#define EVENTS_SHOWN 5

typedef struct
{
	Session *session;
	const CountersRequest *request;
	const Counter *counter;
	int64_t runs;
} History;


/* --- runs --- */

static const char *
number_or_none(const SqlResult *result, int row, int column)
{
	return sql_is_null(result, row, column) ? "none" : sql_text(result, row, column);
}

static bool
print_run(void *context, const SqlResult *row)
{
	History *history = context;

	printf("%s  run %s  %s  %s  %s", history->counter->spec->name, sql_text(row, 0, 0), sql_text(row, 0, 1),
		   sql_text(row, 0, 2), sql_text(row, 0, 3));
	if (!sql_is_null(row, 0, 4))
	{
		printf("  id: %s", sql_text(row, 0, 4));
	}
	if (!sql_is_null(row, 0, 5))
	{
		printf(
			"  Scanned: %s  Correct: %s  Drifted: %s  Missing: %s  Not checkable: %s  Updated: %s  Inserted: %s  Still "
			"drifted: %s",
			sql_text(row, 0, 5), sql_text(row, 0, 6), sql_text(row, 0, 7), sql_text(row, 0, 8), sql_text(row, 0, 9),
			sql_text(row, 0, 10), sql_text(row, 0, 11), sql_text(row, 0, 12));
	}
	if (!sql_is_null(row, 0, 13))
	{
		printf("  events: %s", sql_text(row, 0, 13));
	}
	printf("\n");
	history->runs++;
	return true;
}

static bool
print_runs(History *history)
{
	SqlStatus status = session_stream(
		history->session,
		"SELECT run, date_trunc('second', started), mode, state, one_key, scanned, correct, scanned - correct - missing - "
		"not_checkable, missing, not_checkable, updated, inserted, still_drifted + open, last_seq FROM counterproof.run "
		"JOIN counterproof.summary USING (run) WHERE counter = $1 ORDER BY run",
		ARGS(arg_text(history->counter->spec->name)), print_run, history);

	if (status != SQL_OK)
	{
		report_error("cannot read counterproof.run: %s", session_error(history->session)->message);
	}
	return status == SQL_OK;
}


/* --- since when --- */

/* The events of this key above `low`, up to `high`: one alone is named as what it must have been, if it was an event. */
static bool
append_events(const History *history, Text *line, const SqlResult *since, int row)
{
	const Counter *counter = history->counter;
	SqlArg args[COUNTER_KEY_MAX + 2];
	SqlResult *events;
	Text sql = {0};
	bool read;

	text_append(&sql, "SELECT count(*) OVER (), o.%s FROM %s o WHERE o.%s > $1::bigint AND o.%s <= $2::bigint",
				counter->seq.quoted, counter->outbox.quoted, counter->seq.quoted, counter->seq.quoted);
	args[0] = arg_text(sql_text(since, row, 2));
	args[1] = arg_text(sql_text(since, row, 5));
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(&sql, " AND o.%s = $%d::text::%s", counter->outbox_key[i].quoted, i + 3,
					counter->outbox_key[i].type);
		args[i + 2] = arg_text(sql_text(since, row, 9 + i));
	}
	text_append(&sql, " ORDER BY 2 LIMIT %d", EVENTS_SHOWN);
	read = session_query(history->session, &events, text_get(&sql), args, counter->key_count + 2);
	text_free(&sql);
	if (!read)
	{
		return false;
	}
	text_append(line, "; events above %s, up to %s", sql_text(since, row, 2), sql_text(since, row, 5));
	text_append(line, ", of this key %s", sql_rows(events) == 0 ? "none: it was no event" : "");
	for (int i = 0; i < sql_rows(events); i++)
	{
		text_append(line, "%s%s", i > 0 ? ", " : "", sql_text(events, i, 1));
	}
	if (sql_rows(events) > 0 && sql_int(events, 0, 0) > sql_rows(events))
	{
		text_append(line, " and %lld more", (long long) (sql_int(events, 0, 0) - sql_rows(events)));
	}
	sql_free(events);
	return true;
}

/* good_run, good_at, good_seq, bad_run, bad_at, bad_seq, stored, actual, diff, then the columns of the key. */
static bool
print_since_row(const History *history, const SqlResult *since, int row)
{
	const Counter *counter = history->counter;
	Text line = {0};
	bool read = true;

	key_append_row(&line, counter, since, row, 9);
	if (sql_is_null(since, row, 0))
	{
		text_append(&line, "  wrong since before run %s (%s), the first that looked", sql_text(since, row, 3),
					sql_text(since, row, 4));
	}
	else
	{
		text_append(&line, "  right in run %s (%s), wrong in run %s (%s)", sql_text(since, row, 0),
					sql_text(since, row, 1), sql_text(since, row, 3), sql_text(since, row, 4));
	}
	text_append(&line, ": stored=%s actual=%s diff=%s", number_or_none(since, row, 6), number_or_none(since, row, 7),
				number_or_none(since, row, 8));
	if (counter->outbox.quoted != NULL && !sql_is_null(since, row, 2) && !sql_is_null(since, row, 5))
	{
		read = append_events(history, &line, since, row);
	}
	printf("  since  %s\n", text_get(&line));
	text_free(&line);
	return read;
}

static bool
print_since(const History *history)
{
	const Counter *counter = history->counter;
	CounterKeyList list = {0};
	SqlArg args[COUNTER_KEY_MAX + 2];
	SqlResult *since;
	Text sql = {0};
	bool read;

	text_append(&sql,
				"SELECT good_run, date_trunc('second', good_at), good_seq, bad_run, date_trunc('second', bad_at), "
				"bad_seq, stored, actual, diff");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(&sql, ", key[%d]", i + 1);
	}
	text_append(&sql, " FROM counterproof.since WHERE counter = $1 AND ");
	args[0] = arg_text(counter->spec->name);
	args[1] = arg_int(history->request->report_limit);
	if (history->request->id != NULL && !key_list_add_written(&list, counter, history->request->id))
	{
		text_free(&sql);
		return false;
	}
	for (int i = 0; list.count > 0 && i < counter->key_count; i++)
	{
		text_append(&sql, "key[%d] = (SELECT ", i + 1);
		counter_append_key_text(&sql, counter, i, "v", "k");
		text_append(&sql, " FROM (SELECT ($%d::text[])[1]::%s AS k) v) AND ", i + 3, counter->key[i].type);
	}
	(void) key_list_args(&list, counter, args + 2);
	text_append(&sql, list.count > 0 ? "true"
									 : "last_run = (SELECT max(run) FROM counterproof.run JOIN "
									   "counterproof.drift USING (run) WHERE counter = $1)");
	text_append(&sql, " ORDER BY bad_run");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(&sql, ", key[%d]::%s", i + 1, counter->key[i].type);
	}
	text_append(&sql, " LIMIT NULLIF($2::bigint, 0)");
	read = session_query(history->session, &since, text_get(&sql), args, list.count > 0 ? counter->key_count + 2 : 2);
	for (int row = 0; read && row < sql_rows(since); row++)
	{
		read = print_since_row(history, since, row);
	}
	sql_free(since);
	key_list_free(&list);
	text_free(&sql);
	return read;
}


/* --- the command --- */

static ExitCode
print_history(Session *session, const CountersRequest *request, const CounterSpec *spec)
{
	Counter *counter = counter_resolve(session, spec);
	History history = {.session = session, .request = request, .counter = counter};
	bool read = counter != NULL && print_runs(&history);

	if (read && counter->obstacle != NULL)
	{
		printf("%s  cannot be looked at now: %s\n", spec->name, counter->obstacle);
	}
	else if (read && history.runs == 0)
	{
		printf("%s  no run\n", spec->name);
	}
	else if (read)
	{
		read = print_since(&history);
	}
	counter_free(counter);
	return read ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}

static bool
has_record(Session *session, bool *answer)
{
	int64_t there;

	if (!session_query_int(session, &there,
						   "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE "
						   "nspname = 'counterproof' AND relname = 'since'",
						   NO_ARGS))
	{
		return false;
	}
	*answer = there > 0;
	return true;
}

static ExitCode
print_all(Session *session, const CounterConfig *config, const CountersRequest *request)
{
	ExitCode code = EXIT_CODE_PASS;
	bool recorded;

	if (!has_record(session, &recorded))
	{
		return EXIT_CODE_BROKEN;
	}
	if (!recorded)
	{
		printf("no run of repair yet\n");
		return EXIT_CODE_PASS;
	}
	for (unsigned i = 0; i < config->count; i++)
	{
		if (counters_selected(request, &config->counters[i]))
		{
			code = counters_worse(code, print_history(session, request, &config->counters[i]));
		}
	}
	return code;
}

ExitCode
counters_history(const CountersRequest *request)
{
	return counters_look(request, print_all);
}
