/*
 * The scenario language without a server: what a file becomes, what is refused and where, and the order of all orders.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "spec/permute.h"
#include "spec/tree.h"
#include "suite.h"

static SpecError error;

static SpecLanguage language = SPEC_COMPATIBLE;

/* A file that is read and linked; NULL: `error` says why not. */
static Spec *
read_text(const char *text)
{
	Spec *spec;

	spec_error_free(&error);
	spec = spec_read(text, strlen(text), language, &error);
	if (spec != NULL && !spec_link(spec, &error))
	{
		spec_free(spec);
		return NULL;
	}
	return spec;
}

static Spec *
must_read(const char *text)
{
	Spec *spec = read_text(text);

	ck_assert_msg(spec != NULL, "%s at %d:%d", error.message, error.place.line, error.place.column);
	return spec;
}


/* --- what a file becomes --- */

START_TEST(tree)
{
	Spec *spec = must_read("setup { A; } setup {\nB; \n}\nteardown { C; }\n"
						   "session one setup { D; } step a { E; } step b { F; } teardown { G; }\n"
						   "session \"t \"\"wo\" step c {}\n"
						   "permutation c(*, a, b notices 7) a b c permutation b");
	const SpecTurn *turn;

	ck_assert_int_eq(spec->setup_count, 2);
	ck_assert_str_eq(spec->setups[0]->sql, "A;");
	ck_assert_str_eq(spec->setups[1]->sql, "\nB; \n");
	ck_assert_str_eq(spec->teardown->sql, "C;");
	ck_assert_int_eq(spec->session_count, 2);
	ck_assert_str_eq(spec->sessions[0]->name, "one");
	ck_assert_str_eq(spec->sessions[0]->setup->sql, "D;");
	ck_assert_str_eq(spec->sessions[0]->teardown->sql, "G;");
	ck_assert_int_eq(spec->sessions[0]->step_count, 2);
	ck_assert_str_eq(spec->sessions[1]->name, "t \"wo");
	ck_assert_ptr_null(spec->sessions[1]->setup);
	ck_assert_str_eq(spec->sessions[1]->steps[0]->sql, "");
	ck_assert_int_eq(spec->sessions[1]->steps[0]->session, 1);
	ck_assert_int_eq(spec->permutation_count, 2);
	ck_assert_int_eq(spec->permutations[0]->turn_count, 4);
	turn = spec->permutations[0]->turns[0];
	ck_assert_ptr_eq(turn->step, spec->sessions[1]->steps[0]);
	ck_assert_int_eq(turn->mark_count, 3);
	ck_assert_int_eq(turn->marks[0]->kind, MARK_ONCE);
	ck_assert_int_eq(turn->marks[1]->kind, MARK_STEP);
	ck_assert_ptr_eq(turn->marks[1]->step, spec->sessions[0]->steps[0]);
	ck_assert_int_eq(turn->marks[2]->kind, MARK_NOTICES);
	ck_assert_int_eq(turn->marks[2]->notices, 7);
	ck_assert_int_eq(spec_turns_max(spec), 4);
	spec_free(spec);
}
END_TEST

START_TEST(places)
{
	Spec *spec = must_read("# a comment\nsession  one\n\tstep \"a\" {\n  X\n}\nstep b { Y } permutation a\n\n  b(*)");

	ck_assert_int_eq(spec->sessions[0]->place.line, 2);
	ck_assert_int_eq(spec->sessions[0]->place.column, 1);
	ck_assert_int_eq(spec->sessions[0]->steps[0]->place.line, 3);
	ck_assert_int_eq(spec->sessions[0]->steps[0]->place.column, 7);
	ck_assert_int_eq(spec->permutations[0]->place.line, 6);
	ck_assert_int_eq(spec->permutations[0]->place.column, 14);
	ck_assert_int_eq(spec->permutations[0]->turns[1]->place.line, 8);
	ck_assert_int_eq(spec->permutations[0]->turns[1]->place.column, 3);
	spec_free(spec);
}
END_TEST

START_TEST(unused_steps_are_known)
{
	Spec *spec = must_read("session s step b {} step a {} step c {} permutation c a");

	ck_assert_str_eq(spec->steps[0]->name, "a");
	ck_assert(spec->steps[0]->used);
	ck_assert_str_eq(spec->steps[1]->name, "b");
	ck_assert(!spec->steps[1]->used);
	ck_assert(spec->steps[2]->used);
	spec_free(spec);
}
END_TEST

START_TEST(many_names_and_long_blocks)
{
	Text text = {0};
	Spec *spec;

	text_append(&text, "session s\n");
	for (int i = 0; i < 3000; i++)
	{
		text_append(&text, "step step%d { %*s }\n", i, i, "x");
	}
	text_append(&text, "permutation");
	for (int i = 0; i < 3000; i++)
	{
		text_append(&text, " step%d", i);
	}
	spec = must_read(text_get(&text));
	ck_assert_int_eq(spec->step_count, 3000);
	ck_assert_int_eq(spec->permutations[0]->turn_count, 3000);
	for (int i = 0; i < 3000; i++)
	{
		ck_assert_ptr_eq(spec->permutations[0]->turns[i]->step, spec->sessions[0]->steps[i]);
	}
	ck_assert_str_eq(spec->sessions[0]->steps[2999]->sql, "x");
	spec_free(spec);
	text_free(&text);
}
END_TEST


/* --- the judged language: its words, and that they are none in a file of the other --- */

static const char judged_file[] =
	"setup { S } invariant one { I } invariant \"t wo\" always { J } teardown { T } observe { O } retry b 2\n"
	"session a step r read { R } step expect { E } session b step w { W } explore bound 2 explore faults\n"
	"fault die kill a fault again restart immediate\n"
	"permutation r expect w die expect\n"
	"permutation w permutation r\n";

START_TEST(judged)
{
	Spec *spec;

	language = SPEC_JUDGED;
	spec = must_read(judged_file);
	ck_assert_int_eq(spec->invariant_count, 2);
	ck_assert_str_eq(spec->invariants[0]->sql, "I");
	ck_assert(!spec->invariants[0]->always && spec->invariants[1]->always);
	ck_assert_str_eq(spec->observe->sql, "O");
	ck_assert_int_eq(spec->sessions[0]->retries, 0);
	ck_assert_int_eq(spec->sessions[1]->retries, 2);
	ck_assert(spec->sessions[0]->steps[0]->reads && !spec->sessions[0]->steps[1]->reads);
	ck_assert_int_eq(spec->explore.kind, EXPLORE_BOUND);
	ck_assert_int_eq(spec->explore.number, 2);
	ck_assert(spec->explore.faults);
	ck_assert_int_eq(spec->fault_count, 2);
	ck_assert_int_eq(spec->faults[0]->fault, FAULT_KILL);
	ck_assert_int_eq(spec->faults[0]->session, 0);
	ck_assert_int_eq(spec->faults[1]->session, -1);
	/* a step of that name keeps it */
	ck_assert_int_eq(spec->permutations[0]->turn_count, 5);
	ck_assert_int_eq(spec->permutations[0]->expect_count, 0);
	ck_assert_ptr_eq(spec->permutations[0]->turns[3]->step, spec->faults[0]);
	spec_free(spec);
}
END_TEST

START_TEST(expects)
{
	static const char *const sqlstates[] = {"40001", "40P01", "P0001", "0A000"};
	Spec *spec;

	language = SPEC_JUDGED;
	spec = must_read("session a step r {} step s {}\n"
					 "permutation r s expect 40001 at r expect 40P01 at s expect P0001 at r expect 0A000 at s\n"
					 "permutation r expect none");
	ck_assert_int_eq(spec->permutation_count, 2);
	ck_assert_int_eq(spec->permutations[0]->expect_count, 4);
	for (int i = 0; i < 4; i++)
	{
		ck_assert_str_eq(spec->permutations[0]->expects[i]->sqlstate, sqlstates[i]);
		ck_assert_ptr_eq(spec->permutations[0]->expects[i]->step, spec->sessions[0]->steps[i % 2]);
	}
	ck_assert_int_eq(spec->permutations[1]->expect_count, 1);
	ck_assert_ptr_null(spec->permutations[1]->expects[0]->sqlstate);
	spec_free(spec);
}
END_TEST

/* In the compatible language each is refused as PostgreSQL's program refuses a name there. */
START_TEST(judged_words_are_names_elsewhere)
{
	static const char *const files_with_one[] = {"invariant i { SELECT 1 } session a step s {}",
												 "observe { SELECT 1 } session a step s {}",
												 "session a step s read {}",
												 "session a step s {} permutation s expect none",
												 "session a step s {} retry a 1",
												 "session a step s {} fault f kill a",
												 "session a step s {} explore all"};
	static const char named[] = "session fault step invariant {} step observe {} step expect {} step retry {}\n"
								"session read step explore {} step fault {}\n"
								"permutation invariant observe explore (expect, retry) expect retry fault\n";

	for (size_t i = 0; i < LENGTH_OF(files_with_one); i++)
	{
		language = SPEC_COMPATIBLE;
		ck_assert_msg(read_text(files_with_one[i]) == NULL, "%s", files_with_one[i]);
		language = SPEC_JUDGED;
		spec_free(must_read(files_with_one[i]));
	}
	for (language = SPEC_COMPATIBLE; language <= SPEC_JUDGED; language++)
	{
		Spec *spec = must_read(named);

		ck_assert_int_eq(spec->permutations[0]->turn_count, 6);
		ck_assert_int_eq(spec->fault_count + spec->invariant_count + spec->retry_count, 0);
		spec_free(spec);
	}
}
END_TEST


/* --- what is refused --- */

static const struct
{
	const char *text;
	const char *message;
	const char *detail;
	int line, column, line_read;
} refusals[] = {
	{"", "syntax error", NULL, 1, 1, 1},
	{"\n# nothing\n", "syntax error", NULL, 3, 1, 3},
	{"session s\n", "syntax error", NULL, 2, 1, 2},
	{"session s step a {}\n  teardown {}\nsetup {\n\n}", "syntax error", NULL, 3, 1, 3},
	{"session s step a {}\npermutation", "syntax error", NULL, 2, 12, 2},
	{"session s step a {} permutation a(", "syntax error", NULL, 1, 35, 1},
	{"session s step a {} permutation a()", "syntax error", NULL, 1, 35, 1},
	{"session s step a {} permutation a(a notices b)", "syntax error", NULL, 1, 45, 1},
	{"teardown {}\nteardown {\n\n} ", "syntax error", NULL, 2, 1, 2},
	{"session s\nstep step {}", "syntax error", NULL, 2, 6, 2},
	{"session {\n\n}", "syntax error", NULL, 1, 9, 3},
	{"session s step a {}; permutation a", "syntax error", "unexpected character \";\"", 1, 20, 1},
	{"session s step a {\n'{}' }", "syntax error", "unexpected character \"'\"", 2, 4, 2},
	{"session s step a {\nX\n", "unterminated sql block", NULL, 1, 18, 3},
	{"session s\n  step \"a", "unterminated quoted identifier", NULL, 2, 8, 2},
	{"session s\n  step \"a\n\" {}", "unexpected newline in quoted identifier", NULL, 2, 8, 2},
	{"session s step a {}\n step a {}", "duplicate step name: a", NULL, 2, 7, 0},
	{"session s step a {}\nsession t step a {}", "duplicate step name: a", NULL, 2, 16, 0},
	{"session s step a {}\npermutation a b c", "undefined step \"b\" specified in permutation", NULL, 2, 15, 0},
	{"session s step a {} step b {}\nsession t step c {} permutation a(*, c)",
	 "undefined blocking step \"c\" referenced in permutation step \"a\"", NULL, 2, 38, 0},
	{"session s step a {} step b {} permutation a(b) b", "permutation step \"a\" cannot block on its own session", NULL,
	 1, 45, 0},
};

START_TEST(refused)
{
	Spec *spec = read_text(refusals[_i].text);

	ck_assert_msg(spec == NULL, "taken: %s", refusals[_i].text);
	ck_assert_str_eq(error.message, refusals[_i].message);
	ck_assert_pstr_eq(error.detail, refusals[_i].detail);
	ck_assert_int_eq(error.place.line, refusals[_i].line);
	ck_assert_int_eq(error.place.column, refusals[_i].column);
	ck_assert_int_eq(error.line_read, refusals[_i].line_read);
}
END_TEST


/* --- orders --- */

static void
append_order(Text *text, const SpecTurn **turns, int count)
{
	for (int i = 0; i < count; i++)
	{
		text_append(text, "%s", turns[i]->name);
	}
	text_append(text, " ");
}

static const struct
{
	const char *text;
	const char *orders;
	int count;
} orders[] = {
	{"session s step a {}", "a ", 1},
	{"session s step a {} step b {} step c {}", "abc ", 1},
	{"session s step a {} session t step b {} session u step c {}", "abc acb bac bca cab cba ", 6},
	{"session s step a {} step b {} session t step c {} step d {}", "abcd acbd acdb cabd cadb cdab ", 6},
	{"session s step a {} session t step c {} step b {} session u step d {}",
	 "acbd acdb adcb cabd cadb cbad cbda cdab cdba dacb dcab dcba ", 12},
};

START_TEST(all_orders)
{
	Spec *spec = must_read(orders[_i].text);
	const SpecTurn *turns[8];
	Permute permute;
	Text text = {0};
	int count = 0;

	permute_begin(&permute, spec);
	while (permute_next(&permute, turns))
	{
		append_order(&text, turns, spec->step_count);
		count++;
	}
	permute_end(&permute);
	ck_assert_str_eq(text_get(&text), orders[_i].orders);
	ck_assert_int_eq(count, orders[_i].count);
	ck_assert_uint_eq(permute_count(spec), (uint64_t) count);
	text_free(&text);
	spec_free(spec);
}
END_TEST

/* 4 sessions of 9 steps: 36! / 9!^4 is more than fits. */
START_TEST(too_many_orders_to_count)
{
	Text text = {0};
	Spec *spec;

	for (int i = 0; i < 36; i++)
	{
		if (i % 9 == 0)
		{
			text_append(&text, "session s%d ", i);
		}
		text_append(&text, "step s%d {} ", i);
	}
	spec = must_read(text_get(&text));
	ck_assert_uint_eq(permute_count(spec), UINT64_MAX);
	spec_free(spec);
	text_free(&text);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("spec");
	TCase *files = tcase_create("files");
	TCase *permutations = tcase_create("orders");

	tcase_add_test(files, tree);
	tcase_add_test(files, places);
	tcase_add_test(files, unused_steps_are_known);
	tcase_add_test(files, many_names_and_long_blocks);
	tcase_add_test(files, judged);
	tcase_add_test(files, expects);
	tcase_add_test(files, judged_words_are_names_elsewhere);
	tcase_add_loop_test(files, refused, 0, (int) LENGTH_OF(refusals));
	tcase_add_loop_test(permutations, all_orders, 0, (int) LENGTH_OF(orders));
	tcase_add_test(permutations, too_many_orders_to_count);
	suite_add_tcase(suite, files);
	suite_add_tcase(suite, permutations);
	return suite_run(suite);
}
