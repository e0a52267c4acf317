/*
 * Writers, consumers, redelivery, rebuilds and a sampler, all at once over a like system, and the checks of what they saw and
 * left. 32-J says what each does.
 */
#ifndef COUNTERPROOF_STORM_H
#define COUNTERPROOF_STORM_H

#include "lab.h"

enum
{
	STORM_ITEMS = 6,
	STORM_HOT_ITEM = 1
};

/* What somebody does beside the storm every so many requests; `visit` counts from 1. false: reported. */
typedef bool (*StormGuest)(Session *session, int visit);

/* guest may be NULL. */
extern void storm_run(Scene *scene, Session *lab, StormGuest guest);

#endif
