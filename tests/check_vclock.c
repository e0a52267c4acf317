/*
 * Vector clocks: entries, events, the four answers, text and JSON; long clocks against an account kept another way.
 */
#include "vclock.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"
#include "suite.h"

static VClock
clock_of(const char *text)
{
	VClock clock;
	Text why = {0};

	ck_assert_msg(vclock_parse(text, strlen(text), &clock, &why), "%s: %s", text, text_get(&why));
	return clock;
}

static void
assert_clock(const VClock *clock, const char *expected)
{
	Text text = {0};

	vclock_print(clock, &text);
	ck_assert_str_eq(text_get(&text), expected);
	text_free(&text);
}

static void
assert_error(bool done, const char *expected)
{
	char error[512];

	ck_assert(!done);
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, expected);
}


/* --- entries --- */

START_TEST(an_absent_participant_is_zero)
{
	VClock clock = {0};

	ck_assert_int_eq(vclock_get(&clock, vclock_id("A")), 0);
	ck_assert(vclock_set(&clock, vclock_id("B"), 7));
	ck_assert(vclock_set(&clock, vclock_id("A"), 0));
	ck_assert_int_eq(vclock_get(&clock, vclock_id("A")), 0);
	ck_assert_int_eq(vclock_get(&clock, vclock_id("B")), 7);
	ck_assert_uint_eq(vclock_count(&clock), 1);
	vclock_free(&clock);
	assert_clock(&clock, "[]");
}
END_TEST

START_TEST(entries_are_sorted_by_their_bytes)
{
	VClock clock = {0};
	static const char *const names[] = {"b", "a", "ba", "\xff", "B", "aa", "10", "9"};

	for (size_t i = 0; i < LENGTH_OF(names); i++)
	{
		ck_assert(vclock_set(&clock, vclock_id(names[i]), (int64_t) i + 1));
	}
	assert_clock(&clock, "[10:7, 9:8, B:5, a:2, aa:6, b:1, ba:3, \"\\xff\":4]");
	ck_assert_int_eq(vclock_entry(&clock, 3).counter, 2);
	ck_assert_uint_eq(vclock_entry(&clock, 3).id.length, 1);
	vclock_free(&clock);
}
END_TEST

START_TEST(a_clock_does_not_shrink)
{
	VClock clock = clock_of("[A:3, B:1]");
	VClock restored = clock_of("[A:1, B:1]");
	VClock later = clock_of("[A:3, B:2]");

	notice_expect_errors(true);
	assert_error(vclock_set(&clock, vclock_id("A"), 2), "the counter of A is 3: 2 would shrink it");
	assert_error(vclock_set(&clock, vclock_id("C"), -1), "the counter of C is 0: -1 would shrink it");
	assert_error(vclock_replace(&clock, &restored), "[A:3, B:1] would shrink: it is after [A:1, B:1]");
	notice_expect_errors(false);
	assert_clock(&clock, "[A:3, B:1]");
	ck_assert(vclock_replace(&clock, &clock));
	ck_assert(vclock_replace(&clock, &later));
	assert_clock(&clock, "[A:3, B:2]");
	vclock_free(&clock);
	vclock_free(&restored);
	vclock_free(&later);
}
END_TEST

START_TEST(names_have_a_length_within_bounds)
{
	char name[VCLOCK_ID_BYTES_MAX + 1];
	VClock clock = {0};
	VClock answer;

	memset(name, 'x', sizeof(name));
	ck_assert(vclock_set(&clock, (VClockId){name, VCLOCK_ID_BYTES_MAX}, 1));
	ck_assert_int_eq(vclock_get(&clock, (VClockId){name, VCLOCK_ID_BYTES_MAX}), 1);
	notice_expect_errors(true);
	assert_error(vclock_set(&clock, (VClockId){name, sizeof(name)}, 1),
				 "a participant has a name of 1 to 255 bytes, not of 256");
	assert_error(vclock_tick(&clock, vclock_id(""), &answer), "a participant has a name of 1 to 255 bytes, not of 0");
	assert_error(vclock_accept(&clock, &clock, vclock_id("")), "a participant has a name of 1 to 255 bytes, not of 0");
	notice_expect_errors(false);
	ck_assert_uint_eq(vclock_count(&clock), 1);
	vclock_free(&clock);
}
END_TEST


/* --- events --- */

START_TEST(nothing_that_is_given_changes)
{
	VClock a = clock_of("[A:1, C:4]");
	VClock b = clock_of("[A:2, B:1]");
	VClock answer;

	ck_assert(vclock_tick(&a, vclock_id("B"), &answer));
	assert_clock(&answer, "[A:1, B:1, C:4]");
	vclock_free(&answer);
	answer = vclock_merge(&a, &b);
	assert_clock(&answer, "[A:2, B:1, C:4]");
	vclock_free(&answer);
	ck_assert(vclock_receive(&a, &b, vclock_id("B"), &answer));
	assert_clock(&answer, "[A:2, B:2, C:4]");
	vclock_free(&answer);
	ck_assert_int_eq(vclock_compare(&a, &b), VCLOCK_CONCURRENT);
	assert_clock(&a, "[A:1, C:4]");
	assert_clock(&b, "[A:2, B:1]");
	vclock_free(&a);
	vclock_free(&b);
}
END_TEST

START_TEST(in_place_is_the_same)
{
	VClock a = clock_of("[A:1, C:4]");
	VClock b = clock_of("[A:2, B:1]");

	ck_assert(vclock_advance(&a, vclock_id("A")));
	assert_clock(&a, "[A:2, C:4]");
	vclock_absorb(&a, &b);
	assert_clock(&a, "[A:2, B:1, C:4]");
	ck_assert(vclock_accept(&a, &b, vclock_id("C")));
	assert_clock(&a, "[A:2, B:1, C:5]");
	ck_assert(vclock_accept(&b, &a, vclock_id("D")));
	assert_clock(&b, "[A:2, B:1, C:5, D:1]");
	vclock_free(&a);
	vclock_free(&b);
}
END_TEST

/* The name may lie in the clock that is changed, or in the message. */
START_TEST(a_name_may_lie_in_the_clock)
{
	VClock a = clock_of("[A:1]");
	VClock b = clock_of("[B:1, C:1]");

	ck_assert(vclock_accept(&a, &b, vclock_entry(&a, 0).id));
	assert_clock(&a, "[A:2, B:1, C:1]");
	vclock_free(&a);
	ck_assert(vclock_accept(&a, &b, vclock_entry(&b, 1).id));
	assert_clock(&a, "[B:1, C:2]");
	vclock_absorb(&a, &a);
	assert_clock(&a, "[B:1, C:2]");
	vclock_free(&a);
	vclock_free(&b);
}
END_TEST

/* Clocks that share their participants: what one of them learns is not the other's. */
START_TEST(copies_part)
{
	VClock a = clock_of("[A:1, C:4]");
	VClock copy = vclock_copy(&a);
	VClock merged = vclock_merge(&a, &copy);

	ck_assert(vclock_set(&copy, vclock_id("B"), 1));
	ck_assert(vclock_set(&merged, vclock_id("D"), 1));
	ck_assert(vclock_advance(&a, vclock_id("C")));
	assert_clock(&a, "[A:1, C:5]");
	assert_clock(&copy, "[A:1, B:1, C:4]");
	assert_clock(&merged, "[A:1, C:4, D:1]");
	vclock_free(&a);
	a = vclock_copy(&copy);
	vclock_free(&copy);
	ck_assert(vclock_set(&a, vclock_id("E"), 1)); /* alone again */
	assert_clock(&a, "[A:1, B:1, C:4, E:1]");
	vclock_free(&a);
	vclock_free(&merged);
}
END_TEST

enum
{
	READERS = 4
};

/* Copies what all share, learns something, and forgets both. */
static void *
read_and_part(void *shared)
{
	intptr_t wrong = 0;

	for (int i = 0; i < 2000; i++)
	{
		VClock copy = vclock_copy(shared);
		VClock again = vclock_merge(shared, &copy);

		wrong += !vclock_set(&copy, vclock_id("D"), 1) || !vclock_set(&again, vclock_id("B"), 1);
		wrong += vclock_compare(&copy, &again) != VCLOCK_CONCURRENT || vclock_compare(shared, &again) != VCLOCK_BEFORE;
		vclock_free(&again);
		vclock_free(&copy);
	}
	return (void *) wrong;
}

START_TEST(threads_may_read_one_clock)
{
	VClock clock = clock_of("[A:1, C:4]");
	pthread_t readers[READERS];

	for (int i = 0; i < READERS; i++)
	{
		ck_assert_int_eq(pthread_create(&readers[i], NULL, read_and_part, &clock), 0);
	}
	for (int i = 0; i < READERS; i++)
	{
		void *wrong;

		ck_assert_int_eq(pthread_join(readers[i], &wrong), 0);
		ck_assert_ptr_null(wrong);
	}
	ck_assert(vclock_set(&clock, vclock_id("B"), 1));
	assert_clock(&clock, "[A:1, B:1, C:4]");
	vclock_free(&clock);
}
END_TEST

START_TEST(no_counter_overflows)
{
	VClock full = clock_of("[A:9223372036854775807, B:1]");
	VClock other = clock_of("[B:2]");
	VClock answer;

	notice_expect_errors(true);
	assert_error(vclock_tick(&full, vclock_id("A"), &answer),
				 "the counter of A is 9223372036854775807: one more would overflow it");
	assert_clock(&answer, "[]");
	ck_assert(!vclock_receive(&other, &full, vclock_id("A"), &answer));
	assert_clock(&answer, "[]");
	ck_assert(!vclock_advance(&full, vclock_id("A")));
	ck_assert(!vclock_accept(&other, &full, vclock_id("A")));
	notice_expect_errors(false);
	assert_clock(&full, "[A:9223372036854775807, B:1]");
	assert_clock(&other, "[B:2]");
	ck_assert_int_eq(vclock_compare(&other, &full), VCLOCK_CONCURRENT);
	ck_assert(vclock_advance(&full, vclock_id("B")));
	ck_assert_int_eq(vclock_compare(&other, &full), VCLOCK_BEFORE);
	vclock_free(&full);
	vclock_free(&other);
}
END_TEST


/* --- two clocks --- */

START_TEST(there_are_four_answers)
{
	static const struct
	{
		const char *a;
		const char *b;
		const char *expected;
	} rows[] = {
		{"[]", "[]", "equal"},
		{"[A:0]", "[]", "equal"},
		{"[]", "[A:1]", "before"},
		{"[A:2, B:1]", "[A:2, B:1]", "equal"},
		{"[A:2]", "[A:2, B:1]", "before"},
		{"[A:2, B:1]", "[A:1]", "after"},
		{"[A:2, B:1]", "[A:1, B:2]", "concurrent"},
		{"[A:1]", "[B:1]", "concurrent"},
		{"[A:1]", "[AA:1]", "concurrent"},
		{"[A:1, C:1]", "[A:1, B:1, C:1, D:1]", "before"},
		{"[A:1, B:1, C:2]", "[A:1, C:1]", "after"},
		{"[A:1, C:2]", "[A:1, B:1, C:1]", "concurrent"},
		{"[participant-1:1, participant-2:1]", "[participant-1:1, participant-20:1]", "concurrent"},
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		VClock a = clock_of(rows[i].a);
		VClock b = clock_of(rows[i].b);
		VClockOrder order = vclock_compare(&a, &b);
		VClockOrder back = vclock_compare(&b, &a);

		ck_assert_msg(strcmp(vclock_order_name(order), rows[i].expected) == 0, "%s %s %s", rows[i].a,
					  vclock_order_name(order), rows[i].b);
		ck_assert_int_eq(back, order == VCLOCK_BEFORE ? VCLOCK_AFTER : order == VCLOCK_AFTER ? VCLOCK_BEFORE : order);
		vclock_free(&a);
		vclock_free(&b);
	}
}
END_TEST

enum
{
	NAMES = 60
};

static char names[NAMES][64];

static int
compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Names that share beginnings of any length, and have lengths on both sides of a word's; sorted. */
static void
make_names(void)
{
	static const char *const beginnings[] = {"", "a", "node", "node-00", "node-000", "a long beginning of a name, "};

	for (size_t i = 0; i < NAMES; i++)
	{
		snprintf(names[i], sizeof(names[i]), "%s%zu", beginnings[i % LENGTH_OF(beginnings)], i * 7919 % 1009);
	}
	qsort(names, NAMES, sizeof(names[0]), compare_names);
}

/* A clock and, beside it, the plain array that it stands for. */
static void
draw(Rng *rng, uint64_t density, VClock *clock, int64_t counters[NAMES])
{
	*clock = (VClock){0};
	memset(counters, 0, NAMES * sizeof(*counters));
	for (uint64_t i = rng_below(rng, 2 * NAMES); i > 0; i--)
	{
		size_t number = rng_below(rng, NAMES);

		counters[number] += rng_below(rng, 8) < density ? (int64_t) rng_below(rng, 3) : 0;
	}
	for (size_t i = 0; i < NAMES; i++)
	{
		size_t number = i * 7 % NAMES; /* each once, in another order than theirs */

		if (counters[number] > 0 && !vclock_set(clock, vclock_id(names[number]), counters[number]))
		{
			ck_abort_msg("not set");
		}
	}
}

static VClockOrder
order_of_arrays(const int64_t a[NAMES], const int64_t b[NAMES])
{
	bool less = false;
	bool more = false;

	for (size_t i = 0; i < NAMES; i++)
	{
		less = less || a[i] < b[i];
		more = more || a[i] > b[i];
	}
	return less && more ? VCLOCK_CONCURRENT : less ? VCLOCK_BEFORE : more ? VCLOCK_AFTER : VCLOCK_EQUAL;
}

static bool
is_array(const VClock *clock, const int64_t counters[NAMES])
{
	size_t entries = 0;
	bool same = true;

	for (size_t i = 0; i < NAMES && same; i++)
	{
		if (counters[i] > 0 && (same = entries < vclock_count(clock)))
		{
			VClockEntry entry = vclock_entry(clock, entries++);

			same = entry.counter == counters[i] && entry.id.length == strlen(names[i]) &&
				   memcmp(entry.id.bytes, names[i], entry.id.length) == 0;
		}
	}
	return same && vclock_count(clock) == entries;
}

/* Now and then both have the same participants, which is another way through compare and merge. */
static void
draw_two(Rng *rng, VClock *a, int64_t in_a[NAMES], VClock *b, int64_t in_b[NAMES])
{
	draw(rng, 1 + rng_below(rng, 8), a, in_a);
	if (rng_below(rng, 4) > 0)
	{
		draw(rng, 1 + rng_below(rng, 8), b, in_b);
		return;
	}
	*b = vclock_copy(a);
	memcpy(in_b, in_a, NAMES * sizeof(*in_b));
	for (uint64_t i = rng_below(rng, 4); i > 0; i--)
	{
		bool of_a = rng_below(rng, 2) == 0;
		size_t number = rng_below(rng, NAMES);

		if (in_a[number] > 0 && !vclock_advance(of_a ? a : b, vclock_id(names[number])))
		{
			ck_abort_msg("not advanced");
		}
		(of_a ? in_a : in_b)[number] += in_a[number] > 0;
	}
}

START_TEST(clocks_are_arrays_with_names)
{
	Rng rng = rng_stream(6, 0);
	int seen[VCLOCK_CONCURRENT + 1] = {0};

	make_names();
	for (int round = 0; round < 20000; round++)
	{
		int64_t in_a[NAMES];
		int64_t in_b[NAMES];
		VClock a;
		VClock b;
		VClock merged;

		draw_two(&rng, &a, in_a, &b, in_b);
		ck_assert(is_array(&a, in_a));
		ck_assert_int_eq(vclock_compare(&a, &b), order_of_arrays(in_a, in_b));
		seen[vclock_compare(&a, &b)]++;
		merged = vclock_merge(&a, &b);
		for (size_t i = 0; i < NAMES; i++)
		{
			in_b[i] = in_a[i] < in_b[i] ? in_b[i] : in_a[i];
		}
		ck_assert(is_array(&merged, in_b));
		ck_assert_int_eq(vclock_compare(&a, &merged), order_of_arrays(in_a, in_b));
		vclock_absorb(&b, &a);
		ck_assert_int_eq(vclock_compare(&b, &merged), VCLOCK_EQUAL);
		vclock_free(&a);
		vclock_free(&b);
		vclock_free(&merged);
	}
	for (int order = VCLOCK_BEFORE; order <= VCLOCK_CONCURRENT; order++)
	{
		ck_assert_msg(seen[order] > 1000, "%s only %d times", vclock_order_name((VClockOrder) order), seen[order]);
	}
}
END_TEST


/* --- text --- */

START_TEST(text_goes_out_and_in)
{
	static const struct
	{
		const char *text;
		const char *printed;
	} rows[] = {
		{"[]", "[]"},
		{" [ ] ", "[]"},
		{"[A:2, B:1]", "[A:2, B:1]"},
		{"[B:1,A:2]", "[A:2, B:1]"},
		{"\t[ \"A\" : 2 ,\r\nB:0 ]\n", "[A:2]"},
		{"[\"a b\":1, n1#2:3]", "[\"a b\":1, n1#2:3]"},
		{"[\"\\x00\\xff\\\"\\\\\":1]", "[\"\\x00\\xff\\\"\\\\\":1]"},
		{"[A:009223372036854775807]", "[A:9223372036854775807]"},
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		VClock clock = clock_of(rows[i].text);

		assert_clock(&clock, rows[i].printed);
		vclock_free(&clock);
	}
}
END_TEST

START_TEST(text_that_is_no_clock_is_refused)
{
	static const struct
	{
		const char *text;
		const char *why;
	} rows[] = {
		{"", "byte 1: here a clock is expected, like [A:2, B:1]"},
		{"{A:1}", "byte 1: here a clock is expected, like [A:2, B:1]"},
		{"[A:1", "byte 5: here a comma or the closing bracket is expected"},
		{"[A:1,]",
		 "byte 6: here a participant's name is expected, in quotes if it has other bytes than letters, digits "
		 "and _.#@/+-"},
		{"[A 1]", "byte 4: here a colon is expected, between a name and its counter"},
		{"[A:-1]", "byte 4: here a counter is expected, a whole number from 0 on"},
		{"[A:1.5]", "byte 5: here a comma or the closing bracket is expected"},
		{"[A:9223372036854775808]", "byte 22: a counter is too large"},
		{"[A:99999999999999999999999]", "byte 22: a counter is too large"},
		{"[A:1] B", "byte 7: behind the clock there is more"},
		{"[A:1, B:1, A:2]", "a participant is named twice: A"},
		{"[A:0, A:0]", "a participant is named twice: A"},
		{"[\"\":1]", "a participant's name has too many bytes or none: \"\""},
		{"[\"A:1]", "byte 7: a name in quotes has no end"},
		{"[\"\\n\":1]", "byte 4: an escape is \\\", \\\\ or \\x and two digits of 0-9 a-f"},
		{"[\"\\x0G\":1]", "byte 4: an escape is \\\", \\\\ or \\x and two digits of 0-9 a-f"},
		{"[\"\\x0", "byte 4: an escape is \\\", \\\\ or \\x and two digits of 0-9 a-f"},
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		VClock clock;
		Text why = {0};

		ck_assert_msg(!vclock_parse(rows[i].text, strlen(rows[i].text), &clock, &why), "taken: %s", rows[i].text);
		ck_assert_str_eq(text_get(&why), rows[i].why);
		ck_assert_uint_eq(vclock_count(&clock), 0);
		text_free(&why);
	}
}
END_TEST

START_TEST(json_goes_out_and_in)
{
	static const char text[] = " {\"writer 1\": 14, \"db\":9223372036854775807, \"\\u00e9\":1, \"gone\": 0}";
	VClock clock;
	Text why = {0};

	ck_assert(vclock_parse_json(text, strlen(text), &clock, &why));
	assert_clock(&clock, "[db:9223372036854775807, \"writer 1\":14, \"\\xc3\\xa9\":1]");
	ck_assert(vclock_print_json(&clock, &why));
	ck_assert_str_eq(text_get(&why), "{\"db\":9223372036854775807,\"writer 1\":14,\"\xc3\xa9\":1}");
	vclock_free(&clock);
	text_clear(&why);
	ck_assert(vclock_print_json(&clock, &why));
	ck_assert_str_eq(text_get(&why), "{}");
	text_free(&why);
}
END_TEST

START_TEST(json_that_is_no_clock_is_refused)
{
	static const struct
	{
		const char *text;
		const char *why; /* its beginning */
	} rows[] = {
		{"", "byte 0: '[' or '{' expected"},
		{"[1]", "a clock is an object"},
		{"{\"A\":1", "byte 6: '}' expected"},
		{"{\"A\":1} x", "byte 9: end of file expected"},
		{"{\"A\":1,\"A\":1}", "byte 10: duplicate object key"},
		{"{\"A\":-1}", "a counter is a whole number from 0 on, which it is not for A"},
		{"{\"A\":1.0}", "a counter is a whole number from 0 on, which it is not for A"},
		{"{\"A\":\"1\"}", "a counter is a whole number from 0 on, which it is not for A"},
		{"{\"A\":{}}", "a counter is a whole number from 0 on, which it is not for A"},
		{"{\"A\":9223372036854775808}", "byte 24: too big integer"},
		{"{\"\":1}", "a participant's name has too many bytes or none: \"\""},
		{"{\"\\u0000\":1}", "byte 9: NUL byte in object key not supported"},
		{"{\"\xff\":1}", "byte 2: unable to decode byte 0xff"},
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		VClock clock;
		Text why = {0};

		ck_assert_msg(!vclock_parse_json(rows[i].text, strlen(rows[i].text), &clock, &why), "taken: %s", rows[i].text);
		ck_assert_msg(strncmp(text_get(&why), rows[i].why, strlen(rows[i].why)) == 0, "%s: %s", rows[i].text,
					  text_get(&why));
		ck_assert_uint_eq(vclock_count(&clock), 0);
		text_free(&why);
	}
}
END_TEST

START_TEST(names_that_json_does_not_know)
{
	VClock clock = clock_of("[A:1, \"\\xff\":1]");
	VClock zero = clock_of("[\"a\\x00\":1]");
	Text json = {0};

	notice_expect_errors(true);
	assert_error(vclock_print_json(&clock, &json),
				 "the participant \"\\xff\" cannot be named in JSON: it is no UTF-8, or has a zero byte");
	assert_error(vclock_print_json(&zero, &json),
				 "the participant \"a\\x00\" cannot be named in JSON: it is no UTF-8, or has a zero byte");
	notice_expect_errors(false);
	ck_assert_uint_eq(json.length, 0);
	text_free(&json);
	vclock_free(&clock);
	vclock_free(&zero);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("vclock");
	TCase *entries = tcase_create("entries");
	TCase *events = tcase_create("events");
	TCase *two = tcase_create("two clocks");
	TCase *text = tcase_create("text");

	tcase_add_test(entries, an_absent_participant_is_zero);
	tcase_add_test(entries, entries_are_sorted_by_their_bytes);
	tcase_add_test(entries, a_clock_does_not_shrink);
	tcase_add_test(entries, names_have_a_length_within_bounds);
	tcase_add_test(events, nothing_that_is_given_changes);
	tcase_add_test(events, in_place_is_the_same);
	tcase_add_test(events, a_name_may_lie_in_the_clock);
	tcase_add_test(events, copies_part);
	tcase_add_test(events, threads_may_read_one_clock);
	tcase_add_test(events, no_counter_overflows);
	tcase_add_test(two, there_are_four_answers);
	tcase_add_test(two, clocks_are_arrays_with_names);
	tcase_set_timeout(two, 30);
	tcase_add_test(text, text_goes_out_and_in);
	tcase_add_test(text, text_that_is_no_clock_is_refused);
	tcase_add_test(text, json_goes_out_and_in);
	tcase_add_test(text, json_that_is_no_clock_is_refused);
	tcase_add_test(text, names_that_json_does_not_know);
	suite_add_tcase(suite, entries);
	suite_add_tcase(suite, events);
	suite_add_tcase(suite, two);
	suite_add_tcase(suite, text);
	return suite_run(suite);
}
