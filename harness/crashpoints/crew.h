/*
 * Workers: processes that each have a site of their own and do what the parent gives out, one run at a time. What they
 * find is told in the order of the pairs, whoever was first. They end with the parent; the reaper knows all they start.
 */
#ifndef COUNTERPROOF_CRASHPOINTS_CREW_H
#define COUNTERPROOF_CRASHPOINTS_CREW_H

#include "pairs.h"
#include "trial.h"

typedef struct Crew Crew;

/* Called in the parent. */
typedef struct
{
	void *context;
	void (*outcome)(void *context, int index, const TrialOutcome *outcome); /* of pairs[index], index after index */
	void (*moved)(void *context, int ended); /* so many runs have ended; also called now and then while none does */
} CrewEars;

/* Start `workers` of them. NULL: reported. */
extern Crew *crew_start(const SiteSetup *setup, int workers) MUST_CHECK;

/* Wait until the first site stands: the conninfo of its server, which lives until crew_end(). NULL: reported, or interrupted. */
extern const char *crew_server(Crew *crew) MUST_CHECK;

/* Have one of them run the references. false: reported, or interrupted. */
extern bool crew_reference(Crew *crew, CrashPoints *points, TrialOutcome *outcome) MUST_CHECK;

/* Run all pairs. false: reported, or interrupted; what had ended in order was told. */
extern bool crew_run(Crew *crew, const CrashPoints *points, const CrashPair *pairs, int count,
					 const CrewEars *ears) MUST_CHECK;

/* What a worker could not do, which it has reported; "" when all went well. */
extern const char *crew_complaint(const Crew *crew);

/* Let them go, wait, end what one left behind. false: reported. NULL allowed. */
extern bool crew_end(Crew *crew);

#endif
