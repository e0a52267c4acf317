/*
 * The reaper ends what a killed runner leaves behind, and only that.
 *
 * It is a process of its own in a session of its own, started before anything else. It holds a pidfd of the runner and
 * reads a table in shared memory in which process groups and data directories are entered before anything in them is
 * started. When the runner ends without having dismissed it: SIGKILL to the listed groups, SIGQUIT to each postmaster
 * found in a listed directory's postmaster.pid whose command line names that directory (re-read until quiet),
 * SIGKILL to one that outlives 5 s, then the directories are removed.
 */
#ifndef COUNTERPROOF_REAPER_H
#define COUNTERPROOF_REAPER_H

#include <sys/types.h>

#include "base.h"

/* Fork the reaper and map the table; before any other process or thread is started. false: reported. */
extern bool reaper_start(void) MUST_CHECK;

/* A slot belongs to the process that entered it. Enter before starting; answers a slot, -1 when the table is full (reported). Without a reaper: 0, nothing is kept. */
extern int reaper_enter_group(pid_t group) MUST_CHECK;
extern int
reaper_enter_directory(const char *directory) MUST_CHECK; /* a private directory; its data directory is <it>/data */
extern void reaper_leave(int slot);

/*
 * End, now, all that `owner` (a process that has ended) had entered and not left: the same work that the reaper does.
 * Appends one line per thing that had to be ended to `report`; the number of them. Slots of `owner` are free afterwards.
 */
extern int reaper_sweep(pid_t owner, Text *report);

/* Everything was ended in order: the reaper goes. Called by the runner only. */
extern void reaper_dismiss(void);

#endif
