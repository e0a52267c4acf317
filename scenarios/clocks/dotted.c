/*
 * clocks/dotted  random histories of a store, and the conflicts that there truly were
 *
 * Claim      With a dot for each value a store keeps exactly the values that no other has seen: no conflict is lost, none invented.
 *            One clock for all siblings loses none, and invents many. Client clocks are exact, at the price of their size.
 *            Drop a slot, and dots err, too.
 * Method     300 seeded histories of 120 steps: five clients read, write with what they last read or without, three replicas give
 *            one another what they have. The truth is kept as sets of writes, along readings and exchanges, without a clock.
 *            Values are held against it after every step. First the smallest example of a dropped slot.
 * Expect     Dots: 0 lost, 0 invented, of 36,000 states. Server clocks: 0 lost, thousands invented. Client clocks: 0 and 0, and
 *            more entries. With slots dropped: both lost and invented.
 * Not shown  Deletion of a key; exchanges of part of what a replica has (L32).
 */
#include "lab.h"

#include <inttypes.h>
#include <stdlib.h>

enum
{
	HISTORIES = 300,
	STEPS = 120,
	REPLICAS = 3,
	CLIENTS = 5,
	WORDS = 2 /* of bits: a write for each step at most */
};

typedef struct
{
	uint64_t bits[WORDS];
} Writes;

typedef struct
{
	StoreClient client;
	VClock context;
	bool reads;  /* it has a context */
	Writes seen; /* the truth about that */
} Client;

typedef struct
{
	StoreScheme scheme;
	bool drops; /* slots, now and then */
	Store *store;
	Client clients[CLIENTS];
	Writes at[REPLICAS]; /* the writes that have reached a replica */
	Writes past[STEPS];  /* of a write: those that it had seen, and what these had */
	int written;
} World;

typedef struct
{
	int64_t states;
	int64_t conflicts;   /* states that truly have siblings */
	int64_t lost;        /* states in which a value is missing */
	int64_t invented;    /* states with a value that another had replaced */
	int64_t equal;       /* exchanges of different values under equal clocks */
	int64_t contradicts; /* exchanges that were refused */
	int64_t entries;     /* the most in the clocks of a replica */
} Tally;


/* --- the truth --- */

static void
add(Writes *writes, const Writes *more)
{
	for (int i = 0; i < WORDS; i++)
	{
		writes->bits[i] |= more->bits[i];
	}
}

static void
add_write(Writes *writes, int write)
{
	writes->bits[write / 64] |= UINT64_C(1) << (write % 64);
}

static bool
has_write(const Writes *writes, int write)
{
	return (writes->bits[write / 64] >> (write % 64) & 1) != 0;
}

/* Those that none of the others had seen. */
static Writes
true_siblings(const World *world, const Writes *at)
{
	Writes siblings = *at;
	Writes replaced = {0};

	for (int i = 0; i < world->written; i++)
	{
		if (has_write(at, i))
		{
			add(&replaced, &world->past[i]);
		}
	}
	for (int i = 0; i < WORDS; i++)
	{
		siblings.bits[i] &= ~replaced.bits[i];
	}
	return siblings;
}

static Writes
values_as_writes(const StoreReading *reading)
{
	Writes writes = {0};

	for (int i = 0; i < reading->count; i++)
	{
		add_write(&writes, atoi(reading->values[i]));
	}
	return writes;
}

static bool
has_more(const Writes *a, const Writes *b)
{
	bool more = false;

	for (int i = 0; i < WORDS; i++)
	{
		more = more || (a->bits[i] & ~b->bits[i]) != 0;
	}
	return more;
}

static void
judge(const World *world, int replica, Tally *tally)
{
	StoreReading reading = store_read(world->store, replica + 1, STORE_KEY);
	Writes truth = true_siblings(world, &world->at[replica]);
	Writes told = values_as_writes(&reading);
	int64_t entries = (int64_t) store_clock_entries(world->store, replica + 1, STORE_KEY);
	int siblings = 0;

	for (int i = 0; i < WORDS; i++)
	{
		siblings += __builtin_popcountll(truth.bits[i]);
	}
	tally->states++;
	tally->conflicts += siblings > 1;
	tally->lost += has_more(&truth, &told);
	tally->invented += has_more(&told, &truth);
	tally->entries = tally->entries < entries ? entries : tally->entries;
	store_reading_free(&reading);
}


/* --- steps --- */

/* Under client clocks a client remembers all that it has read or written: its counter says that it has. */
static void
client_reads(World *world, Client *client, int replica)
{
	StoreReading reading = store_read(world->store, replica + 1, STORE_KEY);

	if (world->scheme != STORE_CLIENT_CLOCKS)
	{
		vclock_free(&client->context);
		client->seen = (Writes){0};
	}
	vclock_absorb(&client->context, &reading.context);
	client->reads = true;
	add(&client->seen, &world->at[replica]);
	for (int i = 0; i < world->written; i++)
	{
		if (has_write(&world->at[replica], i))
		{
			add(&client->seen, &world->past[i]); /* not all of it has reached this replica */
		}
	}
	store_reading_free(&reading);
}

static bool
client_writes(World *world, Rng *rng, Client *client, int replica, Text *why)
{
	bool blind = world->scheme != STORE_CLIENT_CLOCKS && (!client->reads || rng_below(rng, 6) == 0);
	int write = world->written++;
	char value[16];

	snprintf(value, sizeof(value), "%d", write);
	if (!blind)
	{
		world->past[write] = client->seen;
	}
	add_write(&world->at[replica], write);
	if (world->scheme == STORE_CLIENT_CLOCKS)
	{
		add_write(&client->seen, write);
	}
	return store_write(world->store, replica + 1, STORE_KEY, &client->client, blind ? NULL : &client->context, value,
					   why);
}

static void
exchange(World *world, int from, int to, Tally *tally)
{
	StoreReading given = store_read(world->store, from + 1, STORE_KEY);
	StoreReading had = store_read(world->store, to + 1, STORE_KEY);
	Writes values = values_as_writes(&given);
	Writes others = values_as_writes(&had);
	Text why = {0};

	tally->equal += vclock_compare(&given.context, &had.context) == VCLOCK_EQUAL &&
					(has_more(&values, &others) || has_more(&others, &values));
	tally->contradicts += !store_replicate(world->store, from + 1, to + 1, &why);
	add(&world->at[to], &world->at[from]);
	text_free(&why);
	store_reading_free(&given);
	store_reading_free(&had);
}

static void
take_step(Scene *scene, World *world, Rng *rng, Tally *tally)
{
	Client *client = &world->clients[rng_below(rng, CLIENTS)];
	int replica = (int) rng_below(rng, REPLICAS);
	uint64_t kind = rng_below(rng, 10);
	Text why = {0};

	if (kind < 3)
	{
		client_reads(world, client, replica);
	}
	else if (kind < 7 && !client_writes(world, rng, client, replica, &why))
	{
		scene_broken(scene, "a write: %s", text_get(&why));
	}
	else if (kind >= 7)
	{
		exchange(world, ((int) rng_below(rng, REPLICAS - 1) + 1 + replica) % REPLICAS, replica, tally);
	}
	if (world->drops && rng_below(rng, 20) == 0)
	{
		store_drop_slot(world->store, replica + 1, STORE_KEY, "n1");
	}
	judge(world, replica, tally);
}

static Tally
run_histories(Scene *scene, StoreScheme scheme, bool drops)
{
	static const char *const names[CLIENTS] = {"ann", "bob", "cy", "dee", "eve"};
	Tally tally = {0};

	for (int i = 0; i < HISTORIES; i++)
	{
		Rng rng = rng_stream(scene_seed(scene), (uint64_t) i);
		World world = {.scheme = scheme, .drops = drops, .store = store_new(scheme, REPLICAS)};

		for (int k = 0; k < CLIENTS; k++)
		{
			world.clients[k].client.name = names[k];
		}
		for (int k = 0; k < STEPS; k++)
		{
			take_step(scene, &world, &rng, &tally);
		}
		for (int k = 0; k < CLIENTS; k++)
		{
			vclock_free(&world.clients[k].context);
		}
		store_free(world.store);
	}
	return tally;
}

static Tally
tell(Scene *scene, const char *name, StoreScheme scheme, bool drops)
{
	Tally tally;

	step(scene, "%s: %d histories", name, HISTORIES);
	tally = run_histories(scene, scheme, drops);
	note(scene,
		 "%" PRId64 " states, %" PRId64 " with siblings: a value is lost in %" PRId64 ", one invented in %" PRId64
		 "; at most %" PRId64 " entries in a replica's clocks",
		 tally.states, tally.conflicts, tally.lost, tally.invented, tally.entries);
	note(scene, "%" PRId64 " exchanges of different values under equal clocks, %" PRId64 " refused", tally.equal,
		 tally.contradicts);
	CHECK_EQ(scene, tally.states, HISTORIES * STEPS, "states held against the truth");
	check_at_least(scene, tally.conflicts, HISTORIES * STEPS / 20, "states that truly have siblings");
	return tally;
}


/* --- a slot is dropped --- */

static void
dropped_slot(Scene *scene)
{
	Store *store = store_new(STORE_DOTS, 2);
	Text why = {0};

	step(scene, "x2 has replaced x on n1, which then drops its own slot");
	put_seen(scene, store, 1, NULL, "x");
	replicate(scene, store, 1, 2);
	put_seen(scene, store, 1, NULL, "x2");
	store_drop_slot(store, 1, STORE_KEY, "n1");
	replicate(scene, store, 1, 2);
	check_values(scene, store, 2, "x x2", "the ancestor stays beside it: a conflict that there is not");
	put_seen(scene, store, 1, NULL, "x3");
	check_text(scene, store_replicate(store, 1, 2, &why) ? "done" : text_get(&why),
			   "(n1, 1) stands for \"x\" and for \"x3\"", "the next event of n1 has a number that was given out");
	put_seen(scene, store, 2, NULL, "y");
	replicate(scene, store, 1, 2);
	check_values(scene, store, 2, "x2 x2 y",
				 "that number's value is replaced: x3 is swallowed, and x2, which no clock covers, comes again");
	text_free(&why);
	store_free(store);
}

static void
run(Scene *scene)
{
	Tally dots;
	Tally server;
	Tally client;
	Tally dropped;

	dropped_slot(scene);
	dots = tell(scene, "dots", STORE_DOTS, false);
	CHECK_EQ(scene, dots.lost, 0, "dots: states in which a value is lost");
	CHECK_EQ(scene, dots.invented, 0, "dots: states in which a value is invented");
	CHECK_EQ(scene, dots.equal + dots.contradicts, 0, "dots: equal clocks over different values, exchanges refused");
	server = tell(scene, "server clocks", STORE_SERVER_CLOCKS, false);
	CHECK_EQ(scene, server.lost, 0, "server clocks: states in which a value is lost");
	check_at_least(scene, server.invented, 1000, "server clocks: states in which a value is invented");
	CHECK_EQ(scene, server.contradicts, 0, "server clocks: exchanges refused");
	client = tell(scene, "client clocks", STORE_CLIENT_CLOCKS, false);
	CHECK_EQ(scene, client.lost + client.invented, 0, "client clocks: states in which a value is lost or invented");
	check_at_least(scene, client.entries, dots.entries + 1, "client clocks: entries, more than by dots");
	dropped = tell(scene, "dots, of which n1's is dropped now and then", STORE_DOTS, true);
	check_at_least(scene, dropped.lost, 100, "dropped slots: states in which a value is lost");
	check_at_least(scene, dropped.invented, 100, "dropped slots: states in which a value is invented");
}

const Scenario scenario_clocks_dotted = {
	.suite = "clocks",
	.id = "clocks/dotted",
	.title = "random histories of a store, and the conflicts that there truly were",
	.claim =
		"dots neither lose nor invent a conflict; one clock for all siblings invents many; a dropped slot does both",
	.kind = "seeded histories, negative control",
	.guarantee = "the values kept are those that no other has seen",
	.observed = "values of a replica after each step, beside what is known to have been written and read",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 60000,
	.run = run,
};
