/*
 * What the cases of the suite clocks share: clocks written as text, a store that they read and write, and what was found
 * as checks. Verbs that fail end the case as BROKEN.
 */
#ifndef COUNTERPROOF_CLOCKS_LAB_H
#define COUNTERPROOF_CLOCKS_LAB_H

#include "scenario.h"
#include "store.h"
#include "vclock.h"

/* The clock that [A:2, B:1] says. The caller frees. */
extern VClock clock_of(Scene *scene, const char *text);

/* A copy that has forgotten one participant: wrong, and for that reason no function of the library. The caller frees. */
extern VClock clock_without(const VClock *clock, const char *participant);

/* One check each: of the whole clock, and of how a stands to b. */
extern bool check_clock(Scene *scene, const VClock *clock, const char *expected, const char *what);
extern bool check_order(Scene *scene, const char *a, const char *b, const char *expected);

/* One check: what was refused with a report said just this. `done` is what the function answered. */
extern bool check_refused(Scene *scene, bool done, const char *expected, const char *what);


/* --- a store with one key --- */

#define STORE_KEY "k"

/* `client` as for store_write(). */
extern void put_seen(Scene *scene, Store *store, int replica, StoreClient *client, const char *value); /* reads first */
extern void put_blind(Scene *scene, Store *store, int replica, StoreClient *client, const char *value);
extern void put_with(Scene *scene, Store *store, int replica, StoreClient *client, const VClock *context,
					 const char *value);
extern void replicate(Scene *scene, Store *store, int from, int to);

/* One check of all values that a replica has: "x y". */
extern bool check_values(Scene *scene, const Store *store, int replica, const char *expected, const char *what);

#endif
