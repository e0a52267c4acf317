/* The lab around a run that is none of cases: what is set up first, and ended last. */
#ifndef COUNTERPROOF_HARNESS_LAB_H
#define COUNTERPROOF_HARNESS_LAB_H

#include "cluster.h"
#include "runner.h"

/*
 * Keep the caller's variables out, catch interrupts, start the reaper before anything that it may have to end, find the
 * server's binaries (unless --server names one), open the evidence; then `body`. EXIT_CODE_BROKEN: could not, reported.
 * `memory_bytes`: what the servers' directories may take, see server_kit_prefer_memory().
 */
typedef ExitCode (*LabBody)(void *context, ServerKit *kit, Evidence *evidence);

extern ExitCode lab_run(const RunnerConfig *config, const EvidenceCase *cases, int case_count, int64_t memory_bytes,
						LabBody body, void *context);

/* Close the evidence, show the summary. `done`: nothing was broken. The exit code of it all. */
extern ExitCode lab_conclude(const RunnerConfig *config, Evidence *evidence, bool done);

#endif
