#include "store.h"

#include <stdlib.h>
#include <string.h>

#include "lab.h"

/* A value. What it is known by differs: nothing, a clock of its own, or the event that wrote it. */
typedef struct
{
	char *value;
	VClock clock;
	char *server;
	int64_t number;
} Version;

typedef struct
{
	char *key;
	VClock clock; /* of all its siblings; client clocks lie in the versions */
	Version *versions;
	int count;
} Entry;

typedef struct
{
	char *name;
	Entry *entries;
	int count;
} Replica;

struct Store
{
	StoreScheme scheme;
	Replica *replicas;
	int count;
};


/* --- memory --- */

static Version
copy_version(const Version *version)
{
	return (Version){.value = string_copy(version->value),
					 .clock = vclock_copy(&version->clock),
					 .server = string_copy(version->server),
					 .number = version->number};
}

static void
free_version(Version *version)
{
	free(version->value);
	vclock_free(&version->clock);
	free(version->server);
}

static void
add_version(Entry *entry, Version version)
{
	entry->versions = memory_grow(entry->versions, ((size_t) entry->count + 1) * sizeof(version));
	entry->versions[entry->count++] = version;
}

static void
remove_version(Entry *entry, int index)
{
	free_version(&entry->versions[index]);
	entry->count--;
	memmove(&entry->versions[index], &entry->versions[index + 1],
			(size_t) (entry->count - index) * sizeof(*entry->versions));
}

static void
remove_versions(Entry *entry)
{
	while (entry->count > 0)
	{
		remove_version(entry, entry->count - 1);
	}
}

static void
free_entries(Replica *replica)
{
	for (int i = 0; i < replica->count; i++)
	{
		remove_versions(&replica->entries[i]);
		free(replica->entries[i].versions);
		free(replica->entries[i].key);
		vclock_free(&replica->entries[i].clock);
	}
	free(replica->entries);
	replica->entries = NULL;
	replica->count = 0;
}

Store *
store_new(StoreScheme scheme, int replicas)
{
	Store *store = memory_get(sizeof(*store));

	*store = (Store){.scheme = scheme, .count = replicas};
	store->replicas = memory_get((size_t) replicas * sizeof(*store->replicas));
	for (int i = 0; i < replicas; i++)
	{
		store->replicas[i].name = string_format("n%d", i + 1);
	}
	return store;
}

void
store_free(Store *store)
{
	for (int i = 0; i < store->count; i++)
	{
		free_entries(&store->replicas[i]);
		free(store->replicas[i].name);
	}
	free(store->replicas);
	free(store);
}

static Entry *
find_entry(const Replica *replica, const char *key)
{
	for (int i = 0; i < replica->count; i++)
	{
		if (strcmp(replica->entries[i].key, key) == 0)
		{
			return &replica->entries[i];
		}
	}
	return NULL;
}

static Entry *
have_entry(Replica *replica, const char *key)
{
	Entry *entry = find_entry(replica, key);

	if (entry == NULL)
	{
		replica->entries = memory_grow(replica->entries, ((size_t) replica->count + 1) * sizeof(*entry));
		entry = &replica->entries[replica->count++];
		*entry = (Entry){.key = string_copy(key)};
	}
	return entry;
}


/* --- one clock for all siblings, ticked by servers --- */

static bool
has_value(const Entry *entry, const char *value)
{
	for (int i = 0; i < entry->count; i++)
	{
		if (strcmp(entry->versions[i].value, value) == 0)
		{
			return true;
		}
	}
	return false;
}

static bool
write_by_server(Entry *entry, const char *server, StoreClient *client, const VClock *context, Version *version,
				Text *why)
{
	VClockOrder seen = vclock_compare(context, &entry->clock);

	(void) client;
	if (seen == VCLOCK_AFTER || seen == VCLOCK_EQUAL)
	{
		remove_versions(entry);
	}
	vclock_absorb(&entry->clock, context);
	if (!vclock_advance(&entry->clock, vclock_id(server)))
	{
		text_append(why, "no number is left for %s", server);
		return false;
	}
	add_version(entry, copy_version(version));
	return true;
}

static void
add_values(Entry *mine, const Entry *theirs)
{
	for (int i = 0; i < theirs->count; i++)
	{
		if (!has_value(mine, theirs->versions[i].value))
		{
			add_version(mine, copy_version(&theirs->versions[i]));
		}
	}
}

/*
 * Equal clocks have all that is not superseded in common, whatever they were merged from; of what is, one of them may have
 * more. With nothing in common, somebody else has counted under the same name.
 */
static bool
share_values(const Entry *mine, const Entry *theirs, Text *why)
{
	for (int i = 0; i < theirs->count; i++)
	{
		if (has_value(mine, theirs->versions[i].value))
		{
			return true;
		}
	}
	vclock_print(&mine->clock, why);
	text_append(why, " stands for \"%s\" and for \"%s\"", mine->versions[0].value, theirs->versions[0].value);
	return false;
}

static bool
join_by_server(Entry *mine, const Entry *theirs, Text *why)
{
	VClockOrder order = vclock_compare(&mine->clock, &theirs->clock);

	if (order == VCLOCK_EQUAL && !share_values(mine, theirs, why))
	{
		return false;
	}
	if (order == VCLOCK_BEFORE)
	{
		remove_versions(mine);
	}
	if (order != VCLOCK_AFTER)
	{
		add_values(mine, theirs);
		vclock_absorb(&mine->clock, &theirs->clock);
	}
	return true;
}


/* --- a clock for each sibling, ticked by clients --- */

/* It replaces what is before it, and is nothing new where something is after it. */
static bool
add_by_clock(Entry *entry, const Version *version, Text *why)
{
	bool news = true;

	for (int i = entry->count - 1; i >= 0; i--)
	{
		const Version *other = &entry->versions[i];
		VClockOrder order = vclock_compare(&other->clock, &version->clock);

		if (order == VCLOCK_EQUAL && strcmp(other->value, version->value) != 0)
		{
			vclock_print(&version->clock, why);
			text_append(why, " stands for \"%s\" and for \"%s\"", other->value, version->value);
			return false;
		}
		news = news && order != VCLOCK_EQUAL && order != VCLOCK_AFTER;
		if (order == VCLOCK_BEFORE)
		{
			remove_version(entry, i);
		}
	}
	if (news)
	{
		add_version(entry, copy_version(version));
	}
	return true;
}

static bool
write_by_client(Entry *entry, const char *server, StoreClient *client, const VClock *context, Version *version,
				Text *why)
{
	VClockId id = vclock_id(client->name);

	(void) server;
	version->clock = vclock_copy(context);
	if ((vclock_get(context, id) < client->written && !vclock_set(&version->clock, id, client->written)) ||
		!vclock_advance(&version->clock, id))
	{
		text_append(why, "no number is left for %s", client->name);
		return false;
	}
	client->written = vclock_get(&version->clock, id);
	return add_by_clock(entry, version, why);
}

static bool
join_by_client(Entry *mine, const Entry *theirs, Text *why)
{
	for (int i = 0; i < theirs->count; i++)
	{
		if (!add_by_clock(mine, &theirs->versions[i], why))
		{
			return false;
		}
	}
	return true;
}


/* --- a dot for each sibling --- */

static bool
covers(const VClock *clock, const Version *version)
{
	return version->number <= vclock_get(clock, vclock_id(version->server));
}

static const Version *
find_dot(const Entry *entry, const Version *version)
{
	for (int i = 0; i < entry->count; i++)
	{
		if (entry->versions[i].number == version->number && strcmp(entry->versions[i].server, version->server) == 0)
		{
			return &entry->versions[i];
		}
	}
	return NULL;
}

static bool
write_by_dot(Entry *entry, const char *server, StoreClient *client, const VClock *context, Version *version, Text *why)
{
	(void) client;
	for (int i = entry->count - 1; i >= 0; i--)
	{
		if (covers(context, &entry->versions[i]))
		{
			remove_version(entry, i);
		}
	}
	vclock_absorb(&entry->clock, context);
	if (!vclock_advance(&entry->clock, vclock_id(server)))
	{
		text_append(why, "no number is left for %s", server);
		return false;
	}
	version->server = string_copy(server);
	version->number = vclock_get(&entry->clock, vclock_id(server));
	add_version(entry, copy_version(version));
	return true;
}

static bool
agree_on_dots(const Entry *mine, const Entry *theirs, Text *why)
{
	for (int i = 0; i < theirs->count; i++)
	{
		const Version *same = find_dot(mine, &theirs->versions[i]);

		if (same != NULL && strcmp(same->value, theirs->versions[i].value) != 0)
		{
			text_append(why, "(%s, %lld) stands for \"%s\" and for \"%s\"", same->server, (long long) same->number,
						same->value, theirs->versions[i].value);
			return false;
		}
	}
	return true;
}

/* What the other side knows of and no longer has is superseded. */
static bool
join_by_dot(Entry *mine, const Entry *theirs, Text *why)
{
	if (!agree_on_dots(mine, theirs, why))
	{
		return false;
	}
	for (int i = mine->count - 1; i >= 0; i--)
	{
		if (covers(&theirs->clock, &mine->versions[i]) && find_dot(theirs, &mine->versions[i]) == NULL)
		{
			remove_version(mine, i);
		}
	}
	for (int i = 0; i < theirs->count; i++)
	{
		if (!covers(&mine->clock, &theirs->versions[i]))
		{
			add_version(mine, copy_version(&theirs->versions[i]));
		}
	}
	vclock_absorb(&mine->clock, &theirs->clock);
	return true;
}


/* --- the store --- */

static const struct
{
	bool (*write)(Entry *entry, const char *server, StoreClient *client, const VClock *context, Version *version,
				  Text *why);
	bool (*join)(Entry *mine, const Entry *theirs, Text *why);
} schemes[] = {
	[STORE_SERVER_CLOCKS] = {write_by_server, join_by_server},
	[STORE_CLIENT_CLOCKS] = {write_by_client, join_by_client},
	[STORE_DOTS] = {write_by_dot, join_by_dot},
};

static Replica *
replica_of(const Store *store, int number)
{
	return &store->replicas[number - 1];
}

bool
store_write(Store *store, int replica, const char *key, StoreClient *client, const VClock *context, const char *value,
			Text *why)
{
	const VClock none = {0};
	Replica *at = replica_of(store, replica);
	Version version = {.value = string_copy(value)};
	bool done = schemes[store->scheme].write(have_entry(at, key), at->name, client, context != NULL ? context : &none,
											 &version, why);

	free_version(&version);
	return done;
}

bool
store_replicate(Store *store, int from, int to, Text *why)
{
	const Replica *source = replica_of(store, from);
	Replica *target = replica_of(store, to);
	bool done = true;

	for (int i = 0; i < source->count; i++)
	{
		const Entry *theirs = &source->entries[i];

		done = schemes[store->scheme].join(have_entry(target, theirs->key), theirs, why) && done;
	}
	return done;
}

static int
compare_values(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

StoreReading
store_read(const Store *store, int replica, const char *key)
{
	const Entry *entry = find_entry(replica_of(store, replica), key);
	StoreReading reading = {0};

	if (entry == NULL)
	{
		return reading;
	}
	reading.values = memory_get((size_t) entry->count * sizeof(*reading.values));
	reading.count = entry->count;
	reading.context = vclock_copy(&entry->clock);
	for (int i = 0; i < entry->count; i++)
	{
		reading.values[i] = string_copy(entry->versions[i].value);
		vclock_absorb(&reading.context, &entry->versions[i].clock);
	}
	qsort(reading.values, (size_t) reading.count, sizeof(*reading.values), compare_values);
	return reading;
}

void
store_reading_free(StoreReading *reading)
{
	for (int i = 0; i < reading->count; i++)
	{
		free(reading->values[i]);
	}
	free(reading->values);
	vclock_free(&reading->context);
	*reading = (StoreReading){0};
}

char *
store_reading_text(const StoreReading *reading)
{
	Text text = {0};
	char *copy;

	for (int i = 0; i < reading->count; i++)
	{
		text_append(&text, i > 0 ? " %s" : "%s", reading->values[i]);
	}
	copy = string_copy(text_get(&text));
	text_free(&text);
	return copy;
}

void
store_lose_disk(Store *store, int replica)
{
	free_entries(replica_of(store, replica));
}

void
store_rename_replica(Store *store, int replica, const char *name)
{
	free(replica_of(store, replica)->name);
	replica_of(store, replica)->name = string_copy(name);
}

static void
drop(VClock *clock, const char *participant)
{
	VClock without = clock_without(clock, participant);

	vclock_free(clock);
	*clock = without;
}

void
store_drop_slot(Store *store, int replica, const char *key, const char *participant)
{
	Entry *entry = have_entry(replica_of(store, replica), key);

	drop(&entry->clock, participant);
	for (int i = 0; i < entry->count; i++)
	{
		drop(&entry->versions[i].clock, participant);
	}
}

size_t
store_clock_entries(const Store *store, int replica, const char *key)
{
	const Entry *entry = find_entry(replica_of(store, replica), key);
	size_t entries = entry != NULL ? vclock_count(&entry->clock) : 0;

	for (int i = 0; entry != NULL && i < entry->count; i++)
	{
		entries += vclock_count(&entry->versions[i].clock);
	}
	return entries;
}
