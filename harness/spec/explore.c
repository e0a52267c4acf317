#include "explore.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../rng.h"

#define COUNTED_MAX 1000000 /* orders with few preemptions are counted one by one */
#define NOBODY UINT8_MAX

/* The beginning of an interleaving: so many choices, then whatever comes. */
typedef struct Beginning
{
	int root; /* 0: without a fault; else the number of it */
	int length;
	struct Beginning *next;
	uint8_t choices[];
} Beginning;

/* A place where something was chosen. */
typedef struct
{
	uint8_t chosen;
	uint64_t others; /* might have been, and lead to interleavings that are to be run */
} Fork;

struct Walk
{
	int root;
	Beginning *beginning; /* NULL: a sample */
	Fork *forks;
	int length, capacity;
	uint8_t last; /* session that went last */
	uint64_t enabled_before;
	bool read_before; /* the last actor did a step that only reads */
	int preemptions;
	bool diverged;
	Rng rng;
	Explore *explore;
};

/* What a root does beside the sessions: one fault, or a pause and its resume. */
typedef struct
{
	const SpecStep *faults[2];
	int count;
} Root;

struct Explore
{
	const Spec *spec;
	SpecExploreKind kind;
	int number;
	uint64_t seed;
	Root *roots;
	int root_count;
	Beginning *stack;
	uint64_t samples_taken;
	int under_way;
	bool stopped;
	ExploreCount count;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
};


/* --- how many --- */

typedef struct
{
	int left[TRIAL_ACTORS_MAX + 1];
	int actors;
	int sessions;
	uint64_t counted;
} Counting;

/* Orders in which no session gives way more than `budget` times. */
static void
count_bounded(Counting *counting, int last, int budget)
{
	bool any = false;

	for (int i = 0; i < counting->actors && counting->counted < COUNTED_MAX; i++)
	{
		bool preempts = last >= 0 && i != last && i < counting->sessions && counting->left[last] > 0;

		if (counting->left[i] == 0)
		{
			continue;
		}
		any = true;
		if (!preempts || budget > 0)
		{
			counting->left[i]--;
			count_bounded(counting, i < counting->sessions ? i : last, budget - (preempts ? 1 : 0));
			counting->left[i]++;
		}
	}
	counting->counted += any ? 0 : 1;
}

static uint64_t
multiply(uint64_t one, uint64_t other)
{
	unsigned __int128 product = (unsigned __int128) one * other;

	return product >= UINT64_MAX ? UINT64_MAX : (uint64_t) product;
}

static uint64_t
add(uint64_t one, uint64_t other)
{
	return one > UINT64_MAX - other ? UINT64_MAX : one + other;
}

/* All orders of what is left: a product of binomials, built up so that every division comes out even. */
static uint64_t
count_orders(const int *left, int actors)
{
	unsigned __int128 product = 1;
	int places = 0;

	for (int i = 0; i < actors; i++)
	{
		for (int k = 1; k <= left[i]; k++)
		{
			product = product * (unsigned) ++places / (unsigned) k;
			if (product >= UINT64_MAX)
			{
				return UINT64_MAX;
			}
		}
	}
	return (uint64_t) product;
}

static uint64_t
count_root(Explore *explore, const Root *root)
{
	Counting counting = {.sessions = explore->spec->session_count, .actors = explore->spec->session_count + 1};

	for (int i = 0; i < counting.sessions; i++)
	{
		counting.left[i] = explore->spec->sessions[i]->step_count;
	}
	counting.left[counting.sessions] = root->count;
	if (explore->kind == EXPLORE_BOUND)
	{
		count_bounded(&counting, -1, explore->number);
		explore->count.cut = explore->count.cut || counting.counted >= COUNTED_MAX;
		return counting.counted;
	}
	return count_orders(counting.left, counting.actors);
}

static void
plan(Explore *explore)
{
	for (int i = 0; i < explore->root_count; i++)
	{
		uint64_t orders =
			explore->kind == EXPLORE_SAMPLE ? (uint64_t) explore->number : count_root(explore, &explore->roots[i]);

		explore->count.planned = add(explore->count.planned, orders);
	}
}


/* --- what is left to run --- */

static void
push(Explore *explore, Beginning *beginning)
{
	beginning->next = explore->stack;
	explore->stack = beginning;
}

static void
add_roots(Explore *explore)
{
	const Spec *spec = explore->spec;

	explore->roots = memory_get(sizeof(Root) * ((size_t) spec->fault_count + 1));
	explore->root_count = 1;
	for (int i = 0; spec->explore.faults && i < spec->fault_count; i++)
	{
		Root *root = &explore->roots[explore->root_count];

		if (spec->faults[i]->fault == FAULT_RESUME)
		{
			continue;
		}
		*root = (Root){.faults = {spec->faults[i]}, .count = 1};
		for (int k = 0; spec->faults[i]->fault == FAULT_PAUSE && root->count == 1 && k < spec->fault_count; k++)
		{
			if (spec->faults[k]->fault == FAULT_RESUME && spec->faults[k]->session == spec->faults[i]->session)
			{
				root->faults[root->count++] = spec->faults[k];
			}
		}
		explore->root_count++;
	}
}

Explore *
explore_new(const Spec *spec, uint64_t seed)
{
	Explore *explore = memory_get(sizeof(*explore));

	*explore = (Explore){.spec = spec,
						 .kind = spec->explore.kind == EXPLORE_NONE ? EXPLORE_ALL : spec->explore.kind,
						 .number = spec->explore.number,
						 .seed = seed,
						 .mutex = PTHREAD_MUTEX_INITIALIZER,
						 .changed = PTHREAD_COND_INITIALIZER};
	add_roots(explore);
	plan(explore);
	for (int i = explore->root_count - 1; i >= 0 && explore->kind != EXPLORE_SAMPLE; i--)
	{
		Beginning *beginning = memory_get(sizeof(*beginning));

		beginning->root = i;
		push(explore, beginning);
	}
	return explore;
}

void
explore_free(Explore *explore)
{
	while (explore != NULL && explore->stack != NULL)
	{
		Beginning *beginning = explore->stack;

		explore->stack = beginning->next;
		free(beginning);
	}
	if (explore != NULL)
	{
		pthread_mutex_destroy(&explore->mutex);
		pthread_cond_destroy(&explore->changed);
		free(explore->roots);
	}
	free(explore);
}

Walk *
walk_new(void)
{
	return memory_get(sizeof(Walk));
}

void
walk_free(Walk *walk)
{
	if (walk != NULL)
	{
		free(walk->beginning);
		free(walk->forks);
	}
	free(walk);
}

static bool
take_sample(Explore *explore, Walk *walk)
{
	uint64_t number = explore->samples_taken;

	if (number >= multiply((uint64_t) explore->number, (uint64_t) explore->root_count))
	{
		return false;
	}
	explore->samples_taken++;
	walk->root = (int) (number / (uint64_t) explore->number);
	walk->rng = rng_stream(explore->seed, number);
	return true;
}

static bool
take_beginning(Explore *explore, Walk *walk)
{
	while (explore->stack == NULL && explore->under_way > 0 && !explore->stopped)
	{
		pthread_cond_wait(&explore->changed, &explore->mutex);
	}
	if (explore->stack == NULL || explore->stopped)
	{
		return false;
	}
	walk->beginning = explore->stack;
	walk->root = walk->beginning->root;
	explore->stack = walk->beginning->next;
	return true;
}

bool
explore_take(Explore *explore, Walk *walk)
{
	Walk fresh = {.forks = walk->forks, .capacity = walk->capacity, .last = NOBODY, .explore = explore};
	bool taken;

	*walk = fresh;
	pthread_mutex_lock(&explore->mutex);
	taken = !explore->stopped &&
			(explore->kind == EXPLORE_SAMPLE ? take_sample(explore, walk) : take_beginning(explore, walk));
	explore->under_way += taken ? 1 : 0;
	pthread_mutex_unlock(&explore->mutex);
	return taken;
}

static void
leave_others(Explore *explore, const Walk *walk)
{
	for (int place = walk->beginning->length; place < walk->length; place++)
	{
		for (int actor = TRIAL_ACTORS_MAX; actor >= 0; actor--)
		{
			Beginning *other;

			if ((walk->forks[place].others >> actor & 1) == 0)
			{
				continue;
			}
			other = memory_get(sizeof(*other) + (size_t) place + 1);
			other->root = walk->root;
			other->length = place + 1;
			for (int i = 0; i < place; i++)
			{
				other->choices[i] = walk->forks[i].chosen;
			}
			other->choices[place] = (uint8_t) actor;
			push(explore, other);
		}
	}
}

void
explore_give(Explore *explore, Walk *walk)
{
	pthread_mutex_lock(&explore->mutex);
	if (walk->diverged)
	{
		explore->count.diverged++;
	}
	else if (walk->beginning != NULL)
	{
		leave_others(explore, walk);
	}
	explore->under_way--;
	pthread_cond_broadcast(&explore->changed);
	pthread_mutex_unlock(&explore->mutex);
	free(walk->beginning);
	walk->beginning = NULL;
}

void
explore_stop(Explore *explore)
{
	pthread_mutex_lock(&explore->mutex);
	explore->stopped = true;
	pthread_cond_broadcast(&explore->changed);
	pthread_mutex_unlock(&explore->mutex);
}

ExploreCount
explore_count(Explore *explore)
{
	ExploreCount count;

	pthread_mutex_lock(&explore->mutex);
	count = explore->count;
	pthread_mutex_unlock(&explore->mutex);
	return count;
}


/* --- choosing --- */

static const SpecStep *
next_step(const Walk *walk, const Trial *trial, int actor)
{
	const Spec *spec = walk->explore->spec;

	return actor < spec->session_count ? spec->sessions[actor]->steps[trial_record(trial)->parts[actor].next] : NULL;
}

static bool
reads(const Walk *walk, const Trial *trial, int actor)
{
	const SpecStep *step = next_step(walk, trial, actor);

	return step != NULL && step->reads;
}

/* Orders below this choice, if nobody blocks, are the same as others. */
static void
skip(Walk *walk, const Trial *trial, int actor)
{
	int left[TRIAL_ACTORS_MAX + 1];
	int actors = walk->explore->spec->session_count + 1;
	uint64_t orders;

	for (int i = 0; i < actors; i++)
	{
		left[i] = trial_left(trial, i) - (i == actor ? 1 : 0);
	}
	orders = count_orders(left, actors);
	pthread_mutex_lock(&walk->explore->mutex);
	walk->explore->count.skipped = add(walk->explore->count.skipped, orders);
	pthread_mutex_unlock(&walk->explore->mutex);
}

/* A read right after a read of a session that comes later in the file: the two in the other order are run. */
static uint64_t
without_same(Walk *walk, const Trial *trial, uint64_t enabled)
{
	uint64_t allowed = enabled;

	for (int i = 0; walk->read_before && i < walk->last; i++)
	{
		if ((enabled & walk->enabled_before) >> i & 1 && reads(walk, trial, i))
		{
			allowed &= ~(UINT64_C(1) << i);
			skip(walk, trial, i);
		}
	}
	return allowed;
}

static uint64_t
find_allowed(Walk *walk, const Trial *trial, uint64_t enabled)
{
	const Explore *explore = walk->explore;
	uint64_t last = walk->last == NOBODY ? 0 : UINT64_C(1) << walk->last & enabled;
	uint64_t fault = UINT64_C(1) << explore->spec->session_count & enabled;

	if (explore->kind == EXPLORE_BOUND)
	{
		return last != 0 && walk->preemptions >= explore->number ? last | fault : enabled;
	}
	return without_same(walk, trial, enabled);
}

/* Each with as many chances as there are orders behind it, if nobody blocks. */
static int
draw(Walk *walk, const Trial *trial, uint64_t enabled)
{
	int actors = walk->explore->spec->session_count + 1;
	uint64_t all = 0;
	uint64_t at;

	for (int i = 0; i < actors; i++)
	{
		all += enabled >> i & 1 ? (uint64_t) trial_left(trial, i) : 0;
	}
	at = rng_below(&walk->rng, all);
	for (int i = 0; i < actors; i++)
	{
		uint64_t left = enabled >> i & 1 ? (uint64_t) trial_left(trial, i) : 0;

		if (at < left)
		{
			return i;
		}
		at -= left;
	}
	return 0;
}

/* Who went last goes on, if it may: that is the order with the fewest preemptions. */
static int
choose_first(const Walk *walk, uint64_t allowed)
{
	int actor = 0;

	if (walk->last != NOBODY && allowed >> walk->last & 1)
	{
		return walk->last;
	}
	while ((allowed >> actor & 1) == 0)
	{
		actor++;
	}
	return actor;
}

static void
step_on(Walk *walk, const Trial *trial, int actor, uint64_t enabled, uint64_t others)
{
	bool session = actor < walk->explore->spec->session_count;

	if (walk->length == walk->capacity)
	{
		walk->capacity = walk->capacity * 2 + 32;
		walk->forks = memory_grow(walk->forks, sizeof(Fork) * (size_t) walk->capacity);
	}
	walk->forks[walk->length++] = (Fork){.chosen = (uint8_t) actor, .others = others};
	if (session && walk->last != NOBODY && walk->last != actor && enabled >> walk->last & 1)
	{
		walk->preemptions++;
	}
	walk->read_before = reads(walk, trial, actor);
	walk->enabled_before = enabled;
	walk->last = session ? (uint8_t) actor : walk->last;
}

static int
choose(void *context, const Trial *trial, uint64_t enabled)
{
	Walk *walk = context;
	uint64_t allowed;
	int actor;

	if (walk->beginning == NULL)
	{
		actor = draw(walk, trial, enabled);
		step_on(walk, trial, actor, enabled, 0);
		return actor;
	}
	if (walk->length < walk->beginning->length)
	{
		actor = walk->beginning->choices[walk->length];
		walk->diverged = walk->diverged || (enabled >> actor & 1) == 0;
		actor = walk->diverged ? choose_first(walk, enabled) : actor;
		step_on(walk, trial, actor, enabled, 0);
		return actor;
	}
	allowed = find_allowed(walk, trial, enabled);
	if (allowed == 0)
	{
		return -1;
	}
	actor = choose_first(walk, allowed);
	step_on(walk, trial, actor, enabled, allowed & ~(UINT64_C(1) << actor));
	return actor;
}

TrialEnd
explore_run(Explore *explore, Walk *walk, Trial *trial, bool (*after)(void *context, Trial *trial), void *context)
{
	const Root *root = &explore->roots[walk->root];
	TrialPilot pilot = {.context = walk, .choose = choose, .after = after, .after_context = context};

	return trial_explore(trial, root->faults, root->count, &pilot);
}


/* --- one order again --- */

typedef struct
{
	const char *rest;
	const SpecStep *faults[64];
	int fault_count, fault_next;
} Replay;

/* Names may have blanks in them: the longest that fits is meant; a word where none does. */
static size_t
word_length(const Spec *spec, const char *rest)
{
	size_t longest = 0;

	for (int i = 0; i < spec->step_count + spec->fault_count; i++)
	{
		const SpecStep *step = i < spec->step_count ? spec->steps[i] : spec->faults[i - spec->step_count];
		size_t length = strlen(step->name);

		if (length > longest && strncmp(rest, step->name, length) == 0 && (rest[length] == ' ' || rest[length] == '\0'))
		{
			longest = length;
		}
	}
	return longest > 0 ? longest : strcspn(rest, " ");
}

static bool
is_word(const char *rest, size_t length, const char *name)
{
	return strlen(name) == length && strncmp(rest, name, length) == 0;
}

static int
replay_actor(const Replay *replay, const Trial *trial, uint64_t enabled)
{
	const Spec *spec = trial_spec(trial);
	size_t length = word_length(spec, replay->rest);

	for (int i = 0; i <= spec->session_count; i++)
	{
		const SpecStep *step;

		if ((enabled >> i & 1) == 0)
		{
			continue;
		}
		step = i < spec->session_count ? spec->sessions[i]->steps[trial_record(trial)->parts[i].next]
									   : replay->faults[replay->fault_next];
		if (is_word(replay->rest, length, step->name))
		{
			return i;
		}
	}
	return -1;
}

static int
choose_again(void *context, const Trial *trial, uint64_t enabled)
{
	Replay *replay = context;
	int actor = 0;

	if (*replay->rest == '\0')
	{
		while ((enabled >> actor & 1) == 0)
		{
			actor++;
		}
		return actor;
	}
	actor = replay_actor(replay, trial, enabled);
	if (actor < 0)
	{
		return -1;
	}
	replay->fault_next += actor == trial_spec(trial)->session_count ? 1 : 0;
	replay->rest += word_length(trial_spec(trial), replay->rest);
	replay->rest += strspn(replay->rest, " ");
	return actor;
}

static void
find_faults(Replay *replay, const Spec *spec)
{
	for (const char *rest = replay->rest; *rest != '\0'; rest += strspn(rest, " "))
	{
		size_t length = word_length(spec, rest);

		for (int i = 0; i < spec->fault_count && replay->fault_count < (int) LENGTH_OF(replay->faults); i++)
		{
			if (is_word(rest, length, spec->faults[i]->name))
			{
				replay->faults[replay->fault_count++] = spec->faults[i];
			}
		}
		rest += length;
	}
}

TrialEnd
explore_replay(Trial *trial, const char *order, bool (*after)(void *context, Trial *trial), void *context, Text *why)
{
	Replay replay = {.rest = order + strspn(order, " ")};
	TrialPilot pilot = {.context = &replay, .choose = choose_again, .after = after, .after_context = context};
	TrialEnd end;

	find_faults(&replay, trial_spec(trial));
	end = trial_explore(trial, replay.faults, replay.fault_count, &pilot);
	if (end == TRIAL_GIVEN_UP || (end == TRIAL_DONE && *replay.rest != '\0'))
	{
		text_append(why, "%.*s cannot be next after: %s", (int) word_length(trial_spec(trial), replay.rest),
					replay.rest, text_get(&trial_record(trial)->order));
	}
	return end;
}
