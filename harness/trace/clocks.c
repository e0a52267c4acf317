/* Clocks from the record, held against the order in which the server committed; and an execution for ShiViz. */
#include <inttypes.h>
#include <stdlib.h>

#include "trace_private.h"

/* Of all that comes before an event, and of it: the greatest number of one order, and who made it. */
typedef struct
{
	int64_t number;
	size_t maker;
} Greatest;

/* One order of the server's: `first` are its numbers, sorted. */
typedef struct
{
	const Mark *first;
	size_t count;
} ServerOrder;

static size_t
maker_of(const Record *record, const Mark *mark)
{
	return record->events[mark->event].maker;
}

static void
contradict(const Record *record, const char *what, size_t earlier, int64_t greater, size_t later, int64_t smaller,
		   Text *text)
{
	event_describe(&record->events[earlier], text);
	text_append(text, " (line %zu of the record, %s %" PRId64 ") comes before ", record->events[earlier].line, what,
				greater);
	event_describe(&record->events[later], text);
	text_append(text, " (line %zu, %s %" PRId64 ")", record->events[later].line, what, smaller);
}

/* Two events cannot have made the same number. */
static bool
numbers_are_unique(const Record *record, const ServerOrder *order, Text *contradiction)
{
	const Mark *last = NULL;

	for (size_t i = 0; i < order->count; i++)
	{
		const Mark *mark = &order->first[i];

		if (maker_of(record, mark) == NO_EVENT)
		{
			continue;
		}
		if (last != NULL && last->from == mark->from)
		{
			event_describe(&record->events[last->event], contradiction);
			text_append(contradiction, " (line %zu of the record) and ", record->events[last->event].line);
			event_describe(&record->events[mark->event], contradiction);
			text_append(contradiction, " (line %zu) both made %s %" PRId64, record->events[mark->event].line,
						mark->what, mark->from);
			return false;
		}
		last = mark;
	}
	return true;
}

/* The smallest and the greatest number that each event made; 0 for none. */
static void
numbers_of_events(const Record *record, const ServerOrder *order, int64_t *least, Greatest *own)
{
	for (size_t i = 0; i < order->count; i++)
	{
		size_t maker = maker_of(record, &order->first[i]);
		int64_t number = order->first[i].from;

		if (maker != NO_EVENT)
		{
			least[maker] = least[maker] == 0 ? number : least[maker];
			own[maker] = (Greatest){number, maker};
		}
	}
}

/* Without the edges of this order itself, or there would be nothing to find. */
static bool
order_holds(const Record *record, const ServerOrder *order, const size_t *sorted, Text *contradiction)
{
	int64_t *least = memory_get(record->event_count * sizeof(*least));
	Greatest *known = memory_get(record->event_count * sizeof(*known));
	bool holds = numbers_are_unique(record, order, contradiction);

	numbers_of_events(record, order, least, known);
	for (size_t i = 0; i < record->event_count && holds; i++)
	{
		size_t at = sorted[i];
		Greatest past = {0};

		for (size_t j = 0; j < record->events[at].before_count; j++)
		{
			const Greatest *before = &known[record->events[at].before[j]];

			past = before->number > past.number ? *before : past;
		}
		holds = least[at] == 0 || past.number < least[at];
		if (!holds)
		{
			contradict(record, order->first->what, past.maker, past.number, at, least[at], contradiction);
		}
		known[at] = past.number > known[at].number ? past : known[at];
	}
	free(least);
	free(known);
	return holds;
}

static void
order_add(Record *record, const ServerOrder *order)
{
	size_t last = NO_EVENT;

	for (size_t i = 0; i < order->count; i++)
	{
		size_t maker = maker_of(record, &order->first[i]);

		if (maker != NO_EVENT && maker != last)
		{
			event_add_before(&record->events[maker], last);
			last = maker;
		}
	}
}

/*
 * Each order of the server's in turn: held against what is known so far, then known itself. The first that is contradicted is
 * left out, with those behind it: what is known without them is still a picture. NULL: there is none.
 */
static size_t *
sort_and_compare(Record *record, TraceVerdict *verdict)
{
	size_t *sorted = flows_sort(record, &verdict->contradiction);
	ServerOrder order;

	for (size_t i = 0; i < record->mark_count && sorted != NULL; i++)
	{
		const Mark *mark = &record->marks[i];

		order.count = mark->how != TRACE_NUMBERED
						  ? 0
						  : record_find(record, TRACE_NUMBERED, mark->what, mark->epoch, &order.first);
		if (order.count == 0 || order.first != mark)
		{
			continue;
		}
		verdict->numbered += order.count;
		if (!order_holds(record, &order, sorted, &verdict->contradiction))
		{
			break;
		}
		order_add(record, &order);
		free(sorted);
		sorted = flows_sort(record, &verdict->contradiction);
	}
	return sorted;
}


/* --- the execution --- */

/*
 * Statements of an open block, one behind the other and with nothing else before or behind them, are one event: the last of
 * them. Answers for each event how many it stands for, 0 for one that another stands for; the caller frees that.
 */
static size_t *
fold_statements(const Record *record)
{
	size_t *stands_for = memory_get((record->event_count + 1) * sizeof(*stands_for));
	size_t *behind = memory_get((record->event_count + 1) * sizeof(*behind));

	for (size_t i = 0; i < record->event_count; i++)
	{
		for (size_t j = 0; j < record->events[i].before_count; j++)
		{
			behind[record->events[i].before[j]]++;
		}
	}
	for (size_t i = 0; i < record->event_count; i++)
	{
		const Event *event = &record->events[i];
		size_t before = event->before_count == 1 ? event->before[0] : NO_EVENT;

		stands_for[i] = 1;
		if (event->outcome == TRACE_OPEN && before != NO_EVENT && before < i && before == event->in_actor &&
			record->events[before].outcome == TRACE_OPEN && behind[before] == 1)
		{
			stands_for[i] += stands_for[before];
			stands_for[before] = 0;
		}
	}
	free(behind);
	return stands_for;
}

static bool
print_event(const Record *record, size_t index, size_t stands_for, const VClock *clock, Text *execution)
{
	const Event *event = &record->events[index];

	text_append(execution, "%s ", event->actor);
	if (!vclock_print_json(clock, execution))
	{
		return false;
	}
	text_append(execution, "\n%s ", event->kind);
	if (stands_for > 1)
	{
		const Event *first = event;

		for (size_t i = 1; i < stands_for; i++)
		{
			first = &record->events[first->in_actor];
		}
		text_append(execution, "%zu of them, from %s to ", stands_for, first->text);
	}
	text_append(execution, "%s%s\n", event->text, event->fate);
	return true;
}

static bool
print_events(const Record *record, const size_t *sorted, Text *execution)
{
	VClock *clocks = memory_get((record->event_count + 1) * sizeof(*clocks));
	size_t *stands_for = fold_statements(record);
	bool done = true;

	for (size_t i = 0; i < record->event_count && done; i++)
	{
		const Event *event = &record->events[sorted[i]];
		VClock *clock = &clocks[sorted[i]];

		for (size_t j = 0; j < event->before_count; j++)
		{
			vclock_absorb(clock, &clocks[event->before[j]]);
		}
		if (stands_for[sorted[i]] > 0)
		{
			done = vclock_advance(clock, vclock_id(event->actor)) &&
				   print_event(record, sorted[i], stands_for[sorted[i]], clock, execution);
		}
	}
	for (size_t i = 0; i < record->event_count; i++)
	{
		vclock_free(&clocks[i]);
	}
	free(clocks);
	free(stands_for);
	return done;
}

bool
trace_conclude(const char *path, Text *execution, TraceVerdict *verdict)
{
	Record record;
	size_t *sorted;
	bool done = record_read(&record, path);

	*verdict = (TraceVerdict){.events = record.event_count};
	if (done)
	{
		flows_add(&record);
		sorted = sort_and_compare(&record, verdict);
		done = sorted == NULL || print_events(&record, sorted, execution);
		free(sorted);
	}
	record_free(&record);
	return done;
}
