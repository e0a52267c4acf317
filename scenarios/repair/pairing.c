/*
 * repair/pairing  a repair is right for its writers, or refused
 *
 * Claim      Locking the row and counting is right only where one transaction changes rows and count. Where the count
 *            follows in a transaction of its own, a repair between the two counts the row and the writer counts it
 *            again; the tool does not repair so when it is told the truth about the writers, and not at all when it is
 *            told nothing.
 * Method     A writer adds a child and commits, and counts up in a second transaction; the repair falls in between.
 *            First by a file that says same_transaction, which is not true; then by one that says separate_transaction,
 *            with each mode that is wrong for that, and in maintenance, where the count follows when the source is
 *            locked; then by one that says nothing.
 * Expect     Believed: 5 for 4. Told the truth: exit 2, nothing written, 4 when the writer has come; maintenance: 4.
 *            Told nothing: exit 2, and check works all the same.
 * Not shown  An outbox repaired as if it were none: repair/outbox.
 */
#include "lab.h"

static void
start_over(Scene *scene, Session *lab)
{
	require(scene, session_execute(lab, "TRUNCATE par, ch"));
	add_parent(scene, lab, 1, "3", 3);
}

static void
believed(Scene *scene, Session *lab, Session *writer)
{
	step(scene, "the file says same_transaction, which is not so");
	start_over(scene, lab);
	require(scene, session_execute(writer, "INSERT INTO ch (par_id) VALUES (1)"));
	tool_does(scene, "repair", "par.yaml", WORDS("--mode", "lock"), EXIT_CODE_PASS, "between the two transactions");
	require(scene, session_execute(writer, "UPDATE par SET n = n + 1 WHERE id = 1"));
	check_wrong(scene, lab, "1:5/4", "mismatched pairing, required");
	tool_does(scene, "check", "par.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds what it has done");
}

static void
told_the_truth(Scene *scene, Session *lab, Session *writer)
{
	static const char *const wrong[] = {"lock", "snapshot", "relative", "outbox"};

	step(scene, "the file says separate_transaction");
	start_over(scene, lab);
	require(scene, session_execute(writer, "INSERT INTO ch (par_id) VALUES (1)"));
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
	{
		Told told =
			tool_run(scene, "repair", "par_separate.yaml", WORDS("--mode", wrong[i]), EXIT_CODE_USAGE, wrong[i]);

		check_says(scene, &told, "separate_transaction", "the refusal");
		told_free(&told);
		check_wrong(scene, lab, "1:3/4", "refused %s", wrong[i]);
	}
	tool_does(scene, "repair", "par_separate.yaml", NO_WORDS, EXIT_CODE_USAGE, "there is no default for these writers");
	require(scene, session_execute(writer, "UPDATE par SET n = n + 1 WHERE id = 1"));
	check_wrong(scene, lab, "", "the writer has come");
}

/* The source is locked against new rows, and what is under way is given the time to arrive. */
static void
told_the_truth_and_stopped(Scene *scene, Session *lab, Session *writer)
{
	Tool repair;
	Told told;

	step(scene, "separate_transaction, in maintenance");
	start_over(scene, lab);
	require(scene, session_execute(lab, "UPDATE par SET n = 8"));
	require(scene, session_execute(writer, "INSERT INTO ch (par_id) VALUES (1)"));
	repair = tool_start(scene, "repair", "par_separate.yaml", WORDS("--mode", "maintenance", "--settle", "2s"));
	CHECK(scene,
		  await_beside(
			  scene, lab, repair, 1,
			  "SELECT count(*) FROM pg_locks WHERE relation = 'ch'::regclass AND mode = 'ShareLock' AND granted"),
		  "the source is locked");
	CHECK(scene, session_try(writer, NULL, "UPDATE par SET n = n + 1 WHERE id = 1", NO_ARGS) == SQL_OK,
		  "what is under way arrives");
	told = tool_end(scene, repair);
	check_exit(scene, &told, EXIT_CODE_PASS, "maintenance");
	told_free(&told);
	check_wrong(scene, lab, "", "maintenance");
	CHECK_EQ(scene, number_of(scene, lab, "SELECT n FROM par", NO_ARGS), 4, "n");
}

static void
told_nothing(Scene *scene, Session *lab)
{
	step(scene, "the file says nothing of the writers");
	require(scene, session_execute(lab, "UPDATE par SET n = 9"));
	tool_does(scene, "check", "par_unsaid.yaml", NO_WORDS, EXIT_CODE_FAIL, "check works all the same");
	tool_does(scene, "repair", "par_unsaid.yaml", NO_WORDS, EXIT_CODE_USAGE, "repair does not");
	check_wrong(scene, lab, "1:9/4", "refused");
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "par.sql");
	Session *writer = scene_session(scene, "writer");

	believed(scene, lab, writer);
	told_the_truth(scene, lab, writer);
	told_the_truth_and_stopped(scene, lab, writer);
	told_nothing(scene, lab);
}

const Scenario scenario_repair_pairing = {
	.suite = "repair",
	.id = "repair/pairing",
	.title = "a repair is right for its writers, or refused",
	.claim =
		"a mode that is wrong for the writers that the file names is refused; believed against the truth it makes drift",
	.kind = "fixed interleaving, negative control",
	.guarantee = "nothing is written by a mode that is wrong for the writers",
	.observed = "par beside ch, exit codes",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
