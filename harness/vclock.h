/*
 * Vector clocks: of each participant, how many of its events are known. They tell before from concurrent; they measure no
 * time, and compare what was recorded, not what it was recorded of (LIMITS.md).
 *
 * A clock is a value: all zero bytes are the empty clock, `VClock clock = {0}`. Its members are this module's. Entries are
 * sorted by the bytes of their identifiers. A zero is not kept: said or not, it is the same clock.
 *
 * Nothing here does I/O, or keeps anything between calls. A clock may be read by several threads, written by one; clocks that
 * came from one another may be written each by another thread, whatever they share inside.
 */
#ifndef COUNTERPROOF_VCLOCK_H
#define COUNTERPROOF_VCLOCK_H

#include "base.h"

#define VCLOCK_ID_BYTES_MAX 255      /* an identifier is 1 to so many bytes, whichever they are */
#define VCLOCK_COUNTER_MAX INT64_MAX /* one more is an error */

typedef struct
{
	const char *bytes; /* not copied by vclock_id() */
	size_t length;
} VClockId;

typedef struct
{
	VClockId id;
	int64_t counter;
} VClockEntry;

typedef struct VClockNames VClockNames;

/* Identifiers and counters lie apart: clocks of the same participants are compared by counters, and may share identifiers. */
typedef struct
{
	VClockNames *names; /* NULL: the empty clock */
	int64_t *counters;
	size_t capacity; /* of counters */
} VClock;

extern VClockId vclock_id(const char *name);
extern void vclock_free(VClock *clock); /* leaves the empty clock */
extern VClock vclock_copy(const VClock *clock);


/* --- entries --- */

extern size_t vclock_count(const VClock *clock);
extern VClockEntry vclock_entry(const VClock *clock, size_t index); /* the id is valid until the clock changes */
extern int64_t vclock_get(const VClock *clock, VClockId id);        /* 0: absent */

/* false: no identifier, less than zero, or less than it is; reported, the clock stays as it was. */
extern bool vclock_set(VClock *clock, VClockId id, int64_t counter) MUST_CHECK;


/*
 * --- clocks from clocks: what is given is never changed; the answer is a new clock, which the caller frees ---
 *
 * false: the counter would overflow, or that is no identifier; reported, and the answer is the empty clock.
 */

/* An event of the participant's own. */
extern bool vclock_tick(const VClock *clock, VClockId own, VClock *ticked) MUST_CHECK;

/* All that either knows. No event: what a participant learns by a message is received. */
extern VClock vclock_merge(const VClock *a, const VClock *b);

/* Merge, then tick: without the tick, the receipt of what was known already would be equal to what came before it. */
extern bool vclock_receive(const VClock *clock, const VClock *message, VClockId own, VClock *received) MUST_CHECK;


/* --- the same in place; false: reported, and the clock stays as it was --- */

extern bool vclock_advance(VClock *clock, VClockId own) MUST_CHECK;                       /* tick */
extern void vclock_absorb(VClock *clock, const VClock *other);                            /* merge */
extern bool vclock_accept(VClock *clock, const VClock *message, VClockId own) MUST_CHECK; /* receive */

/* Put a later clock, or an equal one, in its place. false: something known would be forgotten. */
extern bool vclock_replace(VClock *clock, const VClock *later) MUST_CHECK;


/* --- comparing: there are four answers, and none of them is "not before" --- */

typedef enum
{
	VCLOCK_BEFORE = 1,
	VCLOCK_AFTER,
	VCLOCK_EQUAL, /* the same knowledge; that it is one event takes a contract about identities */
	VCLOCK_CONCURRENT
} VClockOrder;

extern VClockOrder vclock_compare(const VClock *a, const VClock *b); /* of a, as seen from b; allocates nothing */
extern const char *vclock_order_name(VClockOrder order);             /* "before", ... */


/*
 * --- as text ---
 *
 * [A:2, B:1]. An identifier with other bytes than letters, digits and _.#@/+- stands in quotes, where \" \\ and \x0a are
 * escapes. Blanks may stand between any two parts, entries may be in any order.
 * {"A":2,"B":1} is the same as JSON (RFC 8259).
 *
 * What reads needs no terminator. A participant named twice, and a counter that is negative, no whole number or more than
 * VCLOCK_COUNTER_MAX, are refused. false: `why` has the reason appended, and *clock is the empty clock; else free it.
 */

extern void vclock_print(const VClock *clock, Text *text);
extern bool vclock_parse(const char *text, size_t length, VClock *clock, Text *why) MUST_CHECK;

/* false: an identifier is no UTF-8 or has a zero byte, and JSON knows no such names; reported, nothing was appended. */
extern bool vclock_print_json(const VClock *clock, Text *json) MUST_CHECK;
extern bool vclock_parse_json(const char *json, size_t length, VClock *clock, Text *why) MUST_CHECK;

#endif
