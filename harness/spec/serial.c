#include "serial.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PREPARED_SESSIONS_MAX 3 /* 6 orders, whether they are wanted or not */

/* A session's steps and what they answered. */
typedef struct
{
	int session;
	const SpecStep **steps;
	char **answers;
	int count, capacity;
} TestimonyPart;

struct Testimony
{
	const Spec *spec;
	TestimonyPart *parts; /* of the sessions in effect */
	int count;
	TestimonyPart *doubtful; /* of those that may be: as if it were so */
	int doubtful_count;
	Text state;
};

/* All orders of the same sessions with the same steps; an order is the testimony of its sessions, in that order. */
typedef struct OrderSet
{
	char *key;
	Testimony **orders;
	int count;
	bool making; /* they are being run */
	struct OrderSet *next;
} OrderSet;

struct Serials
{
	const Spec *spec;
	OrderSet *sets;
	pthread_mutex_t mutex;
	pthread_cond_t made;
};

/* Who runs orders that are not known yet. */
typedef struct
{
	Serials *serials;
	Trial *runner;
	Judge *judge;
	Text *why;
} Research;


/* --- testimonies --- */

Testimony *
testimony_new(const Spec *spec)
{
	Testimony *testimony = memory_get(sizeof(*testimony));

	testimony->spec = spec;
	testimony->parts = memory_get(sizeof(TestimonyPart) * ((size_t) spec->session_count + 1));
	testimony->doubtful = memory_get(sizeof(TestimonyPart) * ((size_t) spec->session_count + 1));
	return testimony;
}

static void
part_clear(TestimonyPart *part)
{
	for (int i = 0; i < part->count; i++)
	{
		free(part->answers[i]);
	}
	part->count = 0;
}

void
testimony_free(Testimony *testimony)
{
	if (testimony == NULL)
	{
		return;
	}
	for (int i = 0; i < testimony->spec->session_count; i++)
	{
		part_clear(&testimony->parts[i]);
		part_clear(&testimony->doubtful[i]);
		free(testimony->parts[i].steps);
		free(testimony->parts[i].answers);
		free(testimony->doubtful[i].steps);
		free(testimony->doubtful[i].answers);
	}
	text_free(&testimony->state);
	free(testimony->parts);
	free(testimony->doubtful);
	free(testimony);
}

static void
part_add(TestimonyPart *part, const SpecStep *step, const char *answer)
{
	if (part->count == part->capacity)
	{
		part->capacity = part->capacity * 2 + 8;
		part->steps = memory_grow(part->steps, sizeof(SpecStep *) * (size_t) part->capacity);
		part->answers = memory_grow(part->answers, sizeof(char *) * (size_t) part->capacity);
	}
	part->steps[part->count] = step;
	part->answers[part->count++] = string_copy(answer);
}

/* The deeds that are in effect, or from `doubtful` on may be; answers that nobody heard are NULL. */
static void
part_take(TestimonyPart *part, int session, const Part *from, int doubtful, bool all)
{
	part_clear(part);
	part->session = session;
	for (int i = 0; i < from->deed_count; i++)
	{
		const Deed *deed = &from->deeds[i];

		if (all || deed->in_effect || (doubtful >= 0 && i >= doubtful))
		{
			part_add(part, deed->step, deed->answered ? text_get(&deed->answer) : NULL);
		}
	}
}

static void
take_sessions(Testimony *testimony, const Trial *trial)
{
	const Record *record = trial_record(trial);

	testimony->count = testimony->doubtful_count = 0;
	for (int i = 0; i < testimony->spec->session_count; i++)
	{
		const Part *part = &record->parts[i];

		if (part_is_in_effect(part))
		{
			part_take(&testimony->parts[testimony->count++], i, part, -1, false);
		}
		if (part->doubtful >= 0)
		{
			part_take(&testimony->doubtful[testimony->doubtful_count++], i, part, part->doubtful, false);
		}
	}
}

void
testimony_take(Testimony *testimony, const Trial *trial, const char *state)
{
	take_sessions(testimony, trial);
	text_clear(&testimony->state);
	text_append(&testimony->state, "%s", state);
}


/* --- orders, run and remembered --- */

Serials *
serials_new(const Spec *spec)
{
	Serials *serials = memory_get(sizeof(*serials));

	*serials = (Serials){.spec = spec, .mutex = PTHREAD_MUTEX_INITIALIZER, .made = PTHREAD_COND_INITIALIZER};
	return serials;
}

void
serials_free(Serials *serials)
{
	while (serials != NULL && serials->sets != NULL)
	{
		OrderSet *set = serials->sets;

		serials->sets = set->next;
		for (int i = 0; i < set->count; i++)
		{
			testimony_free(set->orders[i]);
		}
		free(set->orders);
		free(set->key);
		free(set);
	}
	if (serials != NULL)
	{
		pthread_mutex_destroy(&serials->mutex);
		pthread_cond_destroy(&serials->made);
	}
	free(serials);
}

/* Run the parts in this order and keep what came of it. NULL: *end says why. */
static Testimony *
run_order(const Research *research, const TestimonyPart *const *parts, int count, TrialEnd *end)
{
	const Spec *spec = research->serials->spec;
	SerialPart serial[SERIAL_SESSIONS_MAX];
	Testimony *testimony = testimony_new(spec);
	Trial *runner = research->runner;
	const Record *record = trial_record(runner);
	bool done;

	for (int i = 0; i < count; i++)
	{
		serial[i] = (SerialPart){parts[i]->session, parts[i]->steps, parts[i]->count};
	}
	*end = trial_serial(runner, serial, count);
	done = *end == TRIAL_DONE && record->unknown.length == 0 && judge_observe(research->judge, &testimony->state);
	for (int i = 0; done && i < count; i++)
	{
		part_take(&testimony->parts[testimony->count++], parts[i]->session, &record->parts[parts[i]->session], -1,
				  true);
	}
	if (*end == TRIAL_STOPPED || !trial_end(runner))
	{
		*end = TRIAL_STOPPED;
		done = false;
		text_append(research->why, "%s", text_get(&record->trouble));
	}
	else if (!done)
	{
		const Text *unknown = *end == TRIAL_REFUSED ? &record->trouble : &record->unknown;

		*end = unknown->length > 0 ? TRIAL_REFUSED : TRIAL_STOPPED;
		text_append(research->why, "%s", text_get(unknown));
	}
	if (!done)
	{
		testimony_free(testimony);
		return NULL;
	}
	return testimony;
}

/* Every order of the parts from `place` on. */
static TrialEnd
run_orders(const Research *research, const TestimonyPart **parts, int count, int place, OrderSet *set)
{
	TrialEnd end = TRIAL_DONE;

	if (place == count)
	{
		set->orders = memory_grow(set->orders, sizeof(Testimony *) * ((size_t) set->count + 1));
		set->orders[set->count] = run_order(research, parts, count, &end);
		set->count += set->orders[set->count] != NULL ? 1 : 0;
		return end;
	}
	for (int i = place; end == TRIAL_DONE && i < count; i++)
	{
		const TestimonyPart *first = parts[i];

		memmove(&parts[place + 1], &parts[place], sizeof(*parts) * (size_t) (i - place));
		parts[place] = first;
		end = run_orders(research, parts, count, place + 1, set);
		memmove(&parts[place], &parts[place + 1], sizeof(*parts) * (size_t) (i - place));
		parts[i] = first;
	}
	return end;
}

static char *
key_of(const TestimonyPart *const *parts, int count)
{
	Text key = {0};

	text_append(&key, "%d", count);
	for (int i = 0; i < count; i++)
	{
		text_append(&key, "|%d", parts[i]->session);
		for (int k = 0; k < parts[i]->count; k++)
		{
			text_append(&key, "\n%s", parts[i]->steps[k]->name); /* no name has more than one line */
		}
	}
	return key.data;
}

static OrderSet *
find_set(const Serials *serials, const char *key)
{
	OrderSet *set = serials->sets;

	while (set != NULL && strcmp(set->key, key) != 0)
	{
		set = set->next;
	}
	return set;
}

/* The set of that key, once it is made; or a new one, which is this thread's to make. The key is taken over. */
static OrderSet *
take_set(Serials *serials, char *key, bool *make)
{
	OrderSet *set;

	pthread_mutex_lock(&serials->mutex);
	while ((set = find_set(serials, key)) != NULL && set->making)
	{
		pthread_cond_wait(&serials->made, &serials->mutex);
	}
	*make = set == NULL;
	if (set == NULL)
	{
		set = memory_get(sizeof(*set));
		*set = (OrderSet){.key = key, .making = true, .next = serials->sets};
		serials->sets = set;
		key = NULL;
	}
	pthread_mutex_unlock(&serials->mutex);
	free(key);
	return set;
}

/* Sets only come to be: what was found stays. */
static TrialEnd
get_set(const Research *research, const TestimonyPart **parts, int count, const OrderSet **found)
{
	Serials *serials = research->serials;
	bool make;
	OrderSet *set = take_set(serials, key_of(parts, count), &make);
	TrialEnd end = make ? run_orders(research, parts, count, 0, set) : TRIAL_DONE;

	if (make)
	{
		pthread_mutex_lock(&serials->mutex);
		set->making = false;
		if (end != TRIAL_DONE)
		{
			set->key[0] = '\0'; /* incomplete: found by nobody, freed with the rest */
		}
		pthread_cond_broadcast(&serials->made);
		pthread_mutex_unlock(&serials->mutex);
	}
	*found = set;
	return end;
}


/* --- comparing --- */

static bool
same_answer(const char *one, const char *other)
{
	return one == NULL || other == NULL || strcmp(one, other) == 0;
}

static const TestimonyPart *
find_part(const Testimony *testimony, int session)
{
	int i = 0;

	while (testimony->parts[i].session != session)
	{
		i++;
	}
	return &testimony->parts[i];
}

/* How many answers differ; *first is the first one's place. */
static int
count_differences(const TestimonyPart *one, const TestimonyPart *other, int *first)
{
	int count = 0;

	for (int i = 0; i < one->count; i++)
	{
		if (!same_answer(one->answers[i], other->answers[i]))
		{
			*first = count++ == 0 ? i : *first;
		}
	}
	return count;
}

/* What parts one interleaving from one serial order: differing answers, and the state counts as one more. */
static int
measure(const TestimonyPart *const *parts, const char *state, const Testimony *order)
{
	int differences = strcmp(state, text_get(&order->state)) != 0 ? 1 : 0;
	int first;

	for (int i = 0; i < order->count; i++)
	{
		differences += count_differences(parts[i], find_part(order, parts[i]->session), &first);
	}
	return differences;
}

static void
append_order(const Testimony *order, Text *text)
{
	for (int i = 0; i < order->count; i++)
	{
		text_append(text, "%s%s", i > 0 ? " " : "", order->spec->sessions[order->parts[i].session]->name);
	}
	text_append(text, "%s", order->count == 0 ? "none" : "");
}

static void
append_difference(const TestimonyPart *const *parts, const char *state, const Testimony *order, Text *text)
{
	int first = 0;

	for (int i = 0; i < order->count; i++)
	{
		const TestimonyPart *serial = find_part(order, parts[i]->session);

		if (count_differences(parts[i], serial, &first) > 0)
		{
			text_append(text, "%s answered %s, serially %s", parts[i]->steps[first]->name, parts[i]->answers[first],
						serial->answers[first]);
			return;
		}
	}
	text_append(text, "the final state is %s, serially %s", state, text_get(&order->state));
}


/* --- names --- */

/* Of two sessions: does this one see what it would see as the first, and as the last of them. */
typedef struct
{
	bool first, last;
} Sight;

static Sight
look(const TestimonyPart *part, const OrderSet *set)
{
	Sight sight = {.first = false, .last = false};
	int place;

	for (int i = 0; i < set->count; i++)
	{
		const Testimony *order = set->orders[i];
		bool same = count_differences(part, find_part(order, part->session), &place) == 0;

		sight.first = sight.first || (same && order->parts[0].session == part->session);
		sight.last = sight.last || (same && order->parts[order->count - 1].session == part->session);
	}
	return sight;
}

/* Only what one of them did is there. */
static TrialEnd
is_lost_update(const Research *research, const TestimonyPart **parts, const char *state, bool *is)
{
	TrialEnd end = TRIAL_DONE;

	*is = false;
	for (int i = 0; end == TRIAL_DONE && i < 2; i++)
	{
		const OrderSet *alone;

		end = get_set(research, &parts[i], 1, &alone);
		*is = *is || (end == TRIAL_DONE && strcmp(state, text_get(&alone->orders[0]->state)) == 0);
	}
	return end;
}

static TrialEnd
name_pair(const Research *research, const TestimonyPart **parts, const char *state, const OrderSet *set,
		  const char **name)
{
	Sight a = look(parts[0], set);
	Sight b = look(parts[1], set);
	bool lost = false;
	TrialEnd end = TRIAL_DONE;

	if (a.first && b.first)
	{
		/* Answers that fit both places (writes that tell nothing) do not say who read what: then only a loss has a name. */
		end = is_lost_update(research, parts, state, &lost);
		*name = lost ? "lost update (P4)" : a.last && b.last ? NULL : "write skew (G2)";
	}
	else if (a.last && b.last)
	{
		*name = "circular information flow (G1c)";
	}
	else if ((!a.first && !a.last) || (!b.first && !b.last))
	{
		*name = "read skew (G-single)";
	}
	return end;
}

/* One that writes nothing, without which the others would be serializable. */
static TrialEnd
name_reader(const Research *research, const TestimonyPart **parts, int count, const char *state, const char **name)
{
	const TestimonyPart *rest[SERIAL_SESSIONS_MAX];
	const OrderSet *none;
	TrialEnd end = get_set(research, rest, 0, &none);

	for (int i = 0; end == TRIAL_DONE && *name == NULL && i < count; i++)
	{
		const OrderSet *set;

		end = get_set(research, &parts[i], 1, &set);
		if (end != TRIAL_DONE || strcmp(text_get(&set->orders[0]->state), text_get(&none->orders[0]->state)) != 0)
		{
			continue;
		}
		memcpy(rest, parts, sizeof(*rest) * (size_t) i);
		memcpy(rest + i, parts + i + 1, sizeof(*rest) * (size_t) (count - i - 1));
		end = get_set(research, rest, count - 1, &set);
		for (int k = 0; end == TRIAL_DONE && k < set->count; k++)
		{
			*name = measure(rest, state, set->orders[k]) == 0 ? "read-only transaction anomaly (G2)" : *name;
		}
	}
	return end;
}


/* --- judging --- */

/* Sessions that may have committed are in effect when their bit says so. */
static int
choose_parts(const Testimony *testimony, uint64_t doubtful, const TestimonyPart **parts)
{
	int count = 0;

	for (int i = 0; i < testimony->count; i++)
	{
		parts[count++] = &testimony->parts[i];
	}
	for (int i = 0; i < testimony->doubtful_count; i++)
	{
		int place = 0;

		if ((doubtful >> i & 1) == 0)
		{
			continue;
		}
		while (place < count && parts[place]->session != testimony->doubtful[i].session)
		{
			place++;
		}
		parts[place] = &testimony->doubtful[i];
		count += place == count ? 1 : 0;
	}
	return count;
}

static TrialEnd
compare(const Research *research, const TestimonyPart **parts, int count, const char *state, SerialVerdict *verdict)
{
	const OrderSet *set;
	TrialEnd end = get_set(research, parts, count, &set);
	const Testimony *nearest = NULL;
	int least = 0;

	for (int i = 0; end == TRIAL_DONE && i < set->count && (nearest == NULL || least > 0); i++)
	{
		int differences = measure(parts, state, set->orders[i]);

		if (nearest == NULL || differences < least)
		{
			nearest = set->orders[i];
			least = differences;
		}
	}
	if (end != TRIAL_DONE)
	{
		return end;
	}
	text_clear(&verdict->order);
	text_clear(&verdict->difference);
	append_order(nearest, &verdict->order);
	verdict->explained = least == 0;
	verdict->anomaly = NULL;
	if (least > 0)
	{
		append_difference(parts, state, nearest, &verdict->difference);
		end = count == 2  ? name_pair(research, parts, state, set, &verdict->anomaly)
			  : count > 2 ? name_reader(research, parts, count, state, &verdict->anomaly)
						  : TRIAL_DONE;
	}
	return end;
}

TrialEnd
serials_judge(Serials *serials, const Testimony *testimony, Trial *runner, Judge *judge, SerialVerdict *verdict,
			  Text *why)
{
	const TestimonyPart **parts = memory_get(sizeof(*parts) * ((size_t) serials->spec->session_count + 1));
	Research research = {.serials = serials, .runner = runner, .judge = judge, .why = why};
	TrialEnd end = TRIAL_DONE;

	verdict->explained = false;
	for (uint64_t doubtful = 0; end == TRIAL_DONE && !verdict->explained && doubtful >> testimony->doubtful_count == 0;
		 doubtful++)
	{
		int count = choose_parts(testimony, doubtful, parts);

		if (count > SERIAL_SESSIONS_MAX)
		{
			text_append(why, "%d sessions have committed, and of more than %d not all serial orders are run", count,
						SERIAL_SESSIONS_MAX);
			end = TRIAL_REFUSED;
		}
		else
		{
			end = compare(&research, parts, count, text_get(&testimony->state), verdict);
		}
	}
	free(parts);
	return end;
}

bool
serials_prepare(Serials *serials, Trial *runner, Judge *judge, Text *why)
{
	const Spec *spec = serials->spec;
	Research research = {.serials = serials, .runner = runner, .judge = judge, .why = why};
	Testimony *whole = testimony_new(spec);
	const TestimonyPart *parts[PREPARED_SESSIONS_MAX];
	const OrderSet *set;
	TrialEnd end = TRIAL_DONE;

	for (int i = 0; i < spec->session_count && i < PREPARED_SESSIONS_MAX; i++)
	{
		whole->parts[i].session = i;
		for (int k = 0; k < spec->sessions[i]->step_count; k++)
		{
			part_add(&whole->parts[i], spec->sessions[i]->steps[k], NULL);
		}
		parts[i] = &whole->parts[i];
	}
	if (spec->session_count <= PREPARED_SESSIONS_MAX)
	{
		end = get_set(&research, parts, spec->session_count, &set);
	}
	testimony_free(whole);
	if (end == TRIAL_REFUSED)
	{
		text_clear(why);
	}
	return end != TRIAL_STOPPED;
}
