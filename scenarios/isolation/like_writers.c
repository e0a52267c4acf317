/*
 * isolation/like-writers  two writers of one pair and of two pairs; like against unlike
 *
 * Claim      Of requests that meet at one pair each is answered by the state that the one before it left, and writes an
 *            event only if it changes that; numbers have no gap whoever rolls back.
 * Method     All interleavings, judged after each step by the invariants of the like system (sql/isolation/like_judged.sql),
 *            and by every serial order of the writers: what each was answered, facts and events. like_set() as it is, one
 *            call in its transaction (BEGIN is part of the setup): like_writers_same_pair, like_writers_two_pairs (one
 *            writer rolls back and tries again), like_against_unlike_first (a pair that has no row yet), like_against_unlike
 *            (a liked pair, a like and two unlikes). like_writers_statements: what the function does inside, a step each, for
 *            both; ..._and_call: for one of them, against a call. Then twins over the same files.
 * Expect     Everything holds. The write path of one statement (M35) answers as if there were no row, and loses the request.
 *            Without the lock on the fact row (M04) a call that comes between the other's lock and its change decides by
 *            the state that is about to end, and meets the key of the outbox, 23505; against another call it cannot, because
 *            already its placeholder waits. Where the event takes its version from the row the key is not met either:
 *            one like more is counted.
 * Not shown  Requests that touch several pairs (isolation/like-wrapped). Interleavings are of whole statements (L22); which of
 *            two requests that wait goes on first is the server's choice (L23).
 */
#include "like_specs.h"

#include <string.h>

static void
one_statement(Scene *scene, const char *prepared, const char *file, int64_t interleavings, const char *order,
			  const char *detail)
{
	SpecReport *report = judge_twin(scene, file, prepared, "M35", "write.sql");

	check_broken(scene, report, "serializable", interleavings, order, detail);
	spec_report_free(report);
}

/* The shortest interleaving with an outcome of these words. */
static const char *
order_of(const SpecReport *report, const char *part)
{
	for (int i = 0; i < report->outcome_count; i++)
	{
		if (strstr(report->outcomes[i].text, part) != NULL)
		{
			return text_get(&report->outcomes[i].order);
		}
	}
	return "none";
}

static void
without_row_lock(Scene *scene, const char *prepared)
{
	SpecReport *report = judge_twin(scene, "like_writers_statements_and_call.spec", prepared, "M04", "write.sql");

	CHECK_EQ(scene, outcomes_with(report, "23505 at b"), 1, "interleavings in which the key of the outbox is met");
	check_text(scene, order_of(report, "23505 at b"), "ai al b au an ao ac bc", "the one that meets it");
	spec_report_free(report);
}

static void
unlocked(Scene *scene, const char *prepared)
{
	SpecReport *report = judge_spec(scene, "like_writers_unlocked.spec", prepared);

	check_broken(scene, report, "invariant events", 4, "ai al b au bc an ao ac",
				 "(user_id=1, item_id=1, liked=t, seq=4, delta=1, version=4, change=4) after ac");
	spec_report_free(report);
}

static void
run(Scene *scene)
{
	const char *prepared = like_prepared(scene);

	step(scene, "two writers of one pair that nobody has touched");
	judge_clean(scene, "like_writers_same_pair.spec", prepared, 4);
	step(scene, "two writers of one pair that has a row, statement by statement");
	judge_clean(scene, "like_writers_statements.spec", prepared, 38);
	step(scene, "one statement by statement, one as it is");
	judge_clean(scene, "like_writers_statements_and_call.spec", prepared, 9);
	step(scene, "two writers of two pairs, one of whom rolls back first");
	judge_clean(scene, "like_writers_two_pairs.spec", prepared, 8);
	step(scene, "a like against an unlike of a pair that nobody has touched");
	judge_clean(scene, "like_against_unlike_first.spec", prepared, 4);
	step(scene, "a like against two unlikes of a liked pair");
	judge_clean(scene, "like_against_unlike.spec", prepared, 30);

	step(scene, "M35: one statement with CTEs");
	one_statement(scene, prepared, "like_against_unlike_first.spec", 1, "b a bc ac",
				  "not serializable, read skew (G-single); nearest is the serial order b a: a answered (f, t, 0, 0), "
				  "serially (t, t, 1, 1)");
	one_statement(scene, prepared, "like_writers_same_pair.spec", 2, "a b ac bc",
				  "not serializable, read skew (G-single); nearest is the serial order a b: b answered (f, t, 0, 0), "
				  "serially (f, t, 1, 0)");
	step(scene, "M04: the fact row is not locked");
	without_row_lock(scene, prepared);
	step(scene, "the old state read without the lock, statement by statement");
	unlocked(scene, prepared);
}

const Scenario scenario_isolation_like_writers = {
	.suite = "isolation",
	.id = "isolation/like-writers",
	.title = "two writers of one pair and of two pairs; like against unlike",
	.claim = "each request is answered by the state before it, and events fit the facts, in every interleaving",
	.kind = "every interleaving, twins",
	.guarantee = "invariants 1 to 5 in every snapshot, serializable",
	.observed = "answers, facts and events",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 180000,
	.run = run,
};
