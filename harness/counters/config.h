/* A file of counters as it was read. libcyaml and a schema do the reading; nothing here has seen a database. */
#ifndef COUNTERPROOF_COUNTERS_CONFIG_H
#define COUNTERPROOF_COUNTERS_CONFIG_H

#include "../base.h"

#define COUNTER_KEY_MAX 8 /* columns */

typedef enum
{
	WRITERS_UNSAID = 0,
	WRITERS_SAME_TRANSACTION, /* source row and count change in one transaction, which updates the count's row */
	WRITERS_SEPARATE_TRANSACTION,
	WRITERS_OUTBOX /* the source's transaction writes an event, a consumer adds it later */
} CounterWriters;

extern const char *counter_writers_name(CounterWriters writers); /* "same_transaction"; "unsaid" */

/* Tables are written as in SQL, the names of columns are literal. */
typedef struct
{
	char *table;
	char *column;
} CounterPlace;

typedef struct
{
	char *table;
	char **key;
	unsigned key_count;
	char *where; /* optional: which of its rows ought to have a count */
} CounterParentSpec;

/* Events in the order of their numbers. What is optional is NULL. */
typedef struct
{
	char *table;
	char **key;
	unsigned key_count;
	char *seq;
	char *delta;
	CounterPlace
		*processed; /* optional: the numbers of the events that took effect. Without it those up to the watermark did */
	char *base_seq; /* optional: column of the target, the last event inside the row's baseline */
	CounterPlace *last;      /* optional: the one row with the last number; without it the greatest in the table */
	CounterPlace *watermark; /* optional: the one row with the number up to which all took effect */
} CounterOutboxSpec;

typedef struct
{
	char *name;
	char *target;
	char **key;
	unsigned key_count;
	char *column;
	char *source; /* NULL with truth */
	char **source_key;
	unsigned source_key_count;
	char *where;   /* optional, SQL over the source */
	char *measure; /* SQL, an aggregate over the source; count(*) when the file says nothing */
	char *truth;   /* SQL: key columns in the order of `key`, then the value; NULL with source */
	char *target_where;
	CounterParentSpec *parent; /* optional */
	CounterWriters writers;
	CounterOutboxSpec *outbox; /* with WRITERS_OUTBOX */
} CounterSpec;

typedef struct
{
	struct YamlFile *file; /* its memory is what the counters are made of */
	CounterSpec *counters;
	unsigned count;
} CounterConfig;

/* NULL: reported, with line and column where something in the file is wrong (EXIT_CODE_USAGE). */
extern CounterConfig *counter_config_read(const char *path) MUST_CHECK;
extern void counter_config_free(CounterConfig *config); /* NULL allowed */

#endif
