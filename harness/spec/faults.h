/*
 * Faults of a scenario file, done to the sessions of an executor. What a client does that pauses is nothing, which is not
 * done here.
 */
#ifndef COUNTERPROOF_SPEC_FAULTS_H
#define COUNTERPROOF_SPEC_FAULTS_H

#include "../cluster.h"
#include "executor.h"

typedef struct
{
	Executor *executor;
	Cluster *cluster; /* of this executor alone, to be restarted; NULL: none */
	int64_t limit_ms; /* for a backend to go */
} FaultSite;

/*
 * Do what the fault says. *fired: it met something, a statement under way for a cancel, a session that lives for the rest.
 * After a kill or a terminate the backend has gone, or waits for a lock of another. false: reported.
 */
extern bool fault_strike(const FaultSite *site, const Spec *spec, const SpecStep *fault, bool *fired) MUST_CHECK;

/* Wait for the backends of lost sessions; one that waits for a lock is terminated. false: reported. */
extern bool fault_end_ghosts(const FaultSite *site, const Spec *spec) MUST_CHECK;

#endif
