#include "oracle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The order of one register is: change 1, answers "no change" at version 1, change 2, and so on. Every acked operation
 * has its place in it by its own answer, so the order need not be searched for, only checked: it is a linearization
 * exactly if no operation ended before one of an earlier place began. Operations without a known end may have taken
 * effect at any time after they began; they matter only where an acked answer needs a change that nobody was acked.
 */

typedef int (*CompareOps)(const HistoryOp *a, const HistoryOp *b);

/* Answers who among those that had ended by some time ranks highest. */
typedef struct
{
	const HistoryOp **by_end;
	const HistoryOp **highest; /* highest[i]: among by_end[0..i] */
	size_t count;
} Ranking;

/* An acked operation in its place, with what the rest of the order demands of whatever comes just before it. */
typedef struct
{
	const HistoryOp *op;
	const HistoryOp *next_change; /* the first acked change from here on, or NULL */
	int64_t begin_by_ns;          /* nothing that comes before may begin later: the earliest end from here on */
} Place;

typedef struct
{
	Judgement result;
	int64_t origin_ns;           /* times are told relative to the first invocation */
	const HistoryOp **by_number; /* acked changes of all registers */
	size_t changes;
	Ranking numbers; /* the same, ranked by number */

	/* Room for the register at hand. */
	Place *places;
	const HistoryOp **placed;
	const HistoryOp **answered; /* unknown, but its version is known: by version, then number */
	const HistoryOp **open[2];  /* unknown altogether, by what they asked for (off, on): by begin */
	size_t placed_count, answered_count, open_count[2], open_used[2];
} Judge;


/* --- unknowns --- */

static bool
is_unknown(const HistoryOp *op)
{
	return op->outcome == OP_OPEN || op->outcome == OP_UNKNOWN;
}

static bool
is_answered_unknown(const HistoryOp *op)
{
	return op->outcome == OP_UNKNOWN && (op->version > 0 || op->xid != 0);
}


/* --- telling --- */

static double
relative_ms(const Judge *judge, int64_t ns)
{
	return (double) (ns - judge->origin_ns) / 1e6;
}

static void
describe_op(const Judge *judge, const HistoryOp *op, Text *text)
{
	text_append(text, "worker %d key (%" PRId64 ", %" PRId64 ") want %s -> ", op->worker, op->key[0], op->key[1],
				op->want ? "on" : "off");
	if (op->outcome == OP_OPEN)
	{
		text_append(text, "no end on record [%.3f ms ..]", relative_ms(judge, op->begin_ns));
		return;
	}
	if (op->outcome == OP_UNKNOWN && !is_answered_unknown(op))
	{
		text_append(text, "unknown");
	}
	else
	{
		text_append(text, "%s%s %s version %" PRId64, op->outcome == OP_UNKNOWN ? "unknown, would be " : "",
					op->changed ? "changed" : "unchanged", op->state ? "on" : "off", op->version);
		if (op->number != 0)
		{
			text_append(text, " number %" PRId64, op->number);
		}
	}
	text_append(text, " [%.3f .. %.3f ms]", relative_ms(judge, op->begin_ns), relative_ms(judge, op->end_ns));
}

/* Count it, and tell it when it is the first. `b` may be NULL. */
static void PRINTF_LIKE(4, 5) violation(Judge *judge, const HistoryOp *a, const HistoryOp *b, const char *format, ...)
{
	Text *first = &judge->result.first;
	va_list args;

	judge->result.violations++;
	if (judge->result.violations > 1)
	{
		return;
	}
	va_start(args, format);
	text_append_va(first, format, args);
	va_end(args);
	text_append(first, ": ");
	describe_op(judge, a, first);
	if (b != NULL)
	{
		text_append(first, "; ");
		describe_op(judge, b, first);
	}
}


/* --- orders --- */

static int
compare_int64(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int
compare_place(const HistoryOp *a, const HistoryOp *b)
{
	int order = compare_int64(a->version, b->version);

	return order != 0 ? order : (int) b->changed - (int) a->changed;
}

static int
compare_number(const HistoryOp *a, const HistoryOp *b)
{
	return compare_int64(a->number, b->number);
}

static int
compare_key(const HistoryOp *a, const HistoryOp *b)
{
	int order = compare_int64(a->key[0], b->key[0]);

	return order != 0 ? order : compare_int64(a->key[1], b->key[1]);
}

/* For qsort: elements are pointers into the history; equal ones keep its order, so that a verdict is told alike twice. */
#define DEFINE_SORT(name, comparison)                                                                                  \
	static int name(const void *left, const void *right)                                                               \
	{                                                                                                                  \
		const HistoryOp *a = *(const HistoryOp *const *) left;                                                         \
		const HistoryOp *b = *(const HistoryOp *const *) right;                                                        \
		int order = comparison;                                                                                        \
                                                                                                                       \
		return order != 0 ? order : (a < b ? -1 : a > b);                                                              \
	}

DEFINE_SORT(sort_key, compare_key(a, b))
DEFINE_SORT(sort_begin, compare_int64(a->begin_ns, b->begin_ns))
DEFINE_SORT(sort_end, compare_int64(a->end_ns, b->end_ns))
DEFINE_SORT(sort_number, compare_number(a, b))
DEFINE_SORT(sort_place, compare_place(a, b))
DEFINE_SORT(sort_version_number,
			a->version != b->version ? compare_int64(a->version, b->version) : compare_number(a, b))

/* qsort() may not be given a null pointer, even for nothing. */
static void
sort_ops(const HistoryOp **ops, size_t count, int (*compare)(const void *, const void *))
{
	if (count > 1)
	{
		qsort(ops, count, sizeof(*ops), compare);
	}
}

static int64_t
end_of(const HistoryOp *op)
{
	return op->end_ns;
}

static int64_t
number_of(const HistoryOp *op)
{
	return op->number;
}

static int64_t
version_of(const HistoryOp *op)
{
	return op->version;
}

/* The place of the first whose key is at least `least`, `count` when there is none; they are sorted by that key. */
static size_t
first_from(const HistoryOp *const *ops, size_t count, int64_t (*key)(const HistoryOp *), int64_t least)
{
	size_t low = 0;
	size_t high = count;

	while (low < high)
	{
		size_t middle = low + (high - low) / 2;

		if (key(ops[middle]) < least)
		{
			low = middle + 1;
		}
		else
		{
			high = middle;
		}
	}
	return low;
}

static Ranking
ranking_make(const HistoryOp *const *ops, size_t count, CompareOps compare)
{
	Ranking ranking = {.by_end = memory_get((count + 1) * sizeof(HistoryOp *)),
					   .highest = memory_get((count + 1) * sizeof(HistoryOp *)),
					   .count = count};

	for (size_t i = 0; i < count; i++)
	{
		ranking.by_end[i] = ops[i];
	}
	sort_ops(ranking.by_end, count, sort_end);
	for (size_t i = 0; i < count; i++)
	{
		const HistoryOp *before = i == 0 ? NULL : ranking.highest[i - 1];
		const HistoryOp *op = ranking.by_end[i];

		ranking.highest[i] = before != NULL && compare(before, op) >= 0 ? before : op;
	}
	return ranking;
}

static void
ranking_free(Ranking *ranking)
{
	free(ranking->by_end);
	free(ranking->highest);
}

/* The highest of those that ended before `ns`, NULL when none did. */
static const HistoryOp *
ranking_ended_before(const Ranking *ranking, int64_t ns)
{
	size_t ended = first_from(ranking->by_end, ranking->count, end_of, ns);

	return ended == 0 ? NULL : ranking->highest[ended - 1];
}


/* --- one answer by itself --- */

/* Can it have a place at all? A change without version or number has none, nor has anything below version 0. */
static bool
has_place(const HistoryOp *op)
{
	return op->changed ? op->version >= 1 && op->number >= 1 : op->version >= 0 && op->number == 0;
}

static bool
is_on_after(int64_t version)
{
	return version % 2 == 1;
}

static bool
answer_agrees(const HistoryOp *op)
{
	return op->state == op->want && op->state == is_on_after(op->version);
}

static void
judge_answer(Judge *judge, const HistoryOp *op)
{
	if (!has_place(op))
	{
		violation(judge, op, NULL, "an answer whose version and number cannot be");
	}
	else if (op->state != op->want)
	{
		violation(judge, op, NULL, "the answer is not the state that was asked for");
	}
	else if (op->state != is_on_after(op->version))
	{
		violation(judge, op, NULL, "after version %" PRId64 " the register is %s", op->version,
				  is_on_after(op->version) ? "on" : "off");
	}
}


/* --- one register --- */

static void
register_add(Judge *judge, const HistoryOp *op)
{
	if (op->outcome == OP_OK)
	{
		judge_answer(judge, op);
		if (has_place(op))
		{
			judge->placed[judge->placed_count++] = op;
		}
	}
	else if (op->outcome == OP_FAILED)
	{
		return; /* certainly not done: it can neither disagree nor explain anything */
	}
	else if (!is_answered_unknown(op))
	{
		judge->open[op->want][judge->open_count[op->want]++] = op;
	}
	else if (op->changed && has_place(op) && answer_agrees(op))
	{
		judge->answered[judge->answered_count++] = op;
	}
}

static void
register_sort(Judge *judge)
{
	const HistoryOp *next_change = NULL;
	int64_t begin_by_ns = INT64_MAX;

	sort_ops(judge->placed, judge->placed_count, sort_place);
	sort_ops(judge->answered, judge->answered_count, sort_version_number);
	sort_ops(judge->open[0], judge->open_count[0], sort_begin);
	sort_ops(judge->open[1], judge->open_count[1], sort_begin);
	for (size_t i = judge->placed_count; i-- > 0;)
	{
		const HistoryOp *op = judge->placed[i];

		next_change = op->changed ? op : next_change;
		begin_by_ns = op->end_ns < begin_by_ns ? op->end_ns : begin_by_ns;
		judge->places[i] = (Place){.op = op, .next_change = next_change, .begin_by_ns = begin_by_ns};
	}
}

/* Numbers grow with versions, so between two changes of a register there must be room for the versions between. */
static bool
numbers_leave_room(const HistoryOp *before, const HistoryOp *after)
{
	int64_t version = before == NULL ? 0 : before->version;
	int64_t number = before == NULL ? 0 : before->number;

	return after == NULL || after->number - number >= after->version - version;
}

static bool
number_is_acked(const Judge *judge, const HistoryOp *op)
{
	size_t at = first_from(judge->by_number, judge->changes, number_of, op->number);

	return at < judge->changes && judge->by_number[at]->number == op->number;
}

/* Could this unknown change, whose answer is known, have happened between `before` and `place`? */
static bool
can_have_happened(const Judge *judge, const HistoryOp *op, const HistoryOp *before, const Place *place)
{
	const HistoryOp *earlier = ranking_ended_before(&judge->numbers, op->begin_ns);

	return op->begin_ns <= place->begin_by_ns && numbers_leave_room(before, op) &&
		   numbers_leave_room(op, place->next_change) && !number_is_acked(judge, op) &&
		   (earlier == NULL || earlier->number < op->number);
}

/*
 * The lowest number that fits, which leaves the most room to later versions; NULL when no answer fits. An answer is
 * taken before an open operation, which can serve elsewhere. That is exact as long as the answers of unknown operations
 * do not contradict each other; a system that gave such answers may be called VIOLATED for them.
 */
static const HistoryOp *
find_answered(const Judge *judge, int64_t version, const HistoryOp *before, const Place *place)
{
	size_t at = first_from(judge->answered, judge->answered_count, version_of, version);

	for (; at < judge->answered_count && judge->answered[at]->version == version; at++)
	{
		if (can_have_happened(judge, judge->answered[at], before, place))
		{
			return judge->answered[at];
		}
	}
	return NULL;
}

/*
 * Fill version `version`, which `place` needs and no acked change has. Holes come in order, and later holes allow later
 * beginnings: giving each the earliest open operation left is a largest matching.
 * *before is the last change whose number is known; an answered filler becomes it.
 */
static bool
fill_hole(Judge *judge, int64_t version, const Place *place, const HistoryOp **before)
{
	bool on = is_on_after(version);
	size_t next = judge->open_used[on];
	const HistoryOp *filler = find_answered(judge, version, *before, place);

	if (filler != NULL)
	{
		*before = filler;
		return true;
	}
	if (next < judge->open_count[on] && judge->open[on][next]->begin_ns <= place->begin_by_ns)
	{
		judge->open_used[on]++;
		return true;
	}
	return false;
}

static void
judge_versions(Judge *judge)
{
	const HistoryOp *before = NULL; /* the last change whose number is known */
	int64_t filled = 0;             /* versions 1..filled have a change, or their lack was told */

	for (size_t i = 0; i < judge->placed_count; i++)
	{
		const Place *place = &judge->places[i];
		const HistoryOp *op = place->op;
		const HistoryOp *previous = i == 0 ? NULL : judge->places[i - 1].op;
		int64_t needed = op->changed ? op->version - 1 : op->version;

		if (op->changed && previous != NULL && compare_place(previous, op) == 0)
		{
			violation(judge, previous, op, "version %" PRId64 " was given twice", op->version);
			continue;
		}
		while (filled < needed && fill_hole(judge, filled + 1, place, &before))
		{
			filled++;
		}
		if (filled < needed)
		{
			violation(judge, op, previous, "no operation can have made version %" PRId64, filled + 1);
		}
		else if (op->changed && !numbers_leave_room(before, op))
		{
			violation(judge, op, before, "number %" PRId64 " does not fit version %" PRId64 " of its register",
					  op->number, op->version);
		}
		before = op->changed ? op : before;
		filled = op->version;
	}
}

static void
judge_real_time(Judge *judge)
{
	Ranking places = ranking_make(judge->placed, judge->placed_count, compare_place);

	for (size_t i = 0; i < judge->placed_count; i++)
	{
		const HistoryOp *op = judge->placed[i];
		const HistoryOp *earlier = ranking_ended_before(&places, op->begin_ns);

		if (earlier != NULL && compare_place(earlier, op) > 0)
		{
			violation(judge, earlier, op, "an operation ended before another began, and comes after it by version");
		}
	}
	ranking_free(&places);
}

static void
judge_register(Judge *judge, const HistoryOp *const *ops, size_t count)
{
	judge->placed_count = judge->answered_count = 0;
	judge->open_count[0] = judge->open_count[1] = 0;
	judge->open_used[0] = judge->open_used[1] = 0;
	for (size_t i = 0; i < count; i++)
	{
		register_add(judge, ops[i]);
	}
	register_sort(judge);
	judge_versions(judge);
	judge_real_time(judge);
}


/* --- across registers --- */

static void
judge_numbers(Judge *judge)
{
	for (size_t i = 0; i < judge->changes; i++)
	{
		const HistoryOp *op = judge->by_number[i];
		const HistoryOp *earlier = ranking_ended_before(&judge->numbers, op->begin_ns);

		if (i > 0 && judge->by_number[i - 1]->number == op->number)
		{
			violation(judge, judge->by_number[i - 1], op, "number %" PRId64 " was given twice", op->number);
		}
		if (earlier != NULL && earlier->number > op->number)
		{
			violation(judge, earlier, op, "a change was acked before another began, and has the higher number");
		}
	}
}


/* --- all --- */

static const HistoryOp **
op_room(size_t count)
{
	return memory_get((count + 1) * sizeof(HistoryOp *));
}

static void
judge_prepare(Judge *judge, const HistoryOp *ops, size_t count)
{
	judge->by_number = op_room(count);
	judge->places = memory_get((count + 1) * sizeof(Place));
	judge->placed = op_room(count);
	judge->answered = op_room(count);
	judge->open[0] = op_room(count);
	judge->open[1] = op_room(count);
	judge->origin_ns = count == 0 ? 0 : ops[0].begin_ns;
	judge->result.operations = count;
	for (size_t i = 0; i < count; i++)
	{
		const HistoryOp *op = &ops[i];

		judge->origin_ns = op->begin_ns < judge->origin_ns ? op->begin_ns : judge->origin_ns;
		judge->result.unknowns += is_unknown(op);
		judge->result.changes += op->outcome == OP_OK && op->changed;
		if (op->outcome == OP_OK && op->changed && has_place(op))
		{
			judge->by_number[judge->changes++] = op;
		}
	}
	sort_ops(judge->by_number, judge->changes, sort_number);
	judge->numbers = ranking_make(judge->by_number, judge->changes, compare_number);
}

static void
judge_release(Judge *judge)
{
	ranking_free(&judge->numbers);
	free(judge->by_number);
	free(judge->places);
	free(judge->placed);
	free(judge->answered);
	free(judge->open[0]);
	free(judge->open[1]);
}

Judgement
oracle_judge_registers(const HistoryOp *ops, size_t count)
{
	Judge judge = {0};
	const HistoryOp **by_key = op_room(count);
	size_t begin = 0;

	judge_prepare(&judge, ops, count);
	for (size_t i = 0; i < count; i++)
	{
		by_key[i] = &ops[i];
	}
	sort_ops(by_key, count, sort_key);
	for (size_t i = 1; i <= count; i++)
	{
		if (i == count || compare_key(by_key[begin], by_key[i]) != 0)
		{
			judge_register(&judge, by_key + begin, i - begin);
			begin = i;
		}
	}
	judge_numbers(&judge);

	if (judge.result.violations > 0)
	{
		judge.result.verdict = VERDICT_VIOLATED;
	}
	else
	{
		judge.result.verdict = judge.result.changes > 0 ? VERDICT_HOLDS : VERDICT_UNKNOWN;
	}
	judge_release(&judge);
	free(by_key);
	return judge.result;
}

const char *
verdict_name(Verdict verdict)
{
	switch (verdict)
	{
		case VERDICT_HOLDS:
			return "HOLDS";
		case VERDICT_VIOLATED:
			return "VIOLATED";
		case VERDICT_UNKNOWN:
			return "UNKNOWN";
		case VERDICT_UNSET:
			break;
	}
	return "UNSET";
}
