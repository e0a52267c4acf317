/*
 * The reaper ends what a killed runner leaves behind, and only that.
 *
 * It is a process of its own in a session of its own, started before anything else. It holds a pidfd of the runner and
 * reads a table in shared memory in which process groups and data directories are entered before anything in them is
 * started. When the runner ends without having dismissed it: SIGKILL to the members of the listed groups, SIGQUIT to
 * each postmaster whose command line names a listed directory (SIGKILL to a Redis, also of a folder below one), SIGKILL to one that outlives 5 s, again until nothing
 * has been found for 50 ms (a server may be on its way up), then the directories are removed.
 */
#ifndef COUNTERPROOF_REAPER_H
#define COUNTERPROOF_REAPER_H

#include <sys/types.h>

#include "base.h"

/* Fork the reaper and map the table; before any other process or thread is started. false: reported. */
extern bool reaper_start(void) MUST_CHECK;

/* Its pid, 0 without one: it is a child of whoever started it, and no leak. */
extern pid_t reaper_pid(void);

/*
 * A slot belongs to the process that entered it. Enter before starting; the leader of a group must exist by then.
 * Answers a slot, -1 when the table is full (reported). Without a reaper: 0, nothing is kept.
 */
extern int reaper_enter_group(pid_t group) MUST_CHECK;
extern int reaper_enter_directory(const char *directory) MUST_CHECK; /* whose data directory is <directory>/data */
/*
 * Make one, open to its owner only: the XXXXXX that `path` ends with becomes letters that nothing is called by. It is entered
 * before it is made, for a kill may come while the system makes it. A slot as above; -1: reported.
 */
extern int reaper_make_directory(char *path) MUST_CHECK;
extern void reaper_leave(int slot);

/*
 * End, now, all that `owner` (a process that has ended) and the leaders of the groups it had entered had entered and not
 * left: the same work that the reaper does. Appends one line per process that had to be ended to `report` (may be NULL);
 * the number of them. Their slots are free afterwards. Costs nothing when there are none.
 */
extern int reaper_sweep(pid_t owner, Text *report);

/* Everything was ended in order: the reaper goes. Does nothing in another process than the runner. */
extern void reaper_dismiss(void);

#endif
