#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"
#include "point.h"
#include "rng.h"
#include "suite.h"
#include "trace.h"
#include "vclock.h"

static char path[64];

static void
make_path(void)
{
	strcpy(path, "/tmp/check-trace-XXXXXX");
	temporary_file(path);
}

static void
remove_path(void)
{
	unlink(path);
}

static void
write_file(const char *content, size_t length)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(content, 1, length, file), length);
	ck_assert_int_eq(fclose(file), 0);
}


/* --- records: each line "thread actor kind outcome marks text", as a table; times are not compared by anything --- */

static TraceVerdict verdict;
static Text execution;

static bool
conclude(const char *const *lines)
{
	Text record = {0};
	bool done;

	for (size_t i = 0; lines[i] != NULL; i++)
	{
		text_append(&record, "%zu\t%s\n", i, lines[i]);
	}
	write_file(text_get(&record), record.length);
	text_free(&record);
	text_clear(&execution);
	text_free(&verdict.contradiction);
	done = trace_conclude(path, &execution, &verdict);
	return done;
}

/* The clock of the event with this text, as JSON. */
static void
assert_clock(const char *text, const char *clock)
{
	char *wanted = string_format(" %s\n%s\n", clock, text);

	ck_assert_msg(strstr(text_get(&execution), wanted) != NULL, "expected \"%s\" with %s in\n%s", text, clock,
				  text_get(&execution));
	free(wanted);
}

static void
assert_holds(const char *const *lines)
{
	Text file = {0}, why = {0};
	size_t executions, events;

	ck_assert(conclude(lines));
	ck_assert_str_eq(text_get(&verdict.contradiction), "");
	text_append(&file, "%s=== x ===\n%s", TRACE_HEADER, text_get(&execution));
	write_file(text_get(&file), file.length);
	ck_assert_msg(trace_check_file(path, NULL, NULL, &why, &executions, &events), "%s\n%s", text_get(&why),
				  text_get(&file));
	text_free(&file);
}

static void
assert_contradicts(const char *const *lines, const char *expected)
{
	ck_assert(conclude(lines));
	ck_assert_msg(strstr(text_get(&verdict.contradiction), expected) != NULL, "expected \"%s\" in \"%s\"", expected,
				  text_get(&verdict.contradiction));
}

#define LINES(...)                                                                                                     \
	(const char *const[])                                                                                              \
	{                                                                                                                  \
		__VA_ARGS__, NULL                                                                                              \
	}

START_TEST(lines_and_threads_are_orders)
{
	assert_holds(LINES("1.1\ta\tx\t1\t\ta1", "1.2\tb\tx\t1\t\tb1", "1.1\ta\tx\t1\t\ta2", "1.1\tb\tx\t1\t\tb2"));
	assert_clock("x a2", "{\"a\":2}");
	assert_clock("x b2", "{\"a\":2,\"b\":2}");
}
END_TEST

START_TEST(what_is_seen_comes_after_what_made_it)
{
	/* The reader's record stands above the maker's: who writes first is chance. */
	assert_holds(LINES("1.2\tb\tx\t1\t>seq:7..0 \tsees", "1.1\ta\tx\t1\t!seq:7..0 \tmakes",
					   "1.3\tc\tx\t1\t>seq:8..0 \tsees nobody's"));
	assert_clock("x sees", "{\"a\":1,\"b\":1}");
	assert_clock("x sees nobody's", "{\"c\":1}");
}
END_TEST

START_TEST(numbers_are_an_order)
{
	assert_holds(LINES("1.1\ta\tx\t1\t!seq:2..0 \tsecond", "1.2\tb\tx\t1\t!seq:1..0 \tfirst",
					   "1.3\tc\tx\t1\t!seq:9..0 \tninth"));
	ck_assert_uint_eq(verdict.numbered, 3);
	assert_clock("x second", "{\"a\":1,\"b\":1}");
	assert_clock("x ninth", "{\"a\":1,\"b\":1,\"c\":1}");
}
END_TEST

START_TEST(standing_higher_is_after_all_that_stand_lower)
{
	assert_holds(LINES("1.1\ta\tx\t1\t~w:5..0 \ta", "1.2\tb\tx\t1\t~w:5..0 \tb", "1.3\tc\tx\t1\t~w:6..0 \tc",
					   "1.4\td\tx\t1\t~w:4..0 \td"));
	assert_clock("x a", "{\"a\":1,\"d\":1}");
	assert_clock("x b", "{\"b\":1,\"d\":1}");
	assert_clock("x c", "{\"a\":1,\"b\":1,\"c\":1,\"d\":1}");
}
END_TEST

START_TEST(one_of_some_is_known_only_on_one_line)
{
	/* whichever of the two it was, the first of them came before */
	assert_holds(LINES("1.1\ta\tx\t1\t+b:3..0 \ttoo low", "1.1\ta\tx\t1\t+b:4..0 \tone",
					   "1.1\ta\tx\t1\t+b:5..0 \tother", "1.2\tc\tx\t1\t?b:4..9 \tafter one"));
	assert_clock("x after one", "{\"a\":2,\"c\":1}");
	assert_holds(
		LINES("1.1\ta\tx\t1\t+b:4..0 \tone", "1.2\td\tx\t1\t+b:5..0 \tother", "1.3\tc\tx\t1\t?b:4..9 \tnobody knows"));
	assert_clock("x nobody knows", "{\"c\":1}");
}
END_TEST

START_TEST(what_is_forgotten_begins_anew)
{
	assert_holds(LINES("1.1\ta\tx\t1\t!seq:1..0 =pair.1.1:1..0 \told", "1.2\tb\tx\t1\txseq:0..0 xpair:0..0 \tcleared",
					   "1.3\tc\tx\t1\t!seq:1..0 =pair.1.1:1..0 \tnew", "1.4\td\tx\t1\t>pair.1.1:1..0 \tsees"));
	assert_clock("x sees", "{\"c\":1,\"d\":1}");
}
END_TEST

START_TEST(a_thread_goes_through_its_gate_and_is_joined)
{
	assert_holds(LINES("1.1\tcase\tx\t1\t\tbefore the gate", "1.1\tcase\tx\t1\t\tafter it",
					   "1.2\tw\tx\t1\t^1.1:1 \tworks", "1.1\tcase\tx\t1\t^1.2:1 \tjoined"));
	assert_clock("x works", "{\"case\":1,\"w\":1}");
	assert_clock("x joined", "{\"case\":3,\"w\":1}");
}
END_TEST

START_TEST(what_was_heard_durable_or_lost)
{
	assert_holds(LINES("1.1\tw\tconnect\t1\t\tw", "1.2\tw\tcommit\t1\t!seq:1..0 \tmade",
					   "1.3\tw2\tcommit\t1\t!seq:3..0 \tlate", "1.4\tserver\tstop\t1\t*:0..0 \tstops",
					   "1.5\tw3\tcommit\t1\t!seq:2..0 \trecorded later", "1.6\tw\tlost\t1\t-server:0..0 \tgone",
					   "1.7\tcase\tx\t1\t<w3:0..0 \thears"));
	assert_clock("stop stops", "{\"server\":1,\"w\":2,\"w2\":1,\"w3\":1}");
	assert_clock("lost gone", "{\"server\":1,\"w\":3,\"w2\":1,\"w3\":1}");
	assert_clock("x hears", "{\"case\":1,\"w\":2,\"w3\":1}");
}
END_TEST

START_TEST(a_block_makes_at_its_commit)
{
	assert_holds(LINES("1.1\ta\tstatement\t2\t!seq:1..0 =p.1:1..0 \tone",
					   "1.1\ta\tstatement\t2\t>p.1:1..0 !seq:2..0 \ttwo", "1.1\ta\tcommit\t3\t\tCOMMIT",
					   "1.2\tb\tx\t1\t>p.1:1..0 \tsees"));
	assert_clock("statement 2 of them, from one to two", "{\"a\":1}");
	assert_clock("x sees", "{\"a\":2,\"b\":1}");
}
END_TEST

START_TEST(the_fate_of_what_nobody_told)
{
	/* sent at a1, never answered; somebody has seen its number, and nobody else can have made it */
	assert_holds(LINES("1.1\ta\tbegin\t1\t\ta1", "1.1\ta\tunknown\t4\t!seq:1..0 =p.1:1..0 \ta2",
					   "1.2\tb\tx\t1\t>p.1:1..0 >seq:1..0 \tsees"));
	assert_clock("x sees", "{\"a\":1,\"b\":1}");
	assert_clock("unknown a2: it had committed, by what was seen later", "{\"a\":2}");
	/* somebody else made that number */
	assert_holds(LINES("1.1\ta\tbegin\t1\t\ta1", "1.1\ta\tunknown\t4\t!seq:1..0 =p.1:1..0 \ta2",
					   "1.2\tb\tx\t1\t!seq:1..0 \tmade", "1.3\tc\tx\t1\t>seq:1..0 \tsees"));
	assert_clock("x sees", "{\"b\":1,\"c\":1}");
	assert_clock("unknown a2: it had not committed, another made that number", "{\"a\":2}");
	/* two could have, and nobody else has: nothing is said */
	assert_holds(LINES("1.1\ta\tbegin\t1\t\ta1", "1.1\ta\tunknown\t4\t!seq:1..0 \ta2", "1.4\td\tbegin\t1\t\td1",
					   "1.4\td\tunknown\t4\t!seq:1..0 \td2", "1.3\tc\tx\t1\t>seq:1..0 \tsees"));
	assert_clock("x sees", "{\"c\":1}");
	/* nobody saw it */
	assert_holds(
		LINES("1.1\ta\tbegin\t1\t\ta1", "1.1\ta\tunknown\t4\t!seq:5..0 \ta2", "1.3\tc\tx\t1\t>seq:4..0 \tsees"));
	assert_clock("unknown a2", "{\"a\":2}");
}
END_TEST

START_TEST(contradictions_name_both_events)
{
	assert_contradicts(LINES("1.1\ta\tcommit\t1\t!seq:7..0 \tseven", "1.1\ta\tcommit\t1\t!seq:5..0 \tfive"),
					   "a, commit seven (line 1 of the record, seq 7) comes before a, commit five (line 2, seq 5)");
	assert_clock("commit five", "{\"a\":2}");
	/* by way of others: a made 7, b saw the version it left and made 6 */
	assert_contradicts(LINES("1.1\ta\tcommit\t1\t!seq:7..0 =p.1:1..0 \tseven", "1.2\tb\tx\t1\t>p.1:1..0 \tsees",
							 "1.3\tc\tcommit\t1\t!seq:8..0 \teight", "1.2\tb\tcommit\t1\t!seq:6..0 \tsix"),
					   "a, commit seven (line 1 of the record, seq 7) comes before b, commit six (line 4, seq 6)");
	assert_contradicts(LINES("1.1\ta\tcommit\t1\t!seq:7..0 \tone", "1.2\tb\tcommit\t1\t!seq:7..0 \tother"),
					   "a, commit one (line 1 of the record) and b, commit other (line 2) both made seq 7");
	assert_contradicts(LINES("1.1\ta\tx\t1\t=p:1..0 >q:1..0 \tone", "1.2\tb\tx\t1\t=q:1..0 >p:1..0 \tother"),
					   "and that before the first");
	ck_assert_uint_eq(execution.length, 0);
	/* two orders of the server's, numbers and places in its log, must not part either */
	assert_contradicts(
		LINES("1.1\ta\tcommit\t1\t!lsn:900..0 !seq:1..0 \tone", "1.2\tb\tcommit\t1\t!lsn:800..0 !seq:2..0 \tother"),
		"seq 2) comes before a, commit one (line 1, seq 1)");
}
END_TEST

START_TEST(records_that_cannot_be_read)
{
	static const struct
	{
		const char *line, *reported;
	} rows[] = {{"x\t1.1\ta\tx\t1\t\tt\n", "line 1 cannot be read"},
				{"1\t1.1\ta\tx\t1\t\n", "line 1 cannot be read"},
				{"1\t1.1\t\tx\t1\t\tt\n", "line 1 cannot be read"},
				{"1\t1.1\ta\tx\t5\t\tt\n", "line 1 cannot be read"},
				{"1\t1.1\ta\tx\t1\t%s:1..0\tt\n", "line 1 cannot"},
				{"1\t1.1\ta\tx\t1\t!s:-1..0\tt\n", "line 1 cannot"},
				{"1\t1.1\ta\tx\t1\t!s:1\tt\n", "line 1 cannot"},
				{"1\t1.1\ta\tx\t1\t^1.1:1\tt\n", "line 1 cannot"},
				{"1\t1.1\ta\tx\t1\t\tt\tu\n", "line 1 cannot be read"},
				{"1\t1.1\ta\tx\t1\t\tt", "line 1 is torn"},
				{"1\t1.1\ta\tx\t1\t!s:99999999999999999999..0\tt\n", "line 1 cannot"}};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		char last[512];

		write_file(rows[i].line, strlen(rows[i].line));
		ck_assert_msg(!trace_conclude(path, &execution, &verdict), "read: %s", rows[i].line);
		notice_last_error(last, sizeof(last));
		ck_assert_msg(strstr(last, rows[i].reported) != NULL, "expected \"%s\" in \"%s\"", rows[i].reported, last);
	}
}
END_TEST


/* --- recording --- */

START_TEST(nothing_is_recorded_before_it_is_opened)
{
	trace_tell("a", "x", "nobody hears");
	ck_assert(!trace_is_open());
	ck_assert_int_eq(trace_place().count, 0);
	ck_assert(trace_is_whole());
}
END_TEST

START_TEST(what_would_end_a_field_does_not)
{
	TraceEvent event = {.actor = "the actor\t1", .kind = "x", .outcome = TRACE_DONE};
	Text record = {0};

	ck_assert(trace_open(path));
	trace_mark(&event, TRACE_SAW, "a word:1", 7, 0);
	trace_event(&event, "%s", "<script>\n\ttext\\");
	ck_assert(file_read(path, &record));
	ck_assert_ptr_nonnull(strstr(text_get(&record), "\tthe-actor-1\tx\t1\t>a-word-1:7..0 \t<script>  text\\\n"));
	text_free(&record);
	ck_assert(trace_conclude(path, &execution, &verdict));
	ck_assert_str_eq(text_get(&execution), "the-actor-1 {\"the-actor-1\":1}\nx <script>  text\\\n");
}
END_TEST

static bool
record_some(int worker, void *context)
{
	char actor[16];

	(void) context;
	snprintf(actor, sizeof(actor), "w%d", worker);
	for (int i = 0; i < 500; i++)
	{
		trace_tell(actor, "x", "%d", i);
	}
	return true;
}

START_TEST(threads_and_processes_record_side_by_side)
{
	ActorGroup *group;
	pid_t child;
	char last[128];

	ck_assert(trace_open(path));
	trace_tell("case", "x", "before");
	child = fork();
	if (child == 0)
	{
		_exit(record_some(9, NULL) ? 0 : 1);
	}
	group = actor_start("writer", 4, record_some, NULL);
	actor_open_gate(group);
	ck_assert(actor_join(group, deadline_in_ms(20000)));
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	trace_tell("case", "x", "after");
	ck_assert(trace_is_whole());
	ck_assert(trace_conclude(path, &execution, &verdict));
	ck_assert_uint_eq(verdict.events, 5 * 500 + 2);
	snprintf(last, sizeof(last), "{\"case\":2,\"w0\":500,\"w1\":500,\"w2\":500,\"w3\":500}");
	assert_clock("x after", last);
	ck_assert_ptr_nonnull(strstr(text_get(&execution), "w3 {\"case\":1,\"w3\":1}\nx 0\n"));
}
END_TEST

START_TEST(points_are_events)
{
	ck_assert(point_record(path, "program"));
	point_reach("consumer.before_commit", "batch=%d seq=%d..%d", 2, 26, 50);
	point_reach("consumer.started", "offset=%d", 25);
	trace_event(&(TraceEvent){.actor = "w",
							  .kind = "x",
							  .outcome = TRACE_DONE,
							  .marks = {{TRACE_NUMBERED, "seq", 50, 0}},
							  .mark_count = 1},
				"made");
	ck_assert(trace_conclude(path, &execution, &verdict));
	ck_assert_msg(verdict.contradiction.length > 0,
				  "the thread that made 50 after it had been seen is no contradiction");
}
END_TEST

START_TEST(a_full_disk_is_told)
{
	char last[256];

	ck_assert(trace_open("/dev/full"));
	trace_tell("a", "x", "y");
	trace_tell("a", "x", "y");
	ck_assert(!trace_is_whole());
	notice_last_error(last, sizeof(last));
	ck_assert_ptr_nonnull(strstr(last, "could not write to the trace: No space left on device"));
}
END_TEST


/* --- files --- */

#define GOVECTOR "(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\n"

static void
assert_file(const char *content, bool holds, const char *expected)
{
	Text why = {0};
	size_t executions = 0, events = 0;
	bool held;

	write_file(content, strlen(content));
	held = trace_check_file(path, NULL, NULL, &why, &executions, &events);
	ck_assert_msg(held == holds, "%s:\n%s", text_get(&why), content);
	if (holds)
	{
		char counted[64];

		snprintf(counted, sizeof(counted), "%zu in %zu", events, executions);
		ck_assert_str_eq(counted, expected);
	}
	else
	{
		ck_assert_msg(strstr(text_get(&why), expected) != NULL, "expected \"%s\" in \"%s\"", expected, text_get(&why));
		ck_assert_ptr_null(strchr(text_get(&why), '\n'));
	}
	text_free(&why);
}

START_TEST(files_of_several_programs)
{
	assert_file(TRACE_HEADER
				"=== 1 ===\na {\"a\":1}\nx one\n=== 2 ===\na {\"a\":1}\nx one\nb {\"b\":1, \"a\":1}\ny two\n",
				true, "3 in 2");
	assert_file(GOVECTOR "w {\"db\":1, \"w\":1}\nclaim batch 7\ndb {\"db\":1}\nInitialization Complete\n", true,
				"2 in 1");
	/* what ShiViz assumes without a first line: the event, then its host */
	assert_file("\n\nclaim\nw {\"w\":1}\nagain\nw {\"w\":2}\n", true, "2 in 1");
	assert_file("(?<timestamp>\\d+) (?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\n17 w {\"w\":1}\nx\n", true,
				"1 in 1");
	assert_file("(?<event>[^|]*)\\|(?<host>[\\w-]+)\\|(?<clock>.*)\n\nx|w-1|{\"w-1\":1}\n", true, "1 in 1");
	assert_file(GOVECTOR "w {\\\"w\\\":1}\nescaped\n", true, "1 in 1");
	assert_file(GOVECTOR "w {\"w\":1, \"x\":0}\nzero is absent\n", true, "1 in 1");
	assert_file(GOVECTOR "w {\"w\":2}\nlater first\nw {\"w\":1}\nin any order\n", true, "2 in 1");
}
END_TEST

START_TEST(files_that_are_wrong)
{
	static const struct
	{
		const char *content, *expected;
	} rows[] = {
		{"", "line 1: the file has no head"},
		{TRACE_HEADER, "line 3: the file has no event"},
		{"a {\"a\":1}\nx\n\n", "line 1: not a format known here: no group for each of host, clock and event"},
		{"format 2\n\na\n", "line 1: not a format known here"},
		{"(?<host>\\S*) (?<clock>.*)\n\n", "no group for each of host, clock and event"},
		{"(?<host>a(?=b)) (?<clock>.*) (?<event>.*)\n\n", "a group that is none with a name"},
		{"(?<host>.*?) (?<clock>.*) (?<event>.*)\n\n", "*? takes as little as it can"},
		{"(?<host>\\bx) (?<clock>.*) (?<event>.*)\n\n", "\\b has no meaning here"},
		{"(?<host>.*) (?<host>.*) (?<clock>.*) (?<event>.*)\n\n", "two groups named host"},
		{"(?<host>.* (?<clock>.*) (?<event>.*)\n\n", "line 1: not a format known here"},
		{"(?<host>.*) (?<clock>.*)\\n(?<event>.*)\n(?<trace>\n", "line 2: not a format known here"},
		{GOVECTOR "w {\"w\":1}\n", "line 3: an event begins, and the file ends"},
		{GOVECTOR "w {\"w\":1}\nx", "line 4: the file ends within a line"},
		{GOVECTOR "w {\"w\":1}\nx\nw {\"w\":2\ny\n", "line 5: neither an event nor the name of an execution"},
		{GOVECTOR "w {\"w\":1}\nx\n\nw {\"w\":2}\ny\n", "line 5: neither an event"},
		{GOVECTOR "w {\"w\":}\nx\n", "line 3: not a clock"},
		{GOVECTOR "w {\"w\":-1}\nx\n", "line 3: not a clock: a counter is a whole number from 0 on"},
		{GOVECTOR "w {\"w\":1.5}\nx\n", "line 3: not a clock: a counter is a whole number"},
		{GOVECTOR "w {\"w\":99999999999999999999}\nx\n", "line 3: not a clock"},
		{GOVECTOR "w {\"w\":9223372036854775807}\nx\n",
		 "line 3: w has an event 9223372036854775807, but none with its own entry 1"},
		{GOVECTOR "w {\"w\":1, \"w\":2}\nx\n", "line 3: not a clock"},
		{GOVECTOR "w {\"v\":1}\nx\nv {\"v\":1}\ny\n", "line 3: the clock of an event of w has no entry for it"},
		{GOVECTOR "w {}\nx\n", "line 3: the clock of an event of w has no entry for it"},
		{GOVECTOR " {\"w\":1}\nx\n", "line 3: a host has a name"},
		{GOVECTOR "w {\"w\":1}\nx\nw {\"w\":3}\ny\n", "line 5: w has an event 3, but none with its own entry 2"},
		{GOVECTOR "w {\"w\":1}\nx\nw {\"w\":1}\ny\n",
		 "line 5: w has its event 1 a second time; the first is in line 3"},
		{GOVECTOR "w {\"w\":1, \"v\":1}\nx\n", "line 3: an entry names event 1 of v, which does not exist"},
		{GOVECTOR "w {\"w\":1, \"v\":2}\nx\nv {\"v\":1}\ny\n",
		 "line 3: an entry names event 2 of v, which does not exist"},
		/* what ShiViz lets pass: b knows a's second event and not what that knew */
		{GOVECTOR "c {\"c\":1}\nx\na {\"a\":1,\"c\":1}\nx\nb {\"a\":1,\"b\":1}\nx\n",
		 "line 7: it knows event 1 of a (line 5) but of c only 0, where that knew 1"},
		/* its own past is forgotten */
		{GOVECTOR "c {\"c\":1}\nx\na {\"a\":1,\"c\":1}\nx\na {\"a\":2}\nx\n",
		 "line 7: it knows event 1 of a (line 5) but of c only 0"},
		{GOVECTOR "a {\"a\":1,\"b\":1}\nx\nb {\"a\":1,\"b\":1}\nx\n", "they cannot come before each other"},
		{TRACE_HEADER "=== 1 ===\na {\"a\":1}\nx one\n=== 1 ===\na {\"a\":1}\nx one\n",
		 "line 6: a second execution is named \"1\""},
		{TRACE_HEADER "=== 1 ===\na {\"a\":1}\nx one\nnoise\n=== 2 ===\na {\"a\":1}\nx one\n",
		 "line 6: neither an event"},
		{TRACE_HEADER "=== ===\na {\"a\":1}\nx one\n", "line 3: neither an event"},
		{TRACE_HEADER "=== 1 ===\na {\"a\":2}\nx one\n=== 2 ===\na {\"a\":1}\nx one\n",
		 "line 4: a has an event 2, but none"},
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		assert_file(rows[i].content, false, rows[i].expected);
	}
}
END_TEST

/* Its lines are read by hand. What they are is what the head says: here, said in other words, it is taken literally. */
START_TEST(our_own_lines_are_what_the_head_says)
{
	static const char body[] =
		"=== 1 ===\na {\"a\":1}\nx one\nb {\"a\":1,\"b\":1}\ny  = two\n=== 2 ===\na {\"a\":1}\nx \n";
	static const char other[] = "(?<host>\\S\\S*) (?<clock>{.*})\\n(?<kind>\\S+) (?<event>.*)\n=== (?<trace>.*) ===\n";
	static const char bytes[] = "= ab\t\n{}:1\"x\\\r\xc3";
	Rng rng = rng_stream(6, 1);
	int held = 0;

	for (int round = 0; round < 1000; round++)
	{
		bool holds[2];
		Text why[2] = {0};
		size_t executions[2], events[2];
		char changed[sizeof(body)];

		memcpy(changed, body, sizeof(body));
		for (uint64_t changes = rng_below(&rng, 4); changes > 0; changes--)
		{
			changed[rng_below(&rng, sizeof(body) - 2)] = bytes[rng_below(&rng, sizeof(bytes) - 1)];
		}
		for (int i = 0; i < 2; i++)
		{
			char *file = string_format("%s%s", i == 0 ? TRACE_HEADER : other, changed);

			write_file(file, strlen(file));
			holds[i] = trace_check_file(path, NULL, NULL, &why[i], &executions[i], &events[i]);
			free(file);
		}
		ck_assert_msg(holds[0] == holds[1] && strcmp(text_get(&why[0]), text_get(&why[1])) == 0, "%s|%s|\n%s",
					  text_get(&why[0]), text_get(&why[1]), changed);
		ck_assert(events[0] == events[1] && executions[0] == executions[1]);
		held += holds[0];
		text_free(&why[0]);
		text_free(&why[1]);
	}
	ck_assert_int_gt(held, 150);
	ck_assert_int_lt(held, 850);
}
END_TEST

START_TEST(a_zero_byte_and_no_file)
{
	static const char content[] = GOVECTOR "w {\"w\":1}\nx\0\n";
	Text why = {0};
	size_t executions, events;

	write_file(content, sizeof(content) - 1);
	ck_assert(!trace_check_file(path, NULL, NULL, &why, &executions, &events));
	ck_assert_str_eq(text_get(&why), "line 4: a zero byte, where all is text");
	text_free(&why);
	ck_assert(!trace_check_file("/nowhere/at/all", NULL, NULL, &why, &executions, &events));
	text_free(&why);
}
END_TEST

/* Histories whose truth is known by construction, and each of their entries spoiled in turn. */
START_TEST(every_spoiled_clock_is_found)
{
	enum
	{
		HOSTS = 4,
		EVENTS = 60
	};
	VClock clocks[EVENTS] = {0};
	int hosts[EVENTS];
	Rng rng = rng_stream(6, 0);
	VClock last[HOSTS] = {0};
	Text why = {0};
	size_t executions, events;
	int spoiled = 0;

	for (int i = 0; i < EVENTS; i++)
	{
		char name[2] = {(char) ('a' + (hosts[i] = (int) rng_below(&rng, HOSTS))), '\0'};

		clocks[i] = vclock_copy(&last[hosts[i]]);
		if (i > 0 && rng_below(&rng, 2) == 0)
		{
			vclock_absorb(&clocks[i], &clocks[rng_below(&rng, (uint64_t) i)]);
		}
		ck_assert(vclock_advance(&clocks[i], vclock_id(name)));
		last[hosts[i]] = clocks[i];
	}
	for (int change = -1; change < EVENTS * HOSTS; change++)
	{
		Text file = {0};
		bool changed = false;

		text_append(&file, "%s", GOVECTOR);
		for (int i = 0; i < EVENTS; i++)
		{
			VClock clock = {0};

			for (int h = 0; h < HOSTS; h++)
			{
				char name[2] = {(char) ('a' + h), '\0'};
				int64_t counter = vclock_get(&clocks[i], vclock_id(name));

				/* One less of a host's own is a repetition; of another's, less than the event before it knew, or a truth. */
				if (change == i * HOSTS + h && counter > 0 && h == hosts[i])
				{
					counter++;
					changed = true;
				}
				ck_assert(vclock_set(&clock, vclock_id(name), counter));
			}
			text_append(&file, "%c ", 'a' + hosts[i]);
			ck_assert(vclock_print_json(&clock, &file));
			text_append(&file, "\nx\n");
			vclock_free(&clock);
		}
		write_file(text_get(&file), file.length);
		text_clear(&why);
		ck_assert_msg(trace_check_file(path, NULL, NULL, &why, &executions, &events) == !changed, "change %d: %s",
					  change, text_get(&why));
		spoiled += changed;
		text_free(&file);
	}
	ck_assert_int_eq(spoiled, EVENTS);
	for (int i = 0; i < EVENTS; i++)
	{
		vclock_free(&clocks[i]);
	}
	text_free(&why);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {lines_and_threads_are_orders,
								  what_is_seen_comes_after_what_made_it,
								  numbers_are_an_order,
								  standing_higher_is_after_all_that_stand_lower,
								  one_of_some_is_known_only_on_one_line,
								  what_is_forgotten_begins_anew,
								  a_thread_goes_through_its_gate_and_is_joined,
								  what_was_heard_durable_or_lost,
								  a_block_makes_at_its_commit,
								  the_fate_of_what_nobody_told,
								  contradictions_name_both_events,
								  records_that_cannot_be_read,
								  nothing_is_recorded_before_it_is_opened,
								  what_would_end_a_field_does_not,
								  threads_and_processes_record_side_by_side,
								  points_are_events,
								  a_full_disk_is_told,
								  files_of_several_programs,
								  files_that_are_wrong,
								  our_own_lines_are_what_the_head_says,
								  a_zero_byte_and_no_file,
								  every_spoiled_clock_is_found};
	Suite *suite = suite_create("trace");
	TCase *tcase = tcase_create("trace");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, make_path, remove_path);
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
	{
		tcase_add_test(tcase, tests[i]);
	}
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
