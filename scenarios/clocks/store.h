/*
 * A test double of a replicated store: values under keys, in memory, on replicas that answer alone and now and then give
 * one another what they have. Where two values are concurrent it keeps both, as siblings; which of them counts is the
 * application's business. It is no database (LIMITS.md, L32): it exists so that the ways to keep versions can be compared.
 *
 * A context is what a reading said it has seen. Sent along with a write, it says what that write replaces.
 */
#ifndef COUNTERPROOF_CLOCKS_STORE_H
#define COUNTERPROOF_CLOCKS_STORE_H

#include "vclock.h"

typedef enum
{
	/* One clock for all siblings of a key; the replica that takes a write ticks. It cannot say which sibling is whose. */
	STORE_SERVER_CLOCKS = 1,
	/* A clock for each sibling; the client that writes ticks. It has an entry for every client that ever wrote. */
	STORE_CLIENT_CLOCKS,
	/* One clock for all siblings, and for each the dot, the one event that wrote it: (n1, 3). A dotted version vector set. */
	STORE_DOTS
} StoreScheme;

typedef struct Store Store;

/* The counter is the client's own, which it keeps or loses (= 0). */
typedef struct
{
	const char *name;
	int64_t written;
} StoreClient;

typedef struct
{
	char **values; /* sorted */
	int count;
	VClock context;
} StoreReading;

/* Replicas are numbered from 1, and named n1, n2, ... The caller frees. */
extern Store *store_new(StoreScheme scheme, int replicas);
extern void store_free(Store *store);

extern StoreReading store_read(const Store *store, int replica, const char *key);
extern void store_reading_free(StoreReading *reading);
extern char *store_reading_text(const StoreReading *reading); /* "x y", "" for none; caller frees */

/*
 * `context` NULL: none is sent along. `client` counts under STORE_CLIENT_CLOCKS only, where it ticks.
 * false: one event would have two values, or a counter would overflow; `why` has the reason, nothing was written.
 */
extern bool store_write(Store *store, int replica, const char *key, StoreClient *client, const VClock *context,
						const char *value, Text *why) MUST_CHECK;

/* All that one replica has, to another. false: one event has two values; `why` has the reason, that key stays as it was. */
extern bool store_replicate(Store *store, int from, int to, Text *why) MUST_CHECK;

extern void store_lose_disk(Store *store, int replica); /* with it what the replica has counted */
extern void store_rename_replica(Store *store, int replica, const char *name);

/* Wrong on purpose: forget a participant in all clocks of a key. */
extern void store_drop_slot(Store *store, int replica, const char *key, const char *participant);

/* How many entries all clocks of a key have together, on one replica. */
extern size_t store_clock_entries(const Store *store, int replica, const char *key);

#endif
