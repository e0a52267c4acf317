/*
 * repair/causes  the six causes of drift
 *
 * Claim      However a count came to differ from its rows, it is found, reported with what is stored and what is there,
 *            and repaired from the rows; what caused it does not matter.
 * Method     Twelve media with two usages each, right by the flow. Then one cause after the other
 *            (sql/counters/cases/causes): a listener that did not run, old code that changes rows itself, a migration
 *            past the flow, a background job that died half way, a fix by hand on one side, logic newer than the data.
 *            Each time check, repair, check.
 * Expect     Exactly the rows that the case's own truth has, no other; exit 1, then 0, then 0; rows of usages
 *            untouched.
 * Not shown  Causes at once with writers: repair/writers.
 */
#include "lab.h"

#include <stdlib.h>

enum
{
	MEDIA = 12
};

typedef struct
{
	const char *name; /* of the file below causes/ */
	const char *what;
	const char *wrong; /* as lab.wrong has it */
	int drifted;
} Cause;

static const Cause causes[] = {
	{"listener", "a listener that did not run", "1:2/3", 1},
	{"old_code", "old code that changed rows directly", "2:2/0", 1},
	{"migration", "a migration past the flow", "3:2/5 4:2/5 5:2/5", 3},
	{"half_finished", "a half-finished background update", "8:2/0 9:2/0", 2},
	{"manual_fix", "a manual fix on one side", "10:5/2", 1},
	{"newer_logic", "logic newer than the data", "11:2/0 12:2/0", 2},
};

#define FINGERPRINT "SELECT coalesce(sum(hashtext(u::text)), 0) FROM media_usages u"

static void
cause_and_repair(Scene *scene, Session *lab, const Cause *cause)
{
	char *path = string_format("counters/cases/causes/%s.sql", cause->name);
	char *wrong;
	int64_t usages;
	Told told;

	step(scene, "%s", cause->what);
	require(scene, session_execute_file(lab, scene_sql(scene, path)));
	free(path);
	check_wrong(scene, lab, cause->wrong, "%s", cause->what);
	wrong = read_wrong_rows(scene, lab);
	usages = number_of(scene, lab, FINGERPRINT, NO_ARGS);

	told = tool_run(scene, "check", "media.yaml", NO_WORDS, EXIT_CODE_FAIL, "check finds it");
	CHECK_EQ(scene, told_number(&told, "Scanned"), MEDIA, "Scanned");
	CHECK_EQ(scene, told_number(&told, "Drifted"), cause->drifted, "Drifted");
	check_rows(scene, &told, wrong, "check");
	told_free(&told);

	told = tool_run(scene, "repair", "media.yaml", NO_WORDS, EXIT_CODE_PASS, "repair mends it");
	check_rows(scene, &told, wrong, "repair, before it writes");
	CHECK_EQ(scene, told_number(&told, "Updated"), cause->drifted, "Updated");
	told_free(&told);
	check_wrong(scene, lab, "", "repaired");
	CHECK_EQ(scene, number_of(scene, lab, FINGERPRINT, NO_ARGS), usages, "the usages are what they were");
	tool_does(scene, "check", "media.yaml", NO_WORDS, EXIT_CODE_PASS, "check finds nothing any more");
	free(wrong);
}

static void
run(Scene *scene)
{
	Session *lab = counters_lab(scene, "media.sql");

	require(scene, session_query(lab, NULL, "INSERT INTO media SELECT generate_series(1, $1)", ARGS(arg_int(MEDIA))));
	require(scene, session_execute(lab, "SELECT media_use(id) FROM media, generate_series(1, 2)"));
	check_wrong(scene, lab, "", "by the flow");
	tool_does(scene, "check", "media.yaml", NO_WORDS, EXIT_CODE_PASS, "nothing drifted yet");
	for (size_t i = 0; i < LENGTH_OF(causes); i++)
	{
		cause_and_repair(scene, lab, &causes[i]);
	}
}

const Scenario scenario_repair_causes = {
	.suite = "repair",
	.id = "repair/causes",
	.title = "the six causes of drift, each found, reported and repaired",
	.claim = "however a count came to differ from its rows, it is found, told, and made from the rows again",
	.kind = "real component",
	.guarantee = "the rows reported are exactly the wrong ones; afterwards none is",
	.observed = "exit codes, rows printed, media beside media_usages",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
