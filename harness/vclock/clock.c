/*
 * Who the participants are lies apart from what is known of them, and is shared: a clock copied or merged from others whose
 * participants it has takes a reference, and copies counters only. Where all participants are the same, two clocks are at
 * most one memcmp and one pass over the counters; where not, they are walked together.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vclock_private.h"

#define LANES 4        /* counters in a vector */
#define SLACK_BYTES 16 /* behind the last identifier: what is read there counts for nothing */

/* Sorted. Changed only by a clock that has them alone. */
struct VClockNames
{
	atomic_size_t clocks; /* which have them */
	size_t count;
	size_t capacity;
	size_t bytes;
	size_t byte_capacity;
	char *ids;       /* each after a byte with its length; in one block of memory with the rest */
	size_t begins[]; /* where each begins in `ids`, and behind the last where that ends */
};


/* --- memory --- */

static VClockNames *
names_with_room(size_t entries, size_t bytes)
{
	size_t head = sizeof(VClockNames) + (entries + 1) * sizeof(size_t);
	VClockNames *names = memory_grow(NULL, head + bytes + SLACK_BYTES);

	*names = (VClockNames){.capacity = entries, .byte_capacity = bytes, .ids = (char *) names + head};
	atomic_init(&names->clocks, 1);
	names->begins[0] = 0;
	return names;
}

static VClockNames *
names_share(VClockNames *names)
{
	if (names != NULL)
	{
		atomic_fetch_add_explicit(&names->clocks, 1, memory_order_relaxed);
	}
	return names;
}

static void
names_drop(VClockNames *names)
{
	if (names != NULL && atomic_fetch_sub_explicit(&names->clocks, 1, memory_order_acq_rel) == 1)
	{
		free(names);
	}
}

/* Counters are the caller's to write. */
static VClock
clock_sharing(VClockNames *names)
{
	VClock clock = {.names = names_share(names)};

	clock.capacity = vclock_count(&clock);
	clock.counters = clock.capacity > 0 ? memory_grow(NULL, clock.capacity * sizeof(*clock.counters)) : NULL;
	return clock;
}

void
vclock_free(VClock *clock)
{
	names_drop(clock->names);
	free(clock->counters);
	*clock = (VClock){0};
}

VClock
vclock_copy(const VClock *clock)
{
	VClock copy = clock_sharing(clock->names);

	if (copy.capacity > 0)
	{
		memcpy(copy.counters, clock->counters, copy.capacity * sizeof(*copy.counters));
	}
	return copy;
}

/* Names of its own, for one more. */
static void
make_room(VClock *clock, size_t id_bytes)
{
	VClockNames *old = clock->names;
	size_t count = vclock_count(clock);
	size_t bytes = old != NULL ? old->bytes : 0;

	if (count == clock->capacity)
	{
		clock->capacity = 2 * count + 4;
		clock->counters = memory_grow(clock->counters, clock->capacity * sizeof(*clock->counters));
	}
	if (old != NULL && count < old->capacity && bytes + id_bytes <= old->byte_capacity &&
		atomic_load_explicit(&old->clocks, memory_order_acquire) == 1)
	{
		return;
	}
	clock->names = names_with_room(2 * count + 4, 2 * (bytes + id_bytes) + 16);
	if (old != NULL)
	{
		clock->names->count = count;
		clock->names->bytes = bytes;
		memcpy(clock->names->begins, old->begins, (count + 1) * sizeof(*old->begins));
		memcpy(clock->names->ids, old->ids, bytes);
		names_drop(old);
	}
}


/* --- identifiers --- */

VClockId
vclock_id(const char *name)
{
	return (VClockId){.bytes = name, .length = strlen(name)};
}

static VClockId
id_behind(const char *length)
{
	return (VClockId){.bytes = length + 1, .length = (unsigned char) *length};
}

static VClockId
id_at(const VClockNames *names, size_t index)
{
	return id_behind(names->ids + names->begins[index]);
}

static int
compare_ids(VClockId a, VClockId b)
{
	int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);

	return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

/* Where it is, or where it would be. */
static size_t
find(const VClock *clock, VClockId id, bool *found)
{
	size_t low = 0;
	size_t high = vclock_count(clock);

	*found = false;
	while (low < high && !*found)
	{
		size_t middle = low + (high - low) / 2;
		int order = compare_ids(id_at(clock->names, middle), id);

		*found = order == 0;
		low = order < 0 ? middle + 1 : low;
		high = order < 0 ? high : middle;
	}
	return high;
}

static bool
is_id(VClockId id)
{
	return id.length >= 1 && id.length <= VCLOCK_ID_BYTES_MAX;
}

static bool
verify_id(VClockId id)
{
	if (!is_id(id))
	{
		report_error("a participant has a name of 1 to %d bytes, not of %zu", VCLOCK_ID_BYTES_MAX, id.length);
		return false;
	}
	return true;
}

static void
insert(VClock *clock, size_t index, VClockId id, int64_t counter)
{
	size_t id_bytes = 1 + id.length;
	VClockNames *names;
	char *place;

	make_room(clock, id_bytes);
	names = clock->names;
	place = names->ids + names->begins[index];
	memmove(place + id_bytes, place, names->bytes - names->begins[index]);
	*place = (char) id.length;
	memcpy(place + 1, id.bytes, id.length);
	names->bytes += id_bytes;
	memset(names->ids + names->bytes, 0, SLACK_BYTES);
	memmove(clock->counters + index + 1, clock->counters + index, (names->count - index) * sizeof(*clock->counters));
	clock->counters[index] = counter;
	for (size_t i = names->count + 1; i > index; i--)
	{
		names->begins[i] = names->begins[i - 1] + id_bytes;
	}
	names->count++;
}


/* --- entries --- */

size_t
vclock_count(const VClock *clock)
{
	return clock->names != NULL ? clock->names->count : 0;
}

VClockEntry
vclock_entry(const VClock *clock, size_t index)
{
	return (VClockEntry){.id = id_at(clock->names, index), .counter = clock->counters[index]};
}

int64_t
vclock_get(const VClock *clock, VClockId id)
{
	bool found;
	size_t index = find(clock, id, &found);

	return found ? clock->counters[index] : 0;
}

static void
put(VClock *clock, VClockId id, int64_t counter)
{
	bool found;
	size_t index = find(clock, id, &found);

	if (found)
	{
		clock->counters[index] = counter;
	}
	else if (counter > 0)
	{
		insert(clock, index, id, counter);
	}
}

static void
report_counter(VClockId id, int64_t counter, const char *what)
{
	Text name = {0};

	vclock_print_id(id, &name);
	report_error("the counter of %s is %lld: %s", text_get(&name), (long long) counter, what);
	text_free(&name);
}

bool
vclock_set(VClock *clock, VClockId id, int64_t counter)
{
	int64_t now;
	char what[64];

	if (!verify_id(id))
	{
		return false;
	}
	now = vclock_get(clock, id);
	if (counter < now)
	{
		snprintf(what, sizeof(what), "%lld would shrink it", (long long) counter);
		report_counter(id, now, what);
		return false;
	}
	put(clock, id, counter);
	return true;
}

static int
compare_entries(const void *a, const void *b)
{
	return compare_ids(((const VClockEntry *) a)->id, ((const VClockEntry *) b)->id);
}

/* Mostly they are, as they are printed. */
static bool
are_sorted(const VClockEntry *entries, size_t count)
{
	bool sorted = true;

	for (size_t i = 1; i < count && sorted; i++)
	{
		sorted = compare_ids(entries[i - 1].id, entries[i].id) < 0;
	}
	return sorted;
}

static void
reserve(VClock *clock, const VClockEntry *entries, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
	{
		bytes += 1 + entries[i].id.length;
	}
	clock->names = names_with_room(count, bytes);
	clock->counters = memory_grow(NULL, count * sizeof(*clock->counters));
	clock->capacity = count;
}

bool
vclock_from_entries(VClockEntry *entries, size_t count, VClock *clock, Text *why)
{
	bool sorted = are_sorted(entries, count);

	*clock = (VClock){0};
	if (!sorted)
	{
		qsort(entries, count, sizeof(*entries), compare_entries);
	}
	for (size_t i = 0; i < count; i++)
	{
		bool again = !sorted && i > 0 && compare_ids(entries[i - 1].id, entries[i].id) == 0;

		if (!is_id(entries[i].id) || again)
		{
			text_append(why,
						again ? "a participant is named twice: " : "a participant's name has too many bytes or none: ");
			vclock_print_id(entries[i].id, why);
			vclock_free(clock);
			return false;
		}
		if (entries[i].counter > 0)
		{
			if (clock->names == NULL)
			{
				reserve(clock, entries + i, count - i);
			}
			insert(clock, vclock_count(clock), entries[i].id, entries[i].counter);
		}
	}
	return true;
}


/* --- two clocks --- */

static bool
same_names(const VClockNames *a, const VClockNames *b)
{
	return a == b || (a != NULL && b != NULL && a->bytes == b->bytes && memcmp(a->ids, b->ids, a->bytes) == 0);
}

/*
 * No counter is negative, so no difference overflows: its sign says which is less. Signs are gathered without a branch, in
 * vectors. A processor that has wide ones runs the same loop compiled for it; to choose when the program is loaded
 * (target_clones) would be before ThreadSanitizer is ready.
 */
#ifdef __x86_64__
#define WIDE __attribute__((target("avx2")))
#define HAS_WIDE __builtin_cpu_supports("avx2")
#else
#define WIDE
#define HAS_WIDE false
#endif

#define IN_PLACE static inline __attribute__((always_inline))

typedef int64_t Lanes __attribute__((vector_size(LANES * sizeof(int64_t))));

typedef struct
{
	bool less; /* somewhere a counter of the first clock is less */
	bool more;
} Signs;

IN_PLACE void
gather_by_lanes(const int64_t *a, const int64_t *b, size_t count, Signs *signs)
{
	Lanes a_minus_b = {0};
	Lanes b_minus_a = {0};
	int64_t less = 0;
	int64_t more = 0;
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
	{
		Lanes lanes_a;
		Lanes lanes_b;

		memcpy(&lanes_a, a + i, sizeof(Lanes));
		memcpy(&lanes_b, b + i, sizeof(Lanes));
		a_minus_b |= lanes_a - lanes_b;
		b_minus_a |= lanes_b - lanes_a;
	}
	for (; i < count; i++)
	{
		less |= a[i] - b[i];
		more |= b[i] - a[i];
	}
	for (int k = 0; k < LANES; k++)
	{
		less |= a_minus_b[k];
		more |= b_minus_a[k];
	}
	signs->less = less < 0;
	signs->more = more < 0;
}

WIDE static void
gather_wide(const int64_t *a, const int64_t *b, size_t count, Signs *signs)
{
	gather_by_lanes(a, b, count, signs);
}

static Signs
gather_signs(const int64_t *a, const int64_t *b, size_t count)
{
	Signs signs;

	if (HAS_WIDE)
	{
		gather_wide(a, b, count, &signs);
	}
	else
	{
		gather_by_lanes(a, b, count, &signs);
	}
	return signs;
}

static VClockOrder
order_of(Signs signs)
{
	return signs.less ? (signs.more ? VCLOCK_CONCURRENT : VCLOCK_BEFORE) : signs.more ? VCLOCK_AFTER : VCLOCK_EQUAL;
}

/* A place in a clock, on the way through it. */
typedef struct
{
	const char *id; /* after its length */
	const int64_t *counter;
	const int64_t *end;
} Cursor;

/* Of a clock that is not empty. */
static Cursor
cursor_at_begin(const VClock *clock)
{
	return (Cursor){.id = clock->names->ids, .counter = clock->counters, .end = clock->counters + clock->names->count};
}

/* The counter there, and on to the next; where it is another's turn, 0. */
IN_PLACE int64_t
cursor_take(Cursor *cursor, bool turn)
{
	if (!turn)
	{
		return 0;
	}
	cursor->id += 1 + (size_t) (unsigned char) *cursor->id;
	return *cursor->counter++;
}

/* With how many bytes the names of all participants of both begin. They are sorted: the outermost say it. */
static size_t
common_beginning(const VClockNames *a, const VClockNames *b)
{
	VClockId first = id_at(a, 0);
	VClockId others[] = {id_at(a, a->count - 1), id_at(b, 0), id_at(b, b->count - 1)};
	size_t common = first.length;

	for (size_t i = 0; i < LENGTH_OF(others); i++)
	{
		size_t most = common < others[i].length ? common : others[i].length;

		for (common = 0; common < most && first.bytes[common] == others[i].bytes[common];)
		{
			common++;
		}
	}
	return common;
}

static inline uint64_t
word_at(const char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Words in which some byte differs. */
static inline size_t
first_difference(uint64_t a, uint64_t b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (size_t) __builtin_ctzll(a ^ b) / 8;
#else
	return (size_t) __builtin_clzll(a ^ b) / 8;
#endif
}

/*
 * As compare_ids(), of names that have so many first bytes in common. Mostly the word behind those tells: it differs within
 * both names, or is the same and reaches to the end of both.
 */
IN_PLACE int
compare_behind(const char *a, const char *b, size_t common)
{
	uint64_t word_a = word_at(a + 1 + common);
	uint64_t word_b = word_at(b + 1 + common);
	size_t length_a = (unsigned char) *a;
	size_t length_b = (unsigned char) *b;

	if (word_a != word_b)
	{
		size_t at = 1 + common + first_difference(word_a, word_b);

		if (at <= length_a && at <= length_b)
		{
			return (unsigned char) a[at] - (unsigned char) b[at];
		}
	}
	else if (length_a == length_b && length_a <= common + sizeof(word_a))
	{
		return 0;
	}
	return compare_ids(id_behind(a), id_behind(b));
}

/* Whom the other clock does not have counts as zero there, and no zero is kept. */
static Signs
compare_participants(const VClock *a, const VClock *b)
{
	Cursor in_a = cursor_at_begin(a);
	Cursor in_b = cursor_at_begin(b);
	size_t common = common_beginning(a->names, b->names);
	int64_t less = 0;
	int64_t more = 0;

	while (in_a.counter < in_a.end && in_b.counter < in_b.end && (less & more) >= 0)
	{
		int order = compare_behind(in_a.id, in_b.id, common);
		int64_t of_a = cursor_take(&in_a, order <= 0);
		int64_t of_b = cursor_take(&in_b, order >= 0);

		less |= of_a - of_b;
		more |= of_b - of_a;
	}
	return (Signs){.less = less < 0 || in_b.counter < in_b.end, .more = more < 0 || in_a.counter < in_a.end};
}

VClockOrder
vclock_compare(const VClock *a, const VClock *b)
{
	if (same_names(a->names, b->names))
	{
		return order_of(gather_signs(a->counters, b->counters, vclock_count(a)));
	}
	if (a->names == NULL || b->names == NULL)
	{
		return a->names == NULL ? VCLOCK_BEFORE : VCLOCK_AFTER;
	}
	return order_of(compare_participants(a, b));
}

const char *
vclock_order_name(VClockOrder order)
{
	static const char *const names[] = {
		[VCLOCK_BEFORE] = "before",
		[VCLOCK_AFTER] = "after",
		[VCLOCK_EQUAL] = "equal",
		[VCLOCK_CONCURRENT] = "concurrent",
	};

	return names[order];
}

IN_PLACE void
take_by_lanes(int64_t *to, const int64_t *a, const int64_t *b, size_t count)
{
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
	{
		Lanes lanes_a;
		Lanes lanes_b;
		Lanes less;

		memcpy(&lanes_a, a + i, sizeof(Lanes));
		memcpy(&lanes_b, b + i, sizeof(Lanes));
		less = lanes_a < lanes_b;
		lanes_a = (lanes_b & less) | (lanes_a & ~less);
		memcpy(to + i, &lanes_a, sizeof(Lanes));
	}
	for (; i < count; i++)
	{
		to[i] = a[i] < b[i] ? b[i] : a[i];
	}
}

WIDE static void
take_wide(int64_t *to, const int64_t *a, const int64_t *b, size_t count)
{
	take_by_lanes(to, a, b, count);
}

/* `to` may be one of the two. */
static void
take_greater(int64_t *to, const int64_t *a, const int64_t *b, size_t count)
{
	if (HAS_WIDE)
	{
		take_wide(to, a, b, count);
	}
	else
	{
		take_by_lanes(to, a, b, count);
	}
}

/* From where they lie elsewhere, each after its length; no more than so many bytes. */
static VClockNames *
gather_names(const char *const *ids, size_t count, size_t bytes)
{
	VClockNames *names = names_with_room(count, bytes);
	char *to = names->ids;

	for (size_t i = 0; i < count; i++)
	{
		size_t length = 1 + (size_t) (unsigned char) *ids[i];

		memcpy(to, ids[i], SLACK_BYTES); /* no call, where a name is short */
		if (length > SLACK_BYTES)
		{
			memcpy(to + SLACK_BYTES, ids[i] + SLACK_BYTES, length - SLACK_BYTES);
		}
		to += length;
		names->begins[i + 1] = (size_t) (to - names->ids);
	}
	memset(to, 0, SLACK_BYTES);
	names->count = count;
	names->bytes = (size_t) (to - names->ids);
	return names;
}

/* All participants of both: their counters, and where their names lie. */
static size_t
merge_entries(const VClock *a, const VClock *b, int64_t *counters, const char **ids)
{
	Cursor in_a = cursor_at_begin(a);
	Cursor in_b = cursor_at_begin(b);
	size_t common = common_beginning(a->names, b->names);
	size_t count = 0;
	Cursor *rest;

	while (in_a.counter < in_a.end && in_b.counter < in_b.end)
	{
		int order = compare_behind(in_a.id, in_b.id, common);
		int64_t of_a;
		int64_t of_b;

		ids[count] = order <= 0 ? in_a.id : in_b.id;
		of_a = cursor_take(&in_a, order <= 0);
		of_b = cursor_take(&in_b, order >= 0);
		counters[count++] = of_a < of_b ? of_b : of_a;
	}
	for (rest = in_a.counter < in_a.end ? &in_a : &in_b; rest->counter < rest->end;)
	{
		ids[count] = rest->id;
		counters[count++] = cursor_take(rest, true);
	}
	return count;
}

static VClock
merge_participants(const VClock *a, const VClock *b)
{
	size_t capacity = vclock_count(a) + vclock_count(b);
	VClock merged = {.counters = memory_grow(NULL, capacity * sizeof(int64_t)), .capacity = capacity};
	const char **ids = memory_grow(NULL, capacity * sizeof(*ids));
	size_t count = merge_entries(a, b, merged.counters, ids);

	merged.names = count == vclock_count(a)   ? names_share(a->names)
				   : count == vclock_count(b) ? names_share(b->names)
											  : gather_names(ids, count, a->names->bytes + b->names->bytes);
	free(ids);
	return merged;
}

VClock
vclock_merge(const VClock *a, const VClock *b)
{
	VClock merged;

	if (a->names == NULL || b->names == NULL)
	{
		return vclock_copy(a->names != NULL ? a : b);
	}
	if (!same_names(a->names, b->names))
	{
		return merge_participants(a, b);
	}
	merged = clock_sharing(a->names);
	take_greater(merged.counters, a->counters, b->counters, merged.capacity);
	return merged;
}

void
vclock_absorb(VClock *clock, const VClock *other)
{
	if (same_names(clock->names, other->names))
	{
		take_greater(clock->counters, clock->counters, other->counters, vclock_count(clock));
	}
	else
	{
		VClock merged = vclock_merge(clock, other);

		vclock_free(clock);
		*clock = merged;
	}
}


/* --- events --- */

static bool
verify_tick(VClockId own, int64_t counter)
{
	if (!verify_id(own))
	{
		return false;
	}
	if (counter == VCLOCK_COUNTER_MAX)
	{
		report_counter(own, counter, "one more would overflow it");
		return false;
	}
	return true;
}

bool
vclock_advance(VClock *clock, VClockId own)
{
	int64_t counter = vclock_get(clock, own);

	if (!verify_tick(own, counter))
	{
		return false;
	}
	put(clock, own, counter + 1);
	return true;
}

bool
vclock_accept(VClock *clock, const VClock *message, VClockId own)
{
	int64_t known = vclock_get(clock, own);
	int64_t told = vclock_get(message, own);
	int64_t counter = known < told ? told : known;

	if (!verify_tick(own, counter))
	{
		return false;
	}
	put(clock, own, counter + 1); /* first: `own` may lie in the memory that the merged clock replaces */
	vclock_absorb(clock, message);
	return true;
}

bool
vclock_tick(const VClock *clock, VClockId own, VClock *ticked)
{
	*ticked = vclock_copy(clock);
	if (!vclock_advance(ticked, own))
	{
		vclock_free(ticked);
		return false;
	}
	return true;
}

bool
vclock_receive(const VClock *clock, const VClock *message, VClockId own, VClock *received)
{
	*received = vclock_merge(clock, message);
	if (!vclock_advance(received, own))
	{
		vclock_free(received);
		return false;
	}
	return true;
}

bool
vclock_replace(VClock *clock, const VClock *later)
{
	VClockOrder order = vclock_compare(clock, later);
	VClock copy;

	if (order != VCLOCK_BEFORE && order != VCLOCK_EQUAL)
	{
		Text both = {0};

		vclock_print(clock, &both);
		text_append(&both, " would shrink: it is %s ", vclock_order_name(order));
		vclock_print(later, &both);
		report_error("%s", text_get(&both));
		text_free(&both);
		return false;
	}
	copy = vclock_copy(later);
	vclock_free(clock);
	*clock = copy;
	return true;
}
