/*
 * isolation/hermitage  fourteen schedules at three levels: which anomalies occur, and where the server refuses
 *
 * Claim      Of the fourteen schedules of the Hermitage suite, each of which shows one anomaly where nothing prevents it, Read
 *            Committed prevents five, Repeatable Read eleven and Serializable all. What is refused is refused with 40001: at a
 *            statement after a wait, at a statement without one, or at COMMIT.
 * Method     A file of the scenario language for each schedule (sql/isolation/hermitage/): one written permutation, which
 *            says BEGIN and names no level; that is set for the database. Each judges itself: by an invariant over what
 *            was read where the anomaly lies in one reading (the reader writes it down in its own transaction: what is
 *            rolled back was never read), else by every serial order of those who committed. Steps are named by what they
 *            do: r3x of session t3 reads x, w2y writes y, c1 commits.
 * Expect     The published matrix, cell by cell, and the place of each refusal as PostgreSQL 16 has it. Another version has to
 *            give the same matrix; where it refuses elsewhere is told, and is no failure.
 * Not shown  Other orders of the same steps than the written one, and Read Uncommitted (which is Read Committed here).
 */
#include "lab.h"

#include <stdlib.h>
#include <string.h>

enum
{
	LEVELS = 3,
	SCHEDULES = 14,
	MAJOR_EXPECTED = 16
};

static const char *const levels[LEVELS] = {"read committed", "repeatable read", "serializable"};

typedef struct
{
	const char *file; /* below sql/isolation/hermitage/ */
	const char *anomaly;
	const char *judge; /* the check that is violated when it occurs */
	const char *expected[LEVELS];
} Schedule;

/* What a cell of the matrix says: whether the anomaly occurs, and how the server went about it. */
#define OCCURS "occurs"
#define OCCURS_WAITS "occurs, waits"
#define PREVENTED "prevented"
#define WAITS "prevented, waits"
#define AFTER_WAIT(step) "prevented, 40001 at " step " after a wait"
#define NO_WAIT(step) "prevented, 40001 at " step " without a wait"
#define AT_COMMIT(step) "prevented, 40001 at " step " (COMMIT)"

#define SERIAL "serializable"

/* clang-format off */
static const Schedule schedules[SCHEDULES] = {
	{"g0", "G0 dirty write", SERIAL,
	 {WAITS, AFTER_WAIT("w2x"), AFTER_WAIT("w2x")}},
	{"g1a", "G1a aborted read", "invariant not_aborted",
	 {PREVENTED, PREVENTED, PREVENTED}},
	{"g1b", "G1b intermediate read", "invariant not_intermediate",
	 {PREVENTED, PREVENTED, PREVENTED}},
	{"g1c", "G1c circular information flow", "invariant not_in_a_circle",
	 {PREVENTED, PREVENTED, AT_COMMIT("c2")}},
	{"otv", "OTV observed transaction vanishes", "invariant not_vanished",
	 {WAITS, AFTER_WAIT("w2x"), AFTER_WAIT("w2x")}},
	{"pmp", "PMP predicate-many-preceders", SERIAL,
	 {OCCURS, PREVENTED, PREVENTED}},
	{"pmp_write", "PMP by a write's condition", SERIAL,
	 {OCCURS_WAITS, AFTER_WAIT("w2"), AFTER_WAIT("w2")}},
	{"p4", "P4 lost update", SERIAL,
	 {OCCURS_WAITS, AFTER_WAIT("w2x"), AFTER_WAIT("w2x")}},
	{"g_single", "G-single read skew", SERIAL,
	 {OCCURS, PREVENTED, PREVENTED}},
	{"g_single_predicate", "G-single by conditions", SERIAL,
	 {OCCURS, PREVENTED, PREVENTED}},
	{"g_single_write", "G-single by a write's condition", SERIAL,
	 {OCCURS, NO_WAIT("w1"), NO_WAIT("w1")}},
	{"g2_item", "G2-item write skew", SERIAL,
	 {OCCURS, OCCURS, AT_COMMIT("c2")}},
	{"g2", "G2 write skew by conditions", SERIAL,
	 {OCCURS, OCCURS, AT_COMMIT("c2")}},
	{"g2_two_edges", "G2 with two anti-dependency edges", SERIAL,
	 {OCCURS, OCCURS, NO_WAIT("w1x")}},
};
/* clang-format on */

typedef struct
{
	Scene *scene;
	Session *session;
	int64_t major;
	char *cells[SCHEDULES][LEVELS];
} Matrix;


/* --- a cell --- */

static char *
describe(const SpecReport *report, const SpecCheck *check)
{
	const char *errors = report->outcome_count > 0 ? report->outcomes[0].errors : "";
	Text text = {0};

	text_append(&text, "%s", check->violated > 0 ? "occurs" : "prevented");
	if (errors[0] != '\0')
	{
		text_append(&text, ", %s%s", errors,
					strstr(errors, " after a wait") != NULL ? ""
					: strstr(errors, " at c") != NULL       ? " (COMMIT)"
															: " without a wait");
	}
	else
	{
		text_append(&text, "%s", report->waits > 0 ? ", waits" : "");
	}
	return text.data;
}

static char *
run_schedule(Matrix *matrix, const Schedule *schedule)
{
	char *file = string_format("hermitage/%s.spec", schedule->file);
	SpecReport *report = judge_spec_in_place(matrix->scene, file);
	const SpecCheck *check = spec_report_find(report, schedule->judge);
	char *cell;

	if (check == NULL || check->held + check->violated != 1 || report->unknown.length > 0)
	{
		scene_broken(matrix->scene, "%s has no verdict by \"%s\": %s%s%s", file, schedule->judge,
					 text_get(&report->broken), text_get(&report->refused), text_get(&report->unknown));
	}
	cell = describe(report, check);
	spec_report_free(report);
	free(file);
	return cell;
}

/* For sessions to come. On a server that is not ours another setting of this kind is there, which it replaces. */
static void
set_level(Matrix *matrix, const char *level)
{
	char *sql = string_format("DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %%I"
							  " SET default_transaction_isolation = %%L', current_database(), '%s'); END $$",
							  level);

	require(matrix->scene, session_execute(matrix->session, sql));
	free(sql);
}

/* Which anomalies occur is checked on every version; where it is refused, on the one whose matrix this is. */
static void
check_cell(Matrix *matrix, int row, int level)
{
	const char *cell = matrix->cells[row][level];
	const char *expected = schedules[row].expected[level];
	bool same = strcmp(cell, expected) == 0;
	char *actual = string_copy(cell);
	char *wanted = string_copy(expected);

	if (matrix->major != MAJOR_EXPECTED)
	{
		actual[strcspn(actual, ",")] = '\0';
		wanted[strcspn(wanted, ",")] = '\0';
	}
	check_text(matrix->scene, actual, wanted, "%s at %s", schedules[row].anomaly, levels[level]);
	if (!same && matrix->major != MAJOR_EXPECTED)
	{
		note(matrix->scene, "differs from %d: %s at %s: here %s; on %d %s", MAJOR_EXPECTED, schedules[row].anomaly,
			 levels[level], cell, MAJOR_EXPECTED, expected);
	}
	free(actual);
	free(wanted);
}


/* --- the matrix --- */

static void
run_level(Matrix *matrix, int level)
{
	step(matrix->scene, "%s", levels[level]);
	set_level(matrix, levels[level]);
	for (int i = 0; i < SCHEDULES; i++)
	{
		matrix->cells[i][level] = run_schedule(matrix, &schedules[i]);
		check_cell(matrix, i, level);
	}
}

static void
show(Matrix *matrix)
{
	step(matrix->scene, "the matrix");
	note(matrix->scene, "%-34s %-21s %-45s %s", "", levels[0], levels[1], levels[2]);
	for (int i = 0; i < SCHEDULES; i++)
	{
		note(matrix->scene, "%-34s %-21s %-45s %s", schedules[i].anomaly, matrix->cells[i][0], matrix->cells[i][1],
			 matrix->cells[i][2]);
	}
}

static void
compare_versions(Matrix *matrix)
{
	int different = 0;

	for (int i = 0; i < SCHEDULES * LEVELS; i++)
	{
		different +=
			strcmp(matrix->cells[i / LEVELS][i % LEVELS], schedules[i / LEVELS].expected[i % LEVELS]) != 0 ? 1 : 0;
	}
	if (matrix->major != MAJOR_EXPECTED && different == 0)
	{
		note(matrix->scene, "PostgreSQL %d: as on %d, cell by cell", (int) matrix->major, MAJOR_EXPECTED);
	}
	else if (matrix->major != MAJOR_EXPECTED)
	{
		note(matrix->scene, "PostgreSQL %d: %d of %d cells differ from %d", (int) matrix->major, different,
			 SCHEDULES * LEVELS, MAJOR_EXPECTED);
	}
}

static void
run(Scene *scene)
{
	Matrix matrix = {.scene = scene, .session = scene_session(scene, "levels")};

	require(scene, session_query_int(matrix.session, &matrix.major,
									 "SELECT current_setting('server_version_num')::int / 10000", NO_ARGS));
	for (int i = 0; i < LEVELS; i++)
	{
		run_level(&matrix, i);
	}
	show(&matrix);
	compare_versions(&matrix);
	for (int i = 0; i < SCHEDULES * LEVELS; i++)
	{
		free(matrix.cells[i / LEVELS][i % LEVELS]);
	}
}

const Scenario scenario_isolation_hermitage = {
	.suite = "isolation",
	.id = "isolation/hermitage",
	.title = "fourteen schedules at three levels: which anomalies occur, and where the server refuses",
	.claim =
		"Read Committed prevents five of fourteen anomalies, Repeatable Read eleven, Serializable all; 40001 comes after "
		"a wait, without one, or at COMMIT",
	.kind = "fixed interleaving",
	.guarantee = "the published matrix, each cell",
	.observed = "test, what was read, SQLSTATEs and the steps that got them",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 120000,
	.run = run,
};
