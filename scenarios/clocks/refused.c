/*
 * clocks/refused  what is no clock, and what a clock refuses
 *
 * Claim      A counter that would overflow, a clock that would shrink, a participant named twice and a counter that is negative,
 *            huge or no number are errors that say what is wrong and where; what was there stays. Names are any bytes.
 * Method     Each is tried, by itself, from text and from JSON. Every name of one byte, and the longest one, goes out and in.
 * Expect     Each is refused with its reason, and the clock is as before. All 256 names come back as they were.
 * Not shown  JSON for names that are no UTF-8: it is refused, as JSON has none.
 */
#include "lab.h"

#include <string.h>

typedef bool (*Parse)(const char *text, size_t length, VClock *clock, Text *why);

static void
check_unread(Scene *scene, Parse parse, const char *text, const char *expected)
{
	VClock clock;
	Text why = {0};
	bool done = parse(text, strlen(text), &clock, &why);

	check_text(scene, done ? "taken" : text_get(&why), expected, "%s", text);
	vclock_free(&clock);
	text_free(&why);
}

static void
no_clocks(Scene *scene)
{
	step(scene, "text that is no clock");
	check_unread(scene, vclock_parse, "[A:1, B:2, A:3]", "a participant is named twice: A");
	check_unread(scene, vclock_parse, "[A:-1]", "byte 4: here a counter is expected, a whole number from 0 on");
	check_unread(scene, vclock_parse, "[A:9223372036854775808]", "byte 22: a counter is too large");
	check_unread(scene, vclock_parse, "[A:1, B", "byte 8: here a colon is expected, between a name and its counter");
	step(scene, "JSON that is no clock");
	check_unread(scene, vclock_parse_json, "{\"A\":-1}",
				 "a counter is a whole number from 0 on, which it is not for A");
	check_unread(scene, vclock_parse_json, "{\"A\":1.5}",
				 "a counter is a whole number from 0 on, which it is not for A");
	check_unread(scene, vclock_parse_json, "{\"A\":1,\"A\":2}", "byte 10: duplicate object key near '\"A\"'");
	check_unread(scene, vclock_parse_json, "[\"A\"]", "a clock is an object, like {\"A\":2,\"B\":1}");
}

static void
no_names(Scene *scene)
{
	static const char longer[VCLOCK_ID_BYTES_MAX + 1] = "x";
	VClock clock = {0};

	step(scene, "a participant without a name, and one with a name that is too long");
	notice_expect_errors(true);
	check_refused(scene, vclock_advance(&clock, vclock_id("")), "a participant has a name of 1 to 255 bytes, not of 0",
				  "a tick");
	check_refused(scene, vclock_advance(&clock, (VClockId){longer, sizeof(longer)}),
				  "a participant has a name of 1 to 255 bytes, not of 256", "a tick");
	notice_expect_errors(false);
	check_clock(scene, &clock, "[]", "the clock, after it");
}

static void
would_overflow(Scene *scene)
{
	VClock full = clock_of(scene, "[A:9223372036854775807]");
	VClock other = clock_of(scene, "[B:1]");
	VClock answer;
	static const char expected[] = "the counter of A is 9223372036854775807: one more would overflow it";

	step(scene, "a counter that cannot grow");
	notice_expect_errors(true);
	check_refused(scene, vclock_tick(&full, vclock_id("A"), &answer), expected, "a tick");
	check_refused(scene, vclock_receive(&other, &full, vclock_id("A"), &answer), expected, "a receipt");
	check_refused(scene, vclock_advance(&full, vclock_id("A")), expected, "a tick in place");
	check_refused(scene, vclock_accept(&other, &full, vclock_id("A")), expected, "a receipt in place");
	notice_expect_errors(false);
	check_clock(scene, &full, "[A:9223372036854775807]", "the full clock, after all of it");
	check_clock(scene, &other, "[B:1]", "the other, after all of it");
	vclock_free(&full);
	vclock_free(&other);
}

static void
would_shrink(Scene *scene)
{
	VClock clock = clock_of(scene, "[A:3, B:1]");
	VClock restored = clock_of(scene, "[A:2, B:1]");

	step(scene, "a clock that would shrink");
	notice_expect_errors(true);
	check_refused(scene, vclock_set(&clock, vclock_id("A"), 2), "the counter of A is 3: 2 would shrink it", "a set");
	check_refused(scene, vclock_replace(&clock, &restored), "[A:3, B:1] would shrink: it is after [A:2, B:1]",
				  "a backup in its place");
	notice_expect_errors(false);
	check_clock(scene, &clock, "[A:3, B:1]", "the clock, after it");
	vclock_free(&clock);
	vclock_free(&restored);
}

static void
any_bytes(Scene *scene)
{
	char longest[VCLOCK_ID_BYTES_MAX];
	VClock clock = {0};
	VClock again;
	Text text = {0};

	step(scene, "a participant for every byte, and one with the longest name");
	for (int byte = 0; byte < 256; byte++)
	{
		char name = (char) byte;

		require(scene, vclock_set(&clock, (VClockId){&name, 1}, byte + 1));
	}
	memset(longest, '\n', sizeof(longest));
	require(scene, vclock_set(&clock, (VClockId){longest, sizeof(longest)}, VCLOCK_COUNTER_MAX));
	vclock_print(&clock, &text);
	require(scene, vclock_parse(text.data, text.length, &again, &text));
	CHECK_EQ(scene, vclock_count(&again), 257, "participants read again");
	check_text(scene, vclock_order_name(vclock_compare(&clock, &again)), "equal", "printed and read again");
	vclock_free(&clock);
	vclock_free(&again);
	text_free(&text);
}

static void
as_json(Scene *scene)
{
	VClock clock = clock_of(scene, "[\"worker 2\":14, db:3]");
	VClock again;
	Text json = {0};

	step(scene, "JSON, out and in");
	require(scene, vclock_print_json(&clock, &json));
	check_text(scene, text_get(&json), "{\"db\":3,\"worker 2\":14}", "as JSON");
	require(scene, vclock_parse_json(json.data, json.length, &again, &json));
	check_clock(scene, &again, "[db:3, \"worker 2\":14]", "read again");
	vclock_free(&clock);
	vclock_free(&again);
	text_free(&json);
}

static void
run(Scene *scene)
{
	no_clocks(scene);
	no_names(scene);
	would_overflow(scene);
	would_shrink(scene);
	any_bytes(scene);
	as_json(scene);
}

const Scenario scenario_clocks_refused = {
	.suite = "clocks",
	.id = "clocks/refused",
	.title = "what is no clock, and what a clock refuses",
	.claim = "overflow, shrinking, repeated names and bad counters are errors that say what and where; all stays",
	.kind = "small examples",
	.guarantee = "what is refused leaves no trace",
	.observed = "reasons given, clocks before and after, text and JSON",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
