/*
 * The designs of the like counter: one interface, like.h, over different SQL.
 *
 * A design is its row in the table and the files below sql/like/designs/<name>/, each loaded in the place of the file of that
 * name in sql/like, a schema after it. The first row has no files of its own. What a client must know of a design is in its row; nothing else
 * in C depends on which one is loaded.
 */
#ifndef COUNTERPROOF_DESIGN_H
#define COUNTERPROOF_DESIGN_H

#include "like.h"

typedef struct
{
	const char *name;
	const char *idea;   /* in a few words */
	bool numbers_later; /* writers leave their events without a number; like_number() and like_pull() give it to them */
	const char *left_in;         /* the table that has an event when its writer commits */
	const char *server_settings; /* lines for postgresql.conf, ended by a newline but for the last; NULL: none */
	const char *made_ready_by;   /* a statement after its files, in a transaction of its own; NULL: none */
	const char *counted_in;      /* the table that a rebuild's snapshot reads S from */
	bool own_events;             /* its events are not called 1, 2, 3 and on in the order in which they came */
} LikeDesign;

/* For a case's own server, on which it runs the design of that name whatever --design says. */
#define LIKE_WAL_SETTINGS "wal_level = logical\nmax_replication_slots = 100"

extern const LikeDesign like_designs[]; /* the default first, ended by a row without a name */

/* NULL or "" for the name means the default. NULL: there is none of that name. */
extern const LikeDesign *like_design_find(const char *name);

/* false: there is none of that name; reported with the nearest (EXIT_CODE_NO_MATCH). */
extern bool like_design_known(const char *name) MUST_CHECK;

/* As like_create(), which loads the default. `sql_folder` is sql/like. */
extern bool like_design_create(Session *session, const LikeDesign *design, const char *sql_folder) MUST_CHECK;

/*
 * Load the files of a folder over the design: schema.sql first, then in the order of their names. A folder that is not named from the root is below
 * `sql_folder`: designs/<name>/<folder> where the design has that, and else the common one. What is not the design's must not
 * take the place of a file that is: reported.
 * *loaded is the number of files, 0 where there is no folder of that name.
 */
extern bool like_design_load_over(Session *session, const LikeDesign *design, const char *sql_folder,
								  const char *folder, size_t *loaded) MUST_CHECK;

/* Of one file "mutants/M07/consume.sql" below `sql_folder`: the design's own, or the common one. NULL: neither is there. Caller frees. */
extern char *like_design_file(const LikeDesign *design, const char *sql_folder, const char *file);

#endif
