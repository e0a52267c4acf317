#include "past.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BITS 64
#define STEP_MS_MAX 100
#define WRONG_MS_MAX 5000

VClockId
past_participant(int participant)
{
	static const char names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return (VClockId){.bytes = names + participant, .length = 1};
}

static size_t
words_of(const Past *past)
{
	return ((size_t) past->count + WORD_BITS - 1) / WORD_BITS;
}

static uint64_t *
row_of(const Past *past, int event)
{
	return past->before + (size_t) event * words_of(past);
}

static bool
is_before(const Past *past, int a, int b)
{
	return (row_of(past, b)[a / WORD_BITS] >> (a % WORD_BITS) & 1) != 0;
}

/* An event, and all before it, happened before another. */
static void
learn(Past *past, int event, int from)
{
	uint64_t *row = row_of(past, event);

	for (size_t i = 0; i < words_of(past); i++)
	{
		row[i] |= row_of(past, from)[i];
	}
	row[from / WORD_BITS] |= UINT64_C(1) << (from % WORD_BITS);
}

static int *
place_of(const Past *past, int participant, int64_t number)
{
	return past->places + (int64_t) participant * past->count + number - 1;
}

/* The message of another participant that arrives, -1 for none: mostly a recent one. */
static int
draw_message(Rng *rng, const Past *past, int event)
{
	uint64_t reach = rng_below(rng, 8) == 0 ? (uint64_t) event : 3 * (uint64_t) past->participants;
	int sender;

	if (event == 0 || rng_below(rng, 2) == 0)
	{
		return -1;
	}
	reach = reach < (uint64_t) event ? reach : (uint64_t) event;
	sender = event - 1 - (int) rng_below(rng, reach);
	return past->events[sender].participant == past->events[event].participant ? -1 : sender;
}

static bool
draw_event(Rng *rng, Past *past, int number, const int64_t *wrong_ms, PastReceive receive)
{
	const VClock none = {0};
	PastEvent *event = &past->events[number];
	int last;
	int message;
	const VClock *known;
	VClockId own;

	event->participant = (int) rng_below(rng, (uint64_t) past->participants);
	own = past_participant(event->participant);
	event->number = ++past->said[event->participant];
	place_of(past, event->participant, event->number)[0] = number;
	last = event->number > 1 ? *place_of(past, event->participant, event->number - 1) : -1;
	message = draw_message(rng, past, number);
	known = last >= 0 ? &past->events[last].clock : &none;
	event->wall_ms =
		(int64_t) number * STEP_MS_MAX / 2 + (int64_t) rng_below(rng, STEP_MS_MAX / 2) + wrong_ms[event->participant];
	if (last >= 0)
	{
		learn(past, number, last);
	}
	if (message < 0)
	{
		return vclock_tick(known, own, &event->clock);
	}
	learn(past, number, message);
	return receive(known, &past->events[message].clock, own, &event->clock);
}

bool
past_draw(Rng *rng, int participants, int events, PastReceive receive, Past *past)
{
	int64_t *wrong_ms = memory_get((size_t) participants * sizeof(*wrong_ms));
	bool done = true;

	*past = (Past){.count = events, .participants = participants};
	past->events = memory_get((size_t) events * sizeof(*past->events));
	past->places = memory_get((size_t) participants * (size_t) events * sizeof(*past->places));
	past->said = memory_get((size_t) participants * sizeof(*past->said));
	past->before = memory_get((size_t) events * words_of(past) * sizeof(*past->before));
	for (int i = 0; i < participants; i++)
	{
		wrong_ms[i] = (int64_t) rng_below(rng, WRONG_MS_MAX);
	}
	for (int i = 0; i < events && done; i++)
	{
		done = draw_event(rng, past, i, wrong_ms, receive);
	}
	free(wrong_ms);
	return done;
}

void
past_free(Past *past)
{
	for (int i = 0; i < past->count; i++)
	{
		vclock_free(&past->events[i].clock);
	}
	free(past->events);
	free(past->before);
	free(past->places);
	free(past->said);
	*past = (Past){0};
}

VClockOrder
past_order(const Past *past, int a, int b)
{
	return a == b                  ? VCLOCK_EQUAL
		   : is_before(past, a, b) ? VCLOCK_BEFORE
		   : is_before(past, b, a) ? VCLOCK_AFTER
								   : VCLOCK_CONCURRENT;
}

int
past_place(const Past *past, VClockEntry entry)
{
	return *place_of(past, entry.id.bytes[0] - 'A', entry.counter);
}

bool
past_receive_without_tick(const VClock *clock, const VClock *message, VClockId own, VClock *received)
{
	(void) own;
	*received = vclock_merge(clock, message);
	return true;
}

bool
past_receive_without_merge(const VClock *clock, const VClock *message, VClockId own, VClock *received)
{
	(void) message;
	return vclock_tick(clock, own, received);
}
