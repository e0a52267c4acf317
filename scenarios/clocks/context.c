/*
 * clocks/context  a write says what it replaces, or does not
 *
 * Claim      A write that carries the context of a reading replaces what that reading saw, and no more. A write without one may
 *            leave a sibling: that depends on how the store keeps versions, and on what it has.
 * Method     The same writes in a store by server clocks, one by client clocks and one by dots; two clients, one replica.
 * Expect     With context: one value. Without, as the first write of a key: one value. Without, over the value of another
 *            client: two, in all three. Over a value of its own: two by server clocks and by dots, one by client clocks.
 *            With the context of one of two siblings: by dots and client clocks the other stays, by server clocks both do.
 * Not shown  A client that sends along a context which it made up.
 */
#include "lab.h"

typedef struct
{
	StoreScheme scheme;
	const char *name;
	const char *over_own;     /* values after a write without context over the client's own */
	const char *over_sibling; /* values after a write that has seen one of two */
} Row;

static void
with_context(Scene *scene, const Row *row)
{
	Store *store = store_new(row->scheme, 1);
	StoreClient ann = {.name = "ann"};
	StoreClient bob = {.name = "bob"};

	put_blind(scene, store, 1, &ann, "a1");
	check_values(scene, store, 1, "a1", "the first write of a key, without context");
	put_seen(scene, store, 1, &bob, "b1");
	check_values(scene, store, 1, "b1", "a write with the context of a reading");
	put_blind(scene, store, 1, &ann, "a2");
	check_values(scene, store, 1, "a2 b1", "a write without context, over another client's value");
	put_seen(scene, store, 1, &bob, "b2");
	check_values(scene, store, 1, "b2", "a write that has read both");
	store_free(store);
}

static void
over_own(Scene *scene, const Row *row)
{
	Store *store = store_new(row->scheme, 1);
	StoreClient ann = {.name = "ann"};

	put_blind(scene, store, 1, &ann, "a1");
	put_blind(scene, store, 1, &ann, "a2");
	check_values(scene, store, 1, row->over_own, "a write without context, over a value of its own");
	store_free(store);
}

static void
over_one_of_two(Scene *scene, const Row *row)
{
	Store *store = store_new(row->scheme, 1);
	StoreClient ann = {.name = "ann"};
	StoreClient bob = {.name = "bob"};
	StoreReading seen;

	put_blind(scene, store, 1, &ann, "a1");
	seen = store_read(store, 1, STORE_KEY);
	put_blind(scene, store, 1, &bob, "b1");
	put_with(scene, store, 1, &ann, &seen.context, "a2");
	check_values(scene, store, 1, row->over_sibling, "a write that has read one of two siblings");
	store_reading_free(&seen);
	store_free(store);
}

static void
run(Scene *scene)
{
	static const Row rows[] = {
		{STORE_SERVER_CLOCKS, "server clocks", "a1 a2", "a1 a2 b1"},
		{STORE_CLIENT_CLOCKS, "client clocks", "a2", "a2 b1"},
		{STORE_DOTS, "dots", "a1 a2", "a2 b1"},
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		step(scene, "%s", rows[i].name);
		with_context(scene, &rows[i]);
		over_own(scene, &rows[i]);
		over_one_of_two(scene, &rows[i]);
	}
}

const Scenario scenario_clocks_context = {
	.suite = "clocks",
	.id = "clocks/context",
	.title = "a write says what it replaces, or does not",
	.claim = "with the context of a reading a write replaces what that saw; without, it may leave a sibling",
	.kind = "fixed order",
	.guarantee = "a context replaces what it has seen, and no more",
	.observed = "values after each write, by three ways to keep versions",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
