/*
 * repair/listener  a listener that adds beside one that counts again
 *
 * Claim      Adding needs every event exactly once: one that is missed or repeated is in the count for ever. Counting
 *            again heals at the next event, but until then it is as wrong, and only a comparison finds either.
 * Method     Three parents. The event of one child of parent 1 is missed, that of one of parent 2 is delivered twice,
 *            parent 3 has all of its own once. Then every parent gets one child more, delivered once. Then the repair.
 * Expect     Added: 1 and 2 are wrong, and are still after the next event. Counted again: 1 is wrong until the next
 *            event, 2 never. Keys are told as id and counter (11 is parent 1 by increment, 12 by recount). Repaired:
 *            none is wrong.
 * Not shown  Listeners that run late or out of order: repair/negative has the order, 32-E a log of events.
 */
#include "lab.h"

static void
check_both(Scene *scene, int64_t by_increment, int64_t by_recount, const char *when)
{
	static const char *const names[] = {"par.by_increment", "par.by_recount"};
	int64_t expected[] = {by_increment, by_recount};

	for (size_t i = 0; i < LENGTH_OF(names); i++)
	{
		Told told = tool_run(scene, "check", "listeners.yaml", WORDS(names[i]),
							 expected[i] > 0 ? EXIT_CODE_FAIL : EXIT_CODE_PASS, when);

		CHECK_EQ(scene, told_number(&told, "Drifted"), expected[i], "%s, %s: Drifted", when, names[i]);
		told_free(&told);
	}
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "listeners.sql");

	step(scene, "one event is missed, one repeated");
	require(scene, session_execute(lab, "SELECT add_child_and_deliver(id, 1) FROM par ORDER BY id"));
	check_wrong(scene, lab, "", "each event once");
	require(scene, session_execute(lab, "SELECT add_child_and_deliver(1, 0)"));
	require(scene, session_execute(lab, "SELECT add_child_and_deliver(2, 2)"));
	check_wrong(scene, lab, "11:1/2 12:1/2 21:3/2", "missed and repeated");
	check_both(scene, 2, 1, "missed and repeated");

	step(scene, "the next event of each");
	require(scene, session_execute(lab, "SELECT add_child_and_deliver(id, 1) FROM par ORDER BY id"));
	check_wrong(scene, lab, "11:2/3 21:4/3", "who counts again is healed, who adds is not");
	check_both(scene, 2, 0, "after the next event");

	step(scene, "the repair");
	tool_does(scene, "repair", "listeners.yaml", NO_WORDS, EXIT_CODE_PASS, "both counters are asked for");
	check_wrong(scene, lab, "", "repaired");
	require(scene, session_execute(lab, "SELECT add_child_and_deliver(id, 1) FROM par ORDER BY id"));
	check_wrong(scene, lab, "", "and the next event finds it right");
}

const Scenario scenario_repair_listener = {
	.suite = "repair",
	.id = "repair/listener",
	.title = "a listener that adds beside one that counts again",
	.claim =
		"a missed or repeated event stays in a count that is added to, and leaves at the next event one that is counted again",
	.kind = "real component, negative control",
	.guarantee = "what is wrong is found, whichever listener made it",
	.observed = "par beside ch, after each event",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 30000,
	.run = run,
};
