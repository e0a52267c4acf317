/*
 * clocks/payloads  equal clocks, and what lies under them
 *
 * Claim      That clocks are equal says that the same is known, not that the same was written: they are no checksum. One clock
 *            for all siblings can be equal over different siblings, with every name used rightly. Where each value has the one
 *            event that wrote it, the same event with another value is found, and is an error.
 * Method     Two values under one clock; a store of three replicas that merges in another order on each; the same by dots.
 * Expect     Compared as clocks they are equal. Server clocks: n2 and n3 have the clock [n1:2, n2:1], and two and three values. By dots
 *            both have the same two.
 * Not shown  Values that differ by a broken disk: no clock is a checksum (L31).
 */
#include "lab.h"

#include <string.h>

static void
two_values(Scene *scene)
{
	const char *left = "{\"total\": 10}";
	const char *right = "{\"total\": 11}";

	step(scene, "two files that carry the same clock");
	check_order(scene, "[A:2, B:1]", "[A:2, B:1]", "equal");
	check_text(scene, left, left, "the first");
	CHECK(scene, strcmp(left, right) != 0, "the second, %s, is another: compare has not seen either", right);
}

static void
check_context(Scene *scene, const Store *store, int replica, const char *expected)
{
	StoreReading reading = store_read(store, replica, STORE_KEY);

	check_clock(scene, &reading.context, expected, "the clock that goes with them");
	store_reading_free(&reading);
}

/* n1 and n2 write without having read; n3 has both before n1 replaces its own, n2 only afterwards. */
static Store *
merged_in_two_orders(Scene *scene, StoreScheme scheme)
{
	Store *store = store_new(scheme, 3);

	put_blind(scene, store, 1, NULL, "x");
	put_blind(scene, store, 2, NULL, "y");
	replicate(scene, store, 1, 3);
	replicate(scene, store, 2, 3);
	put_seen(scene, store, 1, NULL, "x2");
	replicate(scene, store, 1, 3);
	replicate(scene, store, 1, 2);
	return store;
}

static void
run(Scene *scene)
{
	Store *store;

	two_values(scene);
	step(scene, "server clocks: x2 has replaced x, and is merged on n3 with x and y, on n2 with y");
	store = merged_in_two_orders(scene, STORE_SERVER_CLOCKS);
	check_values(scene, store, 2, "x2 y", "its values");
	check_context(scene, store, 2, "[n1:2, n2:1]");
	check_values(scene, store, 3, "x x2 y", "its values");
	check_context(scene, store, 3, "[n1:2, n2:1]");
	store_free(store);
	step(scene, "dots: the same");
	store = merged_in_two_orders(scene, STORE_DOTS);
	check_values(scene, store, 2, "x2 y", "its values");
	check_context(scene, store, 2, "[n1:2, n2:1]");
	check_values(scene, store, 3, "x2 y", "its values");
	check_context(scene, store, 3, "[n1:2, n2:1]");
	store_free(store);
}

const Scenario scenario_clocks_payloads = {
	.suite = "clocks",
	.id = "clocks/payloads",
	.title = "equal clocks, and what lies under them",
	.claim = "equal clocks say that the same is known, not that the same was written",
	.kind = "fixed order, negative control",
	.guarantee = "none without an event for each value",
	.observed = "values beside the clocks that go with them",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
