/*
 * clocks/growth  what a clock costs, by who has an entry in it
 *
 * Claim      A clock grows with the participants that are tracked: with every client that ever wrote, if clients are; with replicas
 *            only, if those are. A fresh name after each restart, which loses no write, is one entry more each time.
 * Method     200 clients, each of which writes one key once after it has read it, on three replicas in turn; then one
 *            replica that is restarted 50 times under fresh names, and writes after each.
 * Expect     One value in each. Client clocks: 200 entries; server clocks and dots: 3. After the restarts: 51 entries.
 * Not shown  When an entry may go: nothing here can know that a participant will never be heard of again (L32).
 */
#include "lab.h"

#include <inttypes.h>
#include <stdlib.h>

enum
{
	CLIENTS = 200,
	REPLICAS = 3,
	RESTARTS = 50
};

static void
check_cost(Scene *scene, const Store *store, int replica, int64_t entries)
{
	StoreReading reading = store_read(store, replica, STORE_KEY);
	Text json = {0};

	require(scene, vclock_print_json(&reading.context, &json));
	CHECK_EQ(scene, reading.count, 1, "values");
	CHECK_EQ(scene, store_clock_entries(store, replica, STORE_KEY), entries, "entries in its clock");
	note(scene, "its context takes %zu bytes as JSON", json.length);
	text_free(&json);
	store_reading_free(&reading);
}

static void
short_lived(Scene *scene, StoreScheme scheme, const char *name, int64_t entries)
{
	Store *store = store_new(scheme, REPLICAS);

	step(scene, "%s: %d clients that write once", name, CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
	{
		char *client = string_format("client-%03d", i);
		int replica = i % REPLICAS + 1;

		put_seen(scene, store, replica, &(StoreClient){.name = client}, client);
		replicate(scene, store, replica, (i + 1) % REPLICAS + 1);
		free(client);
	}
	check_cost(scene, store, CLIENTS % REPLICAS + 1, entries);
	store_free(store);
}

static void
fresh_names(Scene *scene)
{
	Store *store = store_new(STORE_DOTS, 1);

	step(scene, "dots: a replica that has a fresh name after each of %d restarts", RESTARTS);
	put_seen(scene, store, 1, NULL, "first");
	for (int i = 1; i <= RESTARTS; i++)
	{
		char *name = string_format("n1#%d", i + 1);

		store_rename_replica(store, 1, name);
		put_seen(scene, store, 1, NULL, name);
		free(name);
	}
	check_cost(scene, store, 1, RESTARTS + 1);
	store_free(store);
}

static void
run(Scene *scene)
{
	short_lived(scene, STORE_CLIENT_CLOCKS, "client clocks", CLIENTS);
	short_lived(scene, STORE_SERVER_CLOCKS, "server clocks", REPLICAS);
	short_lived(scene, STORE_DOTS, "dots", REPLICAS);
	fresh_names(scene);
}

const Scenario scenario_clocks_growth = {
	.suite = "clocks",
	.id = "clocks/growth",
	.title = "what a clock costs, by who has an entry in it",
	.claim = "a clock grows with those that are tracked: with every short-lived client, or with replicas only",
	.kind = "fixed order, negative control",
	.guarantee = "none: entries are counted",
	.observed = "entries and bytes of the clocks",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
