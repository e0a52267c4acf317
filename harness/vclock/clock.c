/*
 * Identifiers lie one after another in a block of their own, each after its length: two clocks have a run of participants
 * in common exactly where the bytes agree. All that takes two clocks goes from run to run; where all participants are the
 * same that is one memcmp and one pass over the counters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vclock_private.h"

#define ENTRY_BYTES (sizeof(int64_t) + sizeof(size_t))
#define LANES 4 /* counters in a vector */


/* --- memory --- */

/* Exactly this room, in one block. */
static VClock
clock_with_room(size_t entries, size_t id_bytes)
{
	VClock clock = {.capacity = entries, .id_capacity = id_bytes};

	if (entries > 0)
	{
		clock.counters = memory_grow(NULL, entries * ENTRY_BYTES + sizeof(size_t) + id_bytes);
		clock.begins = (size_t *) (clock.counters + entries);
		clock.begins[0] = 0;
		clock.ids = (char *) (clock.begins + entries + 1);
	}
	return clock;
}

void
vclock_free(VClock *clock)
{
	free(clock->counters);
	*clock = (VClock){0};
}

/* Append identifiers; their counters are the caller's to write. There is room. */
static void
append_ids(VClock *to, const VClock *from, size_t index, size_t run)
{
	size_t begin;
	size_t moved;
	size_t *begins;

	if (run == 0)
	{
		return; /* there may be no memory at all */
	}
	begin = from->begins[index];
	moved = to->id_bytes - begin; /* wraps where they move to the front, and back when added */
	begins = to->begins + to->count + 1;
	memcpy(to->ids + to->id_bytes, from->ids + begin, from->begins[index + run] - begin);
	memcpy(begins, from->begins + index + 1, run * sizeof(*begins));
	for (size_t i = 0; i < run && moved != 0; i++)
	{
		begins[i] += moved;
	}
	to->id_bytes = begins[run - 1];
	to->count += run;
}

static void
append_entries(VClock *to, const VClock *from, size_t index, size_t run)
{
	if (run > 0)
	{
		memcpy(to->counters + to->count, from->counters + index, run * sizeof(*to->counters));
		append_ids(to, from, index, run);
	}
}

VClock
vclock_copy(const VClock *clock)
{
	VClock copy = clock_with_room(clock->count, clock->id_bytes);

	append_entries(&copy, clock, 0, clock->count);
	return copy;
}

static void
make_room(VClock *clock, size_t id_bytes)
{
	VClock roomy;

	if (clock->count < clock->capacity && clock->id_bytes + id_bytes <= clock->id_capacity)
	{
		return;
	}
	roomy = clock_with_room(2 * clock->count + 4, 2 * (clock->id_bytes + id_bytes) + 16);
	append_entries(&roomy, clock, 0, clock->count);
	vclock_free(clock);
	*clock = roomy;
}


/* --- identifiers --- */

VClockId
vclock_id(const char *name)
{
	return (VClockId){.bytes = name, .length = strlen(name)};
}

static VClockId
id_at(const VClock *clock, size_t index)
{
	const char *length = clock->ids + clock->begins[index];

	return (VClockId){.bytes = length + 1, .length = (unsigned char) *length};
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
	size_t high = clock->count;

	*found = false;
	while (low < high && !*found)
	{
		size_t middle = low + (high - low) / 2;
		int order = compare_ids(id_at(clock, middle), id);

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
	size_t begin;

	make_room(clock, id_bytes);
	begin = clock->begins[index];
	memmove(clock->ids + begin + id_bytes, clock->ids + begin, clock->id_bytes - begin);
	clock->ids[begin] = (char) id.length;
	memcpy(clock->ids + begin + 1, id.bytes, id.length);
	clock->id_bytes += id_bytes;
	memmove(clock->counters + index + 1, clock->counters + index, (clock->count - index) * sizeof(*clock->counters));
	clock->counters[index] = counter;
	for (size_t i = clock->count + 1; i > index; i--)
	{
		clock->begins[i] = clock->begins[i - 1] + id_bytes;
	}
	clock->count++;
}


/* --- entries --- */

size_t
vclock_count(const VClock *clock)
{
	return clock->count;
}

VClockEntry
vclock_entry(const VClock *clock, size_t index)
{
	return (VClockEntry){.id = id_at(clock, index), .counter = clock->counters[index]};
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

bool
vclock_from_entries(VClockEntry *entries, size_t count, VClock *clock, Text *why)
{
	*clock = (VClock){0};
	if (count > 0)
	{
		qsort(entries, count, sizeof(*entries), compare_entries);
	}
	for (size_t i = 0; i < count; i++)
	{
		bool again = i > 0 && compare_ids(entries[i - 1].id, entries[i].id) == 0;

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
			insert(clock, clock->count, entries[i].id, entries[i].counter);
		}
	}
	return true;
}


/* --- two clocks --- */

/* A stretch that two clocks go together, and which of the two goes on alone behind it. */
typedef struct
{
	size_t run; /* participants that both have, without another between them */
	int order;  /* of the next identifiers; 0: one of the clocks ends there */
} Stretch;

static inline uint64_t
word_at(const char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Words, which have bytes in which they differ. */
static inline size_t
first_difference(uint64_t a, uint64_t b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (size_t) __builtin_ctzll(a ^ b) / 8;
#else
	return (size_t) __builtin_clzll(a ^ b) / 8;
#endif
}

static inline size_t
common_bytes(const char *a, const char *b, size_t most)
{
	size_t common = 0;

	for (; common + sizeof(uint64_t) <= most; common += sizeof(uint64_t))
	{
		if (word_at(a + common) != word_at(b + common))
		{
			return common + first_difference(word_at(a + common), word_at(b + common));
		}
	}
	while (common < most && a[common] == b[common])
	{
		common++;
	}
	return common;
}

/* From here on, with neither at its end. The first byte that differs ends the run, and says who goes on unless it is a length. */
static inline Stretch
find_stretch(const VClock *a, size_t i, const VClock *b, size_t j)
{
	const char *ids_a = a->ids + a->begins[i];
	const char *ids_b = b->ids + b->begins[j];
	size_t left_a = a->id_bytes - a->begins[i];
	size_t left_b = b->id_bytes - b->begins[j];
	size_t common = common_bytes(ids_a, ids_b, left_a < left_b ? left_a : left_b);
	size_t upto = a->begins[i] + common;
	size_t first = i;
	int order = 0;

	while (i < a->count && a->begins[i + 1] <= upto)
	{
		i++;
	}
	j += i - first;
	if (i < a->count && j < b->count)
	{
		order = a->begins[i] < upto ? (unsigned char) ids_a[common] - (unsigned char) ids_b[common]
									: compare_ids(id_at(a, i), id_at(b, j));
	}
	return (Stretch){.run = i - first, .order = order};
}

static bool
same_participants(const VClock *a, const VClock *b)
{
	return a->id_bytes == b->id_bytes && (a->id_bytes == 0 || memcmp(a->ids, b->ids, a->id_bytes) == 0);
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

/* Whom the other clock does not have counts as zero there, and no zero is kept. */
static Signs
compare_participants(const VClock *a, const VClock *b)
{
	int64_t less = 0;
	int64_t more = 0;
	size_t i = 0;
	size_t j = 0;

	while (i < a->count && j < b->count && (less & more) >= 0)
	{
		Stretch stretch = find_stretch(a, i, b, j);

		for (; stretch.run > 0; stretch.run--)
		{
			less |= a->counters[i] - b->counters[j];
			more |= b->counters[j++] - a->counters[i++];
		}
		if (stretch.order < 0)
		{
			more = -1;
			i++;
		}
		else if (stretch.order > 0)
		{
			less = -1;
			j++;
		}
	}
	return (Signs){.less = less < 0 || j < b->count, .more = more < 0 || i < a->count};
}

VClockOrder
vclock_compare(const VClock *a, const VClock *b)
{
	return order_of(same_participants(a, b) ? gather_signs(a->counters, b->counters, a->count)
											: compare_participants(a, b));
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

/* Identifiers are copied by stretches that come from one of the two; those that both have go on with either. */
static void
merge_participants(VClock *merged, const VClock *a, const VClock *b)
{
	const VClock *from = a;
	size_t begin = 0;
	size_t count = 0;
	size_t i = 0;
	size_t j = 0;

	while (i < a->count && j < b->count)
	{
		Stretch stretch = find_stretch(a, i, b, j);
		const VClock *next = stretch.order < 0 ? a : stretch.order > 0 ? b : from;

		for (; stretch.run > 0; stretch.run--, i++, j++)
		{
			merged->counters[count++] = a->counters[i] < b->counters[j] ? b->counters[j] : a->counters[i];
		}
		if (next != from)
		{
			append_ids(merged, from, begin, count - merged->count);
			from = next;
			begin = next == a ? i : j;
		}
		if (stretch.order != 0)
		{
			merged->counters[count++] = next == a ? a->counters[i++] : b->counters[j++];
		}
	}
	append_ids(merged, from, begin, count - merged->count);
	append_entries(merged, a, i, a->count - i);
	append_entries(merged, b, j, b->count - j);
}

VClock
vclock_merge(const VClock *a, const VClock *b)
{
	VClock merged;

	if (same_participants(a, b))
	{
		merged = clock_with_room(a->count, a->id_bytes);
		take_greater(merged.counters, a->counters, b->counters, a->count);
		append_ids(&merged, a, 0, a->count);
		return merged;
	}
	merged = clock_with_room(a->count + b->count, a->id_bytes + b->id_bytes);
	merge_participants(&merged, a, b);
	return merged;
}

void
vclock_absorb(VClock *clock, const VClock *other)
{
	if (same_participants(clock, other))
	{
		take_greater(clock->counters, clock->counters, other->counters, clock->count);
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
