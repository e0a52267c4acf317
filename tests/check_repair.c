/*
 * counters repair against a real server, which the environment names: COUNTERPROOF_TEST_CONNINFO, a superuser of a private
 * server, COUNTERPROOF_SQL and COUNTERPROOF_PROGRAMS. Each test has a database of its own. Writers are the test's own sessions, and the repair
 * is a process, which waits where the test makes it wait.
 */
#include "counters.h"
#include "like.h"
#include "session.h"
#include "served_suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATABASE "check_repair"
#define WAIT_MS 20000
#define TEST_SECONDS 90
#define GATE "4711" /* the advisory lock on which a commit is made to wait */
#define KILLED (-SIGKILL)

static char *database;
static char folder[] = "/tmp/check-repair-XXXXXX";
static Session *lab;
static Session *other;
static CountersRequest request;
static CountersRepair repair;
static Text output; /* of the last repair that ended */


/* --- fixtures --- */

static void
run_sql(const char *sql)
{
	ck_assert(session_execute(lab, sql));
}

static int64_t
value_of(const char *sql)
{
	int64_t value = 0;

	ck_assert(session_query_int(lab, &value, sql, NO_ARGS));
	return value;
}

static void
expect(const char *sql, int64_t expected)
{
	int64_t value = value_of(sql);

	ck_assert_msg(value == expected, "%s: expected %lld, got %lld\n%s", sql, (long long) expected, (long long) value,
				  text_get(&output));
}

static void
write_file(const char *yaml)
{
	static char path[64];

	ck_assert_int_lt(snprintf(path, sizeof(path), "%s/counters.yaml", folder), (int) sizeof(path));
	ck_assert(file_replace(path, yaml));
	request.file = path;
}

#define COUNTER                                                                                                        \
	"counters:\n  - {name: par.n, target: par, key: [id], column: n, source: ch, source_key: [pid], writers: "

/* par(id, n), ch(pid) and a count of the writes of each row of par; nothing in them. */
static void
setup(void)
{
	server_execute("DROP DATABASE IF EXISTS " DATABASE " WITH (FORCE)");
	server_execute("CREATE DATABASE " DATABASE);
	lab = must_open(database, "check_repair");
	other = must_open(database, "check_repair");
	run_sql("CREATE TABLE par (id integer PRIMARY KEY, n integer);"
			"CREATE TABLE ch (id serial PRIMARY KEY, pid integer REFERENCES par);"
			"CREATE INDEX ON ch (pid);"
			"CREATE TABLE written (id integer);"
			"CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS "
			"$$BEGIN INSERT INTO written VALUES (NEW.id); RETURN NEW; END$$");
	request = (CountersRequest){.conninfo = database, .sql = getenv("COUNTERPROOF_SQL")};
	repair = (CountersRepair){.mode = NULL};
	write_file(COUNTER "same_transaction}\n");
}

static void
teardown(void)
{
	session_close(lab);
	session_close(other);
	server_execute("DROP DATABASE " DATABASE " WITH (FORCE)");
}

/* Every update of par is noted from here on. */
static void
note_writes(void)
{
	run_sql("CREATE TRIGGER note_write AFTER UPDATE ON par FOR EACH ROW EXECUTE FUNCTION note_write()");
}

/* 40 keys with two rows each, all of which say 9. */
static void
make_forty_wrong(void)
{
	run_sql("INSERT INTO par SELECT g, 9 FROM generate_series(1, 40) g;"
			"INSERT INTO ch (pid) SELECT 1 + g % 40 FROM generate_series(0, 79) g");
}


/* --- a repair as a process --- */

static char *
output_path(void)
{
	return string_format("%s/output", folder);
}

static void
say(const char **argv, int *count, const char *option, const char *value)
{
	argv[(*count)++] = option;
	if (value != NULL)
	{
		argv[(*count)++] = value;
	}
}

static void
say_number(const char **argv, int *count, const char *option, int number)
{
	if (number != 0)
	{
		say(argv, count, option, string_format("%d", number));
	}
}

/* What the request and the repair say, as the command line has it; its memory goes with the child. */
static void
execute(const char *action)
{
	const char *argv[40] = {NULL};
	int count = 0;

	say(argv, &count, string_format("%s/counterproof", getenv("COUNTERPROOF_PROGRAMS")), "counters");
	say(argv, &count, action, NULL);
	say(argv, &count, "-c", request.file);
	say(argv, &count, "--server", request.conninfo);
	say_number(argv, &count, "--chunk", request.chunk);
	say_number(argv, &count, "--jobs", repair.jobs);
	say_number(argv, &count, "--max-lag", repair.max_lag_mb);
	if (request.id != NULL)
	{
		say(argv, &count, "--id", request.id);
	}
	if (repair.mode != NULL)
	{
		say(argv, &count, "--mode", repair.mode);
	}
	if (repair.resume != NULL)
	{
		say(argv, &count, "--resume", repair.resume);
	}
	if (repair.pause_file != NULL)
	{
		say(argv, &count, "--pause-file", repair.pause_file);
	}
	if (repair.dry_run)
	{
		say(argv, &count, "--dry-run", NULL);
	}
	if (repair.record)
	{
		say(argv, &count, "--record", NULL);
	}
	if (repair.yes)
	{
		say(argv, &count, "--yes", NULL);
	}
	execv(argv[0], (char *const *) argv);
	_exit(EXIT_CODE_BROKEN);
}

static pid_t
start(const char *action)
{
	char *path = output_path();
	pid_t child;

	fflush(NULL);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
	{
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execute(action);
	}
	free(path);
	return child;
}

static pid_t
start_repair(void)
{
	return start("repair");
}

/* Its exit code, or minus the signal that ended it. */
static int
await_repair(pid_t child)
{
	char *path = output_path();
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	text_clear(&output);
	ck_assert(file_read(path, &output));
	free(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int
run_repair(void)
{
	return await_repair(start_repair());
}

static void
expect_code(int code, int expected)
{
	ck_assert_msg(code == expected, "exit %d instead of %d:\n%s", code, expected, text_get(&output));
}

static void
expect_line(const char *part)
{
	ck_assert_msg(strstr(text_get(&output), part) != NULL, "no \"%s\" in:\n%s", part, text_get(&output));
}

static ProbeAnswer
probe_sql(void *context, Text *seen)
{
	int64_t value = value_of(context);

	text_append(seen, "%lld", (long long) value);
	return value > 0 ? PROBE_DONE : PROBE_AGAIN;
}

static void
await_sql(const char *sql)
{
	ck_assert(wait_until(sql, deadline_in_ms(WAIT_MS), probe_sql, (void *) sql));
}

/* Until a session of the tool waits for a lock. */
static void
await_blocked(void)
{
	await_sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'counterproof%' AND "
			  "datname = current_database() AND wait_event_type = 'Lock'");
}

/* Until none is left. */
static void
await_gone(void)
{
	await_sql("SELECT (count(*) = 0)::int FROM pg_stat_activity WHERE application_name LIKE 'counterproof%' AND "
			  "datname = current_database()");
}

static ProbeAnswer
probe_output(void *context, Text *seen)
{
	char *path = output_path();
	bool read = file_read(path, seen);

	free(path);
	return read && strstr(text_get(seen), context) != NULL ? PROBE_DONE : PROBE_AGAIN;
}

/* Until it has said so. */
static void
await_output(const char *part)
{
	ck_assert(wait_until(part, deadline_in_ms(WAIT_MS), probe_output, (void *) part));
}

static void
kill_repair(pid_t child)
{
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	expect_code(await_repair(child), KILLED);
}


/* --- what is found, printed, and written --- */

static void
five_rows(void)
{
	run_sql("INSERT INTO par VALUES (1, 1), (2, 2), (3, 7), (4, 0), (5, 0);"
			"INSERT INTO ch (pid) VALUES (1), (2), (2), (3), (3), (3), (4)");
}

START_TEST(a_dry_run_writes_nothing)
{
	five_rows();
	run_sql(
		"CREATE TABLE before AS SELECT ctid::text AS place, xmin::text AS writer, xmax::text AS locker, * FROM par");
	repair.dry_run = true;
	expect_code(run_repair(), EXIT_CODE_FAIL);
	expect_line("  drift  id=3 stored=7 actual=3 diff=+4\n  drift  id=4 stored=0 actual=1 diff=-1\n");
	expect_line("shape  2 keys, id=3 to id=4");
	expect_line("Scanned: 5  Correct: 3  Drifted: 2  Missing: 0  Would update: 2  Would insert: 0\n");
	expect("SELECT count(*) FROM before b JOIN par p ON p.ctid::text = place AND p.xmin::text = writer AND "
		   "p.xmax::text = locker AND p.id = b.id AND p.n = b.n",
		   5);
	expect("SELECT count(*) FROM pg_namespace WHERE nspname = 'counterproof'", 0);
}
END_TEST

START_TEST(a_real_run_does_what_the_dry_run_said)
{
	five_rows();
	run_sql("CREATE TABLE before AS SELECT xmin::text AS writer, * FROM par");
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("  drift  id=3 stored=7 actual=3 diff=+4\n  drift  id=4 stored=0 actual=1 diff=-1\n");
	expect_line("Updated: 2  Inserted: 0  Still drifted: 0  Changed meanwhile: 0\n");
	expect("SELECT count(*) FROM par p JOIN before b USING (id) WHERE p.xmin::text = writer", 3);
	expect("SELECT count(*) FROM par WHERE n = (SELECT count(*) FROM ch WHERE pid = par.id)", 5);
	expect("SELECT count(*) FROM counterproof.drift WHERE (key, stored, actual, diff) IN "
		   "(('{3}', '7', '3', '4'), ('{4}', '0', '1', '-1'))",
		   2);
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("Scanned: 5  Correct: 5  Drifted: 0");
	expect_line("Updated: 0  Inserted: 0  Still drifted: 0  Changed meanwhile: 0\n");
}
END_TEST

START_TEST(null_zero_and_missing_rows)
{
	run_sql("INSERT INTO par SELECT g, 0 FROM generate_series(1, 5) g;"
			"CREATE TABLE tally (pid integer PRIMARY KEY, n integer);"
			"INSERT INTO ch (pid) VALUES (1), (1), (3), (3), (3), (5);"
			"INSERT INTO tally VALUES (1, NULL), (2, 1), (3, 3), (4, 0)");
	write_file("counters:\n  - {name: tally.n, target: tally, key: [pid], column: n, source: ch, source_key: [pid], "
			   "parent: {table: par, key: [id]}, writers: same_transaction}\n");
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("Scanned: 5  Correct: 2  Drifted: 2  Missing: 1");
	expect_line("backfill  NULL: 1 of 5  filled: 1  left: 0\n");
	expect_line("Updated: 2  Inserted: 1  Still drifted: 0  Changed meanwhile: 0\n");
	expect("SELECT count(*) FROM tally WHERE (pid, n) IN ((1, 2), (2, 0), (3, 3), (4, 0), (5, 1))", 5);
}
END_TEST

START_TEST(names_and_keys_of_any_kind)
{
	run_sql("CREATE SCHEMA \"My \"\"Schema\";"
			"CREATE TABLE \"My \"\"Schema\".\"T; DROP\" (\"a'b\" text COLLATE \"C\", part uuid, \"sto\"\"red\" bigint, "
			"PRIMARY KEY (\"a'b\", part));"
			"CREATE TABLE facts (k text, part uuid, class integer);"
			"INSERT INTO \"My \"\"Schema\".\"T; DROP\" VALUES ('x,\"y\\', '00000000-0000-0000-0000-000000000001', 5), "
			"('ä', '00000000-0000-0000-0000-000000000002', 1);"
			"INSERT INTO facts VALUES ('x,\"y\\', '00000000-0000-0000-0000-000000000001', 1), "
			"('ä', '00000000-0000-0000-0000-000000000002', 1)");
	write_file("counters:\n  - {name: odd, target: '\"My \"\"Schema\".\"T; DROP\"', key: [\"a'b\", part], "
			   "column: 'sto\"red', source: facts, source_key: [k, part], writers: same_transaction}\n");
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("Updated: 1  Inserted: 0  Still drifted: 0");
	expect("SELECT count(*) FROM \"My \"\"Schema\".\"T; DROP\" WHERE \"sto\"\"red\" = 1", 2);
}
END_TEST

START_TEST(one_key_alone)
{
	five_rows();
	request.id = "4";
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("Updated: 1  Inserted: 0  Still drifted: 0");
	expect("SELECT n FROM par WHERE id = 3", 7);
	expect("SELECT n FROM par WHERE id = 4", 1);
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("Updated: 0  Inserted: 0  Still drifted: 0");
}
END_TEST

START_TEST(what_is_refused)
{
	five_rows();
	repair.record = true;
	expect_code(run_repair(), EXIT_CODE_USAGE);
	expect_line("--record keeps what a dry run found: it goes with --dry-run");
	repair.record = false;
	repair.mode = "outbox";
	expect_code(run_repair(), EXIT_CODE_USAGE);
	expect_line("mode outbox is wrong for writers: same_transaction");
	write_file(COUNTER "separate_transaction}\n");
	for (const char *const *mode = (const char *const[]){"lock", "snapshot", "relative", "outbox", NULL}; *mode != NULL;
		 mode++)
	{
		repair.mode = *mode;
		expect_code(run_repair(), EXIT_CODE_USAGE);
		expect_line("is wrong for writers: separate_transaction");
	}
	repair.mode = NULL;
	expect_code(run_repair(), EXIT_CODE_USAGE);
	expect_line("no mode is right for writers: separate_transaction");
	write_file("counters:\n  - {name: par.n, target: par, key: [id], column: n, source: ch, source_key: [pid]}\n");
	expect_code(run_repair(), EXIT_CODE_USAGE);
	expect_line("repair has to know its writers");
	expect("SELECT count(*) FROM pg_namespace WHERE nspname = 'counterproof'", 0);
}
END_TEST

START_TEST(options_of_others)
{
	five_rows();
	repair.yes = true;
	expect_code(await_repair(start("check")), EXIT_CODE_USAGE);
	expect_line("--yes cannot go with counters check (see: help counters)");
	repair.yes = false;
	/* In the environment it is for whom it is. */
	ck_assert_int_eq(setenv("COUNTERPROOF_UNTIL_DRIFT", "1", 1), 0);
	expect_code(await_repair(start("check")), EXIT_CODE_FAIL);
	expect_code(run_repair(), EXIT_CODE_PASS);
	unsetenv("COUNTERPROOF_UNTIL_DRIFT");
}
END_TEST

static const struct
{
	const char *target, *column, *why;
} unwritable[] = {
	{"par", "doubled", "column doubled of public.par cannot be written: it is generated from other columns"},
	{"par", "number", "column number of public.par cannot be written: it is GENERATED ALWAYS AS IDENTITY"},
	{"copy", "n", "column n of public.copy cannot be written: a materialized view is refreshed"},
	{"sums", "n", "column n of public.sums cannot be written: it is of a view that has neither a rule nor a trigger"},
};

/* Not even in a dry run. */
START_TEST(what_nobody_could_write_is_refused)
{
	five_rows();
	run_sql("ALTER TABLE par ADD doubled integer GENERATED ALWAYS AS (n * 2) STORED, "
			"ADD number integer GENERATED ALWAYS AS IDENTITY;"
			"CREATE MATERIALIZED VIEW copy AS SELECT id, n FROM par;"
			"CREATE VIEW sums AS SELECT id, max(n) AS n FROM par GROUP BY id");
	for (size_t i = 0; i < LENGTH_OF(unwritable); i++)
	{
		char *text = string_format("counters:\n  - {name: c, target: %s, key: [id], column: %s, source: ch, "
								   "source_key: [pid], writers: same_transaction}\n",
								   unwritable[i].target, unwritable[i].column);

		write_file(text);
		free(text);
		for (int dry = 0; dry < 2; dry++)
		{
			repair.dry_run = dry == 1;
			expect_code(run_repair(), EXIT_CODE_USAGE);
			expect_line(unwritable[i].why);
		}
	}
	expect("SELECT count(*) FROM pg_namespace WHERE nspname = 'counterproof'", 0);
}
END_TEST

/* It is said beforehand, and each chunk, which reads all of the source, takes many keys. */
START_TEST(no_index_is_told)
{
	run_sql("DROP INDEX ch_pid_idx; INSERT INTO par SELECT g, 1 FROM generate_series(1, 500) g");
	repair.yes = true;
	repair.dry_run = true;
	expect_code(run_repair(), EXIT_CODE_FAIL);
	expect_line("no index begins with a column of public.ch (pid): each chunk reads the whole table");
	repair.dry_run = false;
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("no index begins with a column of public.ch (pid)");
	ck_assert_int_eq(value_of("SELECT count(DISTINCT xmin::text) FROM par"), 1);
	run_sql("CREATE INDEX ON ch (pid) WHERE id > 0; UPDATE par SET n = 1");
	expect_code(run_repair(), EXIT_CODE_PASS);
	ck_assert_ptr_null(strstr(text_get(&output), "no index"));
	ck_assert_int_gt(value_of("SELECT count(DISTINCT xmin::text) FROM par"), 1);
}
END_TEST

START_TEST(relative_leaves_null)
{
	run_sql("INSERT INTO par VALUES (1, NULL), (2, 5); INSERT INTO ch (pid) VALUES (1), (2)");
	repair.mode = "relative";
	expect_code(run_repair(), EXIT_CODE_FAIL);
	expect_line("Updated: 1  Inserted: 0  Still drifted: 1  Changed meanwhile: 0\n");
	expect("SELECT count(*) FROM par WHERE (id = 1 AND n IS NULL) OR (id = 2 AND n = 1)", 2);
}
END_TEST


/* --- a writer in the middle of it --- */

static const char *const modes[] = {"lock", "snapshot", "relative", "maintenance"};

static void
one_wrong(int mode)
{
	repair.mode = modes[mode];
	run_sql("INSERT INTO par VALUES (1, 5); INSERT INTO ch (pid) VALUES (1), (1), (1)");
}

/* The first pass has to be right: what another pass mends would be drift that the repair had made. */
static void
expect_right(int64_t count)
{
	expect("SELECT n FROM par", count);
	expect("SELECT count(*) FROM ch", count);
	expect("SELECT max(pass) FROM counterproof.run", 1);
}

/* The writer holds its change when the repair comes. */
static void
race_with_writer(const char *end, int64_t count)
{
	pid_t child;

	ck_assert(session_execute(other, "BEGIN; INSERT INTO ch (pid) VALUES (1); UPDATE par SET n = n + 1 WHERE id = 1"));
	child = start_repair();
	await_blocked();
	ck_assert(session_execute(other, end));
	expect_code(await_repair(child), EXIT_CODE_PASS);
	expect_right(count);
}

START_TEST(the_writer_was_first_and_commits)
{
	one_wrong(_i);
	race_with_writer("COMMIT", 4);
}
END_TEST

START_TEST(the_writer_was_first_and_rolls_back)
{
	one_wrong(_i);
	race_with_writer("ROLLBACK", 3);
}
END_TEST

/* The repair has written, and is held in its COMMIT; a writer that had inserted before comes to its count only now. */
START_TEST(the_repair_was_first)
{
	pid_t child;

	one_wrong(_i);
	run_sql("CREATE FUNCTION wait_in_commit() RETURNS trigger LANGUAGE plpgsql AS "
			"$$BEGIN PERFORM pg_advisory_xact_lock_shared(" GATE "); RETURN NULL; END$$;"
			"CREATE CONSTRAINT TRIGGER wait_in_commit AFTER UPDATE ON par DEFERRABLE INITIALLY DEFERRED "
			"FOR EACH ROW EXECUTE FUNCTION wait_in_commit();"
			"SELECT pg_advisory_lock(" GATE ")");
	ck_assert(session_execute(other, "BEGIN; INSERT INTO ch (pid) VALUES (1)"));
	child = start_repair();
	await_blocked();
	ck_assert(session_send(other, "UPDATE par SET n = n + 1 WHERE id = 1", NO_ARGS));
	await_sql("SELECT (count(*) = 2)::int FROM pg_stat_activity WHERE datname = current_database() AND "
			  "wait_event_type = 'Lock'");
	run_sql("SELECT pg_advisory_unlock(" GATE ")");
	ck_assert_int_eq(session_await(other, NULL, deadline_in_ms(WAIT_MS)), SQL_OK);
	ck_assert(session_execute(other, "COMMIT"));
	expect_code(await_repair(child), EXIT_CODE_PASS);
	expect_right(4);
}
END_TEST

/* A fact whose count is still to come when the source is locked has the time to arrive; new ones wait for the end. */
START_TEST(separate_transactions_in_maintenance)
{
	pid_t child;

	run_sql("INSERT INTO par VALUES (1, 5); INSERT INTO ch (pid) VALUES (1), (1), (1), (1)");
	write_file(COUNTER "separate_transaction}\n");
	repair.mode = "maintenance";
	child = start_repair();
	await_output("the source is locked");
	run_sql("UPDATE par SET n = n + 1");
	ck_assert(session_send(other, "INSERT INTO ch (pid) VALUES (1)", NO_ARGS));
	await_sql("SELECT count(*) FROM pg_locks WHERE NOT granted");
	expect_code(await_repair(child), EXIT_CODE_PASS);
	expect_line("stored=6 actual=4 diff=+2");
	expect("SELECT n FROM par", 4);
	ck_assert_int_eq(session_await(other, NULL, deadline_in_ms(WAIT_MS)), SQL_OK);
}
END_TEST


/* --- stopped and resumed --- */

/* A run in chunks of 10 that has closed the first, and waits for a row of the second. */
static pid_t
start_and_stop_in_second_chunk(void)
{
	pid_t child;

	note_writes();
	request.chunk = 10;
	ck_assert(session_execute(other, "BEGIN; SELECT FROM par WHERE id = 15 FOR UPDATE"));
	child = start_repair();
	await_sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'counterproof' AND tablename = 'drift'");
	await_sql("SELECT count(*) FROM counterproof.drift WHERE outcome = 'updated'");
	await_blocked();
	return child;
}

/* A run that has found its keys and repaired none. */
static pid_t
start_and_pause(void)
{
	static char pause[64];
	pid_t child;

	ck_assert_int_lt(snprintf(pause, sizeof(pause), "%s/pause", folder), (int) sizeof(pause));
	ck_assert(file_replace(pause, ""));
	repair.pause_file = pause;
	child = start_repair();
	await_output("waits: ");
	ck_assert_int_eq(unlink(pause), 0);
	return child;
}

static void
expect_forty_right(void)
{
	expect("SELECT count(*) FROM par WHERE n = 2", 40);
	expect("SELECT count(*) FROM written", 40);
	expect("SELECT count(DISTINCT id) FROM written", 40);
}

START_TEST(killed_and_resumed)
{
	make_forty_wrong();
	repair.mode = modes[_i];
	kill_repair(start_and_stop_in_second_chunk());
	expect("SELECT count(*) FROM written", 10);
	/* Wrong, and behind the cursor. */
	run_sql("INSERT INTO par VALUES (0, 9)");
	ck_assert(session_execute(other, "ROLLBACK"));
	await_gone();
	repair.resume = "1";
	repair.mode = "maintenance";
	expect_code(run_repair(), EXIT_CODE_USAGE);
	repair.mode = NULL;
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("run 1, mode");
	expect_line("10 of 40 keys are done");
	expect_line(
		"late   1 keys were written after the reading, and looked at\n  drift  id=0 stored=9 actual=0 diff=+9\n");
	expect_line("Updated: 41  Inserted: 0  Still drifted: 0");
	expect_line("Found late: 1");
	run_sql("DELETE FROM par WHERE id = 0; DELETE FROM written WHERE id = 0");
	expect_forty_right();
	/* Once more, and nothing happens. */
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect("SELECT count(*) FROM written", 40);
}
END_TEST

/* Begun by one client and gone on with by another, which the environment tells to write times and bytes differently. */
START_TEST(resumed_elsewhere)
{
	static const char *const said[] = {"PGTZ", "PGOPTIONS"};
	static const char *const values[][2] = {{"UTC", "-c bytea_output=hex -c intervalstyle=postgres"},
											{"Asia/Tokyo", "-c bytea_output=escape -c intervalstyle=iso_8601"}};

	run_sql("CREATE TABLE tally (at timestamptz, who bytea, span interval, n integer, PRIMARY KEY (at, who, span));"
			"INSERT INTO tally SELECT '2026-01-01 00:00+00'::timestamptz + g * interval '1 hour', '\\xff00', "
			"g * interval '1 day', 9 FROM generate_series(1, 4) g;"
			"CREATE TABLE facts AS SELECT at, who, span FROM tally");
	write_file("counters:\n  - {name: tally.n, target: tally, key: [at, who, span], column: n, source: facts, "
			   "source_key: [at, who, span], writers: same_transaction}\n");
	repair.mode = modes[_i];
	for (int client = 0; client < 2; client++)
	{
		for (size_t i = 0; i < LENGTH_OF(said); i++)
		{
			ck_assert_int_eq(setenv(said[i], values[client][i], 1), 0);
		}
		if (client == 0)
		{
			kill_repair(start_and_pause());
		}
		else
		{
			repair.resume = "last";
			expect_code(run_repair(), EXIT_CODE_PASS);
		}
	}
	expect_line("Updated: 4  Inserted: 0  Still drifted: 0  Changed meanwhile: 0\n");
	ck_assert_ptr_null(strstr(text_get(&output), "late"));
	expect("SELECT count(*) FROM tally WHERE n = 1", 4);
	for (size_t i = 0; i < LENGTH_OF(said); i++)
	{
		unsetenv(said[i]);
	}
}
END_TEST

/* Whoever cleans up in Tokyo finds the key that was found in UTC. */
START_TEST(a_key_is_one_text_everywhere)
{
	run_sql("CREATE TABLE tally (at timestamptz PRIMARY KEY, n integer); CREATE TABLE facts (at timestamptz);"
			"INSERT INTO tally VALUES ('2026-01-01 00:00+00', 9), ('infinity', 9), ('0044-03-15 00:00+00 BC', 9)");
	write_file("counters:\n  - {name: tally.n, target: tally, key: [at], column: n, source: facts, source_key: [at], "
			   "writers: same_transaction}\n");
	for (int client = 0; client < 2; client++)
	{
		ck_assert_int_eq(setenv("PGTZ", client == 0 ? "UTC" : "Asia/Tokyo", 1), 0);
		repair.dry_run = client == 0;
		repair.record = client == 0;
		expect_code(run_repair(), client == 0 ? EXIT_CODE_FAIL : EXIT_CODE_PASS);
		expect_line("drift  at=\"2026-01-01 00:00:00+00\" stored=9 actual=0 diff=+9");
	}
	expect_line("Updated: 3  Inserted: 0  Still drifted: 0  Changed meanwhile: 0\n");
	expect("SELECT count(DISTINCT key) FROM counterproof.drift", 3);
	expect("SELECT count(*) FROM counterproof.since WHERE good_run IS NULL AND bad_run = 1 AND last_run = 2", 3);
	request.id = "2026-01-01 09:00+09";
	expect_code(await_repair(start("history")), EXIT_CODE_PASS);
	expect_line("since  at=\"2026-01-01 00:00:00+00\"  wrong since before run 1");
	unsetenv("PGTZ");
}
END_TEST

/* What the first reading could not tell is not forgotten by whoever goes on. */
START_TEST(resumed_and_not_checkable)
{
	run_sql("CREATE TABLE tally (pid integer, n integer); INSERT INTO tally VALUES (1, 9), (2, 5), (2, 5);"
			"INSERT INTO par VALUES (1), (2); INSERT INTO ch (pid) VALUES (1)");
	write_file("counters:\n  - {name: tally.n, target: tally, key: [pid], column: n, source: ch, source_key: [pid], "
			   "writers: same_transaction}\n");
	kill_repair(start_and_pause());
	await_gone();
	repair.resume = "last";
	expect_code(run_repair(), EXIT_CODE_INCONCLUSIVE);
	expect_line("Updated: 1  Inserted: 0  Still drifted: 0");
}
END_TEST

/* A row that was NULL when it was read again has no amount to be wrong by; once it has a number, the next pass measures it. */
START_TEST(relative_without_an_amount)
{
	run_sql("INSERT INTO par VALUES (1, 5)");
	repair.mode = "relative";
	kill_repair(start_and_pause());
	await_gone();
	run_sql("UPDATE counterproof.drift SET remainder = 'none'");
	repair.resume = "last";
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect("SELECT n FROM par", 0);
}
END_TEST

/* What a run had measured and not added yet must not be added after another one has. */
START_TEST(a_later_run_supersedes_one_that_stopped)
{
	make_forty_wrong();
	repair.mode = "relative";
	kill_repair(start_and_stop_in_second_chunk());
	ck_assert(session_execute(other, "ROLLBACK"));
	await_gone();
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_forty_right();
	repair.resume = "1";
	expect_code(run_repair(), EXIT_CODE_BROKEN);
	expect_line("superseded");
	expect_forty_right();
}
END_TEST

START_TEST(nobody_begins_beside_a_run)
{
	pid_t first;
	char *path;

	make_forty_wrong();
	first = start_and_stop_in_second_chunk();
	path = output_path();
	ck_assert_int_eq(unlink(path), 0);
	free(path);
	expect_code(run_repair(), EXIT_CODE_BROKEN);
	expect_line("--resume joins it");
	ck_assert(session_execute(other, "ROLLBACK"));
	ck_assert_int_eq(waitpid(first, NULL, 0), first);
	expect_forty_right();
}
END_TEST

START_TEST(an_interrupt_ends_after_the_chunk)
{
	pid_t child;

	make_forty_wrong();
	child = start_and_stop_in_second_chunk();
	ck_assert_int_eq(kill(child, SIGINT), 0);
	ck_assert(session_execute(other, "ROLLBACK"));
	expect_code(await_repair(child), EXIT_CODE_INTERRUPTED);
	expect_line("20 of 40 keys are done");
	expect_line("--resume 1\n");
	repair.resume = "last";
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_forty_right();
}
END_TEST


/* --- several workers --- */

START_TEST(a_worker_that_dies_gives_its_chunk_back)
{
	pid_t child;

	make_forty_wrong();
	repair.jobs = 3;
	child = start_and_stop_in_second_chunk();
	run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'counterproof%' AND "
			"wait_event_type = 'Lock' AND datname = current_database()");
	ck_assert(session_execute(other, "ROLLBACK"));
	expect_code(await_repair(child), EXIT_CODE_PASS);
	expect_line("Updated: 40  Inserted: 0  Still drifted: 0");
	expect_forty_right();
}
END_TEST

/* Two processes on one run; the first is killed while it holds a chunk, and the second ends the run. */
START_TEST(a_process_that_dies_gives_its_chunk_back)
{
	char *first_output = string_format("%s/first", folder);
	char *path = output_path();
	pid_t first, second;

	make_forty_wrong();
	first = start_and_stop_in_second_chunk();
	ck_assert_int_eq(rename(path, first_output), 0);
	repair.resume = "1";
	second = start_repair();
	await_sql("SELECT (count(*) = 30)::int FROM counterproof.drift WHERE outcome = 'updated'");
	ck_assert_int_eq(kill(first, SIGKILL), 0);
	ck_assert_int_eq(waitpid(first, NULL, 0), first);
	ck_assert(session_execute(other, "ROLLBACK"));
	expect_code(await_repair(second), EXIT_CODE_PASS);
	expect_line("Updated: 40  Inserted: 0  Still drifted: 0");
	expect_forty_right();
	free(first_output);
	free(path);
}
END_TEST


/* --- guards --- */

START_TEST(emptied_facts_are_refused)
{
	run_sql("INSERT INTO par SELECT g, 2 FROM generate_series(1, 40) g");
	expect_code(run_repair(), EXIT_CODE_FAIL);
	expect_line("40 of 40 counts would become 0");
	expect("SELECT count(*) FROM par WHERE n = 2", 40);
	repair.resume = "1";
	expect_code(run_repair(), EXIT_CODE_FAIL);
	repair.yes = true;
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect("SELECT count(*) FROM par WHERE n = 0", 40);
}
END_TEST

/* A column that was added with NULL, of which many are 0, is no loss. */
START_TEST(a_new_column_is_filled)
{
	run_sql("INSERT INTO par SELECT g, NULL FROM generate_series(1, 40) g; INSERT INTO ch (pid) VALUES (7)");
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("backfill  NULL: 40 of 40  filled: 40  left: 0\n");
	expect("SELECT count(*) FROM par WHERE n = (id = 7)::int", 40);
}
END_TEST

START_TEST(a_pause_file_stops_it)
{
	char *pause = string_format("%s/pause", folder);
	pid_t child;

	five_rows();
	ck_assert(file_replace(pause, ""));
	repair.pause_file = pause;
	child = start_repair();
	await_output("waits: ");
	expect("SELECT count(*) FROM counterproof.drift WHERE outcome IS NULL", 2);
	ck_assert_int_eq(unlink(pause), 0);
	expect_code(await_repair(child), EXIT_CODE_PASS);
	expect_line("goes on");
	expect("SELECT count(*) FROM counterproof.drift WHERE outcome = 'updated'", 2);
	free(pause);
}
END_TEST

START_TEST(an_unknown_lag_is_not_zero)
{
	five_rows();
	repair.max_lag_mb = 1;
	expect_code(run_repair(), EXIT_CODE_BROKEN);
	expect_line("the lag is unknown");
	expect("SELECT n FROM par WHERE id = 3", 7);
}
END_TEST

/* One row stays locked: it is left as it is and said so, the others are repaired. */
START_TEST(a_row_that_cannot_be_had)
{
	five_rows();
	repair.mode = "snapshot";
	request.chunk = 1;
	ck_assert(session_execute(other, "BEGIN; SELECT FROM par WHERE id = 3 FOR UPDATE"));
	expect_code(run_repair(), EXIT_CODE_FAIL);
	expect_line("Updated: 1  Inserted: 0  Still drifted: 1");
	ck_assert(session_execute(other, "ROLLBACK"));
	expect("SELECT n FROM par WHERE id = 3", 7);
}
END_TEST

/* A worker that gives up its key leaves those before it alone, which another worker holds. */
START_TEST(what_is_given_up_is_one_key)
{
	Session *worker = must_open(database, "check_repair");
	const char *given_up = "SELECT count(*) FROM counterproof.drift WHERE key = '{4}' AND outcome = 'busy'";
	pid_t child;

	five_rows();
	kill_repair(start_and_pause());
	await_gone();
	ck_assert(session_execute(worker, "BEGIN; SELECT FROM counterproof.drift WHERE key = '{3}' FOR UPDATE"));
	ck_assert(session_execute(other, "BEGIN; SELECT FROM par WHERE id = 4 FOR UPDATE"));
	request.chunk = 1;
	repair.resume = "last";
	child = start_repair();
	ck_assert(wait_until(given_up, deadline_in_ms(3 * WAIT_MS), probe_sql, (void *) given_up)); /* 20 times a second */
	expect("SELECT count(*) FROM counterproof.drift WHERE key = '{3}' AND outcome IS NULL", 1);
	ck_assert(session_execute(worker, "ROLLBACK"));
	expect_code(await_repair(child), EXIT_CODE_FAIL);
	ck_assert(session_execute(other, "ROLLBACK"));
	expect_line("Updated: 1  Inserted: 0  Still drifted: 1");
	expect("SELECT n FROM par WHERE id = 3", 3);
	session_close(worker);
}
END_TEST

/* A count that its column cannot hold is told of, and keeps none of the others from being repaired. */
START_TEST(a_count_that_cannot_be_written)
{
	repair.mode = modes[_i];
	run_sql("INSERT INTO par SELECT g, 9 FROM generate_series(1, 40) g; ALTER TABLE par ADD CHECK (id <> 17 OR n = 9);"
			"INSERT INTO ch (pid) SELECT g FROM generate_series(1, 40) g");
	expect_code(run_repair(), EXIT_CODE_FAIL);
	expect_line("id=17 cannot be written: ");
	expect_line("\"par_check\" (23514)\n");
	expect_line("Updated: 39  Inserted: 0  Still drifted: 1");
	expect("SELECT count(*) FROM par WHERE n = CASE id WHEN 17 THEN 9 ELSE 1 END", 40);
}
END_TEST


/* --- outbox --- */

#define LIKES                                                                                                          \
	"counters:\n  - name: like_count.n\n    target: like_count\n    key: [item_id]\n    column: n\n"                   \
	"    source: like_fact\n    source_key: [item_id]\n    where: liked\n    parent: {table: item, key: [item_id]}\n"  \
	"    writers: outbox\n    outbox:\n      table: like_outbox\n      key: [item_id]\n      seq: seq\n"               \
	"      delta: delta\n      processed: {table: processed_event, seq: seq}\n      base_seq: base_seq\n"              \
	"      last: {table: like_seq, column: last}\n"                                                                    \
	"      watermark: {table: counter_watermark, column: applied_upto}\n"

/*
 * A consumer has applied event 5 and not committed when the repair comes; event 6 is written after that, and applied in the same
 * transaction. A baseline counted before the row was locked would know nothing of 6, and take it away.
 */
START_TEST(a_baseline_beside_a_consumer)
{
	char *like_folder = string_format("%s/like", request.sql);
	pid_t child;

	ck_assert(like_create(lab, like_folder));
	ck_assert(like_add_item(lab, 1, "item-lab-01"));
	ck_assert(session_query(lab, NULL, "SELECT like_set(u, 1, true) FROM generate_series(1, 5) u", NO_ARGS));
	run_sql("UPDATE like_count SET n = 40");
	write_file(LIKES);
	ck_assert(session_execute(other, "BEGIN; SELECT like_consume(ARRAY[5]::bigint[])"));
	child = start_repair();
	await_blocked();
	ck_assert(session_query(lab, NULL, "SELECT like_set(6, 1, true)", NO_ARGS));
	ck_assert(session_execute(other, "SELECT like_consume(ARRAY[6]::bigint[]); COMMIT"));
	expect_code(await_repair(child), EXIT_CODE_PASS);
	expect_line("Updated: 1  Inserted: 0  Still drifted: 0");
	expect("SELECT n FROM like_count", 6);
	expect("SELECT base_seq FROM like_count", 6);
	expect("SELECT applied FROM like_consume(ARRAY[1, 2, 3, 4, 5, 6]::bigint[])", 0);
	expect("SELECT exact_violations + count_mismatch_items + lag FROM like_audit_read_side()", 0);
	expect("SELECT max(pass) FROM counterproof.run", 1);
	free(like_folder);
}
END_TEST


/* --- history --- */

static int
run_history(void)
{
	return await_repair(start("history"));
}

START_TEST(since_when)
{
	expect_code(run_history(), EXIT_CODE_PASS);
	expect_line("no run of repair yet");
	five_rows();
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_code(run_history(), EXIT_CODE_PASS);
	expect_line("since  id=3  wrong since before run 1 (");
	repair = (CountersRepair){.dry_run = true, .record = true};
	expect_code(run_repair(), EXIT_CODE_PASS);
	run_sql("UPDATE par SET n = 8 WHERE id = 3");
	expect_code(run_repair(), EXIT_CODE_FAIL);
	expect_code(run_repair(), EXIT_CODE_FAIL);
	repair.dry_run = false;
	repair.record = false;
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_code(run_history(), EXIT_CODE_PASS);
	expect_line(
		"Scanned: 5  Correct: 4  Drifted: 1  Missing: 0  Not checkable: 0  Updated: 1  Inserted: 0  Still drifted: 0");
	expect_line("since  id=3  right in run 2 (");
	expect_line("wrong in run 3 (");
	ck_assert_ptr_null(strstr(text_get(&output), "since  id=4"));
	request.id = "4";
	expect_code(run_history(), EXIT_CODE_PASS);
	expect_line("since  id=4  wrong since before run 1 (");
}
END_TEST

/* A consumer loses one event of item 2: of the events since the last good run, one is of this item. */
START_TEST(since_which_events)
{
	char *like_folder = string_format("%s/like", request.sql);

	ck_assert(like_create(lab, like_folder));
	ck_assert(like_add_item(lab, 1, "item-lab-01"));
	ck_assert(like_add_item(lab, 2, "item-lab-02"));
	ck_assert(session_query(lab, NULL, "SELECT like_set(u, 1 + u % 2, true) FROM generate_series(1, 6) u", NO_ARGS));
	run_sql("SELECT like_consume(ARRAY[1, 2, 3, 4]::bigint[])");
	write_file(LIKES);
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_line("Correct: 2  Drifted: 0");
	ck_assert(session_query(lab, NULL, "SELECT like_set(u, 1, true) FROM generate_series(7, 9) u", NO_ARGS));
	run_sql("SELECT like_consume(ARRAY[5, 6, 7, 8, 9]::bigint[]); UPDATE like_count SET n = n - 1 WHERE item_id = 2");
	expect_code(run_repair(), EXIT_CODE_PASS);
	expect_code(run_history(), EXIT_CODE_PASS);
	expect_line("since  item_id=2  right in run 1 (");
	expect_line("stored=2 actual=3 diff=-1; events above 4, up to 9, of this key 5\n");
	free(like_folder);
}
END_TEST


static Suite *
repair_suite(void)
{
	Suite *suite = suite_create("repair");
	TCase *found = tcase_create("found");
	TCase *races = tcase_create("races");
	TCase *stopped = tcase_create("stopped");
	TCase *guards = tcase_create("guards");
	TCase *history = tcase_create("history");
	TCase *cases[] = {found, races, stopped, guards, history};

	for (size_t i = 0; i < LENGTH_OF(cases); i++)
	{
		tcase_add_checked_fixture(cases[i], setup, teardown);
		tcase_set_timeout(cases[i], TEST_SECONDS);
		suite_add_tcase(suite, cases[i]);
	}
	tcase_add_test(found, a_dry_run_writes_nothing);
	tcase_add_test(found, a_real_run_does_what_the_dry_run_said);
	tcase_add_test(found, null_zero_and_missing_rows);
	tcase_add_test(found, names_and_keys_of_any_kind);
	tcase_add_test(found, one_key_alone);
	tcase_add_test(found, what_is_refused);
	tcase_add_test(found, options_of_others);
	tcase_add_test(found, relative_leaves_null);
	tcase_add_test(found, what_nobody_could_write_is_refused);
	tcase_add_test(found, no_index_is_told);
	tcase_add_test(found, a_key_is_one_text_everywhere);
	tcase_add_loop_test(races, the_writer_was_first_and_commits, 0, LENGTH_OF(modes));
	tcase_add_loop_test(races, the_writer_was_first_and_rolls_back, 0, LENGTH_OF(modes));
	tcase_add_loop_test(races, the_repair_was_first, 0, LENGTH_OF(modes));
	tcase_add_test(races, separate_transactions_in_maintenance);
	tcase_add_test(races, a_baseline_beside_a_consumer);
	tcase_add_loop_test(stopped, killed_and_resumed, 0, LENGTH_OF(modes) - 1);
	tcase_add_loop_test(stopped, resumed_elsewhere, 0, LENGTH_OF(modes) - 1);
	tcase_add_test(stopped, resumed_and_not_checkable);
	tcase_add_test(stopped, relative_without_an_amount);
	tcase_add_test(stopped, a_later_run_supersedes_one_that_stopped);
	tcase_add_test(stopped, nobody_begins_beside_a_run);
	tcase_add_test(stopped, an_interrupt_ends_after_the_chunk);
	tcase_add_test(stopped, a_worker_that_dies_gives_its_chunk_back);
	tcase_add_test(stopped, a_process_that_dies_gives_its_chunk_back);
	tcase_add_test(guards, emptied_facts_are_refused);
	tcase_add_test(guards, a_new_column_is_filled);
	tcase_add_test(guards, a_pause_file_stops_it);
	tcase_add_test(guards, an_unknown_lag_is_not_zero);
	tcase_add_test(guards, a_row_that_cannot_be_had);
	tcase_add_test(guards, what_is_given_up_is_one_key);
	tcase_add_loop_test(guards, a_count_that_cannot_be_written, 0, LENGTH_OF(modes) - 1);
	tcase_add_test(history, since_when);
	tcase_add_test(history, since_which_events);
	return suite;
}

int
main(void)
{
	int code;

	if (!suite_has_server((const char *const[]){WITH_SQL, WITH_PROGRAMS, NULL}))
	{
		return EXIT_FAILURE;
	}
	if (mkdtemp(folder) == NULL)
	{
		fprintf(stderr, "/tmp must be writable\n");
		return EXIT_FAILURE;
	}
	database = session_conninfo_for(server, DATABASE);
	if (database == NULL)
	{
		return EXIT_FAILURE;
	}
	code = suite_run(repair_suite());
	free(database);
	return code;
}
