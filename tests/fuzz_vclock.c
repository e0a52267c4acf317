/*
 * Fuzzes what reads clocks: no bytes make it read or write where it must not. What is refused says why and leaves the
 * empty clock; what is taken is sorted, has no zero, and printed and read again it is the same. Two that are taken are
 * held against each other, entry by entry.
 *
 * The input is a byte that says which is text and which JSON, and two clocks with a line feed between them.
 */
#include <stdlib.h>
#include <string.h>

#include "vclock.h"

extern int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length);

typedef bool (*Parse)(const char *text, size_t length, VClock *clock, Text *why);

static void
require(bool holds, const char *what)
{
	if (!holds)
	{
		report_error("does not hold: %s", what);
		abort();
	}
}

static int
compare_ids(VClockId a, VClockId b)
{
	int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);

	return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static void
check_entries(const VClock *clock)
{
	for (size_t i = 0; i < vclock_count(clock); i++)
	{
		VClockEntry entry = vclock_entry(clock, i);

		require(entry.counter > 0, "no zero is kept");
		require(entry.id.length >= 1 && entry.id.length <= VCLOCK_ID_BYTES_MAX, "names have their length");
		require(i == 0 || compare_ids(vclock_entry(clock, i - 1).id, entry.id) < 0, "entries are sorted");
		require(vclock_get(clock, entry.id) == entry.counter, "entries are found");
	}
}

static void
check_round_trip(const VClock *clock, const Text *printed, Parse parse)
{
	VClock again;
	Text why = {0};

	require(parse(printed->data, printed->length, &again, &why), text_get(&why));
	require(vclock_compare(clock, &again) == VCLOCK_EQUAL, "what is printed is read again");
	vclock_free(&again);
	text_free(&why);
}

/* JSON knows no names that are not UTF-8. */
static void
check_printed(const VClock *clock, bool json_knows_names)
{
	Text text = {0};
	bool known;

	vclock_print(clock, &text);
	check_round_trip(clock, &text, vclock_parse);
	text_clear(&text);
	notice_expect_errors(true);
	known = vclock_print_json(clock, &text);
	notice_expect_errors(false);
	require(known || !json_knows_names, "what came as JSON goes as JSON");
	if (known)
	{
		check_round_trip(clock, &text, vclock_parse_json);
	}
	text_free(&text);
}

/* What is laid out as it is printed is read by another way than the rest of JSON: a blank in front is not. */
static void
check_both_ways(const unsigned char *bytes, size_t length, bool taken, const VClock *clock)
{
	Text blank = {0}, why = {0};
	VClock other;

	text_append(&blank, " ");
	text_append_bytes(&blank, (const char *) bytes, length);
	require(vclock_parse_json(blank.data, blank.length, &other, &why) == taken, "a blank in front changes nothing");
	require(vclock_compare(clock, &other) == VCLOCK_EQUAL, "a blank in front changes no entry");
	vclock_free(&other);
	text_free(&blank);
	text_free(&why);
}

static void
read_clock(const unsigned char *bytes, size_t length, bool json, VClock *clock)
{
	Text why = {0};
	bool taken = (json ? vclock_parse_json : vclock_parse)((const char *) bytes, length, clock, &why);

	if (taken)
	{
		require(why.length == 0, "what is taken has no reason why not");
		check_entries(clock);
		check_printed(clock, json);
	}
	else
	{
		require(why.length > 0, "what is refused has a reason");
		require(vclock_count(clock) == 0, "what is refused is the empty clock");
	}
	if (json)
	{
		check_both_ways(bytes, length, taken, clock);
	}
	text_free(&why);
}

static bool
all_known(const VClock *clock, const VClock *by)
{
	bool known = true;

	for (size_t i = 0; i < vclock_count(clock); i++)
	{
		VClockEntry entry = vclock_entry(clock, i);

		known = known && entry.counter <= vclock_get(by, entry.id);
	}
	return known;
}

static void
check_two(const VClock *a, const VClock *b)
{
	bool less = all_known(a, b);
	bool more = all_known(b, a);
	VClock merged = vclock_merge(a, b);

	require(vclock_compare(a, b) == (less && more ? VCLOCK_EQUAL
									 : less       ? VCLOCK_BEFORE
									 : more       ? VCLOCK_AFTER
												  : VCLOCK_CONCURRENT),
			"compare looks at all entries");
	check_entries(&merged);
	require(all_known(a, &merged) && all_known(b, &merged), "a merged clock knows both");
	for (size_t i = 0; i < vclock_count(&merged); i++)
	{
		VClockEntry entry = vclock_entry(&merged, i);

		require(entry.counter == vclock_get(a, entry.id) || entry.counter == vclock_get(b, entry.id),
				"a merged clock knows no more");
	}
	vclock_free(&merged);
}

int
LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
	const unsigned char *between = length > 0 ? memchr(bytes + 1, '\n', length - 1) : NULL;
	VClock a;
	VClock b;

	if (between == NULL)
	{
		return 0;
	}
	read_clock(bytes + 1, (size_t) (between - bytes) - 1, (bytes[0] & 1) != 0, &a);
	read_clock(between + 1, (size_t) (bytes + length - between) - 1, (bytes[0] & 2) != 0, &b);
	check_two(&a, &b);
	vclock_free(&a);
	vclock_free(&b);
	return 0;
}
