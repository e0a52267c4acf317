/*
 * Where one worker tries points: a server of its own, a template that was set up as the file says, databases cloned from
 * it ahead of need, a proxy before it, and a private folder. What it holds ends with it; the reaper knows of it.
 */
#ifndef COUNTERPROOF_CRASHPOINTS_SITE_H
#define COUNTERPROOF_CRASHPOINTS_SITE_H

#include "../cluster.h"
#include "../proxy.h"
#include "../session.h"
#include "plan.h"
#include "program.h"

typedef struct Site Site;

/* What one may take: 64 databases of 8 MB and the log of as many clones, with room for what programs write. */
#define SITE_BYTES ((int64_t) 1 << 30)

typedef struct
{
	const RunnerConfig *run;
	const ServerKit *kit;
	const CrashPlan *plan;
} SiteSetup;

/* NULL: reported; also when what the file sets up fails. */
extern Site *site_open(const SiteSetup *setup) MUST_CHECK;
extern bool site_close(Site *site); /* false: reported. NULL allowed */

/* So many databases were made that the disk is better served by a new site. */
extern bool site_is_used_up(const Site *site);

/* A fresh database and an empty working folder for one run; waits for the clone. false: reported. */
extern bool site_begin_run(Site *site) MUST_CHECK;

/* Begin to clone the next run's database. Not while the server may be stopped: half a clone would be left. */
extern bool site_clone_ahead(Site *site) MUST_CHECK;

/* What the programs of a run have left outside of their groups is ours by now: end it. */
extern void site_end_strays(const Site *site);

extern const char *site_database(const Site *site);           /* of the run */
extern char *site_conninfo(const Site *site) MUST_CHECK;      /* of the run's database, past the proxy; caller frees */
extern Surroundings site_surroundings(const Site *site);      /* through the proxy; without output */
extern Surroundings site_surroundings_past(const Site *site); /* straight to the server */
extern const char *site_folder(const Site *site);             /* for outputs: private, exists */
extern Proxy *site_proxy(const Site *site);
extern const CrashPlan *site_plan(const Site *site);
extern int site_timeout_ms(const Site *site); /* of a run: the file's, or --timeout */

/*
 * Stop the server at once and start it again. Before, all connections of the proxy are cut: a backend that still waits for
 * its startup packet would hold up the stop. Nobody is served meanwhile, and whoever has connected is refused when the
 * server is back, as in life. false: reported.
 */
extern bool site_restart(Site *site) MUST_CHECK;

#endif
