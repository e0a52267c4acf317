/*
 * clocks/reused  a name is used again, after a loss or by two at once
 *
 * Claim      Who counts from one again under its old name makes new events look like old ones, and they are swallowed. Under a
 *            fresh name nothing is lost. Two who count under one name give two values one clock, which is an error.
 * Method     A replica that has written three times loses its disk and writes again, under its name and under a fresh one, in a store
 *            by server clocks and one by dots. A client starts from zero, with a context and without. Two replicas have one name.
 * Expect     The new write is before what is stored: gone from both replicas after the exchange. Under the fresh name it is kept,
 *            as a sibling. The client is swallowed without its context and safe with it. Two owners are refused, in all three.
 * Not shown  How a participant makes its counter outlive a crash, or learns a fresh name (L32).
 */
#include "lab.h"

#include <stdlib.h>

static void
in_clocks(Scene *scene)
{
	VClock stored = clock_of(scene, "[n1:3, n2:1]");
	VClock again = clock_of(scene, "[n1:1]");

	step(scene, "n1 had written three times, and begins again");
	check_order(scene, "[n1:1]", "[n1:3, n2:1]", "before");
	check_order(scene, "[\"n1#2\":1]", "[n1:3, n2:1]", "concurrent");
	notice_expect_errors(true);
	check_refused(scene, vclock_replace(&stored, &again), "[n1:3, n2:1] would shrink: it is after [n1:1]",
				  "the counter that begins again, put where the old one was kept");
	notice_expect_errors(false);
	vclock_free(&stored);
	vclock_free(&again);
}

static void
disk_lost(Scene *scene, StoreScheme scheme, const char *fresh)
{
	Store *store = store_new(scheme, 2);

	for (int i = 1; i <= 3; i++)
	{
		char *value = string_format("v%d", i);

		put_seen(scene, store, 1, NULL, value);
		free(value);
	}
	replicate(scene, store, 1, 2);
	replicate(scene, store, 2, 1);
	put_seen(scene, store, 2, NULL, "v4");
	store_lose_disk(store, 1);
	if (fresh != NULL)
	{
		store_rename_replica(store, 1, fresh);
	}
	put_seen(scene, store, 1, NULL, "after-the-loss");
	check_values(scene, store, 1, "after-the-loss", "before the exchange");
	replicate(scene, store, 1, 2);
	replicate(scene, store, 2, 1);
	check_values(scene, store, 1, fresh != NULL ? "after-the-loss v4" : "v4", "after the exchange");
	check_values(scene, store, 2, fresh != NULL ? "after-the-loss v4" : "v4", "after the exchange");
	store_free(store);
}

static void
client_restarted(Scene *scene)
{
	Store *store = store_new(STORE_CLIENT_CLOCKS, 1);
	StoreClient client = {.name = "C"};

	put_seen(scene, store, 1, &client, "v1");
	put_seen(scene, store, 1, &client, "v2");
	client.written = 0;
	put_seen(scene, store, 1, &client, "v3");
	check_values(scene, store, 1, "v3", "the client has read before it writes, and counts on from there");
	client.written = 0;
	put_blind(scene, store, 1, &client, "v4");
	check_values(scene, store, 1, "v3", "the client has not: its new write is old");
	store_free(store);
}

/* Both count under the name n1, each for itself. */
static void
two_owners(Scene *scene, StoreScheme scheme, const char *expected)
{
	Store *store = store_new(scheme, 2);
	StoreClient first = {.name = "n1"};
	StoreClient second = {.name = "n1"};
	Text why = {0};

	store_rename_replica(store, 2, "n1");
	put_seen(scene, store, 1, &first, "common");
	put_seen(scene, store, 2, &second, "common");
	put_seen(scene, store, 1, &first, "left");
	put_seen(scene, store, 2, &second, "right");
	check_text(scene, store_replicate(store, 1, 2, &why) ? "taken for the same" : text_get(&why), expected,
			   "what the exchange says");
	check_values(scene, store, 1, "left", "afterwards");
	check_values(scene, store, 2, "right", "afterwards, under the same clock");
	text_free(&why);
	store_free(store);
}

static void
run(Scene *scene)
{
	in_clocks(scene);
	step(scene, "server clocks: n1 loses its disk after three writes, and writes under its name");
	disk_lost(scene, STORE_SERVER_CLOCKS, NULL);
	step(scene, "server clocks: the same under a fresh name");
	disk_lost(scene, STORE_SERVER_CLOCKS, "n1#2");
	step(scene, "dots: n1 loses its disk after three writes, and writes under its name");
	disk_lost(scene, STORE_DOTS, NULL);
	step(scene, "dots: the same under a fresh name");
	disk_lost(scene, STORE_DOTS, "n1#2");
	step(scene, "client clocks: a client forgets how often it has written");
	client_restarted(scene);
	step(scene, "two owners of one name, by server clocks");
	two_owners(scene, STORE_SERVER_CLOCKS, "[n1:2] stands for \"right\" and for \"left\"");
	step(scene, "two owners of one name, by client clocks");
	two_owners(scene, STORE_CLIENT_CLOCKS, "[n1:2] stands for \"right\" and for \"left\"");
	step(scene, "two owners of one name, by dots");
	two_owners(scene, STORE_DOTS, "(n1, 2) stands for \"right\" and for \"left\"");
}

const Scenario scenario_clocks_reused = {
	.suite = "clocks",
	.id = "clocks/reused",
	.title = "a name is used again, after a loss or by two at once",
	.claim = "a counter that begins again under its name swallows writes; two owners of one name are an error",
	.kind = "fixed order, negative control",
	.guarantee = "a fresh name loses nothing; one event has one value",
	.observed = "values of the replicas after exchanges, what an exchange says",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
