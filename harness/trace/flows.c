/* What comes before what, by marks; and an order in which it may all have happened. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace_private.h"


/* --- who made what --- */

/* The commit of an open block, when it is on record: behind the events of that block on their line, and nothing else. */
static size_t
closing(const Record *record, size_t event)
{
	size_t next = record->events[event].next_actor;

	while (next != NO_EVENT &&
		   (record->events[next].outcome == TRACE_OPEN || strcmp(record->events[next].kind, "wait") == 0))
	{
		next = record->events[next].next_actor;
	}
	return next != NO_EVENT && record->events[next].outcome == TRACE_CLOSES ? next : NO_EVENT;
}

static size_t
certain_maker(const Record *record, size_t event)
{
	switch (record->events[event].outcome)
	{
		case TRACE_DONE:
		case TRACE_CLOSES:
			return event;
		case TRACE_OPEN:
			return closing(record, event);
		case TRACE_UNKNOWN:
			break;
	}
	return NO_EVENT;
}

/* Numbers have no hole, so one that is below another that was seen or made was made. */
static bool
was_reached(const Record *record, const Mark *number)
{
	const Mark *first;
	size_t count = record_find(record, TRACE_SAW, number->what, number->epoch, &first);

	if (count > 0 && first[count - 1].from >= number->from)
	{
		return true;
	}
	count = record_find(record, TRACE_NUMBERED, number->what, number->epoch, &first);
	for (size_t i = count; i > 0 && first[i - 1].from > number->from; i--)
	{
		if (record->events[first[i - 1].event].maker != NO_EVENT)
		{
			return true;
		}
	}
	return false;
}

/*
 * Whether an event whose end nobody told did commit: then its number was made, and by nobody else who could have. The
 * server gives a number again when the one who had it does not commit.
 */
static bool
must_have_committed(const Record *record, const Mark *number)
{
	const Mark *first;
	size_t count = record_find(record, TRACE_NUMBERED, number->what, number->epoch, &first);
	size_t candidates = 0;

	for (size_t i = 0; i < count; i++)
	{
		if (first[i].from == number->from)
		{
			candidates++;
		}
	}
	return candidates == 1 && was_reached(record, number);
}

static void
find_makers(Record *record)
{
	for (size_t i = 0; i < record->event_count; i++)
	{
		record->events[i].maker = certain_maker(record, i);
	}
	for (size_t i = 0; i < record->mark_count; i++)
	{
		const Mark *mark = &record->marks[i];
		Event *event = &record->events[mark->event];

		if (mark->how != TRACE_NUMBERED || event->maker != NO_EVENT)
		{
			continue;
		}
		if (must_have_committed(record, mark))
		{
			/* Sent, and committed some time after that: nothing later on its line is known to be behind the commit. */
			event->maker = event->outcome == TRACE_UNKNOWN ? event->in_actor : mark->event;
			event->fate = event->outcome == TRACE_UNKNOWN ? ": it had committed, by what was seen later" : "";
		}
		else if (record_making(record, mark) != NULL)
		{
			event->fate = ": it had not committed, another made that number";
		}
	}
}


/* --- edges --- */

static void
add_flow(Record *record, size_t from, size_t to)
{
	if (from != NO_EVENT && from != to)
	{
		event_add_before(&record->events[to], from);
	}
}

/* Who sees in a block what it has itself made there is not behind the commit of that block. */
static void
add_saw(Record *record, const Mark *mark)
{
	const Mark *making = record_making(record, mark);
	const Event *event = &record->events[mark->event];

	if (making != NULL &&
		(making->event > mark->event || strcmp(record->events[making->event].actor, event->actor) != 0))
	{
		add_flow(record, record->events[making->event].maker, mark->event);
	}
}

/* All that stand at a value come after all that stand at the value below it. `first` is sorted by value. */
static void
add_standing(Record *record, const Mark *first, size_t count)
{
	size_t below = 0, begin = 0;

	for (size_t i = 0; i < count; i++)
	{
		if (first[i].from != first[begin].from)
		{
			below = begin;
			begin = i;
		}
		for (size_t j = below; j < begin; j++)
		{
			add_flow(record, first[j].event, first[i].event);
		}
	}
}

/* One of several came before, nobody knows which. When all are on one line, the first of them did in any case. */
static void
add_some(Record *record, const Mark *mark)
{
	const Mark *first;
	size_t count = record_find(record, TRACE_ONE_OF, mark->what, mark->epoch, &first);
	size_t earliest = NO_EVENT;

	for (size_t i = 0; i < count; i++)
	{
		if (first[i].from < mark->from || first[i].from > mark->to)
		{
			continue;
		}
		if (earliest != NO_EVENT && strcmp(record->events[first[i].event].actor, record->events[earliest].actor) != 0)
		{
			return;
		}
		earliest = first[i].event < earliest ? first[i].event : earliest;
	}
	add_flow(record, earliest, mark->event);
}

/* All that is on record above a stop as made: its end was told, or known, before the server was asked to stop. */
static void
add_durable(Record *record, size_t event)
{
	for (size_t i = 0; i < record->mark_count; i++)
	{
		const Mark *mark = &record->marks[i];
		size_t maker = record->events[mark->event].maker;

		if ((mark->how == TRACE_MADE || mark->how == TRACE_NUMBERED) && mark->event < event && maker != NO_EVENT &&
			maker < event)
		{
			add_flow(record, maker, event);
		}
	}
}

void
flows_add(Record *record)
{
	find_makers(record);
	for (size_t i = 0; i < record->mark_count; i++)
	{
		const Mark *mark = &record->marks[i];
		const Mark *first;
		size_t count;

		switch (mark->how)
		{
			case TRACE_SAW:
				add_saw(record, mark);
				break;
			case TRACE_SOME:
				add_some(record, mark);
				break;
			case TRACE_DURABLE:
				add_durable(record, mark->event);
				break;
			case TRACE_STANDS:
				count = record_find(record, TRACE_STANDS, mark->what, mark->epoch, &first);
				if (first == mark)
				{
					add_standing(record, first, count);
				}
				break;
			default:
				break;
		}
	}
}


/* --- an order --- */

/* Events that may come next, the one that is first in the file on top. */
typedef struct
{
	size_t *items;
	size_t count;
} Heap;

static void
swap(size_t *a, size_t *b)
{
	size_t kept = *a;

	*a = *b;
	*b = kept;
}

static void
heap_put(Heap *heap, size_t item)
{
	size_t at = heap->count++;

	heap->items[at] = item;
	for (; at > 0 && heap->items[(at - 1) / 2] > heap->items[at]; at = (at - 1) / 2)
	{
		swap(&heap->items[(at - 1) / 2], &heap->items[at]);
	}
}

static size_t
heap_take(Heap *heap)
{
	size_t top = heap->items[0];
	size_t at = 0;

	heap->items[0] = heap->items[--heap->count];
	for (;;)
	{
		size_t least = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->count; child++)
		{
			least = heap->items[child] < heap->items[least] ? child : least;
		}
		if (least == at)
		{
			return top;
		}
		swap(&heap->items[at], &heap->items[least]);
		at = least;
	}
}

/* The events behind each event, in one block: those of event i from begin[i] to begin[i + 1]. */
static size_t *
successors(const Record *record, size_t *begin)
{
	size_t *fill = memory_get((record->event_count + 1) * sizeof(*fill));
	size_t *all;

	for (size_t i = 0; i < record->event_count; i++)
	{
		for (size_t j = 0; j < record->events[i].before_count; j++)
		{
			begin[record->events[i].before[j] + 1]++;
		}
	}
	for (size_t i = 0; i < record->event_count; i++)
	{
		begin[i + 1] += begin[i];
		fill[i] = begin[i];
	}
	all = memory_get((begin[record->event_count] + 1) * sizeof(*all));
	for (size_t i = 0; i < record->event_count; i++)
	{
		for (size_t j = 0; j < record->events[i].before_count; j++)
		{
			all[fill[record->events[i].before[j]]++] = i;
		}
	}
	free(fill);
	return all;
}

/* Going back from an event that has no place in an order, always to another such one, ends in a circle. */
static void
describe_cycle(const Record *record, const size_t *missing, Text *text)
{
	bool *seen = memory_get(record->event_count * sizeof(*seen));
	size_t at = 0, behind = 0;

	while (missing[at] == 0)
	{
		at++;
	}
	while (!seen[at])
	{
		const Event *event = &record->events[at];

		seen[at] = true;
		behind = at;
		for (size_t i = 0; i < event->before_count; i++)
		{
			if (missing[event->before[i]] > 0)
			{
				at = event->before[i];
				break;
			}
		}
	}
	event_describe(&record->events[at], text);
	text_append(text, " (line %zu of the record) comes before ", record->events[at].line);
	event_describe(&record->events[behind], text);
	text_append(text, " (line %zu), and that before the first", record->events[behind].line);
	free(seen);
}

size_t *
flows_sort(const Record *record, Text *cycle)
{
	size_t *order = memory_get((record->event_count + 1) * sizeof(*order));
	size_t *missing = memory_get((record->event_count + 1) * sizeof(*missing));
	size_t *begin = memory_get((record->event_count + 2) * sizeof(*begin));
	size_t *behind = successors(record, begin);
	Heap ready = {.items = memory_get((record->event_count + 1) * sizeof(size_t))};
	size_t count = 0;

	for (size_t i = 0; i < record->event_count; i++)
	{
		missing[i] = record->events[i].before_count;
		if (missing[i] == 0)
		{
			heap_put(&ready, i);
		}
	}
	while (ready.count > 0)
	{
		size_t event = heap_take(&ready);

		order[count++] = event;
		for (size_t i = begin[event]; i < begin[event + 1]; i++)
		{
			if (--missing[behind[i]] == 0)
			{
				heap_put(&ready, behind[i]);
			}
		}
	}
	if (count < record->event_count)
	{
		describe_cycle(record, missing, cycle);
		free(order);
		order = NULL;
	}
	free(missing);
	free(begin);
	free(behind);
	free(ready.items);
	return order;
}
