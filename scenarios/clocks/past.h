/*
 * Random histories whose truth is known: participants that act alone and receive one another's messages, which may come
 * late, in any order and more than once. What happened before what is followed along the messages themselves, as sets of
 * events; the clocks are kept beside, and know nothing of those.
 */
#ifndef COUNTERPROOF_CLOCKS_PAST_H
#define COUNTERPROOF_CLOCKS_PAST_H

#include "rng.h"
#include "vclock.h"

/* What a participant makes of a message; the right one is vclock_receive(). */
typedef bool (*PastReceive)(const VClock *clock, const VClock *message, VClockId own, VClock *received);

/* The wrong ones. */
extern bool past_receive_without_tick(const VClock *clock, const VClock *message, VClockId own, VClock *received);
extern bool past_receive_without_merge(const VClock *clock, const VClock *message, VClockId own, VClock *received);

typedef struct
{
	int participant;
	int64_t number;  /* the how-manieth of its participant */
	int64_t wall_ms; /* what its participant's wall clock said; those go wrong by up to five seconds */
	VClock clock;
} PastEvent;

typedef struct
{
	PastEvent *events; /* in an order in which they may have happened */
	int count;
	int participants;
	uint64_t *before; /* a row of bits for each event: those that happened before it */
	int *places;      /* of each participant's events, in `events` */
	int64_t *said;    /* of each participant: how many */
} Past;

/* false: reported by `receive`. The caller frees, also then. */
extern bool past_draw(Rng *rng, int participants, int events, PastReceive receive, Past *past) MUST_CHECK;
extern void past_free(Past *past);

/* The truth: of event a, as seen from b. */
extern VClockOrder past_order(const Past *past, int a, int b);

extern VClockId past_participant(int participant); /* A to Z */

/* The event that an entry of one of the clocks stands for: its place in the order of events. */
extern int past_place(const Past *past, VClockEntry entry);

#endif
