/* What the readers of text and of JSON have in common. */
#ifndef COUNTERPROOF_VCLOCK_PRIVATE_H
#define COUNTERPROOF_VCLOCK_PRIVATE_H

#include "vclock.h"

/* A clock from entries in any order, zeros among them; sorts them. The contract is that of vclock_parse(). */
extern bool vclock_from_entries(VClockEntry *entries, size_t count, VClock *clock, Text *why) MUST_CHECK;

extern void vclock_print_id(VClockId id, Text *text);

#endif
