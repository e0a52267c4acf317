/*
 * clocks/siblings  two clients take turns, nothing fails, and siblings pile up
 *
 * Claim      One clock for all siblings cannot say which of them a writer had seen: under it two clients that take turns add a
 *            sibling with every write. With a dot for each value a write replaces just what its client saw.
 * Method     One replica. X and Y write in turn, ten times in all, each with the context of what it last saw, which is what
 *            there was after its own write.
 * Expect     Server clocks: 1 2 3 4 5 6 7 8 9 10 values. Dots: 1 2 2 2 2 2 2 2 2 2. Client clocks: the same as dots.
 * Not shown  Clients that read before each write: they would have one value, under each of the three.
 */
#include "lab.h"

enum
{
	WRITES = 10
};

static void
take_turns(Scene *scene, StoreScheme scheme, const char *name, const char *expected)
{
	Store *store = store_new(scheme, 1);
	StoreClient clients[] = {{.name = "X"}, {.name = "Y"}};
	StoreReading seen[LENGTH_OF(clients)] = {0};
	Text counts = {0};

	step(scene, "%s", name);
	for (int i = 0; i < WRITES; i++)
	{
		int who = i % 2;
		char value[16];

		snprintf(value, sizeof(value), "%s%d", clients[who].name, i / 2 + 1);
		put_with(scene, store, 1, &clients[who], &seen[who].context, value);
		store_reading_free(&seen[who]);
		seen[who] = store_read(store, 1, STORE_KEY);
		text_append(&counts, i > 0 ? " %d" : "%d", seen[who].count);
		note(scene, "values after %s: %d", value, seen[who].count);
	}
	check_text(scene, text_get(&counts), expected, "values after each write");
	put_seen(scene, store, 1, &clients[0], "last");
	check_values(scene, store, 1, "last", "a write that has read all");
	text_free(&counts);
	store_reading_free(&seen[0]);
	store_reading_free(&seen[1]);
	store_free(store);
}

static void
run(Scene *scene)
{
	take_turns(scene, STORE_SERVER_CLOCKS, "server clocks", "1 2 3 4 5 6 7 8 9 10");
	take_turns(scene, STORE_DOTS, "dots", "1 2 2 2 2 2 2 2 2 2");
	take_turns(scene, STORE_CLIENT_CLOCKS, "client clocks", "1 2 2 2 2 2 2 2 2 2");
}

const Scenario scenario_clocks_siblings = {
	.suite = "clocks",
	.id = "clocks/siblings",
	.title = "two clients take turns, nothing fails, and siblings pile up",
	.claim = "under one clock for all siblings each write adds one; with a dot for each there are never more than two",
	.kind = "fixed order, negative control",
	.guarantee = "as many siblings as there are writes that did not see each other",
	.observed = "values after each write",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
