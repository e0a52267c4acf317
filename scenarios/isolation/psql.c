/*
 * isolation/psql  the two doctors as anybody can play them, in two psql
 *
 * Claim      What isolation/skew finds over all interleavings shows in two terminals: Repeatable Read commits both and leaves
 *            nobody on call; Serializable refuses B at COMMIT with 40001, and B's whole decision, made again, moves nobody.
 * Method     Two real psql -X -v ON_ERROR_STOP=1, over pipes, get the sections of sql/isolation/doctors_a.sql and doctors_b.sql
 *            in the order r1 r2 w1 w2 c1 c2. An error stops psql, but at the one COMMIT whose SQLSTATE B prints.
 * Expect     Both read 2 and both updates return their row. Before c1 both transactions are open, and neither waits.
 *            Repeatable Read: commit_state 00000, 0 available. Serializable: commit_state 40001, 1 available; again B reads 1,
 *            updates no row and commits, 1 available. Anything else, another SQLSTATE too, is a failed check.
 * Not shown  Other orders: isolation/skew. Without psql the case is skipped; what it claims is covered there and by 33-B.
 */
#include "32/lab.h"

#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 10000

typedef struct
{
	Scene *scene;
	const char *name; /* "Repeatable Read, A" */
	Process *psql;
	Text script; /* the side's file */
	Text answer; /* to the section played last: its lines, without rules and padding, on one line */
	Text last;   /* the last of these lines */
} Side;


/* --- one side --- */

static void
start_side(Scene *scene, Side *side, const char *name, const char *psql, const char *level, const char *file)
{
	char *level_is = string_format("level=%s", level);
	const char *argv[] = {psql, "-X", "-v", "ON_ERROR_STOP=1", "-v", level_is, scene_conninfo(scene), NULL};
	const char *env[] = {"LC_ALL=C", NULL};

	*side = (Side){.scene = scene, .name = name};
	require(scene, file_read(scene_sql(scene, file), &side->script));
	side->psql = scene_start(scene, &(ProcessSpec){.argv = argv, .env = env, .errors_too = true});
	free(level_is);
}

/* psql is asked to end, and does so without a complaint. */
static void
end_side(Side *side)
{
	ProcessEnd end;

	require(side->scene, process_write_line(side->psql, "\\q"));
	require(side->scene, process_wait(side->psql, scene_deadline(side->scene, ANSWER_MS), &end));
	CHECK_EQ(side->scene, end.how == ENDED_EXIT ? end.code : -1, 0, "%s: psql's exit code", side->name);
	text_free(&side->script);
	text_free(&side->answer);
	text_free(&side->last);
}

/* The text of a section; *length is what it has before the next one begins. */
static const char *
find_section(const Side *side, const char *name, size_t *length)
{
	char *head = string_format("\n-- %s:", name);
	const char *begin = strstr(text_get(&side->script), head);
	const char *end;

	free(head);
	if (begin == NULL)
	{
		scene_broken(side->scene, "a side has no section \"%s\"", name);
	}
	begin += strcspn(begin + 1, "\n") + 2;
	end = strstr(begin, "\n-- ");
	*length = end != NULL ? (size_t) (end - begin) : strlen(begin);
	return begin;
}

static void
take_line(Side *side, const char *line)
{
	size_t length;

	if (line[0] != '\0')
	{
		note(side->scene, "    %s", line);
	}
	line += strspn(line, " ");
	length = strlen(line);
	while (length > 0 && line[length - 1] == ' ')
	{
		length--;
	}
	if (strspn(line, "-") == length)
	{
		return;
	}
	text_clear(&side->last);
	text_append_bytes(&side->last, line, length);
	text_append(&side->answer, "%s%s", side->answer.length > 0 ? " " : "", text_get(&side->last));
}

/* Read until psql says that the section is over. That it ended, or waits, is an answer as well. */
static void
read_answer(Side *side, const char *end_line)
{
	Text line = {0};
	bool ended;

	for (;;)
	{
		if (!process_read_line(side->psql, &line, scene_deadline(side->scene, ANSWER_MS), &ended))
		{
			take_line(side, ended ? "(psql has ended)" : "(psql does not answer)");
			break;
		}
		if (strcmp(text_get(&line), end_line) == 0)
		{
			break;
		}
		take_line(side, text_get(&line));
	}
	text_free(&line);
}

static void
play(Side *side, const char *name)
{
	size_t length;
	const char *section = find_section(side, name, &length);
	char *end_line = string_format("end of %s", name);
	char *sent = string_format("%.*s\n\\echo %s", (int) length, section, end_line);

	note(side->scene, "%s plays %s", side->name, name);
	text_clear(&side->answer);
	text_clear(&side->last);
	require(side->scene, process_write_line(side->psql, sent));
	read_answer(side, end_line);
	free(sent);
	free(end_line);
}

/* Play a section; one check of all that psql answers. */
static void
expect(Side *side, const char *name, const char *expected)
{
	play(side, name);
	check_text(side->scene, text_get(&side->answer), expected, "%s at %s", side->name, name);
}

/* The same of the last line alone: before it stand words that differ between versions. */
static void
expect_last(Side *side, const char *name, const char *expected)
{
	play(side, name);
	check_text(side->scene, text_get(&side->last), expected, "%s at %s, last line", side->name, name);
}


/* --- both --- */

#define OF_PSQL " FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'psql'"
#define OPEN "SELECT count(*)" OF_PSQL " AND state = 'idle in transaction'"
#define WAITING "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid" OF_PSQL ")"
#define WATCHED "SELECT count(DISTINCT pid) FROM pg_locks WHERE mode = 'SIReadLock' AND pid IN (SELECT pid" OF_PSQL ")"

static void
play_until_commits(Scene *scene, Session *lab, Side *a, Side *b)
{
	expect(a, "create", "CREATE SCHEMA CREATE TABLE INSERT 0 2");
	expect(a, "r1", "BEGIN available 2 (1 row)");
	expect(b, "r2", "BEGIN available 2 (1 row)");
	expect(a, "w1", "id 1 (1 row) UPDATE 1");
	expect(b, "w2", "id 2 (1 row) UPDATE 1");
	CHECK_EQ(scene, number_of(scene, lab, OPEN, NO_ARGS), 2, "transactions that are open before c1");
	CHECK_EQ(scene, number_of(scene, lab, WAITING, NO_ARGS), 0, "locks that one of them waits for");
}

static void
both_leave(Scene *scene, Session *lab, const char *psql)
{
	Side a, b;

	step(scene, "Repeatable Read: both commit");
	start_side(scene, &a, "Repeatable Read, A", psql, "REPEATABLE READ", "isolation/doctors_a.sql");
	start_side(scene, &b, "Repeatable Read, B", psql, "REPEATABLE READ", "isolation/doctors_b.sql");
	play_until_commits(scene, lab, &a, &b);
	CHECK_EQ(scene, number_of(scene, lab, WATCHED, NO_ARGS), 0, "of which the server remembers what they have read");
	expect(&a, "c1", "COMMIT");
	expect(&b, "c2", "COMMIT commit_state 00000");
	expect(&a, "look", "available 0 (1 row)");
	expect_last(&a, "clean", "DROP SCHEMA");
	end_side(&a);
	end_side(&b);
}

static void
one_stays(Scene *scene, Session *lab, const char *psql)
{
	Side a, b;

	step(scene, "Serializable: B is refused, and decides again");
	start_side(scene, &a, "Serializable, A", psql, "SERIALIZABLE", "isolation/doctors_a.sql");
	start_side(scene, &b, "Serializable, B", psql, "SERIALIZABLE", "isolation/doctors_b.sql");
	play_until_commits(scene, lab, &a, &b);
	CHECK_EQ(scene, number_of(scene, lab, WATCHED, NO_ARGS), 2, "of which the server remembers what they have read");
	expect(&a, "c1", "COMMIT");
	expect_last(&b, "c2", "commit_state 40001");
	expect(&a, "look", "available 1 (1 row)");
	expect(&b, "again", "BEGIN available 1 (1 row) id (0 rows) UPDATE 0 COMMIT");
	expect(&a, "look", "available 1 (1 row)");
	expect_last(&a, "clean", "DROP SCHEMA");
	end_side(&a);
	end_side(&b);
}

static void
run(Scene *scene)
{
	char *psql = process_find_program("psql", NULL);
	Session *lab;

	if (psql == NULL)
	{
		scene_skip(scene, "psql is not installed (Debian: postgresql-client), and the pinned server has none");
	}
	lab = scene_session(scene, "lab");
	both_leave(scene, lab, psql);
	one_stays(scene, lab, psql);
	free(psql);
}

const Scenario scenario_isolation_psql = {
	.suite = "isolation",
	.id = "isolation/psql",
	.title = "the two doctors as anybody can play them, in two psql",
	.claim = "r1 r2 w1 w2 c1 c2: Repeatable Read leaves nobody on call, Serializable refuses B, who then moves nobody",
	.kind = "several processes, fixed interleaving, negative control",
	.guarantee = "one doctor stays on call, by a decision that was made again",
	.observed = "what psql prints, pg_stat_activity, pg_locks",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
