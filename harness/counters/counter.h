/*
 * A counter of the file resolved against a live database, and the SQL that check and repair are composed of.
 *
 * All SQL here names key columns k1, k2, ... in the order of the file, whatever they are called in their tables. Tables and
 * columns were found in the catalogs by value and are quoted by the server; only where, measure, target_where and truth go
 * into the SQL as they stand, each in parentheses, on lines of their own.
 */
#ifndef COUNTERPROOF_COUNTERS_COUNTER_H
#define COUNTERPROOF_COUNTERS_COUNTER_H

#include "../session.h"
#include "config.h"

typedef struct
{
	char *quoted;    /* "usage_count", without its table */
	char *type;      /* as SQL writes it, for casts */
	char *collation; /* quoted; NULL: the type has none */
	char *collate;   /* ` COLLATE "C"` when the column that it is compared with has another collation, else "" */
	bool nullable;
	int number;
	bool moment; /* of a type whose text follows the session's time zone */
	bool leads;  /* an index begins with it, or that cannot be seen, as of a view */
} CounterColumn;

typedef struct
{
	char *quoted; /* schema-qualified; NULL: the file names none */
	int64_t oid;
	double rows; /* as the planner believes; -1: it was never told */
} CounterTable;

typedef struct
{
	const CounterSpec *spec;
	int key_count;
	CounterTable target, source, parent, outbox, processed, last, watermark;
	CounterColumn key[COUNTER_KEY_MAX];        /* of the target */
	CounterColumn source_key[COUNTER_KEY_MAX]; /* with a source */
	CounterColumn parent_key[COUNTER_KEY_MAX]; /* with a parent */
	CounterColumn outbox_key[COUNTER_KEY_MAX]; /* with an outbox, as are all below */
	CounterColumn column;                      /* that holds the count */
	CounterColumn seq, delta, base_seq, processed_seq, last_column, watermark_column;
	bool parent_unique; /* as `unique`, of the parent */
	bool unique;        /* the database forbids two rows of the target with one key, NULLs in it included */
	bool key_nullable;  /* a key column of the target is: then NULL is a value like another, else it means no parent */
	char *obstacle;     /* why it cannot be checked, one line; NULL: it can */
	bool denied;        /* the obstacle is a missing privilege */
	double cost;        /* of one pass over all keys, as the planner believes */
	bool in_order;      /* one pass counts the source's rows in the order of an index, and does not hash them */
} Counter;

/*
 * Look everything up, in a session of counters_connect(). What is not there or cannot be read is the obstacle of the counter, which has no usable SQL then.
 * Reads only catalogs and plans the counter's SQL once. Outside a
 * transaction, which an obstacle would end. NULL: the session is lost, reported.
 */
extern Counter *counter_resolve(Session *session, const CounterSpec *spec) MUST_CHECK;
extern void counter_free(Counter *counter); /* NULL allowed */

/* Whether single keys are looked up in target and source; where not, each look reads a whole table, which is appended to `table` (may be NULL). */
extern bool counter_is_indexed(const Counter *counter, Text *table);


/* --- which keys --- */

typedef enum
{
	KEYS_ALL = 1,
	KEYS_LIST,  /* parameters: one text[] for each key column, all of one length */
	KEYS_RANGE, /* parameters: the key columns of the lower bound if there is one, then those of the upper; text */
	KEYS_NULL   /* those with a NULL in them: what no range contains */
} CounterKeysKind;

typedef struct
{
	CounterKeysKind kind;
	int parameter;     /* the number of its first parameter */
	bool lower, upper; /* KEYS_RANGE: which bounds there are: above lower, up to and including upper */
} CounterKeys;

/* Keys as parameters for KEYS_LIST. Begin with {0}. */
typedef struct
{
	int count;
	Text columns[COUNTER_KEY_MAX];
} CounterKeyList;

extern void key_list_add(CounterKeyList *list, const Counter *counter, const char *const *key); /* NULL: SQL NULL */
extern void key_list_clear(CounterKeyList *list);
extern void key_list_free(CounterKeyList *list);
extern int key_list_args(const CounterKeyList *list, const Counter *counter,
						 SqlArg args[COUNTER_KEY_MAX]); /* how many */

/* The columns of a key as the command line has them; false: not as many as the counter has, reported. */
extern bool key_list_add_written(CounterKeyList *list, const Counter *counter, const char *written) MUST_CHECK;

/* `id=42 part="a b"`, with the names of the file, on one line whatever is in it; of a row, its columns from `column` on. */
extern void key_append(Text *text, const Counter *counter, const char *const key[COUNTER_KEY_MAX]);
extern void key_append_row(Text *text, const Counter *counter, const SqlResult *result, int row, int column);


/*
 * --- pieces of SQL, each a SELECT without parentheses around it ---
 *
 * Column names are those given; everything is restricted to `keys`, in a way that reaches an index below a GROUP BY.
 */

/* k1.., stored, chosen (target_where holds), copies (rows with this key), base (base_seq, 0 without one). */
extern void counter_append_target(Text *sql, const Counter *counter, CounterKeys keys);

/* k1.., actual (never NULL), source_rows, answers (how often truth named this key; 1 with a source). Keys without any source row are not in it. */
extern void counter_append_truth(Text *sql, const Counter *counter, CounterKeys keys);

/* k1.. of the parent. */
extern void counter_append_parent(Text *sql, const Counter *counter, CounterKeys keys);

/* k1.., pending (sum of the deltas that have not taken effect and are not in the baseline), events (how many). */
extern void counter_append_pending(Text *sql, const Counter *counter, CounterKeys keys);

/*
 * class (a CounterClass, or -1: out of target_where), k1.., stored, actual, pending (with an outbox), source_rows (of what is not
 * scanned, else NULL): every key of target, parent and source, those that are right included.
 */
extern void counter_append_joined(Text *sql, const Counter *counter, CounterKeys keys);

/*
 * What counter_scan() sends: the rows of counter_append_joined() that are not right as texts, and how often each occurs; those
 * that are right, and those out of target_where (class -1), are counted in one row each.
 */
extern void counter_append_scan(Text *sql, const Counter *counter, CounterKeys keys);

/*
 * k1.. as texts: the upper bound of a chunk of so many keys of what ought to have a count, above the lower bound whose columns are the
 * parameters from $1, if there is one. No row: no more than that many are left.
 */
extern void counter_append_bound(Text *sql, const Counter *counter, bool lower, int keys);

/* The keys of KEYS_LIST as a table: k1.. with their types. */
extern void counter_append_key_table(Text *sql, const Counter *counter, int parameter);

/* `"id" = ANY (...)`: rows of the target whose key is one of KEYS_LIST; uses an index. */
extern void counter_append_target_listed(Text *sql, const Counter *counter, int parameter);

/* `left.k1 = right.k1 AND ...`, where NULL is a value when key_nullable. */
extern void counter_append_match(Text *sql, const Counter *counter, const char *left, const char *right);

/* `alias."id" = right.k1 AND ...`: the same for rows of the target itself, as UPDATE and DELETE name them; uses an index. */
extern void counter_append_match_target(Text *sql, const Counter *counter, const char *alias, const char *right);

/* `"id", "part"`: the target's key columns, each after `alias.` unless NULL; this is the order in which rows are locked. */
extern void counter_append_target_key(Text *sql, const Counter *counter, const char *alias);

/*
 * `alias.name::text` of the i-th key column: the same in every session of the tool, whatever its time zone. What is kept, or compared with
 * what is kept, is written so.
 */
extern void counter_append_key_text(Text *sql, const Counter *counter, int i, const char *alias, const char *name);

/* `k1, k2`, each after `alias.` unless NULL; with `cast`, `k1::text`. */
extern void counter_append_keys(Text *sql, const Counter *counter, const char *alias, const char *cast);

/* ` AND (target_where)` over the target's own columns, nothing when there is none. */
extern void counter_append_target_where(Text *sql, const Counter *counter);

#endif
