/*
 * Looking at counters of many kinds, on a real server: COUNTERPROOF_TEST_CONNINFO, a superuser of a private one. Each test
 * works in a schema of its own. What is printed is compared whole; what a chunk or a sample says is compared with one pass.
 */
#include "counters.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters/connect.h"
#include "counters/report.h"
#include "served_suite.h"

#define WAIT_MS 20000

static char folder[] = "/tmp/check-counters-XXXXXX";
static char *conninfo; /* with the schema in its search_path */
static Session *lab;


/* --- a counter of a file, looked at --- */

static void
setup(void)
{
	strcpy(folder, "/tmp/check-counters-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	conninfo = string_format("%s options='-csearch_path=counters_test'", server);
	lab = must_open(server, "lab");
	ck_assert(session_execute(lab, "DROP SCHEMA IF EXISTS counters_test CASCADE;"
								   "DROP SCHEMA IF EXISTS \"My Schema\" CASCADE;"
								   "CREATE SCHEMA counters_test; SET search_path = counters_test;"));
}

static void
teardown(void)
{
	char *path = string_format("%s/counters.yaml", folder);

	session_close(lab);
	(void) unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
	free(path);
	free(conninfo);
}

static char *
write_config(const char *content)
{
	char *path = string_format("%s/counters.yaml", folder);

	ck_assert(file_replace(path, content));
	return path;
}

/* The report of the first counter, and the exit code that it comes to; the caller frees. */
static char *
look(const char *config, CountersRequest request)
{
	char *path = write_config(config);
	char *printed = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&printed, &size);
	CounterConfig *read;
	Session *session;
	Finding *finding;

	request.file = path;
	request.conninfo = request.conninfo != NULL ? request.conninfo : conninfo;
	request.sql = getenv("COUNTERPROOF_SQL");
	read = counters_read(&request);
	session = counters_connect(&request);
	ck_assert(stream != NULL && read != NULL && session != NULL);
	finding = finding_make(session, &read->counters[0], &request);
	ck_assert_ptr_nonnull(finding);
	ck_assert_int_eq(totals_scanned(&finding->totals),
					 totals_correct(&finding->totals) + totals_drifted(&finding->totals) +
						 finding->totals.keys[CLASS_MISSING] + totals_not_checkable(&finding->totals));
	ck_assert(report_print(stream, finding, request.report_limit));
	fprintf(stream, "exit %d\n", (int) finding_code(finding));
	ck_assert_int_eq(fclose(stream), 0);
	finding_free(finding);
	session_close(session);
	counter_config_free(read);
	free(path);
	return printed;
}

/* The first counter of a file, in a session of the tool. */
typedef struct
{
	CounterConfig *config;
	Session *session;
	Counter *counter;
} Resolved;

static Resolved
resolve(const char *content)
{
	char *path = write_config(content);
	CountersRequest request = {.file = path, .conninfo = conninfo, .sql = getenv("COUNTERPROOF_SQL")};
	Resolved resolved = {.config = counters_read(&request), .session = counters_connect(&request)};

	ck_assert(resolved.config != NULL && resolved.session != NULL);
	resolved.counter = counter_resolve(resolved.session, &resolved.config->counters[0]);
	ck_assert(resolved.counter != NULL && resolved.counter->obstacle == NULL);
	free(path);
	return resolved;
}

static void
resolved_free(Resolved resolved)
{
	counter_free(resolved.counter);
	session_close(resolved.session);
	counter_config_free(resolved.config);
}

static void
assert_has(const char *report, const char *expected)
{
	ck_assert_msg(strstr(report, expected) != NULL, "%s\nhas not\n%s", report, expected);
}

/* The report without its line on how it was read; the caller frees. */
static char *
without_read(const char *report)
{
	const char *read = strstr(report, "  read  ");
	Text text = {0};

	if (read == NULL)
	{
		return string_copy(report);
	}
	text_append_bytes(&text, report, (size_t) (read - report));
	text_append(&text, "%s", strchr(read, '\n') + 1);
	return text.data;
}

static void
assert_report(const char *config, CountersRequest request, const char *expected)
{
	char *report = look(config, request);
	char *compared = without_read(report);

	ck_assert_str_eq(compared, expected);
	free(compared);
	free(report);
}


/* --- kinds of counters --- */

typedef struct
{
	const char *name;
	const char *sql;
	const char *config;
	const char *expected; /* without how it was read */
} Kind;

#define MEDIA "counters:\n  - name: m\n    target: media\n    key: [id]\n    column: n\n"
#define USAGES MEDIA "    source: usage\n    source_key: [media_id]\n"
#define MEDIA_TABLES                                                                                                   \
	"CREATE TABLE media (id int PRIMARY KEY, n int); CREATE TABLE usage (id serial, media_id int, kind text, gone timestamptz, spam boolean NOT NULL DEFAULT false, size numeric, who int);"

static const Kind KINDS[] = {
	{"all right", MEDIA_TABLES "INSERT INTO media VALUES (1, 2), (2, 0); INSERT INTO usage (media_id) VALUES (1), (1)",
	 USAGES, "m  Scanned: 2  Correct: 2  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\nexit 0\n"},
	{"no rows at all", MEDIA_TABLES, USAGES,
	 "m  Scanned: 0  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\nexit 0\n"},
	{"three right, +4 and -1",
	 MEDIA_TABLES
	 "INSERT INTO media VALUES (1, 1), (2, 1), (3, 0), (4, 5), (5, 0); INSERT INTO usage (media_id) VALUES (1), (2), (4), (5)",
	 USAGES,
	 "m  Scanned: 5  Correct: 3  Drifted: 2  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 1  negative: 0  NULL: 0\n"
	 "  drift  id=4 stored=5 actual=1 diff=+4\n  drift  id=5 stored=0 actual=1 diff=-1\nexit 1\n"},
	{"rows without a source row",
	 MEDIA_TABLES "INSERT INTO media VALUES (1, 1), (2, 0), (3, 2); INSERT INTO usage (media_id) VALUES (3), (3), (3)",
	 USAGES,
	 "m  Scanned: 3  Correct: 1  Drifted: 2  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 1  negative: 0  NULL: 0\n"
	 "  drift  id=1 stored=1 actual=0 diff=+1\n  drift  id=3 stored=2 actual=3 diff=-1\nexit 1\n"},
	{"NULL and below zero",
	 MEDIA_TABLES
	 "INSERT INTO media VALUES (1, NULL), (2, -1), (3, NULL); INSERT INTO usage (media_id) VALUES (1), (1)",
	 USAGES,
	 "m  Scanned: 3  Correct: 0  Drifted: 3  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 0  under: 0  negative: 1  NULL: 2\n"
	 "  drift  id=1 stored=NULL actual=2\n  drift  id=2 stored=-1 actual=0 diff=-1\n  drift  id=3 stored=NULL actual=0\nexit 1\n"},
	{"orphans and rows with no parent",
	 MEDIA_TABLES "INSERT INTO media VALUES (1, 1); INSERT INTO usage (media_id) VALUES (1), (8), (9), (9), (NULL)",
	 USAGES,
	 "m  Scanned: 1  Correct: 1  Drifted: 0  Missing: 0  Orphans: 3  Not checkable: 0\n"
	 "  source rows whose key is nowhere: 3, of 2 keys\n  source rows with NULL in their key: 1\n"
	 "  orphan  id=8 rows=1\n  orphan  id=9 rows=2\n  no parent  id=NULL rows=1\nexit 0\n"},
	{"polymorphic source",
	 MEDIA_TABLES
	 "INSERT INTO media VALUES (1, 1), (2, 1); INSERT INTO usage (media_id, kind) VALUES (1, 'post'), (1, 'page'), (2, 'page')",
	 USAGES "    where: kind = 'post'   # type\n",
	 "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=2 stored=1 actual=0 diff=+1\nexit 1\n"},
	{"soft delete and two flags",
	 MEDIA_TABLES
	 "INSERT INTO media VALUES (1, 1), (2, 3); INSERT INTO usage (media_id, gone, spam) VALUES (1, NULL, false), (1, now(), false), (2, NULL, true), (2, NULL, false), (2, now(), true)",
	 USAGES "    where: |\n      gone IS NULL AND NOT spam  -- both\n",
	 "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=2 stored=3 actual=1 diff=+2\nexit 1\n"},
	{"self-reference",
	 "CREATE TABLE comment (id int PRIMARY KEY, parent_id int, replies int NOT NULL DEFAULT 0); INSERT INTO comment VALUES (1, NULL, 2), (2, 1, 0), (3, 1, 1)",
	 "counters:\n  - name: c\n    target: comment\n    key: [id]\n    column: replies\n    source: comment\n    source_key: [parent_id]\n",
	 "c  Scanned: 3  Correct: 2  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  source rows with NULL in their key: 1\n"
	 "  drift  id=3 stored=1 actual=0 diff=+1\n  no parent  id=NULL rows=1\nexit 1\n"},
	{"sum",
	 MEDIA_TABLES
	 "ALTER TABLE media ALTER n TYPE numeric; INSERT INTO media VALUES (1, 2.50), (2, 0), (3, 1); INSERT INTO usage (media_id, size) VALUES (1, 1.25), (1, 1.25), (3, NULL)",
	 USAGES "    measure: sum(size)\n",
	 "m  Scanned: 3  Correct: 2  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=3 stored=1 actual=0 diff=+1\nexit 1\n"},
	{"count distinct",
	 MEDIA_TABLES
	 "INSERT INTO media VALUES (1, 3), (2, 1); INSERT INTO usage (media_id, who) VALUES (1, 7), (1, 7), (1, 8), (2, 7), (2, 7)",
	 USAGES "    measure: count(DISTINCT who)\n",
	 "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=1 stored=3 actual=2 diff=+1\nexit 1\n"},
	{"a join that multiplies, found by truth",
	 MEDIA_TABLES
	 "CREATE TABLE tag (media_id int); INSERT INTO tag VALUES (1), (1); INSERT INTO usage (media_id) VALUES (1), (1), (2);"
	 "INSERT INTO media SELECT u.media_id, count(*) FROM usage u LEFT JOIN tag t USING (media_id) GROUP BY 1",
	 MEDIA "    truth: SELECT media_id, count(*) FROM usage GROUP BY media_id;\n",
	 "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=1 stored=4 actual=2 diff=+2\nexit 1\n"},
	{"truth that names a key twice",
	 MEDIA_TABLES
	 "INSERT INTO media VALUES (1, 1), (2, 1); INSERT INTO usage (media_id, kind) VALUES (1, 'a'), (1, 'b'), (2, 'a')",
	 MEDIA "    truth: SELECT media_id, count(*) FROM usage GROUP BY media_id, kind\n",
	 "m  Scanned: 2  Correct: 1  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 1\n"
	 "  not checkable: 1 rows whose key is there more than once\n  ambiguous  id=1 stored=1 actual=1 diff=0\nexit 4\n"},
	{"only some of the target",
	 MEDIA_TABLES
	 "ALTER TABLE media ADD kind text; INSERT INTO media VALUES (1, 1, 'image'), (2, 9, 'video'), (3, 4, NULL), (4, 2, 'image'); INSERT INTO usage (media_id) VALUES (1), (2), (4), (5)",
	 USAGES "    target_where: media.kind = 'image'\n",
	 "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 1  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  source rows whose key is nowhere: 1, of 1 keys\n"
	 "  drift  id=4 stored=2 actual=1 diff=+1\n  orphan  id=5 rows=1\nexit 1\n"},
	{"a table of its own",
	 "CREATE TABLE post (id int PRIMARY KEY, gone boolean DEFAULT false); CREATE TABLE stat (post_id int PRIMARY KEY, n int); CREATE TABLE vote (post_id int);"
	 "INSERT INTO post VALUES (1), (2), (3); INSERT INTO stat VALUES (1, 2), (9, 0); INSERT INTO vote VALUES (1), (1), (2), (7), (NULL)",
	 "counters:\n  - name: v\n    target: stat\n    key: [post_id]\n    column: n\n    source: vote\n    source_key: [post_id]\n    parent: {table: post, key: [id]}\n",
	 "v  Scanned: 3  Correct: 1  Drifted: 0  Missing: 2  Orphans: 1  Not checkable: 0\n"
	 "  source rows whose key is nowhere: 1, of 1 keys\n  source rows with NULL in their key: 1\n"
	 "  rows whose parent does not exist: 1, not scanned\n"
	 "  missing  post_id=2 stored=none actual=1\n  missing  post_id=3 stored=none actual=0\n  orphan  post_id=7 rows=1\n"
	 "  stray  post_id=9 stored=0 actual=0 diff=0\n  no parent  post_id=NULL rows=1\nexit 1\n"},
	{"a parent that does not count",
	 "CREATE TABLE post (id int, gone boolean NOT NULL); CREATE TABLE stat (post_id bigint PRIMARY KEY, n int); CREATE TABLE vote (post_id smallint);"
	 "INSERT INTO post VALUES (1, false), (1, false), (2, true); INSERT INTO stat VALUES (1, 1); INSERT INTO vote VALUES (1)",
	 "counters:\n  - name: v\n    target: stat\n    key: [post_id]\n    column: n\n    source: vote\n    source_key: [post_id]\n    parent: {table: post, key: [id], where: NOT gone}\n",
	 "v  Scanned: 1  Correct: 1  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\nexit 0\n"},
	{"uuid",
	 "CREATE TABLE media (id uuid PRIMARY KEY, n int); CREATE TABLE usage (media_id uuid);"
	 "INSERT INTO media VALUES ('00000000-0000-0000-0000-000000000001', 1), ('00000000-0000-0000-0000-000000000002', 1); INSERT INTO usage VALUES ('00000000-0000-0000-0000-000000000001')",
	 USAGES,
	 "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=00000000-0000-0000-0000-000000000002 stored=1 actual=0 diff=+1\nexit 1\n"},
	{"text in two collations and types",
	 "CREATE TABLE media (id text COLLATE \"C\" PRIMARY KEY, n int); CREATE TABLE usage (media_id varchar(40) COLLATE \"POSIX\");"
	 "INSERT INTO media VALUES ('a', 1), ('B', 2), ('x, \"y\" {z}\\', 0), (E'two\\nlines', 3), ('NULL', 1), ('', 1); INSERT INTO usage VALUES ('a'), ('B'), ('x, \"y\" {z}\\'), ('')",
	 USAGES,
	 "m  Scanned: 6  Correct: 2  Drifted: 4  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 3  under: 1  negative: 0  NULL: 0\n  drift  id=B stored=2 actual=1 diff=+1\n"
	 "  drift  id=\"NULL\" stored=1 actual=0 diff=+1\n  drift  id=\"two\\x0alines\" stored=3 actual=0 diff=+3\n"
	 "  drift  id=\"x, \\\"y\\\" {z}\\\\\" stored=0 actual=1 diff=-1\nexit 1\n"},
	{"types whose bare names are short",
	 "CREATE TABLE media (id char(6), part bit(4), n int, PRIMARY KEY (id, part)); CREATE TABLE usage (media_id char(8), part bit(4));"
	 "INSERT INTO media VALUES ('ab', B'1010', 1), ('abc', B'1010', 1), ('abc', B'1011', 1); INSERT INTO usage VALUES ('ab', B'1010'), ('abc', B'1011'), ('abc', B'1011')",
	 "counters:\n  - name: m\n    target: media\n    key: [id, part]\n    column: n\n    source: usage\n    source_key: [media_id, part]\n",
	 "m  Scanned: 3  Correct: 1  Drifted: 2  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 1  negative: 0  NULL: 0\n  drift  id=abc part=1010 stored=1 actual=0 diff=+1\n  drift  id=abc part=1011 stored=1 actual=2 diff=-1\nexit 1\n"},
	{"domains and enums",
	 "CREATE TYPE kind AS ENUM ('post', 'page'); CREATE DOMAIN number AS int CHECK (VALUE > 0); CREATE TABLE media (id number, what kind, n int, PRIMARY KEY (id, what)); CREATE TABLE usage (media_id int, what kind);"
	 "INSERT INTO media VALUES (1, 'post', 1), (1, 'page', 1); INSERT INTO usage VALUES (1, 'page')",
	 "counters:\n  - name: m\n    target: media\n    key: [id, what]\n    column: n\n    source: usage\n    source_key: [media_id, what]\n",
	 "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=1 what=post stored=1 actual=0 diff=+1\nexit 1\n"},
	{"composite",
	 "CREATE TABLE stat (a int, b text, n bigint, PRIMARY KEY (a, b)); CREATE TABLE item (b2 text, a2 int);"
	 "INSERT INTO stat VALUES (1, 'x', 1), (1, 'y', 1), (2, 'x', 0); INSERT INTO item VALUES ('x', 1), ('x', 2), ('z', 1), ('x', NULL), (NULL, 1)",
	 "counters:\n  - name: s\n    target: stat\n    key: [a, b]\n    column: n\n    source: item\n    source_key: [a2, b2]\n",
	 "s  Scanned: 3  Correct: 1  Drifted: 2  Missing: 0  Orphans: 1  Not checkable: 0\n"
	 "  over: 1  under: 1  negative: 0  NULL: 0\n  source rows whose key is nowhere: 1, of 1 keys\n  source rows with NULL in their key: 2\n"
	 "  drift  a=1 b=y stored=1 actual=0 diff=+1\n  orphan  a=1 b=z rows=1\n  no parent  a=1 b=NULL rows=1\n"
	 "  drift  a=2 b=x stored=0 actual=1 diff=-1\n  no parent  a=NULL b=x rows=1\nexit 1\n"},
	{"NULL is a key like another",
	 "CREATE TABLE stat (a int NOT NULL, b int, n int, UNIQUE NULLS NOT DISTINCT (a, b)); CREATE TABLE item (a int, b bigint);"
	 "INSERT INTO stat VALUES (1, 1, 1), (1, NULL, 3), (2, NULL, 1); INSERT INTO item VALUES (1, 1), (1, NULL), (1, NULL), (2, NULL), (3, NULL)",
	 "counters:\n  - name: s\n    target: stat\n    key: [a, b]\n    column: n\n    source: item\n    source_key: [a, b]\n",
	 "s  Scanned: 3  Correct: 2  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  source rows with NULL in their key: 1\n"
	 "  drift  a=1 b=NULL stored=3 actual=2 diff=+1\n  no parent  a=3 b=NULL rows=1\nexit 1\n"},
	{"duplicates under NULL in a unique key",
	 "CREATE TABLE stat (a int, b int, n int, UNIQUE (a, b)); CREATE TABLE item (a int, b int);"
	 "INSERT INTO stat VALUES (1, NULL, 1), (1, NULL, 1), (2, NULL, 1), (3, 3, 1); INSERT INTO item VALUES (1, NULL), (1, NULL), (2, NULL), (3, 3)",
	 "counters:\n  - name: s\n    target: stat\n    key: [a, b]\n    column: n\n    source: item\n    source_key: [a, b]\n",
	 "s  Scanned: 4  Correct: 2  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 2\n"
	 "  not checkable: 2 rows whose key is there more than once\n  ambiguous  a=1 b=NULL stored=1 actual=2 diff=-1\nexit 4\n"},
	{"columns of the names that the tool uses itself",
	 "CREATE TABLE media (k2 int NOT NULL, k1 int NOT NULL, n int, stored int, PRIMARY KEY (k2, k1)); CREATE TABLE usage (k1 int, k2 int, actual int, class int);"
	 "INSERT INTO media VALUES (1, 2, 1, 7), (2, 1, 1, 7); INSERT INTO usage VALUES (1, 2, 0, 0), (1, 2, 0, 0)",
	 "counters:\n  - name: m\n    target: media\n    key: [k2, k1]\n    column: n\n    source: usage\n    source_key: [k1, k2]\n",
	 "m  Scanned: 2  Correct: 0  Drifted: 2  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 1  negative: 0  NULL: 0\n  drift  k2=1 k1=2 stored=1 actual=2 diff=-1\n  drift  k2=2 k1=1 stored=1 actual=0 diff=+1\nexit 1\n"},
	{"quoted names",
	 "CREATE SCHEMA \"My Schema\"; CREATE TABLE \"My Schema\".\"Media; --\" (\"The \"\"Id\" int PRIMARY KEY, \"Usage Count\" int); CREATE TABLE \"select\" (\"from\" int, \"WHERE\" int);"
	 "INSERT INTO \"My Schema\".\"Media; --\" VALUES (1, 2); INSERT INTO \"select\" VALUES (1, 1), (1, 0)",
	 "counters:\n  - name: q\n    target: '\"My Schema\".\"Media; --\"'\n    key: ['The \"Id']\n    column: Usage Count\n    source: '\"select\"'\n    source_key: [from]\n    where: '\"WHERE\" = 1'\n",
	 "q  Scanned: 1  Correct: 0  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  The \"Id=1 stored=2 actual=1 diff=+1\nexit 1\n"},
	{"partitions and views",
	 "CREATE TABLE media (id int PRIMARY KEY, n int) PARTITION BY HASH (id); CREATE TABLE media0 PARTITION OF media FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE media1 PARTITION OF media FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
	 "CREATE TABLE raw (m int); CREATE VIEW usage AS SELECT m AS media_id FROM raw WHERE m > 0; INSERT INTO media VALUES (1, 1), (2, 1), (3, 0); INSERT INTO raw VALUES (1), (-1)",
	 USAGES,
	 "m  Scanned: 3  Correct: 2  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=2 stored=1 actual=0 diff=+1\nexit 1\n"},
	{"numbers at the end of their range",
	 MEDIA_TABLES
	 "ALTER TABLE media ALTER n TYPE bigint; INSERT INTO media VALUES (1, 9223372036854775807), (2, -9223372036854775808); INSERT INTO usage (media_id) VALUES (2)",
	 USAGES,
	 "m  Scanned: 2  Correct: 0  Drifted: 2  Missing: 0  Orphans: 0  Not checkable: 0\n"
	 "  over: 1  under: 0  negative: 1  NULL: 0\n  drift  id=1 stored=9223372036854775807 actual=0 diff=+9223372036854775807\n"
	 "  drift  id=2 stored=-9223372036854775808 actual=1 diff=-9223372036854775809\nexit 1\n"},
};

START_TEST(kinds_in_one_pass)
{
	const Kind *kind = &KINDS[_i];
	char *report;

	ck_assert(session_execute(lab, kind->sql));
	report = look(kind->config, (CountersRequest){0});
	assert_has(report, "  read  one pass, one snapshot\n");
	free(report);
	assert_report(kind->config, (CountersRequest){0}, kind->expected);
}
END_TEST

/* The rows of chunks come chunk by chunk, and those with NULL last, so only their order may differ. */
static int
compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

static char *
sorted(const char *report)
{
	char *lines[64] = {NULL};
	char *copy = string_copy(report);
	size_t count = 0;
	Text text = {0};

	for (char *line = strtok(copy, "\n"); line != NULL; line = strtok(NULL, "\n"))
	{
		ck_assert_uint_lt(count, LENGTH_OF(lines));
		lines[count++] = line;
	}
	qsort(lines, count, sizeof(char *), compare_lines);
	for (size_t i = 0; i < count; i++)
	{
		text_append(&text, "%s\n", lines[i]);
	}
	free(copy);
	return text.data;
}

START_TEST(kinds_in_chunks)
{
	const Kind *kind = &KINDS[_i];
	char *expected = sorted(kind->expected);

	ck_assert(session_execute(lab, kind->sql));
	for (int chunk = 1; chunk <= 4; chunk++)
	{
		char *report = look(kind->config, (CountersRequest){.chunk = chunk});
		char *compared = without_read(report);
		char *lines = sorted(compared);
		char *how = string_format(" chunks of %d keys, a snapshot each\n", chunk);

		assert_has(report, how);
		ck_assert_str_eq(lines, expected);
		free(how);
		free(lines);
		free(compared);
		free(report);
	}
	free(expected);
}
END_TEST

/* Every key is in a large enough sample, and then its line is that of one pass but for what only a whole pass sees. */
START_TEST(kinds_in_a_sample)
{
	const Kind *kind = &KINDS[_i];
	char *report;
	size_t length;

	ck_assert(session_execute(lab, kind->sql));
	report = look(kind->config, (CountersRequest){.sample = 1000});
	length = (size_t) (strstr(kind->expected, "  Orphans:") - kind->expected);
	ck_assert_msg(strncmp(report, kind->expected, length) == 0, "%s\nfor\n%s", report, kind->expected);
	assert_has(report, "  read  a sample, one snapshot");
	free(report);
}
END_TEST

START_TEST(a_sample_has_its_size_and_its_seed)
{
	char *first;
	char *again;
	char *other;

	ck_assert(session_execute(lab, MEDIA_TABLES "INSERT INTO media SELECT g, g FROM generate_series(1, 500) g"));
	first = look(USAGES, (CountersRequest){.sample = 20, .seed = 1});
	again = look(USAGES, (CountersRequest){.sample = 20, .seed = 1});
	other = look(USAGES, (CountersRequest){.sample = 20, .seed = 2});
	assert_has(first, "m  Scanned: 20  Correct: 0  Drifted: 20  ");
	assert_has(other, "m  Scanned: 20  Correct: 0  Drifted: 20  ");
	ck_assert_str_eq(first, again);
	ck_assert_str_ne(first, other);
	free(first);
	free(again);
	free(other);
}
END_TEST

START_TEST(one_key)
{
	ck_assert(session_execute(
		lab,
		"CREATE TABLE stat (a text, b text, n int, PRIMARY KEY (a, b)); CREATE TABLE item (a text, b text);"
		"INSERT INTO stat VALUES ('x,y', 'z', 2), ('x', 'y', 1); INSERT INTO item VALUES ('x,y', 'z'), ('x', 'y')"));
#define STAT                                                                                                           \
	"counters:\n  - name: s\n    target: stat\n    key: [a, b]\n    column: n\n    source: item\n    source_key: [a, b]\n"
	assert_report(
		STAT, (CountersRequest){.id = "x\\,y,z"},
		"s  Scanned: 1  Correct: 0  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
		"  over: 1  under: 0  negative: 0  NULL: 0\n  drift  a=\"x,y\" b=z stored=2 actual=1 diff=+1\nexit 1\n");
	assert_report(STAT, (CountersRequest){.id = "x,y"},
				  "s  Scanned: 1  Correct: 1  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\nexit 0\n");
	assert_report(STAT, (CountersRequest){.id = "x,nothing"},
				  "s  Scanned: 0  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\n"
				  "  not checkable: there is no such key\nexit 4\n");
	assert_report(STAT, (CountersRequest){.id = "x"},
				  "s  Scanned: 0  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\n"
				  "  not checkable: not a key of this counter\nexit 4\n");
}
END_TEST

/* Two keys of four: each column alone would let in the other two. */
START_TEST(a_list_is_of_whole_keys)
{
	static const char *const types[] = {"int NOT NULL", "int"};

	for (size_t i = 0; i < LENGTH_OF(types); i++)
	{
		char *sql = string_format(
			"DROP TABLE IF EXISTS stat, item; CREATE TABLE stat (a int NOT NULL, b %s, n int, UNIQUE NULLS NOT DISTINCT (a, b)); CREATE TABLE item (a int, b int);"
			"INSERT INTO stat SELECT a, b, 1 FROM generate_series(1, 2) a, generate_series(1, 2) b; INSERT INTO item VALUES (1, 1), (1, 2), (2, 1)",
			types[i]);
		CounterKeyList list = {0};
		CounterTotals totals = {0};
		SqlArg args[COUNTER_KEY_MAX];
		Resolved stat;

		ck_assert(session_execute(lab, sql));
		stat = resolve(STAT);
		key_list_add(&list, stat.counter, (const char *const[]){"1", "2"});
		key_list_add(&list, stat.counter, (const char *const[]){"2", "1"});
		ck_assert_int_eq(counter_scan(stat.session, stat.counter, (CounterKeys){.kind = KEYS_LIST}, args,
									  key_list_args(&list, stat.counter, args), &totals, NULL, NULL),
						 SQL_OK);
		ck_assert_int_eq(totals_scanned(&totals), 2);
		ck_assert_int_eq(totals_correct(&totals), 2);
		key_list_free(&list);
		resolved_free(stat);
		free(sql);
	}
}
END_TEST

START_TEST(the_report_has_its_limit)
{
	ck_assert(session_execute(lab, MEDIA_TABLES "INSERT INTO media SELECT g, 1 FROM generate_series(1, 5) g"));
	assert_report(USAGES, (CountersRequest){.report_limit = 2},
				  "m  Scanned: 5  Correct: 0  Drifted: 5  Missing: 0  Orphans: 0  Not checkable: 0\n"
				  "  over: 5  under: 0  negative: 0  NULL: 0\n  drift  id=1 stored=1 actual=0 diff=+1\n"
				  "  drift  id=2 stored=1 actual=0 diff=+1\n  and 3 more (--limit-report 0 prints all)\nexit 1\n");
}
END_TEST

/* Few keys behind an index and a large source: the first 10,000 keys cost less than their part of a whole pass. */
START_TEST(the_planner_chooses)
{
	char *report;

	ck_assert(session_execute(
		lab, MEDIA_TABLES
		"INSERT INTO media SELECT g, 0 FROM generate_series(1, 60000) g;"
		"INSERT INTO usage (media_id) SELECT 70000 + g % 1000 FROM generate_series(1, 100000) g; CREATE INDEX ON usage (media_id);"
		"ANALYZE media, usage"));
	report = look(USAGES, (CountersRequest){.report_limit = 1});
	ck_assert_ptr_nonnull(strstr(
		report, "m  Scanned: 60000  Correct: 60000  Drifted: 0  Missing: 0  Orphans: 100000  Not checkable: 0\n"));
	assert_has(report, "  read  7 chunks of 10000 keys, a snapshot each\n");
	free(report);
	ck_assert(session_execute(lab, "DROP INDEX usage_media_id_idx"));
	report = look(USAGES, (CountersRequest){.report_limit = 1});
	assert_has(report, "  read  one pass, one snapshot\n");
	free(report);
}
END_TEST

static CounterTotals
totals_of(Resolved resolved)
{
	CounterTotals totals = {0};

	ck_assert_int_eq(
		counter_scan(resolved.session, resolved.counter, (CounterKeys){.kind = KEYS_ALL}, NO_ARGS, &totals, NULL, NULL),
		SQL_OK);
	return totals;
}

/* Counted in order, each kind is what it is hashed. */
START_TEST(kinds_in_order)
{
	CounterTotals totals[2];
	Resolved resolved;

	ck_assert(session_execute(lab, KINDS[_i].sql));
	resolved = resolve(KINDS[_i].config);
	for (int in_order = 0; in_order < 2; in_order++)
	{
		resolved.counter->in_order = in_order == 1;
		totals[in_order] = totals_of(resolved);
	}
	ck_assert_mem_eq(&totals[0], &totals[1], sizeof(CounterTotals));
	resolved_free(resolved);
}
END_TEST

static bool
is_in_order(void)
{
	Resolved resolved = resolve(USAGES);
	bool in_order = resolved.counter->in_order;
	CounterTotals totals = totals_of(resolved);

	ck_assert_int_eq(totals_correct(&totals), 50000);
	ck_assert_int_eq(totals.orphan_rows, 10);
	ck_assert_int_eq(totals.no_parent_rows, 5);
	resolved_free(resolved);
	return in_order;
}

/* An index that has to look into the table for each row is no order to go by, and neither is sorting. */
START_TEST(many_rows_are_counted_in_the_order_of_an_index)
{
	ck_assert(session_execute(lab, MEDIA_TABLES "ALTER TABLE usage SET (autovacuum_enabled = off);"
												"INSERT INTO media SELECT g, 4 FROM generate_series(1, 50000) g;"
												"INSERT INTO usage (media_id) SELECT 1 + (g * 7919) % 50000 FROM "
												"generate_series(1, 200000) g;"
												"INSERT INTO usage (media_id) SELECT 60000 FROM generate_series(1, 10);"
												"INSERT INTO usage (media_id) SELECT NULL FROM generate_series(1, 5);"
												"CREATE INDEX ON usage (media_id); ANALYZE media, usage"));
	ck_assert(!is_in_order());
	ck_assert(session_execute(lab, "VACUUM usage"));
	ck_assert(is_in_order());
	ck_assert(session_execute(lab, "DROP INDEX usage_media_id_idx"));
	ck_assert(!is_in_order());
}
END_TEST


/* --- names that would be SQL --- */

#define BAD "n\\\"; DROP TABLE media; --"

static const char *const INJECTIONS[] = {
	"target: \"media; DROP TABLE media\"",
	"target: \"" BAD "\"",
	"key: [\"id\\\") ; DROP TABLE media; --\"]",
	"column: \"" BAD "\"",
	"source: \"usage; DROP TABLE media\"",
	"source: \"(DELETE FROM media RETURNING id) x\"",
	"source_key: [\"media_id); DROP TABLE media; --\"]",
	"parent: {table: \"media; DROP TABLE media\", key: [id]}",
	"parent: {table: media, key: [\"" BAD "\"]}",
	"outbox: {table: \"usage; DROP TABLE media\", key: [media_id], seq: id, delta: who, watermark: {table: media, column: n}}",
	"outbox: {table: usage, key: [\"" BAD "\"], seq: id, delta: who, watermark: {table: media, column: n}}",
	"outbox: {table: usage, key: [media_id], seq: \"" BAD "\", delta: who, watermark: {table: media, column: n}}",
	"outbox: {table: usage, key: [media_id], seq: id, delta: \"" BAD "\", watermark: {table: media, column: n}}",
	"outbox: {table: usage, key: [media_id], seq: id, delta: who, base_seq: \"" BAD
	"\", watermark: {table: media, column: n}}",
	"outbox: {table: usage, key: [media_id], seq: id, delta: who, watermark: {table: \"" BAD "\", column: n}}",
	"outbox: {table: usage, key: [media_id], seq: id, delta: who, watermark: {table: media, column: \"" BAD "\"}}",
	"outbox: {table: usage, key: [media_id], seq: id, delta: who, processed: {table: usage, seq: \"" BAD "\"}}",
	"outbox: {table: usage, key: [media_id], seq: id, delta: who, last: {table: media, column: \"" BAD
	"\"}, watermark: {table: media, column: n}}",
	/* SQL that the operator is trusted with: it may be wrong, it writes nothing */
	"where: \"true); DELETE FROM media; --\"",
	"where: \"writes()\"",
	"target_where: \"writes()\"",
	"measure: \"count(*) FILTER (WHERE writes())\"",
};

START_TEST(names_are_no_sql)
{
	static const char *const defaults[] = {"target: media", "key: [id]", "column: n", "source: usage",
										   "source_key: [media_id]"};
	const char *bad = INJECTIONS[_i];
	size_t key_length = strcspn(bad, ":") + 1;
	Text config = {0};
	char *report;
	int64_t rows;

	ck_assert(session_execute(
		lab, MEDIA_TABLES
		"INSERT INTO media VALUES (1, 1), (2, 2); INSERT INTO usage (media_id) VALUES (1);"
		"CREATE FUNCTION writes() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN DELETE FROM media; RETURN true; END $$"));
	text_append(&config, "counters:\n  - name: m\n");
	for (size_t i = 0; i < LENGTH_OF(defaults); i++)
	{
		text_append(&config, "    %s\n", strncmp(defaults[i], bad, key_length) == 0 ? bad : defaults[i]);
	}
	if (strstr(text_get(&config), bad) == NULL)
	{
		text_append(&config, "%s    %s\n", strncmp(bad, "outbox", 6) == 0 ? "    writers: outbox\n" : "", bad);
	}
	report = look(text_get(&config), (CountersRequest){0});
	ck_assert_msg(strstr(report, "  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: ") != NULL &&
					  strstr(report, "\n  not checkable: ") != NULL && strstr(report, "exit 4\n") != NULL,
				  "%s\n%s", text_get(&config), report);
	ck_assert(session_query_int(lab, &rows, "SELECT count(*) FROM media", NO_ARGS));
	ck_assert_int_eq(rows, 2);
	free(report);
	text_free(&config);
}
END_TEST


/* --- what cannot be read is not correct --- */

static void
assert_obstacle(const char *config, CountersRequest request, const char *obstacle)
{
	char *report = look(config, request);
	char *expected = string_format("\n  not checkable: %s\n", obstacle);

	ck_assert_msg(strstr(report, expected) != NULL, "%s\nhas not\n%s", report, expected);
	free(expected);
	free(report);
}

START_TEST(obstacles)
{
	ck_assert(session_execute(
		lab, MEDIA_TABLES
		"ALTER TABLE media ADD words text; INSERT INTO media VALUES (1, 1), (2, 2); CREATE SEQUENCE numbers"));
	assert_report(
		"counters:\n  - name: m\n    target: media\n    key: [id]\n    column: n\n    source: nowhere\n    source_key: [x]\n",
		(CountersRequest){0},
		"m  Scanned: 2  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 2\n"
		"  not checkable: no table nowhere\nexit 4\n");
	assert_obstacle(USAGES "    where: nothing = 1\n", (CountersRequest){0},
					"column \"nothing\" does not exist (42703)");
	assert_obstacle(
		"counters:\n  - name: m\n    target: media\n    key: [id]\n    column: gone\n    source: usage\n    source_key: [media_id]\n",
		(CountersRequest){0}, "counters_test.media has no column \"gone\"");
	assert_obstacle(
		"counters:\n  - name: m\n    target: media\n    key: [id]\n    column: n\n    source: numbers\n    source_key: [last_value]\n",
		(CountersRequest){0}, "numbers is no table");
	assert_obstacle(
		"counters:\n  - name: m\n    target: media\n    key: [id]\n    column: words\n    source: usage\n    source_key: [media_id]\n",
		(CountersRequest){0}, "operator does not exist: text = bigint (42883)");
}
END_TEST

/* For a division by zero that only rows have. */
START_TEST(an_error_half_way)
{
	ck_assert(session_execute(
		lab, MEDIA_TABLES
		"INSERT INTO media SELECT g, 1 FROM generate_series(1, 9) g; INSERT INTO usage (media_id) SELECT g FROM generate_series(1, 9) g"));
	for (int chunk = 0; chunk <= 2; chunk += 2)
	{
		assert_report(USAGES "    where: 1 / (media_id - 7) < 5\n", (CountersRequest){.chunk = chunk},
					  "m  Scanned: 9  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 9\n"
					  "  not checkable: division by zero (22012)\nexit 4\n");
	}
}
END_TEST

START_TEST(a_role_that_may_only_select)
{
	char *reader = string_format("%s options='-csearch_path=counters_test -crole=counters_reader'", server);
	CountersRequest request = {.conninfo = reader};

	ck_assert(session_execute(
		lab, MEDIA_TABLES
		"INSERT INTO media VALUES (1, 1), (2, 5); INSERT INTO usage (media_id) VALUES (1);"
		"DO $$ BEGIN CREATE ROLE counters_reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
		"GRANT USAGE ON SCHEMA counters_test TO counters_reader; GRANT SELECT ON media TO counters_reader"));
	assert_report(USAGES, request,
				  "m  Scanned: 2  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 2\n"
				  "  not checkable: permission denied for table usage (42501)\nexit 3\n");
	ck_assert(session_execute(lab, "GRANT SELECT (media_id) ON usage TO counters_reader"));
	assert_report(USAGES, request,
				  "m  Scanned: 2  Correct: 1  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
				  "  over: 1  under: 0  negative: 0  NULL: 0\n  drift  id=2 stored=5 actual=0 diff=+5\nexit 1\n");
	/* A policy would hide the row, and the count that is right would seem wrong. */
	ck_assert(session_execute(
		lab, "ALTER TABLE usage ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON usage USING (media_id > 100)"));
	assert_obstacle(USAGES, request,
					"query would be affected by row-level security policy for table \"usage\" (42501)");
	ck_assert(session_execute(lab, "REVOKE USAGE ON SCHEMA counters_test FROM counters_reader"));
	free(reader);
}
END_TEST

/* All rows are locked and a row is written by others; looking neither waits nor leaves a trace in the rows. */
START_TEST(nothing_is_locked_or_written)
{
	SqlResult *before;
	SqlResult *after;
	char *report;

	ck_assert(session_execute(lab, MEDIA_TABLES
							  "INSERT INTO media VALUES (1, 1), (2, 5); INSERT INTO usage (media_id) VALUES (1);"));
	ck_assert(session_execute(lab, "BEGIN; SELECT FROM media FOR UPDATE; UPDATE usage SET media_id = 2"));
	report = look(USAGES, (CountersRequest){0});
	assert_has(report, "m  Scanned: 2  Correct: 1  Drifted: 1  ");
	ck_assert(session_execute(lab, "ROLLBACK; BEGIN"));
	free(report);
	ck_assert(session_query(lab, &before, "SELECT string_agg(ROW(m.xmin, m.xmax, m.ctid, m.*)::text, ' ') FROM media m",
							NO_ARGS));
	report = look(USAGES, (CountersRequest){.chunk = 1});
	ck_assert(session_query(lab, &after, "SELECT string_agg(ROW(m.xmin, m.xmax, m.ctid, m.*)::text, ' ') FROM media m",
							NO_ARGS));
	ck_assert_str_eq(sql_text(before, 0, 0), sql_text(after, 0, 0));
	sql_free(before);
	sql_free(after);
	free(report);
}
END_TEST


/* --- lag --- */

#define LIKES                                                                                                          \
	"CREATE TABLE likes (item int NOT NULL); CREATE TABLE box (seq bigint PRIMARY KEY, item int, delta int);"          \
	"CREATE TABLE done (seq bigint PRIMARY KEY); CREATE TABLE last (n bigint); CREATE TABLE mark (n bigint);"          \
	"CREATE TABLE counts (item int PRIMARY KEY, n bigint, base bigint NOT NULL DEFAULT 0);"
#define LIKE_COUNTER                                                                                                          \
	"counters:\n  - name: l\n    target: counts\n    key: [item]\n    column: n\n    source: likes\n    source_key: [item]\n" \
	"    writers: outbox\n    outbox:\n      table: box\n      key: [item]\n      seq: seq\n      delta: delta\n"
#define MARKED "      last: {table: last, column: n}\n      watermark: {table: mark, column: n}\n"
#define REGISTERED "      processed: {table: done, seq: seq}\n"

/* Item 1 waits for event 3, item 2 is wrong, item 3 is right now and will be wrong when event 4 is added. */
START_TEST(lag_is_not_drift)
{
	const char *expected =
		"l  Scanned: 4  Correct: 2  Drifted: 2  Missing: 0  Orphans: 0  Not checkable: 0\n"
		"  over: 2  under: 0  negative: 0  NULL: 0\n"
		"  lag  2 events: last 4, watermark 2; 1 keys lag by exactly what is pending\n"
		"  drift  item=2 stored=5 actual=1 pending=0 diff=+4\n  drift  item=3 stored=1 actual=1 pending=+1 diff=0\nexit 1\n";

	ck_assert(session_execute(
		lab, LIKES
		"INSERT INTO likes VALUES (1), (1), (2), (3); INSERT INTO box VALUES (1, 1, 1), (2, 2, 1), (3, 1, 1), (4, 3, 1);"
		"INSERT INTO counts VALUES (1, 1), (2, 5), (3, 1), (4, 0); INSERT INTO done VALUES (1), (2); INSERT INTO last VALUES (4); INSERT INTO mark VALUES (2)"));
	assert_report(LIKE_COUNTER MARKED REGISTERED, (CountersRequest){0}, expected);
	assert_report(LIKE_COUNTER MARKED, (CountersRequest){0}, expected);
	assert_report(LIKE_COUNTER MARKED, (CountersRequest){.chunk = 2}, expected);
	assert_report(LIKE_COUNTER "      watermark: {table: mark, column: n}\n", (CountersRequest){0}, expected);
}
END_TEST

/* Events out of order: 3 has taken effect before 2, so item 1 is right and item 2 waits. */
START_TEST(lag_with_a_hole)
{
	ck_assert(session_execute(
		lab, LIKES
		"INSERT INTO likes VALUES (1), (1), (2); INSERT INTO box VALUES (1, 1, 1), (2, 2, 1), (3, 1, 1);"
		"INSERT INTO counts VALUES (1, 2), (2, 0); INSERT INTO done VALUES (1), (3); INSERT INTO last VALUES (3); INSERT INTO mark VALUES (1)"));
	assert_report(LIKE_COUNTER MARKED REGISTERED, (CountersRequest){0},
				  "l  Scanned: 2  Correct: 2  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\n"
				  "  lag  2 events: last 3, watermark 1; 1 keys lag by exactly what is pending\nexit 0\n");
	assert_report(LIKE_COUNTER REGISTERED, (CountersRequest){0},
				  "l  Scanned: 2  Correct: 2  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\n"
				  "  lag  1 events; 1 keys lag by exactly what is pending\nexit 0\n");
}
END_TEST

/* A baseline has events 1 to 3 inside, of which 2 and 3 are still to be delivered: they are not pending. */
START_TEST(events_in_a_baseline_are_not_pending)
{
	ck_assert(session_execute(
		lab, LIKES
		"INSERT INTO likes VALUES (1), (1), (1), (1); INSERT INTO box SELECT g, 1, 1 FROM generate_series(1, 4) g;"
		"INSERT INTO counts VALUES (1, 3, 3); INSERT INTO done VALUES (1); INSERT INTO last VALUES (4); INSERT INTO mark VALUES (1)"));
	assert_report(LIKE_COUNTER MARKED REGISTERED "      base_seq: base\n", (CountersRequest){0},
				  "l  Scanned: 1  Correct: 1  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\n"
				  "  lag  3 events: last 4, watermark 1; 1 keys lag by exactly what is pending\nexit 0\n");
}
END_TEST

typedef struct
{
	const char *sql;
	const char *config;
	const char *expected;
} LagCase;

static const LagCase LAGS[] = {
	{"INSERT INTO last VALUES (2); INSERT INTO mark VALUES (2)", MARKED REGISTERED,
	 "  lag  0 events: last 2, watermark 2; 0 keys"},
	{"INSERT INTO last VALUES (2)", MARKED REGISTERED, "  lag  unknown: counters_test.mark has no row\nexit 4\n"},
	{"INSERT INTO mark VALUES (2)", MARKED REGISTERED, "  lag  unknown: counters_test.last has no row\nexit 4\n"},
	{"INSERT INTO last VALUES (2); INSERT INTO mark VALUES (NULL)", MARKED REGISTERED,
	 "  lag  unknown: counters_test.mark has NULL\nexit 4\n"},
	{"INSERT INTO last VALUES (2), (3); INSERT INTO mark VALUES (2)", MARKED REGISTERED,
	 "  lag  unknown: counters_test.last has several rows\nexit 4\n"},
	{"INSERT INTO last VALUES (2); INSERT INTO mark VALUES (5)", MARKED REGISTERED,
	 "  lag  error: the watermark 5 is ahead of the log, which ends at 2, by 3\nexit 1\n"},
	/* without registrations a watermark that is not known leaves nothing to say */
	{"INSERT INTO last VALUES (2)", MARKED,
	 "l  Scanned: 1  Correct: 0  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 1\n"
	 "  not checkable: lag unknown: nothing says which events took effect\n  lag  unknown: counters_test.mark has no row\nexit 4\n"},
	{"DROP TABLE mark", MARKED REGISTERED, "  not checkable: no table mark\nexit 4\n"},
};

START_TEST(an_unknown_lag_is_not_0)
{
	const LagCase *lag = &LAGS[_i];
	char *config = string_format("%s%s", LIKE_COUNTER, lag->config);
	char *report;

	ck_assert(session_execute(
		lab, LIKES
		"INSERT INTO likes VALUES (1), (1); INSERT INTO box VALUES (1, 1, 1), (2, 1, 1); INSERT INTO counts VALUES (1, 2); INSERT INTO done VALUES (1), (2)"));
	ck_assert(session_execute(lab, lag->sql));
	report = look(config, (CountersRequest){0});
	ck_assert_msg(strstr(report, lag->expected) != NULL, "%s\nhas not\n%s", report, lag->expected);
	free(report);
	free(config);
}
END_TEST


/* --- in flight --- */

#define SEPARATE USAGES "    writers: separate_transaction\n"

/* A program between its two transactions: it holds the gate that the first look has to pass, then its second transaction. */
typedef struct
{
	Session *gate;
	Session *writer;
	bool done;
} Program;

/* Until the tool's session is as the condition says. */
static bool
tool_is(Session *watcher, const char *condition)
{
	char *sql = string_format(
		"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counterproof counters' AND %s", condition);
	Deadline deadline = deadline_in_ms(WAIT_MS);
	int64_t found = 0;

	while (found == 0 && !deadline_passed(deadline) && session_query_int(watcher, &found, sql, NO_ARGS))
	{
		backoff_us(1000);
	}
	free(sql);
	return found > 0;
}

/* The snapshot of the first look has been taken when it waits at the gate; what it says last begins the wait for transactions. */
static void *
program_run(void *context)
{
	Program *program = context;

	program->done = tool_is(program->gate, "wait_event_type = 'Lock' AND wait_event = 'advisory'") &&
					session_execute(program->gate, "SELECT pg_advisory_unlock(7)") &&
					tool_is(program->gate, "query LIKE '%counters_ended%'") &&
					session_commit(program->writer) == SQL_OK;
	return NULL;
}

START_TEST(what_is_in_flight_is_not_drift)
{
	Program program = {.gate = session_open(conninfo, "gate"), .writer = session_open(conninfo, "writer")};
	pthread_t thread;
	char *report;

	ck_assert(session_execute(
		lab, MEDIA_TABLES
		"INSERT INTO media VALUES (1, 0), (2, 0), (3, 4), (4, 0), (5, 0); INSERT INTO usage (media_id) VALUES (1), (2), (2), (3), (4)"));
	ck_assert(program.gate != NULL && program.writer != NULL &&
			  session_execute(program.gate, "SELECT pg_advisory_lock(7)"));
	ck_assert(session_begin(program.writer, READ_COMMITTED));
	/* 1 becomes right, 2 differs otherwise, 3 moves on with its drift of +3, 4 stays, 5 stays right */
	ck_assert(session_execute(
		program.writer, "UPDATE media SET n = n + 1 WHERE id IN (1, 2, 3); INSERT INTO usage (media_id) VALUES (3)"));
	ck_assert_int_eq(pthread_create(&thread, NULL, program_run, &program), 0);
	report = look(SEPARATE "    where: pg_advisory_lock_shared(7) IS NOT NULL\n", (CountersRequest){0});
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(program.done);
	assert_has(report, "m  Scanned: 5  Correct: 2  Drifted: 2  Missing: 0  Orphans: 0  Not checkable: 1\n");
	assert_has(report, "  in flight  2, of which 1 are right and 1 differ otherwise in a second look ");
	assert_has(report, "  drift  id=3 stored=5 actual=2 diff=+3\n  drift  id=4 stored=0 actual=1 diff=-1\nexit 1\n");
	session_close(program.writer);
	session_close(program.gate);
	free(report);
}
END_TEST

START_TEST(settling_is_waited_for)
{
	char *report;

	ck_assert(session_execute(lab, MEDIA_TABLES "INSERT INTO media VALUES (1, 1)"));
	report = look(SEPARATE, (CountersRequest){.settle_s = 1});
	assert_has(report, "  in flight  0, of which 0 are right and 0 differ otherwise in a second look 1.");
	assert_has(report, "  drift  id=1 stored=1 actual=0 diff=+1\nexit 1\n");
	free(report);
}
END_TEST

START_TEST(a_transaction_that_stays_open_leaves_it_unknown)
{
	Session *writer;
	char *report;

	ck_assert(session_execute(lab, MEDIA_TABLES "INSERT INTO media VALUES (1, 1), (2, 0)"));
	writer = session_open(conninfo, "writer");
	ck_assert(writer != NULL && session_begin(writer, READ_COMMITTED) &&
			  session_execute(writer, "UPDATE media SET n = 0"));
	time_set_scale(0.01);
	report = look(SEPARATE, (CountersRequest){0});
	time_set_scale(1);
	assert_has(report, "m  Scanned: 2  Correct: 1  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 1\n");
	assert_has(report, "  in flight  unknown: transactions of the first look were still open after 0.");
	assert_has(report, "exit 4\n");
	session_close(writer);
	free(report);
}
END_TEST


/* --- files that are refused --- */

typedef struct
{
	const char *content;
	const char *refusal; /* after the path */
} Refusal;

static const Refusal REFUSALS[] = {
	{"", "1:1: not a mapping of keys to values"},
	{"counters: []\n", NULL},
	{"counters:\n  - name: m\n    tarjet: x\n", "3:5: unknown key \"tarjet\"; the nearest is \"target\""},
	{"counters:\n  - name: m\n    column: n\n    parent: {table: p, column: k}\n",
	 "4:24: unknown key \"column\"; the nearest is \"table\""},
	{USAGES "  - name: o\n    name: p\n", "9:5: \"name\" a second time"},
	{"counters:\n  - name: m\n    target: media\n    key: id\n", NULL},
	{USAGES "    writers: nobody\n", "8:14: \"nobody\" is none of: same_transaction, separate_transaction, outbox"},
	{USAGES "    name: x\n", "8:5: \"name\" a second time"},
	{MEDIA, "2:5: a counter has either a source or truth"},
	{MEDIA "    source: usage\n", "6:13: the key \"source_key\" is missing"},
	{MEDIA "    source: usage\n    source_key: [a, b]\n", "7:17: source_key has 2 columns, and the key has 1"},
	{MEDIA "    truth: SELECT 1\n    where: x\n", "7:12: truth says all there is to say: no where beside it"},
	{USAGES "    parent: {table: x, key: [a, b]}\n", "8:29: parent.key has 2 columns, and the key has 1"},
	{USAGES "    parent: {table: x}\n", NULL},
	{USAGES "    writers: outbox\n", "8:14: writers: outbox, and no outbox is described"},
	{USAGES "    outbox: {table: x, key: [a], seq: s, delta: d, processed: {table: p, seq: s}}\n",
	 "8:13: an outbox is for writers: outbox"},
	{USAGES "    writers: outbox\n    outbox: {table: x, key: [a], seq: s, delta: d}\n",
	 "9:13: without processed or watermark nothing says which events took effect"},
	{USAGES
	 "    writers: outbox\n    outbox: {table: x, key: [a, b], seq: s, delta: d, watermark: {table: p, column: s}}\n",
	 "9:29: outbox.key has 2 columns, and the key has 1"},
	{USAGES "  - name: m\n    target: media\n    key: [id]\n    column: n\n    truth: SELECT 1, 2\n",
	 "8:11: two counters have the name \"m\""},
	{"counters:\n  - name: m\n    target: media\n    key: [id, id]\n    column: n\n    truth: SELECT 1, 2\n",
	 "4:10: \"id\" a second time"},
	{"counters:\n  - name: m\n    target: media\n    key: [id]\n    column: id\n    truth: SELECT 1, 2\n",
	 "5:13: \"id\" is a column of the key"},
	{"counters:\n  - name: \"a\\nb\"\n    target: media\n    key: [id]\n    column: n\n    truth: SELECT 1, 2\n",
	 "2:11: a name is one line without control characters"},
	{"counters:\n  - name: ''\n", NULL},
	{"counters:\n  - {name: m, key: [a, b, c, d, e, f, g, h, i]}\n", NULL},
	{USAGES "    where: &x a\n    measure: *x\n", NULL},
};

START_TEST(files_that_are_refused)
{
	char *path = write_config(REFUSALS[_i].content);
	char *start = string_format("%s:", path);
	char *expected = string_format("%s%s", start, REFUSALS[_i].refusal != NULL ? REFUSALS[_i].refusal : "");
	char error[512];

	ck_assert_ptr_null(counter_config_read(path));
	notice_last_error(error, sizeof(error));
	if (REFUSALS[_i].refusal != NULL)
	{
		ck_assert_str_eq(error, expected);
	}
	else
	{
		/* libcyaml's own words, behind a place */
		ck_assert_msg(strncmp(error, start, strlen(start)) == 0 && error[strlen(start)] >= '1' &&
						  error[strlen(start)] <= '9',
					  "%s", error);
	}
	free(expected);
	free(start);
	free(path);
}
END_TEST

START_TEST(names_that_are_not_there)
{
	char *path = write_config(USAGES);
	CountersRequest request = {.file = path, .names = (const char *const[]){"n"}, .name_count = 1};
	char error[512];

	ck_assert_ptr_null(counters_read(&request));
	notice_last_error(error, sizeof(error));
	ck_assert_str_eq(error, "no counter of the file is named \"n\"; the nearest is \"m\"");
	free(path);
}
END_TEST


/* --- the commands --- */

typedef ExitCode (*CountersCommand)(const CountersRequest *request);

/* What a command prints; the caller frees. */
static char *
capture(CountersCommand command, const CountersRequest *request, ExitCode expected)
{
	char *path = string_format("%s/out", folder);
	int terminal = dup(STDOUT_FILENO);
	Text printed = {0};
	ExitCode code;

	fflush(stdout);
	ck_assert_ptr_nonnull(freopen(path, "w", stdout));
	code = command(request);
	fflush(stdout);
	ck_assert(dup2(terminal, STDOUT_FILENO) >= 0);
	(void) close(terminal);
	ck_assert(file_read(path, &printed));
	ck_assert_msg(code == expected, "exit %d, not %d:\n%s", (int) code, (int) expected, text_get(&printed));
	(void) unlink(path);
	free(path);
	return printed.data != NULL ? printed.data : string_copy("");
}

static CountersRequest
request_for(const char *path)
{
	return (CountersRequest){.conninfo = conninfo, .file = path, .sql = getenv("COUNTERPROOF_SQL")};
}

#define SECOND "  - name: other\n    target: media\n    key: [id]\n    column: n\n    truth: SELECT id, n FROM media\n"

START_TEST(check_prints_each_counter)
{
	char *path = write_config(USAGES SECOND);
	CountersRequest request = request_for(path);
	const char *first = "m  Scanned: 1  Correct: 0  Drifted: 1  Missing: 0  Orphans: 0  Not checkable: 0\n"
						"  read  one pass, one snapshot\n  over: 1  under: 0  negative: 0  NULL: 0\n"
						"  drift  id=1 stored=1 actual=0 diff=+1\n";
	const char *second = "other  Scanned: 1  Correct: 1  Drifted: 0  Missing: 0  Orphans: 0  Not checkable: 0\n"
						 "  read  one pass, one snapshot\n";
	char *both = string_format("%s%s", first, second);
	char *printed;

	ck_assert(session_execute(lab, MEDIA_TABLES "INSERT INTO media VALUES (1, 1)"));
	printed = capture(counters_check, &request, EXIT_CODE_FAIL);
	ck_assert_str_eq(printed, both);
	free(printed);
	request.names = (const char *const[]){"other"};
	request.name_count = 1;
	printed = capture(counters_check, &request, EXIT_CODE_PASS);
	ck_assert_str_eq(printed, second);
	free(printed);
	free(both);
	free(path);
}
END_TEST

START_TEST(check_prints_one_document)
{
	char *path = write_config(USAGES SECOND);
	CountersRequest request = request_for(path);
	const char *name;
	json_int_t drifted, stored, diff, code, left_out;
	json_t *document;
	char *printed;

	ck_assert(session_execute(lab, MEDIA_TABLES "INSERT INTO media VALUES (1, 3), (2, 4)"));
	request.json = true;
	request.report_limit = 1;
	printed = capture(counters_check, &request, EXIT_CODE_FAIL);
	document = json_loads(printed, 0, NULL);
	ck_assert_msg(document != NULL &&
					  json_unpack(document, "{s:[{s:s, s:{s:I}, s:I, s:[{s:I, s:I}]}], s:I}", "counters", "name", &name,
								  "totals", "drifted", &drifted, "rows_left_out", &left_out, "rows", "stored", &stored,
								  "diff", &diff, "exit", &code) == 0,
				  "%s", printed);
	ck_assert_str_eq(name, "m");
	ck_assert_int_eq(drifted, 2);
	ck_assert_int_eq(left_out, 1);
	ck_assert_int_eq(stored, 3);
	ck_assert_int_eq(diff, 3);
	ck_assert_int_eq(code, 1);
	ck_assert_uint_eq(json_array_size(json_object_get(document, "counters")), 2);
	json_decref(document);
	free(printed);
	free(path);
}
END_TEST

START_TEST(nobody_answers)
{
	char *path = write_config(USAGES);
	CountersRequest request = request_for(path);

	request.conninfo = "host=/nowhere dbname=x";
	free(capture(counters_check, &request, EXIT_CODE_BROKEN));
	free(capture(counters_explain, &request, EXIT_CODE_BROKEN));
	request.file = "/nowhere/file.yaml";
	free(capture(counters_check, &request, EXIT_CODE_USAGE));
	free(path);
}
END_TEST

/* Damages the count once the first round has left its numbers. */
static void *
damage_after_first_round(void *context)
{
	Deadline deadline = deadline_in_ms(WAIT_MS);

	while (access(context, R_OK) != 0 && !deadline_passed(deadline))
	{
		backoff_us(1000);
	}
	return session_execute(lab, "UPDATE media SET n = 5") ? context : NULL;
}

static char *metrics_path;

static ExitCode
watch_until_drift(const CountersRequest *request)
{
	CountersWatch watch = {.every_s = 1, .until_drift = true, .metrics = metrics_path};

	return counters_watch(request, &watch);
}

START_TEST(watch_ends_at_the_first_drift)
{
	char *path = write_config(USAGES);
	CountersRequest request = request_for(path);
	pthread_t thread;
	void *damaged = NULL;
	Text metrics = {0};
	char *printed;

	metrics_path = string_format("%s/metrics", folder);
	ck_assert(session_execute(lab, MEDIA_TABLES
							  "INSERT INTO media VALUES (1, 0), (2, 0); INSERT INTO usage (media_id) VALUES (9)"));
	ck_assert_int_eq(pthread_create(&thread, NULL, damage_after_first_round, metrics_path), 0);
	printed = capture(watch_until_drift, &request, EXIT_CODE_FAIL);
	ck_assert_int_eq(pthread_join(thread, &damaged), 0);
	ck_assert_ptr_nonnull(damaged);
	assert_has(printed, "Z  m  Scanned: 2  Correct: 2  Drifted: 0  Missing: 0  Orphans: 1  Not checkable: 0\n");
	assert_has(printed, "Z  m  Scanned: 2  Correct: 0  Drifted: 2  Missing: 0  Orphans: 1  Not checkable: 0\n");
	ck_assert(file_read(metrics_path, &metrics));
	assert_has(
		text_get(&metrics),
		"# TYPE counterproof_counter_drifted gauge\ncounterproof_counter_drifted{counter=\"m\",kind=\"over\"} 2\n");
	assert_has(text_get(&metrics), "counterproof_counter_scanned{counter=\"m\"} 2\n");
	assert_has(text_get(&metrics), "counterproof_counters_exit 1\n");
	ck_assert_ptr_null(strstr(text_get(&metrics), "lag"));
	(void) unlink(metrics_path);
	free(metrics_path);
	text_free(&metrics);
	free(printed);
	free(path);
}
END_TEST

/* That the file of metrics cannot be written is told each round, and hides no drift. */
START_TEST(watch_ends_at_drift_without_its_metrics)
{
	char *path = write_config(USAGES);
	CountersRequest request = request_for(path);

	metrics_path = string_format("%s/nowhere/metrics", folder);
	ck_assert(session_execute(lab, MEDIA_TABLES "INSERT INTO media VALUES (1, 7)"));
	free(capture(watch_until_drift, &request, EXIT_CODE_FAIL));
	free(metrics_path);
	free(path);
}
END_TEST

START_TEST(the_nine_questions)
{
	char *path = write_config(SEPARATE);
	CountersRequest request = request_for(path);
	char *printed;

	ck_assert(session_execute(lab, MEDIA_TABLES
							  "INSERT INTO media VALUES (1, 0), (2, NULL); INSERT INTO usage (media_id) VALUES (1)"));
	printed = capture(counters_explain, &request, EXIT_CODE_PASS);
	assert_has(
		printed,
		"  1. The canonical data is named: yes\n     count(*) of the rows of counters_test.usage; the server has run it\n");
	assert_has(
		printed,
		"  2. It can be recounted without its old value: yes\n     the plan of the recount does not read counters_test.media\n");
	assert_has(
		printed,
		"  3. It is kept up to date when canonical rows are created, changed and deleted: not visible from here\n     no trigger of counters_test.usage");
	assert_has(
		printed,
		"  4. Rows that were there before it are filled: no\n     of 2 counted, 2 are wrong: 1 of them NULL, 1 too small, 0 without a row\n");
	assert_has(printed, "  5. One record can be repaired, again and again: yes\n");
	assert_has(printed, "  6. All can be repaired in portions: no\n");
	assert_has(printed, "  7. There is a dry run, or a report of what differs: yes\n");
	assert_has(printed, "  8. The repair is safe to run again: yes\n");
	assert_has(printed,
			   "  9. What happens with concurrent writers is stated: yes\n     the file says separate_transaction");
	assert_has(printed, "    lock        wrong ");
	assert_has(printed, "    maintenance right ");
	free(printed);
	free(path);
}
END_TEST

START_TEST(answers_that_are_no)
{
	char *path = write_config(USAGES);
	CountersRequest request = request_for(path);
	char *printed;

	ck_assert(session_execute(
		lab, MEDIA_TABLES
		"INSERT INTO media VALUES (1, 0);"
		"CREATE FUNCTION recount() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE media SET n = n + 1; RETURN NULL; END $$;"
		"CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON usage EXECUTE FUNCTION recount()"));
	printed = capture(counters_explain, &request, EXIT_CODE_PASS);
	assert_has(printed, "deleted: yes\n     triggers: INSERT by t; UPDATE by t; DELETE by t; whether they do it right");
	assert_has(printed, "filled: yes\n     all 1 that were counted are right\n");
	assert_has(
		printed,
		"  5. One record can be repaired, again and again: no\n     the file does not say who its writers are\n");
	assert_has(printed, "  9. What happens with concurrent writers is stated: no\n");
	assert_has(printed, "    lock        unknown ");
	free(printed);
	free(path);
	path = write_config(
		"counters:\n  - name: m\n    target: media\n    key: [id]\n    column: n\n    truth: SELECT id, n FROM media\n");
	request.file = path;
	printed = capture(counters_explain, &request, EXIT_CODE_PASS);
	assert_has(
		printed,
		"  2. It can be recounted without its old value: not visible from here\n     the recount reads counters_test.media");
	free(printed);
	free(path);
	/* a table whose name begins like the target's is another */
	path = write_config(
		"counters:\n  - name: m\n    target: media\n    key: [id]\n    column: n\n    truth: SELECT media_id, 1 FROM media_usages\n");
	request.file = path;
	ck_assert(session_execute(lab, "CREATE TABLE media_usages (media_id int)"));
	printed = capture(counters_explain, &request, EXIT_CODE_PASS);
	assert_has(
		printed,
		"  2. It can be recounted without its old value: yes\n     the plan of the recount does not read counters_test.media\n");
	free(printed);
	free(path);
}
END_TEST

/* What no role could write, and writers for whom there are no portions. */
START_TEST(answers_about_what_cannot_be_repaired)
{
	static const struct
	{
		const char *target, *column, *writers, *five, *six;
	} cases[] = {
		{"par", "n", "same_transaction", "again: yes", "portions: yes"},
		{"par", "doubled", "same_transaction", "again: no\n     the column cannot be written", "portions: no"},
		{"copy", "n", "same_transaction", "again: no\n     the column cannot be written", "portions: no"},
		{"par", "n", "separate_transaction", "again: yes\n     counters repair --mode maintenance --id KEY",
		 "portions: no\n     with these writers, maintenance alone is right"},
	};

	ck_assert(session_execute(
		lab, "CREATE TABLE par (id int PRIMARY KEY, n int, doubled int GENERATED ALWAYS AS (id * 2) STORED);"
			 "CREATE TABLE ch (id int); CREATE MATERIALIZED VIEW copy AS SELECT id, n FROM par"));
	for (size_t i = 0; i < LENGTH_OF(cases); i++)
	{
		char *text = string_format(
			"counters:\n  - {name: m, target: %s, key: [id], column: %s, source: ch, source_key: [id], writers: %s}\n",
			cases[i].target, cases[i].column, cases[i].writers);
		char *path = write_config(text);
		CountersRequest request = request_for(path);
		char *printed = capture(counters_explain, &request, EXIT_CODE_PASS);

		assert_has(printed, cases[i].five);
		assert_has(printed, cases[i].six);
		free(printed);
		free(path);
		free(text);
	}
}
END_TEST

START_TEST(init_writes_a_file_that_check_reads)
{
	char *path = string_format("%s/counters.yaml", folder);
	CountersRequest request = request_for(path);
	Text written = {0};
	CounterConfig *config;
	char *printed;

	free(capture(counters_init, &request, EXIT_CODE_INCONCLUSIVE));
	ck_assert(session_execute(
		lab,
		"CREATE TABLE media (id int PRIMARY KEY, usage_count int, like_count int, tag_count int, account int, name text);"
		"CREATE TABLE media_usages (id int, media_id int REFERENCES media, deleted_at timestamptz);"
		"CREATE TABLE \"Likes\" (who int, \"Media\" int REFERENCES media, again int REFERENCES media);"
		"CREATE TABLE lonely (id int PRIMARY KEY, view_count int);"
		"CREATE TABLE \"Thread\" (id int PRIMARY KEY, \"postsCount\" int, discount int);"
		"CREATE TABLE \"Post\" (\"threadId\" int REFERENCES \"Thread\")"));
	printed = capture(counters_init, &request, EXIT_CODE_PASS);
	assert_has(printed, "3 counters; look at each before you trust it\n");
	ck_assert(file_read(path, &written));
	assert_has(
		text_get(&written),
		"  - name: media.usage_count\n    target: media\n    key: [\"id\"]\n    column: usage_count\n    source: media_usages\n"
		"    source_key: [\"media_id\"]\n    where: deleted_at IS NULL   # guessed");
	assert_has(
		text_get(&written),
		"  - name: media.like_count\n    target: media\n    key: [\"id\"]\n    column: like_count\n    source: \"\\\"Likes\\\"\"\n"
		"    source_key: [\"Media\"]\n");
	assert_has(text_get(&written), "#  or its source is \"Likes\", by [\"again\"]\n");
	assert_has(text_get(&written), "#  perhaps:\n#  - name: media.tag_count\n");
	assert_has(text_get(&written), "#  lonely.view_count: nothing references the table");
	assert_has(text_get(&written),
			   "    column: \"postsCount\"\n    source: \"\\\"Post\\\"\"\n    source_key: [\"threadId\"]\n");
	ck_assert_ptr_null(strstr(text_get(&written), "account"));
	ck_assert_ptr_null(strstr(text_get(&written), "discount"));
	config = counter_config_read(path);
	ck_assert(config != NULL && config->count == 3);
	counter_config_free(config);
	free(printed);
	printed = capture(counters_check, &request, EXIT_CODE_PASS);
	assert_has(printed, "media.usage_count  Scanned: 0  Correct: 0  ");
	free(printed);
	/* what a person has edited is not written over */
	free(capture(counters_init, &request, EXIT_CODE_USAGE));
	text_free(&written);
	free(path);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("counters");
	TCase *kinds = tcase_create("kinds");
	TCase *obstacles_case = tcase_create("obstacles");
	TCase *lag = tcase_create("lag");
	TCase *flight = tcase_create("flight");
	TCase *files = tcase_create("files");
	TCase *commands = tcase_create("commands");
	TCase *all[] = {kinds, obstacles_case, lag, flight, files, commands};

	if (!suite_has_server((const char *const[]){WITH_SQL, NULL}))
	{
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < LENGTH_OF(all); i++)
	{
		tcase_add_checked_fixture(all[i], setup, teardown);
		tcase_set_timeout(all[i], 60);
		suite_add_tcase(suite, all[i]);
	}
	tcase_add_loop_test(kinds, kinds_in_one_pass, 0, (int) LENGTH_OF(KINDS));
	tcase_add_loop_test(kinds, kinds_in_chunks, 0, (int) LENGTH_OF(KINDS));
	tcase_add_loop_test(kinds, kinds_in_order, 0, (int) LENGTH_OF(KINDS));
	tcase_add_loop_test(kinds, kinds_in_a_sample, 0, (int) LENGTH_OF(KINDS));
	tcase_add_test(kinds, a_sample_has_its_size_and_its_seed);
	tcase_add_test(kinds, one_key);
	tcase_add_test(kinds, a_list_is_of_whole_keys);
	tcase_add_test(kinds, the_report_has_its_limit);
	tcase_add_test(kinds, the_planner_chooses);
	tcase_add_test(kinds, many_rows_are_counted_in_the_order_of_an_index);
	tcase_add_loop_test(obstacles_case, names_are_no_sql, 0, (int) LENGTH_OF(INJECTIONS));
	tcase_add_test(obstacles_case, obstacles);
	tcase_add_test(obstacles_case, an_error_half_way);
	tcase_add_test(obstacles_case, a_role_that_may_only_select);
	tcase_add_test(obstacles_case, nothing_is_locked_or_written);
	tcase_add_test(lag, lag_is_not_drift);
	tcase_add_test(lag, lag_with_a_hole);
	tcase_add_test(lag, events_in_a_baseline_are_not_pending);
	tcase_add_loop_test(lag, an_unknown_lag_is_not_0, 0, (int) LENGTH_OF(LAGS));
	tcase_add_test(flight, what_is_in_flight_is_not_drift);
	tcase_add_test(flight, settling_is_waited_for);
	tcase_add_test(flight, a_transaction_that_stays_open_leaves_it_unknown);
	tcase_add_loop_test(files, files_that_are_refused, 0, (int) LENGTH_OF(REFUSALS));
	tcase_add_test(files, names_that_are_not_there);
	tcase_add_test(commands, check_prints_each_counter);
	tcase_add_test(commands, check_prints_one_document);
	tcase_add_test(commands, nobody_answers);
	tcase_add_test(commands, watch_ends_at_the_first_drift);
	tcase_add_test(commands, watch_ends_at_drift_without_its_metrics);
	tcase_add_test(commands, the_nine_questions);
	tcase_add_test(commands, answers_that_are_no);
	tcase_add_test(commands, answers_about_what_cannot_be_repaired);
	tcase_add_test(commands, init_writes_a_file_that_check_reads);
	return suite_run(suite);
}
