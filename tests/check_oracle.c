#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "rng.h"
#include "suite.h"

/* Histories are written by hand, times in ms. The key is (user, 1); want follows from the version unless said. */

#define MS 1000000

static HistoryOp
operation(int worker, int64_t user, int64_t begin, int64_t end, OpOutcome outcome)
{
	return (HistoryOp){.worker = worker,
					   .key = {user, 1},
					   .begin_ns = begin * MS,
					   .end_ns = outcome == OP_OPEN ? INT64_MAX : end * MS,
					   .outcome = outcome};
}

static HistoryOp
changed(int worker, int64_t user, int64_t begin, int64_t end, int64_t version, int64_t number)
{
	HistoryOp op = operation(worker, user, begin, end, OP_OK);

	op.changed = true;
	op.version = version;
	op.number = number;
	op.want = op.state = version % 2 == 1;
	return op;
}

static HistoryOp
unchanged(int worker, int64_t user, int64_t begin, int64_t end, int64_t version)
{
	HistoryOp op = operation(worker, user, begin, end, OP_OK);

	op.version = version;
	op.want = op.state = version % 2 == 1;
	return op;
}

static HistoryOp
unknown(int worker, int64_t user, int64_t begin, int64_t end, bool want)
{
	HistoryOp op = operation(worker, user, begin, end, OP_UNKNOWN);

	op.want = want;
	return op;
}

/* Lost in COMMIT: its answer is known, not whether it holds. */
static HistoryOp
unknown_answered(int worker, int64_t user, int64_t begin, int64_t end, int64_t version, int64_t number)
{
	HistoryOp op = changed(worker, user, begin, end, version, number);

	op.outcome = OP_UNKNOWN;
	op.xid = 1000 + (uint64_t) number;
	return op;
}

#define JUDGE(...)                                                                                                     \
	oracle_judge_registers((HistoryOp[]){__VA_ARGS__}, sizeof((HistoryOp[]){__VA_ARGS__}) / sizeof(HistoryOp))

static void
expect(Judgement judgement, Verdict verdict, size_t violations, const char *part)
{
	ck_assert_msg(judgement.verdict == verdict && judgement.violations == violations,
				  "expected %s with %zu violations, got %s with %zu: %s", verdict_name(verdict), violations,
				  verdict_name(judgement.verdict), judgement.violations, text_get(&judgement.first));
	ck_assert_msg(strstr(text_get(&judgement.first), part) != NULL, "expected \"%s\" in \"%s\"", part,
				  text_get(&judgement.first));
	text_free(&judgement.first);
}

static void
expect_holds(Judgement judgement)
{
	expect(judgement, VERDICT_HOLDS, 0, "");
}


/* --- nothing exercised --- */

START_TEST(an_empty_history_is_unknown)
{
	Judgement judgement = oracle_judge_registers(NULL, 0);

	ck_assert_uint_eq(judgement.operations, 0);
	expect(judgement, VERDICT_UNKNOWN, 0, "");
}
END_TEST

START_TEST(no_acked_change_is_unknown)
{
	Judgement judgement = JUDGE(unchanged(0, 1, 0, 1, 0), unknown(1, 1, 2, 3, true), operation(2, 1, 4, 5, OP_FAILED),
								operation(3, 1, 6, 0, OP_OPEN));

	ck_assert_uint_eq(judgement.operations, 4);
	ck_assert_uint_eq(judgement.changes, 0);
	ck_assert_uint_eq(judgement.unknowns, 2);
	expect(judgement, VERDICT_UNKNOWN, 0, "");
}
END_TEST

START_TEST(violated_outranks_unknown)
{
	expect(JUDGE(unchanged(0, 1, 0, 1, 1)), VERDICT_VIOLATED, 1, "no operation can have made version 1");
}
END_TEST


/* --- one good history, and the same with one thing changed --- */

/* Two registers, two workers, overlapping and not, a failed request, a noop in each state. */
#define GOOD_LENGTH 8

static void
make_good(HistoryOp *ops)
{
	ops[0] = unchanged(0, 1, 0, 2, 0);
	ops[1] = changed(0, 1, 3, 6, 1, 1);
	ops[2] = changed(1, 2, 4, 7, 1, 2);
	ops[3] = unchanged(1, 1, 5, 8, 1);
	ops[4] = operation(0, 1, 7, 8, OP_FAILED);
	ops[5] = changed(0, 1, 9, 11, 2, 3);
	ops[6] = unchanged(1, 1, 12, 13, 2);
	ops[7] = changed(1, 2, 14, 15, 2, 4);
}

typedef struct
{
	const char *what;
	int index;
	HistoryOp op;
	const char *part;
} Mutation;

START_TEST(a_good_history_holds)
{
	HistoryOp ops[GOOD_LENGTH];
	Judgement judgement;

	make_good(ops);
	judgement = oracle_judge_registers(ops, GOOD_LENGTH);
	ck_assert_uint_eq(judgement.operations, 8);
	ck_assert_uint_eq(judgement.changes, 4);
	ck_assert_uint_eq(judgement.unknowns, 0);
	expect_holds(judgement);
}
END_TEST

START_TEST(each_mutation_is_seen)
{
	HistoryOp wrong_state = changed(0, 1, 3, 6, 1, 1);
	HistoryOp wrong_want = changed(0, 1, 3, 6, 1, 1);
	HistoryOp noop_with_number = unchanged(1, 1, 12, 13, 2);

	wrong_state.state = wrong_state.want = false;
	wrong_want.want = false;
	noop_with_number.number = 9;

	const Mutation mutations[] = {
		{"noop of the future", 0, unchanged(0, 1, 0, 2, 2), "comes after it by version"},
		{"noop beyond any version", 6, unchanged(1, 1, 12, 13, 4), "no operation can have made version 3"},
		{"noop of the past", 6, unchanged(1, 1, 12, 13, 0), "comes after it by version"},
		{"state against its version", 1, wrong_state, "after version 1 the register is on"},
		{"state against its want", 1, wrong_want, "the answer is not the state that was asked for"},
		{"change without number", 7, changed(1, 2, 14, 15, 2, 0), "whose version and number cannot be"},
		{"change to version 0", 7, changed(1, 2, 14, 15, 0, 4), "whose version and number cannot be"},
		{"noop with a number", 6, noop_with_number, "whose version and number cannot be"},
		{"noop below version 0", 0, unchanged(0, 1, 0, 2, -1), "whose version and number cannot be"},
		{"version twice", 7, changed(1, 2, 5, 6, 1, 4), "version 1 was given twice"},
		{"version left out", 5, changed(0, 1, 9, 11, 4, 5), "no operation can have made version 2"},
		{"number twice", 2, changed(1, 2, 4, 7, 1, 1), "number 1 was given twice"},
		{"numbers against real time", 5, changed(0, 1, 9, 11, 2, 9),
		 "acked before another began, and has the higher number"},
	};

	for (size_t i = 0; i < LENGTH_OF(mutations); i++)
	{
		HistoryOp ops[GOOD_LENGTH];
		Judgement judgement;

		make_good(ops);
		ops[mutations[i].index] = mutations[i].op;
		judgement = oracle_judge_registers(ops, GOOD_LENGTH);
		ck_assert_msg(judgement.verdict == VERDICT_VIOLATED, "%s: %s", mutations[i].what,
					  verdict_name(judgement.verdict));
		ck_assert_msg(strstr(text_get(&judgement.first), mutations[i].part) != NULL, "%s: %s", mutations[i].what,
					  text_get(&judgement.first));
		text_free(&judgement.first);
	}
}
END_TEST

START_TEST(order_in_the_array_does_not_matter)
{
	HistoryOp ops[GOOD_LENGTH];
	HistoryOp reversed[GOOD_LENGTH];

	make_good(ops);
	for (int i = 0; i < GOOD_LENGTH; i++)
	{
		reversed[i] = ops[GOOD_LENGTH - 1 - i];
	}
	expect_holds(oracle_judge_registers(reversed, GOOD_LENGTH));
}
END_TEST

START_TEST(the_violation_is_told_with_both_operations)
{
	/* a second violation is counted and not told */
	Judgement judgement =
		JUDGE(changed(3, 7, 100, 101, 1, 5), changed(4, 7, 102, 104, 1, 6), changed(5, 8, 100, 101, 1, 5));

	ck_assert_str_eq(text_get(&judgement.first),
					 "version 1 was given twice: "
					 "worker 3 key (7, 1) want on -> changed on version 1 number 5 [0.000 .. 1.000 ms]; "
					 "worker 4 key (7, 1) want on -> changed on version 1 number 6 [2.000 .. 4.000 ms]");
	expect(judgement, VERDICT_VIOLATED, 2, "");
}
END_TEST


/* --- unknown and open operations --- */

START_TEST(an_unknown_fills_a_hole)
{
	Judgement judgement = JUDGE(changed(0, 1, 0, 1, 1, 1), unknown(1, 1, 2, 3, false), changed(0, 1, 4, 5, 3, 3));

	ck_assert_uint_eq(judgement.unknowns, 1);
	expect_holds(judgement);
}
END_TEST

START_TEST(an_open_operation_fills_a_hole_long_after_it_began)
{
	HistoryOp open = operation(1, 1, 0, 0, OP_OPEN);

	expect_holds(JUDGE(open, changed(0, 1, 1, 2, 1, 1), changed(0, 1, 4, 5, 3, 3)));
}
END_TEST

START_TEST(a_hole_that_nobody_can_have_filled)
{
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), changed(0, 1, 4, 5, 3, 3)), VERDICT_VIOLATED, 1,
		   "no operation can have made version 2");
	/* of another register */
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown(1, 2, 2, 3, false), changed(0, 1, 4, 5, 3, 3)), VERDICT_VIOLATED, 1,
		   "no operation can have made version 2");
	/* certainly not done */
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), operation(1, 1, 2, 3, OP_FAILED), changed(0, 1, 4, 5, 3, 3)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 2");
}
END_TEST

START_TEST(an_unknown_of_the_wrong_parity_fills_nothing)
{
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown(1, 1, 2, 3, true), changed(0, 1, 4, 5, 3, 3)), VERDICT_VIOLATED, 1,
		   "no operation can have made version 2");
}
END_TEST

START_TEST(an_unknown_that_began_too_late_fills_nothing)
{
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), changed(0, 1, 4, 5, 3, 3), unknown(1, 1, 6, 7, false)), VERDICT_VIOLATED, 1,
		   "no operation can have made version 2");
	/* a noop of the version itself is a bound too */
	expect(JUDGE(unchanged(0, 1, 0, 1, 1), unknown(1, 1, 2, 3, true), changed(2, 1, 4, 5, 2, 2)), VERDICT_VIOLATED, 1,
		   "no operation can have made version 1");
	expect_holds(JUDGE(unchanged(0, 1, 0, 2, 1), unknown(1, 1, 1, 3, true), changed(2, 1, 4, 5, 2, 2)));
	/* so is one further on that ended early */
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), changed(2, 1, 2, 50, 3, 3), unchanged(3, 1, 3, 4, 3),
				 unknown(1, 1, 10, 11, false)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 2");
}
END_TEST

START_TEST(one_unknown_fills_one_hole)
{
	HistoryOp first = unknown(1, 1, 0, 1, false);
	HistoryOp second = unknown(2, 1, 0, 1, false);

	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), first, changed(0, 1, 2, 3, 3, 3), changed(0, 1, 4, 5, 5, 5)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 4");
	expect_holds(JUDGE(changed(0, 1, 0, 1, 1, 1), first, second, changed(0, 1, 2, 3, 3, 3), changed(0, 1, 4, 5, 5, 5)));
}
END_TEST

START_TEST(early_unknowns_are_kept_for_early_holes)
{
	/* the late one fits version 4 only; whoever gives the early one to version 4 finds none for version 2 */
	expect_holds(JUDGE(unknown(1, 1, 5, 6, false), unknown(2, 1, 0, 1, false), changed(0, 1, 0, 1, 1, 1),
					   changed(0, 1, 2, 3, 3, 3), changed(0, 1, 7, 8, 5, 5)));
	expect(JUDGE(unknown(1, 1, 5, 6, false), unknown(2, 1, 5, 6, false), changed(0, 1, 0, 1, 1, 1),
				 changed(0, 1, 2, 3, 3, 3), changed(0, 1, 7, 8, 5, 5)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 2");
}
END_TEST

START_TEST(an_answered_unknown_fills_its_version_only)
{
	expect_holds(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown_answered(1, 1, 2, 3, 2, 2), changed(0, 1, 4, 5, 3, 3)));
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown_answered(1, 1, 2, 3, 4, 2), changed(0, 1, 4, 5, 3, 3)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 2");
}
END_TEST

START_TEST(an_answered_unknown_that_was_rolled_back_harms_nobody)
{
	/* its version and number were given out again */
	expect_holds(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown_answered(1, 1, 2, 3, 2, 2), changed(0, 1, 4, 5, 2, 2)));
	expect_holds(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown_answered(1, 1, 2, 3, 2, 2), changed(0, 2, 4, 5, 1, 2)));
}
END_TEST

START_TEST(an_unknown_noop_fills_nothing)
{
	HistoryOp noop = unchanged(1, 1, 2, 3, 2);

	noop.outcome = OP_UNKNOWN;
	noop.xid = 77;
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), noop, changed(0, 1, 4, 5, 3, 3)), VERDICT_VIOLATED, 1,
		   "no operation can have made version 2");
}
END_TEST

START_TEST(an_answered_unknown_must_fit_by_number)
{
	/* its number was acked elsewhere, so it was rolled back */
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown_answered(1, 1, 2, 3, 2, 2), changed(2, 2, 2, 3, 1, 2),
				 changed(0, 1, 4, 5, 3, 4)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 2");
	/* it is not between its neighbours */
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown_answered(1, 1, 2, 3, 2, 9), changed(0, 1, 4, 5, 3, 3)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 2");
	/* a higher number was acked before it began */
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), changed(2, 2, 0, 1, 1, 7), unknown_answered(1, 1, 2, 3, 2, 5),
				 changed(0, 1, 4, 5, 3, 8)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 2");
	/* of two, one fits */
	expect_holds(JUDGE(changed(0, 1, 0, 1, 1, 2), unknown_answered(1, 1, 2, 3, 2, 1),
					   unknown_answered(2, 1, 2, 3, 2, 3), changed(0, 1, 4, 5, 3, 4)));
}
END_TEST

START_TEST(an_answer_may_rest_on_an_unknown_change)
{
	HistoryOp late = unknown(1, 1, 2, 9, false);

	expect_holds(JUDGE(changed(0, 1, 0, 1, 1, 1), late, unchanged(0, 1, 3, 4, 2)));
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), unchanged(0, 1, 3, 4, 2)), VERDICT_VIOLATED, 1,
		   "no operation can have made version 2");
}
END_TEST

START_TEST(an_absurd_version_is_told_at_once)
{
	expect(JUDGE(changed(0, 1, 0, 1, 1, 1), unknown(1, 1, 0, 1, false), unchanged(0, 1, 2, 3, INT64_MAX)),
		   VERDICT_VIOLATED, 1, "no operation can have made version 3");
}
END_TEST


/* --- real time and numbers --- */

START_TEST(versions_respect_real_time)
{
	/* overlapping changes may take either order, one after the other may not */
	expect_holds(JUDGE(changed(0, 1, 0, 5, 2, 2), changed(1, 1, 1, 6, 1, 1)));
	expect(JUDGE(changed(0, 1, 0, 1, 2, 2), unknown(2, 1, 0, 9, true), changed(1, 1, 3, 6, 3, 3),
				 unchanged(0, 1, 7, 8, 2)),
		   VERDICT_VIOLATED, 1, "comes after it by version");
	/* touching times overlap */
	expect_holds(JUDGE(changed(0, 1, 0, 3, 2, 2), changed(1, 1, 3, 6, 1, 1)));
	/* version 2 acked before version 1 was asked for: against the versions and, as told second, the numbers */
	expect(JUDGE(changed(0, 1, 0, 2, 2, 2), changed(1, 1, 3, 6, 1, 1)), VERDICT_VIOLATED, 2,
		   "comes after it by version");
}
END_TEST

START_TEST(a_noop_is_placed_between_its_changes)
{
	/* noop at 0 while change 1 is under way */
	expect_holds(JUDGE(changed(0, 1, 0, 5, 1, 1), unchanged(1, 1, 4, 9, 0)));
	/* noop at 0 that began after change 1 was acked */
	expect(JUDGE(changed(0, 1, 0, 3, 1, 1), unchanged(1, 1, 4, 9, 0)), VERDICT_VIOLATED, 1,
		   "comes after it by version");
	/* noop at 1 that ended before change 1 began */
	expect(JUDGE(unchanged(1, 1, 0, 1, 1), changed(0, 1, 2, 3, 1, 1)), VERDICT_VIOLATED, 1,
		   "comes after it by version");
	/* a noop saw version 1 before another began and saw version 0 */
	expect(JUDGE(changed(0, 1, 0, 9, 1, 1), unchanged(1, 1, 1, 2, 1), unchanged(2, 1, 3, 4, 0)), VERDICT_VIOLATED, 1,
		   "comes after it by version");
	expect_holds(JUDGE(changed(0, 1, 0, 9, 1, 1), unchanged(1, 1, 1, 3, 1), unchanged(2, 1, 2, 4, 0)));
}
END_TEST

START_TEST(numbers_respect_real_time_across_registers)
{
	expect_holds(JUDGE(changed(0, 1, 0, 2, 1, 2), changed(1, 2, 1, 3, 1, 1)));
	expect(JUDGE(changed(0, 1, 0, 2, 1, 2), changed(1, 2, 3, 4, 1, 1)), VERDICT_VIOLATED, 1,
		   "acked before another began, and has the higher number");
	/* the one to blame is not the last that ended */
	expect(JUDGE(changed(0, 1, 0, 2, 1, 9), changed(1, 2, 0, 3, 1, 2), changed(2, 3, 4, 5, 1, 5)), VERDICT_VIOLATED, 1,
		   "worker 0 key (1, 1) want on -> changed on version 1 number 9 [0.000 .. 2.000 ms]; worker 2");
}
END_TEST

START_TEST(numbers_follow_versions)
{
	expect_holds(JUDGE(changed(0, 1, 0, 5, 1, 4), changed(1, 1, 0, 5, 2, 6)));
	expect(JUDGE(changed(0, 1, 0, 5, 1, 6), changed(1, 1, 0, 5, 2, 4)), VERDICT_VIOLATED, 1,
		   "number 4 does not fit version 2");
	/* an unknown change between them needs a number too */
	expect_holds(JUDGE(changed(0, 1, 0, 5, 1, 4), unknown(2, 1, 0, 5, false), changed(1, 1, 0, 5, 3, 6)));
	expect(JUDGE(changed(0, 1, 0, 5, 1, 4), unknown(2, 1, 0, 5, false), changed(1, 1, 0, 5, 3, 5)), VERDICT_VIOLATED, 1,
		   "number 5 does not fit version 3");
	expect(JUDGE(unknown(2, 1, 0, 5, true), changed(1, 1, 0, 5, 2, 1)), VERDICT_VIOLATED, 1,
		   "number 1 does not fit version 2");
}
END_TEST


/* --- against an exhaustive search --- */

/*
 * The judge's claim is that a history holds exactly if some order of its operations explains every acked answer. For
 * one register and a few operations all orders can be tried: histories are drawn from a right system, then most are
 * damaged in one place, and judge and search must agree on each. (With enough other seeds they part, some twice in a
 * million: where two unknown answers contradict each other, see oracle.c.)
 */

#define FEW 7

typedef struct
{
	const HistoryOp *ops;
	size_t count;
	bool done[FEW];
	int64_t version;
	int64_t number;  /* the last one known */
	int64_t pending; /* changes since then whose number is not known */
} Search;

static bool search(Search *at);

static bool
try_next(const Search *at, size_t next, bool as_change, int64_t number)
{
	Search after = *at;

	after.done[next] = true;
	if (as_change)
	{
		after.version++;
		after.pending++;
	}
	if (number > 0)
	{
		if (number < at->number + after.pending)
		{
			return false;
		}
		after.number = number;
		after.pending = 0;
	}
	return search(&after);
}

static bool
try_op(const Search *at, size_t next)
{
	const HistoryOp *op = &at->ops[next];
	bool flips = op->want != (at->version % 2 == 1);

	for (size_t i = 0; i < at->count; i++)
	{
		if (!at->done[i] && at->ops[i].outcome == OP_OK && at->ops[i].end_ns < op->begin_ns)
		{
			return false; /* it would have to come first */
		}
	}
	if (op->outcome != OP_OK && op->version <= 0 && op->xid == 0)
	{
		return flips && try_next(at, next, true, 0);
	}
	if (op->state != op->want || op->version != at->version + op->changed || op->changed != flips)
	{
		return false;
	}
	return op->changed ? op->number > 0 && try_next(at, next, true, op->number)
					   : op->number == 0 && op->outcome == OP_OK && try_next(at, next, false, 0);
}

static bool
search(Search *at)
{
	bool all_explained = true;

	for (size_t i = 0; i < at->count; i++)
	{
		all_explained = all_explained && (at->done[i] || at->ops[i].outcome != OP_OK);
	}
	for (size_t i = 0; !all_explained && i < at->count; i++)
	{
		if (!at->done[i] && at->ops[i].outcome != OP_FAILED && try_op(at, i))
		{
			return true;
		}
	}
	return all_explained;
}

/* What a right system answers to FEW requests, one after the other in the array, overlapping in time. */
static void
draw_history(Rng *rng, HistoryOp *ops)
{
	int64_t version = 0;
	int64_t number = 0;

	for (int i = 0; i < FEW; i++)
	{
		HistoryOp *op = &ops[i];
		int64_t effect = 10 * i;
		uint64_t fate = rng_below(rng, 10); /* 0..5 acked, 6 failed, 7..8 unknown, 9 unknown with its answer */
		bool happens = fate <= 5 || (fate >= 7 && rng_below(rng, 2) == 0);

		*op = operation(i, 1, effect - (int64_t) rng_below(rng, 25), effect + (int64_t) rng_below(rng, 25),
						fate <= 5 ? OP_OK : (fate == 6 ? OP_FAILED : OP_UNKNOWN));
		op->want = rng_below(rng, 2) == 0;
		number += (int64_t) rng_below(rng, 2); /* changes of other registers */
		if (fate <= 5 || fate == 9)
		{
			op->state = op->want;
			op->changed = op->want != (version % 2 == 1);
			op->version = version + op->changed;
			op->number = op->changed ? number + 1 : 0;
			op->xid = 1;
		}
		if (happens && op->want != (version % 2 == 1))
		{
			version++;
			number++;
		}
	}
}

static void
damage_history(Rng *rng, HistoryOp *ops)
{
	HistoryOp *op = &ops[rng_below(rng, FEW)];
	int64_t by = rng_below(rng, 2) == 0 ? 1 : -1;

	switch (rng_below(rng, 8))
	{
		case 0:
			op->version += by;
			break;
		case 1:
			op->version += 2 * by;
			break;
		case 2:
			op->number += by;
			break;
		case 3:
			op->begin_ns = op->end_ns;
			break;
		case 4:
			op->end_ns = op->begin_ns;
			break;
		case 5:
			op->want = !op->want;
			break;
		case 6:
			op->outcome = OP_FAILED;
			break;
		default:
			op->changed = !op->changed;
			break;
	}
}

START_TEST(the_judge_agrees_with_an_exhaustive_search)
{
	Rng rng = rng_stream(32, 1);
	int held = 0;
	int violated = 0;

	for (int round = 0; round < 20000; round++)
	{
		HistoryOp ops[FEW];
		bool damaged = round % 4 != 0;
		Judgement judgement;
		bool explained;

		draw_history(&rng, ops);
		if (damaged)
		{
			damage_history(&rng, ops);
		}
		explained = search(&(Search){.ops = ops, .count = FEW});
		judgement = oracle_judge_registers(ops, FEW);
		ck_assert_msg(explained || damaged, "round %d: a right system's history has no explanation", round);
		ck_assert_msg(explained == (judgement.verdict != VERDICT_VIOLATED), "round %d: search says %d, judge %s: %s",
					  round, explained, verdict_name(judgement.verdict), text_get(&judgement.first));
		held += explained;
		violated += !explained;
		text_free(&judgement.first);
	}
	ck_assert_int_gt(held, 5000);
	ck_assert_int_gt(violated, 3000);
}
END_TEST


/* --- size --- */

START_TEST(a_long_history_is_judged_in_time)
{
	const size_t length = 200000;
	HistoryOp *ops = memory_get(length * sizeof(*ops));
	Judgement judgement;

	/* one register; half of the changes were never acked, between noops that rest on them */
	for (size_t i = 0; i < length; i++)
	{
		int64_t version = (int64_t) i / 2 + 1;

		ops[i] = i % 2 == 0 ? unknown(0, 1, (int64_t) i, (int64_t) i + 1, version % 2 == 1)
							: unchanged(1, 1, (int64_t) i, (int64_t) i + 1, version);
	}
	ops[0] = changed(0, 1, 0, 1, 1, 1);
	judgement = oracle_judge_registers(ops, length);
	ck_assert_uint_eq(judgement.operations, length);
	ck_assert_uint_eq(judgement.unknowns, length / 2 - 1);
	expect_holds(judgement);
	free(ops);
}
END_TEST

START_TEST(verdicts_have_names)
{
	ck_assert_str_eq(verdict_name(VERDICT_HOLDS), "HOLDS");
	ck_assert_str_eq(verdict_name(VERDICT_VIOLATED), "VIOLATED");
	ck_assert_str_eq(verdict_name(VERDICT_UNKNOWN), "UNKNOWN");
	ck_assert_str_eq(verdict_name(VERDICT_UNSET), "UNSET");
}
END_TEST

static void
add_case(Suite *suite, const char *name, const TTest *const *tests)
{
	TCase *tcase = tcase_create(name);

	tcase_set_timeout(tcase, 30);
	for (; *tests != NULL; tests++)
	{
		tcase_add_test(tcase, *tests);
	}
	suite_add_tcase(suite, tcase);
}

int
main(void)
{
	Suite *suite = suite_create("oracle");

	add_case(suite, "verdicts",
			 (const TTest *const[]){an_empty_history_is_unknown, no_acked_change_is_unknown, violated_outranks_unknown,
									a_good_history_holds, each_mutation_is_seen, order_in_the_array_does_not_matter,
									the_violation_is_told_with_both_operations, verdicts_have_names,
									a_long_history_is_judged_in_time, NULL});
	add_case(suite, "unknowns",
			 (const TTest *const[]){an_unknown_fills_a_hole, an_open_operation_fills_a_hole_long_after_it_began,
									a_hole_that_nobody_can_have_filled, an_unknown_of_the_wrong_parity_fills_nothing,
									an_unknown_that_began_too_late_fills_nothing, one_unknown_fills_one_hole,
									early_unknowns_are_kept_for_early_holes, an_answered_unknown_fills_its_version_only,
									an_answered_unknown_that_was_rolled_back_harms_nobody,
									an_unknown_noop_fills_nothing, an_answered_unknown_must_fit_by_number,
									an_answer_may_rest_on_an_unknown_change, an_absurd_version_is_told_at_once, NULL});
	add_case(suite, "order",
			 (const TTest *const[]){versions_respect_real_time, a_noop_is_placed_between_its_changes,
									numbers_respect_real_time_across_registers, numbers_follow_versions,
									the_judge_agrees_with_an_exhaustive_search, NULL});

	return suite_run(suite);
}
