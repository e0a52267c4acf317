#include "counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect.h"
#include "scan.h"

#define MANY_ROWS 100000   /* of a source whose plan is worth a second thought */
#define ORDER_IS_WORTH 1.5 /* times the price of the cheapest plan */

typedef struct
{
	Session *session;
	Counter *counter;
} Lookup;


/* --- obstacles --- */

/* The first one stays. Always false. */
static bool obstruct(Lookup *lookup, const char *format, ...) PRINTF_LIKE(2, 3);

static bool
obstruct(Lookup *lookup, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	if (lookup->counter->obstacle == NULL)
	{
		lookup->counter->obstacle = string_copy(text_get(&text));
	}
	text_free(&text);
	return false;
}

/* What the server said against it. */
static bool
obstruct_by_error(Lookup *lookup, const char *what)
{
	const SqlError *error = session_error(lookup->session);

	lookup->counter->denied = lookup->counter->denied || strcmp(error->sqlstate, "42501") == 0;
	return obstruct(lookup, "%s%s%s (%s)", what, what[0] != '\0' ? ": " : "", error->message, error->sqlstate);
}


/* --- tables and columns --- */

static bool
find_table(Lookup *lookup, CounterTable *table, const char *name)
{
	SqlResult *result;
	bool found;

	if (session_try_prepared(lookup->session, &result, "counters_relation", ARGS(arg_text(name))) != SQL_OK)
	{
		return obstruct_by_error(lookup, name);
	}
	found = sql_rows(result) == 1;
	if (found)
	{
		*table = (CounterTable){.oid = sql_int(result, 0, 0),
								.quoted = string_copy(sql_text(result, 0, 1)),
								.rows = strtod(sql_text(result, 0, 3), NULL)};
		found = sql_bool(result, 0, 2) || obstruct(lookup, "%s is no table", name);
	}
	else
	{
		(void) obstruct(lookup, "no table %s", name);
	}
	sql_free(result);
	return found;
}

/* `beside`: the column that it is compared with, whose collation then holds; NULL: none. */
static bool
find_column(Lookup *lookup, CounterColumn *column, const CounterTable *table, const char *name,
			const CounterColumn *beside)
{
	SqlResult *result;
	bool found;

	if (session_try_prepared(lookup->session, &result, "counters_column", ARGS(arg_int(table->oid), arg_text(name))) !=
		SQL_OK)
	{
		return obstruct_by_error(lookup, name);
	}
	found = sql_rows(result) == 1 || obstruct(lookup, "%s has no column \"%s\"", table->quoted, name);
	if (found)
	{
		bool collatable = !sql_is_null(result, 0, 2);
		const char *collation = sql_text(result, 0, 2);
		bool differs =
			collatable && beside != NULL && beside->collation != NULL && strcmp(collation, beside->collation) != 0;

		*column =
			(CounterColumn){.quoted = string_copy(sql_text(result, 0, 0)),
							.type = string_copy(sql_text(result, 0, 1)),
							.collation = collatable ? string_copy(collation) : NULL,
							.collate = differs ? string_format(" COLLATE %s", beside->collation) : string_copy(""),
							.nullable = sql_bool(result, 0, 3),
							.number = (int) sql_int(result, 0, 4),
							.moment = sql_bool(result, 0, 5),
							.leads = sql_bool(result, 0, 6)};
	}
	sql_free(result);
	return found;
}

static bool
find_columns(Lookup *lookup, CounterColumn columns[COUNTER_KEY_MAX], const CounterTable *table, char *const *names)
{
	Counter *counter = lookup->counter;

	for (int i = 0; i < counter->key_count; i++)
	{
		if (!find_column(lookup, &columns[i], table, names[i], columns == counter->key ? NULL : &counter->key[i]))
		{
			return false;
		}
	}
	return true;
}

static bool
find_unique(Lookup *lookup, const CounterTable *table, const CounterColumn columns[COUNTER_KEY_MAX], bool *unique)
{
	int64_t numbers[COUNTER_KEY_MAX];
	Text array = {0};
	SqlResult *result;
	bool done;

	for (int i = 0; i < lookup->counter->key_count; i++)
	{
		numbers[i] = columns[i].number;
	}
	text_append_int64_array(&array, numbers, (size_t) lookup->counter->key_count);
	done = session_try_prepared(lookup->session, &result, "counters_unique",
								ARGS(arg_int(table->oid), arg_text(text_get(&array)))) == SQL_OK ||
		   obstruct_by_error(lookup, table->quoted);
	*unique = done && sql_bool(result, 0, 0);
	sql_free(result);
	text_free(&array);
	return done;
}


/* --- the parts of a counter --- */

static bool
find_target(Lookup *lookup)
{
	Counter *counter = lookup->counter;
	const CounterSpec *spec = counter->spec;

	if (!find_table(lookup, &counter->target, spec->target) ||
		!find_columns(lookup, counter->key, &counter->target, spec->key) ||
		!find_column(lookup, &counter->column, &counter->target, spec->column, NULL) ||
		!find_unique(lookup, &counter->target, counter->key, &counter->unique))
	{
		return false;
	}
	for (int i = 0; i < counter->key_count; i++)
	{
		counter->key_nullable = counter->key_nullable || counter->key[i].nullable;
	}
	return true;
}

static bool
find_source(Lookup *lookup)
{
	Counter *counter = lookup->counter;
	const CounterSpec *spec = counter->spec;

	return spec->source == NULL || (find_table(lookup, &counter->source, spec->source) &&
									find_columns(lookup, counter->source_key, &counter->source, spec->source_key));
}

static bool
find_parent(Lookup *lookup)
{
	Counter *counter = lookup->counter;
	const CounterParentSpec *parent = counter->spec->parent;

	return parent == NULL || (find_table(lookup, &counter->parent, parent->table) &&
							  find_columns(lookup, counter->parent_key, &counter->parent, parent->key) &&
							  find_unique(lookup, &counter->parent, counter->parent_key, &counter->parent_unique));
}

static bool
find_place(Lookup *lookup, CounterTable *table, CounterColumn *column, const CounterPlace *place)
{
	return place == NULL ||
		   (find_table(lookup, table, place->table) && find_column(lookup, column, table, place->column, NULL));
}

static bool
find_outbox(Lookup *lookup)
{
	Counter *counter = lookup->counter;
	const CounterOutboxSpec *outbox = counter->spec->outbox;

	return outbox == NULL || (find_table(lookup, &counter->outbox, outbox->table) &&
							  find_columns(lookup, counter->outbox_key, &counter->outbox, outbox->key) &&
							  find_column(lookup, &counter->seq, &counter->outbox, outbox->seq, NULL) &&
							  find_column(lookup, &counter->delta, &counter->outbox, outbox->delta, NULL) &&
							  (outbox->base_seq == NULL ||
							   find_column(lookup, &counter->base_seq, &counter->target, outbox->base_seq, NULL)) &&
							  find_place(lookup, &counter->processed, &counter->processed_seq, outbox->processed) &&
							  find_place(lookup, &counter->last, &counter->last_column, outbox->last) &&
							  find_place(lookup, &counter->watermark, &counter->watermark_column, outbox->watermark));
}

/* The first line of a plan is the dearest node. false: *cost is as it was, see session_error(). */
static bool
price(Lookup *lookup, double *cost)
{
	Text sql = {0};
	SqlResult *result;
	bool done;

	text_append(&sql, "EXPLAIN\n");
	counter_append_scan(&sql, lookup->counter, (CounterKeys){.kind = KEYS_ALL});
	done = counters_begin_reading(lookup->session) == SQL_OK &&
		   session_try(lookup->session, &result, text_get(&sql), NO_ARGS) == SQL_OK;
	session_rollback(lookup->session);
	if (done)
	{
		const char *dots = strstr(sql_text(result, 0, 0), "..");

		*cost = dots != NULL ? strtod(dots + 2, NULL) : 0;
		sql_free(result);
	}
	text_free(&sql);
	return done;
}

/* Whether an aggregate's order that its rows have anyway costs nothing: from PostgreSQL 16 on. */
static bool
knows_order(Session *session)
{
	int64_t count;

	return session_query_int(
			   session, &count,
			   "SELECT count(*) FROM pg_settings WHERE name = 'enable_presorted_aggregate' AND setting = 'on'",
			   NO_ARGS) &&
		   count > 0;
}

/*
 * Rows that come in the order of an index meet each group once. Hashed, each of them looks for its group in a table that no processor's
 * cache holds, which the planner does not price: 10 million rows of 1 million keys took 2.1 s in order, and 7.3 s hashed for
 * 0.8 times the price. What cannot be had in order without sorting costs far more than that, and a key without an order is an error.
 */
static void
choose_order(Lookup *lookup)
{
	Counter *counter = lookup->counter;
	double cost = 0;

	counter->in_order =
		counter->spec->truth == NULL && counter->source.rows >= MANY_ROWS && knows_order(lookup->session);
	counter->in_order = counter->in_order && price(lookup, &cost) && cost <= counter->cost * ORDER_IS_WORTH;
}

/*
 * The server has looked at every name, type and privilege when it has a plan. The planner calls what is IMMUTABLE, and must write as
 * little as the statement itself may.
 */
static bool
plan(Lookup *lookup)
{
	if (!price(lookup, &lookup->counter->cost))
	{
		return obstruct_by_error(lookup, "");
	}
	choose_order(lookup);
	return true;
}


/* --- indexes --- */

static bool
is_indexed(const Counter *counter, const CounterTable *table, const CounterColumn *columns, Text *names)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		if (columns[i].leads)
		{
			return true;
		}
	}
	if (names != NULL)
	{
		text_append(names, "%s (", table->quoted);
		for (int i = 0; i < counter->key_count; i++)
		{
			text_append(names, "%s%s", i > 0 ? ", " : "", columns[i].quoted);
		}
		text_append(names, ")");
	}
	return false;
}

bool
counter_is_indexed(const Counter *counter, Text *table)
{
	return is_indexed(counter, &counter->target, counter->key, table) &&
		   (counter->source.quoted == NULL || is_indexed(counter, &counter->source, counter->source_key, table));
}


/* --- life --- */

Counter *
counter_resolve(Session *session, const CounterSpec *spec)
{
	Counter *counter = memory_get(sizeof(*counter));
	Lookup lookup = {.session = session, .counter = counter};

	counter->spec = spec;
	counter->key_count = (int) spec->key_count;
	if (!find_target(&lookup) || !find_source(&lookup) || !find_parent(&lookup) || !find_outbox(&lookup) ||
		!plan(&lookup))
	{
		if (session_is_lost(session))
		{
			report_error("%s: session lost: %s", spec->name, session_error(session)->message);
			counter_free(counter);
			return NULL;
		}
	}
	return counter;
}

static void
column_free(CounterColumn *column)
{
	free(column->quoted);
	free(column->type);
	free(column->collation);
	free(column->collate);
}

static void
parts_free(Counter *counter)
{
	CounterTable *tables[] = {&counter->target,    &counter->source, &counter->parent,   &counter->outbox,
							  &counter->processed, &counter->last,   &counter->watermark};
	CounterColumn *columns[] = {&counter->column,          &counter->seq,           &counter->delta,
								&counter->base_seq,        &counter->processed_seq, &counter->last_column,
								&counter->watermark_column};

	for (size_t i = 0; i < LENGTH_OF(tables); i++)
	{
		free(tables[i]->quoted);
	}
	for (size_t i = 0; i < LENGTH_OF(columns); i++)
	{
		column_free(columns[i]);
	}
	for (int i = 0; i < COUNTER_KEY_MAX; i++)
	{
		column_free(&counter->key[i]);
		column_free(&counter->source_key[i]);
		column_free(&counter->parent_key[i]);
		column_free(&counter->outbox_key[i]);
	}
}

void
counter_free(Counter *counter)
{
	if (counter != NULL)
	{
		parts_free(counter);
		free(counter->obstacle);
		free(counter);
	}
}
