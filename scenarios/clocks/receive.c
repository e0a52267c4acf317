/*
 * clocks/receive  a message is received: merge, then tick
 *
 * Claim      The receipt of a message is an event of its own, after what was sent and after what the receiver knew. Without the
 *            tick it cannot be told from what came before it; without the merge it is not after what was sent.
 * Method     A message that brings nothing new and one that does, each received by the rule, by a twin that leaves the
 *            tick out and by one that leaves the merge out; in place as well.
 * Expect     By the rule the receipt is after both, always. Without the tick, of a message that brings nothing new: equal
 *            to the clock before it. Without the merge: concurrent with the message that was received.
 * Not shown  Whether a system ticks at the right moments; that is up to who calls this (L32).
 */
#include "lab.h"
#include "past.h"

typedef struct
{
	const char *clock;
	const char *message;
	const char *received;
	const char *from_clock; /* the receipt, as seen from what was known */
	const char *from_sent;  /* the receipt, as seen from what was sent */
} Expected;

/* B receives. */
static void
check_receipt(Scene *scene, bool (*receive)(const VClock *, const VClock *, VClockId, VClock *),
			  const Expected *expected)
{
	VClock clock = clock_of(scene, expected->clock);
	VClock message = clock_of(scene, expected->message);
	VClock received;

	require(scene, receive(&clock, &message, vclock_id("B"), &received));
	check_clock(scene, &received, expected->received, "the receipt");
	check_text(scene, vclock_order_name(vclock_compare(&received, &clock)), expected->from_clock,
			   "it, as seen from %s, which B knew", expected->clock);
	check_text(scene, vclock_order_name(vclock_compare(&received, &message)), expected->from_sent,
			   "it, as seen from %s, which was sent", expected->message);
	check_clock(scene, &clock, expected->clock, "what B knew, after it");
	check_clock(scene, &message, expected->message, "the message, after it");
	vclock_free(&clock);
	vclock_free(&message);
	vclock_free(&received);
}

static void
in_place(Scene *scene)
{
	VClock clock = clock_of(scene, "[A:1, B:2]");
	VClock message = clock_of(scene, "[A:2]");

	step(scene, "in place, under another name");
	require(scene, vclock_accept(&clock, &message, vclock_id("B")));
	check_clock(scene, &clock, "[A:2, B:3]", "what B knows now");
	check_clock(scene, &message, "[A:2]", "the message, after it");
	vclock_free(&clock);
	vclock_free(&message);
}

static void
run(Scene *scene)
{
	step(scene, "a message that brings something new");
	check_receipt(scene, vclock_receive, &(Expected){"[A:1, B:2]", "[A:2, B:1]", "[A:2, B:3]", "after", "after"});
	step(scene, "a message that brings nothing new");
	check_receipt(scene, vclock_receive, &(Expected){"[A:2, B:2]", "[A:2, B:1]", "[A:2, B:3]", "after", "after"});
	step(scene, "the twin without the tick, and a message that brings nothing new: the receipt is no event");
	check_receipt(scene, past_receive_without_tick,
				  &(Expected){"[A:2, B:2]", "[A:2, B:1]", "[A:2, B:2]", "equal", "after"});
	step(scene, "the twin without the tick, and a message from somebody who knows all: the same as what was sent");
	check_receipt(scene, past_receive_without_tick,
				  &(Expected){"[A:1, B:1]", "[A:2, B:1]", "[A:2, B:1]", "after", "equal"});
	step(scene, "the twin without the merge: the receipt is not after what was sent");
	check_receipt(scene, past_receive_without_merge,
				  &(Expected){"[A:1, B:2]", "[A:2, B:1]", "[A:1, B:3]", "after", "concurrent"});
	in_place(scene);
}

const Scenario scenario_clocks_receive = {
	.suite = "clocks",
	.id = "clocks/receive",
	.title = "a message is received: merge, then tick",
	.claim = "a receipt is after what was sent and after what was known; without tick or merge it is not",
	.kind = "small examples, negative control",
	.guarantee = "merge, then tick",
	.observed = "vclock_receive beside twins without tick and without merge",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
