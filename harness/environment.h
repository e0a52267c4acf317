/* What surrounds a run: the caller's variables are kept out, the settings that decide truth are written down. */
#ifndef COUNTERPROOF_ENVIRONMENT_H
#define COUNTERPROOF_ENVIRONMENT_H

#include "runner.h"

/* Clear PG*, LC_*, LANG and TZ of this process; its children and connections get LC_ALL=C and UTC. */
extern void environment_scrub(void);

/*
 * Add versions, machine and settings to the evidence. `server` (may be NULL) is asked for its
 * settings; a server of another major version than asked for is refused. false: reported.
 */
extern bool environment_record(const RunnerConfig *config, const char *server, Evidence *evidence) MUST_CHECK;

#endif
