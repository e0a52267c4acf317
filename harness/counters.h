/*
 * Derived counters of anyone's schema: compared with what they are derived from, and repaired. The file that names them and
 * what is printed are described in counters/README.md.
 *
 * Nothing here needs or starts a server of the lab: it connects where it is told.
 *
 * Exit codes, the worst of all counters in the order 1, 3, 4, 0: EXIT_CODE_PASS nothing drifted, or all was repaired and
 * verified; EXIT_CODE_FAIL drift found, or left; EXIT_CODE_USAGE; EXIT_CODE_BROKEN cannot connect, or not allowed;
 * EXIT_CODE_INCONCLUSIVE something could not be checked.
 */
#ifndef COUNTERPROOF_COUNTERS_H
#define COUNTERPROOF_COUNTERS_H

#include "base.h"

/* What all commands take. Strings are borrowed. */
typedef struct
{
	const char *conninfo; /* or URI; "": what PG* variables and the service file say */
	const char *file;
	const char *const *names; /* counters of the file; none: all of them */
	int name_count;
	const char *id;   /* one key; its columns are separated by commas, `\,` is a comma; NULL: all keys */
	int sample;       /* keys, drawn by the seed; 0: all */
	uint64_t seed;    /* of the sample */
	int chunk;        /* keys; 0: the planner's estimates decide (check), or time does (repair) */
	int settle_s;     /* separate_transaction: how long to wait before the second look */
	int report_limit; /* rows printed for each counter, 0: all */
	bool json;        /* one document instead of lines */
	bool verbose;     /* SQL on stderr */
	const char *sql;  /* the folder sql/ */
} CountersRequest;

extern ExitCode counters_check(const CountersRequest *request);

typedef struct
{
	int every_s;
	bool until_drift;
	const char *metrics; /* a Prometheus text file, replaced each round; NULL: none */
} CountersWatch;

/* A line a round, until an interrupt, or with until_drift until the first drift (EXIT_CODE_FAIL). */
extern ExitCode counters_watch(const CountersRequest *request, const CountersWatch *watch);

/* The nine questions of one or more counters, and which mode of repair is right for their writers. */
extern ExitCode counters_explain(const CountersRequest *request);

/* Writes a starting FILE (must not exist) from the foreign keys of the database and columns named like counts. */
extern ExitCode counters_init(const CountersRequest *request);

typedef struct
{
	const char *mode; /* NULL: the default of the counter's writers */
	bool dry_run;     /* tell what would be done */
	bool record;      /* with dry_run: keep what was found in the history */
	bool explain;     /* tell the modes, connect nowhere */
	const char
		*resume;    /* number of a run, or `last`: that of each counter that has not ended, else a new one; NULL: new */
	int jobs;       /* workers here; 0: 1 */
	int max_change; /* percent of the scanned keys that may go from something to nothing */
	bool yes;       /* however many */
	const char *pause_file; /* while it is there, nothing goes on; NULL: none */
	int max_load;           /* active queries of others; 0: however many */
	int max_lag_mb;         /* WAL that a replica has not replayed; 0: however much */
} CountersRepair;

#define COUNTERS_MAX_CHANGE_PERCENT 20

/*
 * Recount the keys that are wrong, in portions, and verify. What was done is in the schema counterproof. Besides the exit codes
 * above: EXIT_CODE_INTERRUPTED after the chunk in which an interrupt came.
 */
extern ExitCode counters_repair(const CountersRequest *request, const CountersRepair *repair);

/* The runs of repair, and since when the keys (of `id`, or of the latest run) have been wrong. */
extern ExitCode counters_history(const CountersRequest *request);

#endif
