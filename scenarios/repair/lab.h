/*
 * What the cases of the suite repair share: `counterproof counters` run as a person runs it, what it said taken apart, and the
 * drift of a counter by the case's own SQL, which is the view lab.wrong (key, stored, actual) of its schema.
 */
#ifndef COUNTERPROOF_REPAIR_LAB_H
#define COUNTERPROOF_REPAIR_LAB_H

#include "32/lab.h"


/* --- the database --- */

/* The lab's own session, after sql/counters/cases/SCHEMA was run. */
extern Session *counters_lab(Scene *scene, const char *schema);

/* Of par.sql: a parent with n (NULL: SQL NULL) and so many children. */
extern void add_parent(Scene *scene, Session *lab, int64_t id, const char *n, int64_t children);

/* Parents 1..parents with two children each; the first `wrong` of them say 9. */
extern void add_parents(Scene *scene, Session *lab, int parents, int wrong);

/*
 * One check: what is wrong now, by the case's own truth: "1:5/3 2:NULL/0" is key, stored, actual, in the order of the keys; ""
 * when every count is right.
 */
extern void check_wrong(Scene *scene, Session *lab, const char *expected, const char *format, ...) PRINTF_LIKE(4, 5);

/* Wait until somebody waits for what this session holds. */
extern void await_waiter(Scene *scene, Session *observer, Session *holder);

/* Wait until no session of the tool is connected to the case's database. */
extern void await_tool_gone(Scene *scene, Session *observer);


/* --- the tool --- */

typedef struct
{
	Process *process;
	char *output; /* the file that has both streams; allocated */
} Tool;

typedef struct
{
	ProcessEnd end;
	Text output;
} Told;

#define WORDS(...)                                                                                                     \
	(const char *const[])                                                                                              \
	{                                                                                                                  \
		__VA_ARGS__, NULL                                                                                              \
	}
#define NO_WORDS WORDS(NULL)

/* counterproof counters COMMAND -c sql/counters/cases/FILE WORDS... on the case's database. */
extern Tool tool_start(Scene *scene, const char *command, const char *file, const char *const *words);

/* Wait until a query answers this number, or the tool has ended; whether the number was seen. */
extern bool await_beside(Scene *scene, Session *observer, Tool tool, int64_t expected, const char *sql);

/*
 * How many sessions of the tool wait for other transactions to end, for await_beside(). They show the file that their statement is of
 * (sql/counters/open.sql), as they do for a moment when they connect: ask when they have done something since.
 */
#define TOOLS_WAITING                                                                                                  \
	"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "                                        \
	"AND query LIKE '-- Whether every transaction that was open%'"

/*
 * Wait for its end and read what it said, which is noted. One check: on every line with "Scanned: " the classes add up to
 * it. Frees the tool; free what it said with told_free().
 */
extern Told tool_end(Scene *scene, Tool tool);
extern void told_free(Told *told);
extern void tool_free(Scene *scene, Tool tool); /* one that was killed: what it said is of no interest */

/* Both, with one check of the exit code. */
extern Told tool_run(Scene *scene, const char *command, const char *file, const char *const *words, int expected_code,
					 const char *what);

/* The same where nothing but the exit code and the sums are of interest. */
extern void tool_does(Scene *scene, const char *command, const char *file, const char *const *words, int expected_code,
					  const char *what);

extern void check_exit(Scene *scene, const Told *told, int expected, const char *format, ...) PRINTF_LIKE(4, 5);

/* One check: the last line that has `label` begins with "COUNTER  " and is that: "Scanned: 5  Correct: 3 ...". */
extern void check_line(Scene *scene, const Told *told, const char *label, const char *expected, const char *what);

/* The number after "LABEL: " in its last place; -1 when it is nowhere. */
extern int64_t told_number(const Told *told, const char *label);

/* One check: its output has this somewhere. */
extern void check_says(Scene *scene, const Told *told, const char *part, const char *what);

/*
 * One check: the rows it printed ("drift  id=1 stored=5 actual=3 diff=+2") are exactly those of lab.wrong as it was when
 * `wrong` was read.
 */
extern char *read_wrong_rows(Scene *scene, Session *lab); /* caller frees */
extern void check_rows(Scene *scene, const Told *told, const char *wrong, const char *what);


/* --- what the tool keeps in the database (sql/counters/record.sql) --- */

extern int64_t last_run(Scene *scene, Session *lab);

/* One check: that run found so many keys, each once, and repaired them all: "6 found, 6 keys, 6 updated". */
extern void check_record(Scene *scene, Session *lab, int64_t run, int64_t keys, const char *what);

#endif
