/*
 * The host of one case: a process between the runner and the case that outlives the case, whatever it does.
 *
 * It is the child subreaper below which everything the case starts ends up, so that "nothing is left" is what
 * waitpid says; it holds the deadline; it ends the case when the runner asks (SIGTERM). A host that is killed takes its
 * case with it; when the runner is gone, the reaper ends both.
 */
#ifndef COUNTERPROOF_HOST_H
#define COUNTERPROOF_HOST_H

#include <sys/types.h>

#include "../scenario/scene.h"

/*
 * Fork a host that runs this case in a process of its own. Messages of both come through setup->report_fd, whose write
 * end this process closes afterwards. -1: reported.
 */
extern pid_t host_start(const Scenario *scenario, const SceneSetup *setup) MUST_CHECK;

#endif
