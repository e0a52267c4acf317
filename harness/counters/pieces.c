/* The SQL of a counter. What a column is called in its own table is of no matter here: keys are k1, k2, ... everywhere. */
#include <stdlib.h>
#include <string.h>

#include "scan.h"

/* A key of one of the tables, and what its columns are called in SQL there. */
typedef struct
{
	const Counter *counter;
	const CounterColumn *columns; /* NULL: they are called k1, k2, ... */
} Side;


/* --- small pieces --- */

/* SQL of the file in parentheses: a comment at its end must not swallow them, and one semicolon is forgiven. */
static void
append_fragment(Text *sql, const char *fragment)
{
	size_t length = strlen(fragment);

	while (length > 0 && strchr(" \t\r\n;", fragment[length - 1]) != NULL)
	{
		length--;
	}
	text_append(sql, "(\n%.*s\n)", (int) length, fragment);
}

static void
append_column(Text *sql, Side side, int i)
{
	if (side.columns == NULL)
	{
		text_append(sql, "k%d", i + 1);
	}
	else
	{
		text_append(sql, "%s%s", side.columns[i].quoted, side.columns[i].collate);
	}
}

/* `"media_id" AS k1, `; where counter_append_match() compares arrays, of one type on both sides. */
static void
append_key_as(Text *sql, Side side)
{
	for (int i = 0; i < side.counter->key_count; i++)
	{
		const CounterColumn *key = &side.counter->key[i];

		append_column(sql, side, i);
		if (key->nullable && side.columns != side.counter->key)
		{
			text_append(sql, "::%s", key->type);
		}
		text_append(sql, " AS k%d, ", i + 1);
	}
}

static void
append_key_list(Text *sql, Side side)
{
	for (int i = 0; i < side.counter->key_count; i++)
	{
		text_append(sql, "%s", i > 0 ? ", " : "");
		append_column(sql, side, i);
	}
}

void
counter_append_key_text(Text *sql, const Counter *counter, int i, const char *alias, const char *name)
{
	if (!counter->key[i].moment)
	{
		text_append(sql, "%s.%s::text", alias, name);
		return;
	}
	text_append(sql, "(timezone('UTC', %s.%s)::text || CASE WHEN isfinite(%s.%s) THEN '+00' ELSE '' END)", alias, name,
				alias, name);
}

void
counter_append_keys(Text *sql, const Counter *counter, const char *alias, const char *cast)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%s%s%sk%d%s%s", i > 0 ? ", " : "", alias != NULL ? alias : "", alias != NULL ? "." : "",
					i + 1, cast != NULL ? "::" : "", cast != NULL ? cast : "");
	}
}

void
counter_append_target_key(Text *sql, const Counter *counter, const char *alias)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%s%s%s%s", i > 0 ? ", " : "", alias != NULL ? alias : "", alias != NULL ? "." : "",
					counter->key[i].quoted);
	}
}

void
counter_append_target_where(Text *sql, const Counter *counter)
{
	if (counter->spec->target_where != NULL)
	{
		text_append(sql, " AND ");
		append_fragment(sql, counter->spec->target_where);
	}
}

/* An array's equality takes NULLs for values, and unlike IS NOT DISTINCT FROM it can be hashed, which a full join needs. */
void
counter_append_match(Text *sql, const Counter *counter, const char *left, const char *right)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		bool nullable = counter->key[i].nullable;

		text_append(sql, "%s%s%s.k%d%s = %s%s.k%d%s", i > 0 ? " AND " : "", nullable ? "ARRAY[" : "", left, i + 1,
					nullable ? "]" : "", nullable ? "ARRAY[" : "", right, i + 1, nullable ? "]" : "");
	}
}

void
counter_append_match_target(Text *sql, const Counter *counter, const char *alias, const char *right)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		const char *column = counter->key[i].quoted;

		text_append(sql, "%s", i > 0 ? " AND " : "");
		if (counter->key[i].nullable)
		{
			text_append(sql, "(%s.%s = %s.k%d OR (%s.%s IS NULL AND %s.k%d IS NULL))", alias, column, right, i + 1,
						alias, column, right, i + 1);
		}
		else
		{
			text_append(sql, "%s.%s = %s.k%d", alias, column, right, i + 1);
		}
	}
}


/* --- which keys --- */

void
counter_append_key_table(Text *sql, const Counter *counter, int parameter)
{
	text_append(sql, "SELECT ");
	counter_append_keys(sql, counter, "u", NULL);
	text_append(sql, " FROM unnest(");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%s$%d::text[]::%s[]", i > 0 ? ", " : "", parameter + i, counter->key[i].type);
	}
	text_append(sql, ") u(");
	counter_append_keys(sql, counter, NULL, NULL);
	text_append(sql, ")");
}

/* Each column alone goes down to an index, also through a GROUP BY; together they have to be one of the list. */
static void
append_in_list(Text *sql, Side side, int parameter)
{
	const Counter *counter = side.counter;

	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%s(", i > 0 ? " AND " : "");
		append_column(sql, side, i);
		text_append(sql, " = ANY ($%d::text[]::%s[])", parameter + i, counter->key[i].type);
		if (counter->key[i].nullable)
		{
			text_append(sql, " OR ");
			append_column(sql, side, i);
			text_append(sql, " IS NULL");
		}
		text_append(sql, ")");
	}
	if (counter->key_count == 1 && !counter->key_nullable)
	{
		return;
	}
	text_append(sql, " AND (");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%s%s", i > 0 ? ", " : "", counter->key[i].nullable ? "ARRAY[" : "");
		append_column(sql, side, i);
		text_append(sql, "%s%s%s", counter->key[i].nullable ? "::" : "",
					counter->key[i].nullable ? counter->key[i].type : "", counter->key[i].nullable ? "]" : "");
	}
	text_append(sql, ") IN (SELECT ");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, counter->key[i].nullable ? "%sARRAY[listed.k%d]" : "%slisted.k%d", i > 0 ? ", " : "", i + 1);
	}
	text_append(sql, " FROM (");
	counter_append_key_table(sql, counter, parameter);
	text_append(sql, ") listed)");
}

static void
append_bound(Text *sql, Side side, const char *comparison, int parameter)
{
	text_append(sql, " AND (");
	append_key_list(sql, side);
	text_append(sql, ") %s (", comparison);
	for (int i = 0; i < side.counter->key_count; i++)
	{
		text_append(sql, "%s$%d::text::%s", i > 0 ? ", " : "", parameter + i, side.counter->key[i].type);
	}
	text_append(sql, ")");
}

/* A row with a NULL in it can still compare as greater: it is left to KEYS_NULL. */
static void
append_in_range(Text *sql, Side side, CounterKeys keys)
{
	for (int i = 0; i < side.counter->key_count; i++)
	{
		text_append(sql, "%s", i > 0 ? " AND " : "");
		append_column(sql, side, i);
		text_append(sql, " IS NOT NULL");
	}
	if (keys.lower)
	{
		append_bound(sql, side, ">", keys.parameter);
	}
	if (keys.upper)
	{
		append_bound(sql, side, "<=", keys.parameter + (keys.lower ? side.counter->key_count : 0));
	}
}

static void
append_in_keys(Text *sql, Side side, CounterKeys keys)
{
	switch (keys.kind)
	{
		case KEYS_ALL:
			text_append(sql, "true");
			break;
		case KEYS_LIST:
			append_in_list(sql, side, keys.parameter);
			break;
		case KEYS_RANGE:
			append_in_range(sql, side, keys);
			break;
		case KEYS_NULL:
			for (int i = 0; i < side.counter->key_count; i++)
			{
				text_append(sql, "%s", i > 0 ? " OR " : "(");
				append_column(sql, side, i);
				text_append(sql, " IS NULL");
			}
			text_append(sql, ")");
			break;
	}
}

void
counter_append_target_listed(Text *sql, const Counter *counter, int parameter)
{
	append_in_list(sql, (Side){counter, counter->key}, parameter);
}


/* --- the tables of a comparison --- */

void
counter_append_target(Text *sql, const Counter *counter, CounterKeys keys)
{
	Side side = {counter, counter->key};

	text_append(sql, "SELECT ");
	append_key_as(sql, side);
	text_append(sql, "%s AS stored, ", counter->column.quoted);
	if (counter->spec->target_where != NULL)
	{
		append_fragment(sql, counter->spec->target_where);
		text_append(sql, " IS TRUE AS chosen, ");
	}
	else
	{
		text_append(sql, "true AS chosen, ");
	}
	if (counter->unique)
	{
		text_append(sql, "1::bigint AS copies, ");
	}
	else
	{
		text_append(sql, "count(*) OVER (PARTITION BY ");
		append_key_list(sql, side);
		text_append(sql, ") AS copies, ");
	}
	text_append(sql, counter->base_seq.quoted != NULL ? "coalesce(%s, 0) AS base" : "0 AS base",
				counter->base_seq.quoted);
	text_append(sql, " FROM %s WHERE ", counter->target.quoted);
	append_in_keys(sql, side, keys);
}

static void
append_free_truth(Text *sql, const Counter *counter, CounterKeys keys)
{
	Side side = {counter, NULL};

	text_append(sql, "SELECT ");
	append_key_as(sql, side);
	text_append(sql, "coalesce(min(actual), 0) AS actual, count(*) AS source_rows, count(*) AS answers FROM ");
	append_fragment(sql, counter->spec->truth);
	text_append(sql, " truth(");
	append_key_list(sql, side);
	text_append(sql, ", actual) WHERE ");
	append_in_keys(sql, side, keys);
	text_append(sql, " GROUP BY ");
	append_key_list(sql, side);
}

/* An aggregate with an order of its own cannot be hashed, and that of its group costs nothing: rows have to come in the order of the key. */
static void
append_one_answer(Text *sql, Side side, bool in_order)
{
	if (!in_order)
	{
		text_append(sql, "1::bigint");
		return;
	}
	text_append(sql, "least(count(");
	append_column(sql, side, 0);
	text_append(sql, " ORDER BY ");
	append_column(sql, side, 0);
	text_append(sql, "), 1)");
}

void
counter_append_truth(Text *sql, const Counter *counter, CounterKeys keys)
{
	Side side = {counter, counter->source_key};
	const CounterSpec *spec = counter->spec;

	if (spec->truth != NULL)
	{
		append_free_truth(sql, counter, keys);
		return;
	}
	text_append(sql, "SELECT ");
	append_key_as(sql, side);
	text_append(sql, "coalesce(");
	append_fragment(sql, spec->measure != NULL ? spec->measure : "count(*)");
	text_append(sql, ", 0) AS actual, count(*) AS source_rows, ");
	append_one_answer(sql, side, counter->in_order && keys.kind == KEYS_ALL);
	text_append(sql, " AS answers FROM %s WHERE ", counter->source.quoted);
	append_in_keys(sql, side, keys);
	if (spec->where != NULL)
	{
		text_append(sql, " AND ");
		append_fragment(sql, spec->where);
	}
	text_append(sql, " GROUP BY ");
	append_key_list(sql, side);
}

void
counter_append_parent(Text *sql, const Counter *counter, CounterKeys keys)
{
	Side side = {counter, counter->parent_key};

	text_append(sql, "SELECT %s", counter->parent_unique ? "" : "DISTINCT ");
	append_key_as(sql, side);
	text_append(sql, "true AS here FROM %s WHERE ", counter->parent.quoted);
	append_in_keys(sql, side, keys);
	if (counter->spec->parent->where != NULL)
	{
		text_append(sql, " AND ");
		append_fragment(sql, counter->spec->parent->where);
	}
}

/* What took effect is either registered, or at or below the watermark; what is in the baseline took effect as well. */
void
counter_append_pending(Text *sql, const Counter *counter, CounterKeys keys)
{
	Side side = {counter, counter->outbox_key};

	text_append(sql, "SELECT ");
	counter_append_keys(sql, counter, "o", NULL);
	text_append(sql, ", coalesce(sum(o.delta), 0) AS pending, count(*) AS events FROM (SELECT ");
	append_key_as(sql, side);
	text_append(sql, "%s AS delta, %s AS seq FROM %s WHERE ", counter->delta.quoted, counter->seq.quoted,
				counter->outbox.quoted);
	append_in_keys(sql, side, keys);
	text_append(sql, ") o");
	if (counter->base_seq.quoted != NULL)
	{
		text_append(sql, " LEFT JOIN (");
		counter_append_target(sql, counter, keys);
		text_append(sql, ") b ON ");
		counter_append_match(sql, counter, "b", "o");
	}
	if (counter->processed.quoted != NULL)
	{
		text_append(sql, " WHERE NOT EXISTS (SELECT FROM %s p WHERE p.%s = o.seq)", counter->processed.quoted,
					counter->processed_seq.quoted);
	}
	else
	{
		text_append(sql, " WHERE o.seq > (SELECT w.%s FROM %s w)", counter->watermark_column.quoted,
					counter->watermark.quoted);
	}
	text_append(sql, "%s GROUP BY ", counter->base_seq.quoted != NULL ? " AND o.seq > coalesce(b.base, 0)" : "");
	counter_append_keys(sql, counter, "o", NULL);
}


/* --- the comparison --- */

/* `coalesce(p.k1, t.k1)`: what the source is joined with. */
static void
append_known_key(Text *sql, const Counter *counter, int i)
{
	text_append(sql, counter->parent.quoted != NULL ? "coalesce(p.k%d, t.k%d)" : "t.k%d", i + 1, i + 1);
}

static void
append_known_match(Text *sql, const Counter *counter, const char *right)
{
	for (int i = 0; i < counter->key_count; i++)
	{
		bool nullable = counter->key[i].nullable;

		text_append(sql, "%s%s", i > 0 ? " AND " : "", nullable ? "ARRAY[" : "");
		append_known_key(sql, counter, i);
		text_append(sql, nullable ? "] = ARRAY[%s.k%d]" : " = %s.k%d", right, i + 1);
	}
}

static void
append_class(Text *sql, const Counter *counter)
{
	bool parent = counter->parent.quoted != NULL;
	bool outbox = counter->outbox.quoted != NULL;
	const char *expected = outbox ? "coalesce(s.actual, 0) - coalesce(e.pending, 0)" : "coalesce(s.actual, 0)";

	text_append(sql, "CASE");
	if (parent)
	{
		text_append(sql, " WHEN t.copies IS NULL AND p.here THEN CASE WHEN s.answers > 1 THEN %d ELSE %d END",
					CLASS_AMBIGUOUS, CLASS_MISSING);
	}
	text_append(sql, " WHEN t.copies IS NULL THEN CASE WHEN ");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, "%ss.k%d IS NULL", i > 0 ? " OR " : "", i + 1);
	}
	text_append(sql, " THEN %d ELSE %d END WHEN NOT t.chosen THEN -1", CLASS_NO_PARENT, CLASS_ORPHAN);
	if (parent)
	{
		text_append(sql, " WHEN p.here IS NULL THEN %d", CLASS_STRAY);
	}
	text_append(sql, " WHEN t.copies > 1 OR s.answers > 1 THEN %d WHEN t.stored IS NOT DISTINCT FROM %s THEN ",
				CLASS_AMBIGUOUS, expected);
	text_append(sql, outbox ? "CASE WHEN coalesce(e.pending, 0) = 0 THEN %d ELSE %d END" : "%d", CLASS_CORRECT,
				CLASS_LAG);
	text_append(
		sql, " WHEN t.stored IS NULL THEN %d WHEN t.stored < 0 THEN %d WHEN t.stored > %s THEN %d ELSE %d END AS class",
		CLASS_NULL, CLASS_NEGATIVE, expected, CLASS_OVER, CLASS_UNDER);
}

static void
append_tables(Text *sql, const Counter *counter, CounterKeys keys)
{
	text_append(sql, " FROM (");
	if (counter->parent.quoted != NULL)
	{
		counter_append_parent(sql, counter, keys);
		text_append(sql, ") p FULL JOIN (");
	}
	counter_append_target(sql, counter, keys);
	text_append(sql, ") t");
	if (counter->parent.quoted != NULL)
	{
		text_append(sql, " ON ");
		counter_append_match(sql, counter, "p", "t");
	}
	text_append(sql, " FULL JOIN (");
	counter_append_truth(sql, counter, keys);
	text_append(sql, ") s ON ");
	append_known_match(sql, counter, "s");
	if (counter->outbox.quoted != NULL)
	{
		text_append(sql, " LEFT JOIN (");
		counter_append_pending(sql, counter, keys);
		text_append(sql, ") e ON ");
		append_known_match(sql, counter, "e");
	}
}

void
counter_append_joined(Text *sql, const Counter *counter, CounterKeys keys)
{
	text_append(sql, "SELECT ");
	append_class(sql, counter);
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, ", coalesce(");
		append_known_key(sql, counter, i);
		text_append(sql, ", s.k%d) AS k%d", i + 1, i + 1);
	}
	text_append(sql, ", t.stored, coalesce(s.actual, 0) AS actual, %s AS pending, s.source_rows",
				counter->outbox.quoted != NULL ? "coalesce(e.pending, 0)" : "NULL::numeric");
	append_tables(sql, counter, keys);
}

/*
 * One pass: what is right falls into one group, all else into a group for each key. OFFSET 0 keeps the class from being computed
 * again for every column that depends on it.
 */
void
counter_append_scan(Text *sql, const Counter *counter, CounterKeys keys)
{
	static const char *const values[] = {"stored", "actual", "pending"};

	text_append(sql, "SELECT class, keys, source_rows");
	for (int i = 0; i < counter->key_count; i++)
	{
		char *name = string_format("k%d", i + 1);

		text_append(sql, ", ");
		counter_append_key_text(sql, counter, i, "counted", name);
		text_append(sql, " AS %s", name);
		free(name);
	}
	text_append(sql, ", stored::text, actual::text, pending::text, (stored::numeric - actual::numeric)::text AS diff"
					 "\nFROM (SELECT class, ");
	counter_append_keys(sql, counter, NULL, NULL);
	text_append(sql, ", stored, actual, pending, source_rows, count(*) AS keys\nFROM (SELECT class");
	for (int i = 0; i < counter->key_count; i++)
	{
		text_append(sql, ", CASE WHEN class > %d THEN k%d END AS k%d", CLASS_CORRECT, i + 1, i + 1);
	}
	for (size_t i = 0; i < LENGTH_OF(values); i++)
	{
		text_append(sql, ", CASE WHEN class > %d THEN %s END AS %s", CLASS_CORRECT, values[i], values[i]);
	}
	text_append(sql, ", CASE WHEN class >= %d THEN source_rows END AS source_rows\nFROM (", CLASS_ORPHAN);
	counter_append_joined(sql, counter, keys);
	text_append(sql, "\nOFFSET 0) joined) told GROUP BY class, ");
	counter_append_keys(sql, counter, NULL, NULL);
	text_append(sql, ", stored, actual, pending, source_rows) counted ORDER BY ");
	counter_append_keys(sql, counter, "counted", NULL);
}

void
counter_append_bound(Text *sql, const Counter *counter, bool lower, int keys)
{
	bool parent = counter->parent.quoted != NULL;
	Side side = {counter, parent ? counter->parent_key : counter->key};

	text_append(sql, "SELECT ");
	counter_append_keys(sql, counter, "d", "text");
	text_append(sql, " FROM (SELECT ");
	append_key_as(sql, side);
	text_append(sql, "true AS here FROM %s WHERE ", parent ? counter->parent.quoted : counter->target.quoted);
	append_in_range(sql, side, (CounterKeys){.kind = KEYS_RANGE, .parameter = 1, .lower = lower});
	text_append(sql, " ORDER BY ");
	append_key_list(sql, side);
	text_append(sql, " OFFSET %d LIMIT 1) d", keys - 1);
}
