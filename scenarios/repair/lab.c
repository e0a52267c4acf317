#include "lab.h"

#include <stdlib.h>
#include <string.h>

enum
{
	TOOL_MS = 60000,
	LINES_NOTED = 40, /* of one run of the tool */
	WORDS_MAX = 32,
	ROWS_MAX = 4096
};

/* As the rows of the tool have them; a key of one column, named id. */
#define ROW_SQL                                                                                                        \
	"format('id=%s stored=%s actual=%s', key, coalesce(stored::text, 'NULL'), actual) || "                             \
	"coalesce(to_char(stored - actual, '\" diff=\"FMSG999999'), '')"


/* --- the database --- */

Session *
counters_lab(Scene *scene, const char *schema)
{
	Session *lab = scene_session(scene, "lab");
	char *path = string_format("counters/cases/%s", schema);

	require(scene, session_execute_file(lab, scene_sql(scene, path)));
	free(path);
	return lab;
}

void
add_parent(Scene *scene, Session *lab, int64_t id, const char *n, int64_t children)
{
	require(scene, session_query(lab, NULL, "INSERT INTO par VALUES ($1, $2)", ARGS(arg_int(id), arg_text(n))));
	require(scene, session_query(lab, NULL, "INSERT INTO ch (par_id) SELECT $1 FROM generate_series(1, $2)",
								 ARGS(arg_int(id), arg_int(children))));
}

void
add_parents(Scene *scene, Session *lab, int parents, int wrong)
{
	for (int id = 1; id <= parents; id++)
	{
		add_parent(scene, lab, id, id <= wrong ? "9" : "2", 2);
	}
}

void
check_wrong(Scene *scene, Session *lab, const char *expected, const char *format, ...)
{
	Text what = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&what, format, args);
	va_end(args);
	check_query(scene, lab,
				"SELECT coalesce(string_agg(format('%s:%s/%s', key, coalesce(stored::text, 'NULL'), actual), ' ' "
				"ORDER BY key), '') FROM lab.wrong",
				NO_ARGS, expected, "%s: wrong counts", text_get(&what));
	text_free(&what);
}

void
await_waiter(Scene *scene, Session *observer, Session *holder)
{
	scene_await_int(scene, observer, 1,
					"SELECT (count(*) > 0)::int FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))",
					ARGS(arg_int(session_backend_pid(holder))));
}

void
await_tool_gone(Scene *scene, Session *observer)
{
	scene_await_int(scene, observer, 0,
					"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
					"AND application_name LIKE 'counterproof%'",
					NO_ARGS);
}


/* --- the tool --- */

Tool
tool_start(Scene *scene, const char *command, const char *file, const char *const *words)
{
	static int runs;
	char *config = string_format("counters/cases/%s", file);
	Tool tool = {.output = string_format("%s-%d", scene_file(scene, "counters"), ++runs)};
	const char *argv[WORDS_MAX] = {scene_program(scene, "counterproof"),
								   "counters",
								   command,
								   "-c",
								   scene_sql(scene, config),
								   "--server",
								   scene_conninfo(scene)};
	ProcessSpec program = {.argv = argv, .output_file = tool.output};
	size_t count = 7;
	Text line = {0};

	for (size_t i = 0; words[i] != NULL && count < WORDS_MAX - 1; i++)
	{
		argv[count++] = words[i];
		text_append(&line, " %s", words[i]);
	}
	note(scene, "$ counterproof counters %s -c %s%s", command, file, text_get(&line));
	tool.process = scene_start(scene, &program);
	text_free(&line);
	free(config);
	return tool;
}

typedef struct
{
	Session *observer;
	Process *process;
	const char *sql;
	int64_t expected;
	bool seen;
} Beside;

static ProbeAnswer
probe_beside(void *context, Text *seen)
{
	Beside *beside = context;
	ProcessEnd end;
	bool ended = process_poll(beside->process, &end); /* before the query, which may be about what it did last */
	int64_t value;

	if (!session_query_int(beside->observer, &value, beside->sql, NO_ARGS))
	{
		return PROBE_FAILED;
	}
	beside->seen = value == beside->expected;
	text_append(seen, "%lld, not %lld", (long long) value, (long long) beside->expected);
	return beside->seen || ended ? PROBE_DONE : PROBE_AGAIN;
}

bool
await_beside(Scene *scene, Session *observer, Tool tool, int64_t expected, const char *sql)
{
	Beside beside = {.observer = observer, .process = tool.process, .sql = sql, .expected = expected};

	require(scene, wait_until(sql, scene_deadline(scene, TOOL_MS), probe_beside, &beside));
	return beside.seen;
}

/* The next line of `text`, which moves on behind it; its length. */
static size_t
next_line(const char **text, const char **line)
{
	size_t length = strcspn(*text, "\n");

	*line = *text;
	*text += length + ((*text)[length] == '\n' ? 1 : 0);
	return length;
}

static void
note_output(Scene *scene, const char *output)
{
	const char *line;
	int lines = 0;

	while (*output != '\0')
	{
		size_t length = next_line(&output, &line);

		if (++lines <= LINES_NOTED)
		{
			note(scene, "counters| %.*s", (int) length, line);
		}
	}
	if (lines > LINES_NOTED)
	{
		note(scene, "counters| and %d lines more", lines - LINES_NOTED);
	}
}

/* The number after "LABEL: " within one line of this length; -1: it has no such label. */
static int64_t
number_in(const char *line, size_t length, const char *label)
{
	char *wanted = string_format("%s: ", label);
	const char *found = memmem(line, length, wanted, strlen(wanted));
	int64_t number = found == NULL ? -1 : strtoll(found + strlen(wanted), NULL, 10);

	free(wanted);
	return number;
}

static bool
line_adds_up(const char *line, size_t length)
{
	static const char *const parts[] = {"Correct", "Drifted", "Missing", "Not checkable"};
	int64_t sum = 0;

	for (size_t i = 0; i < LENGTH_OF(parts); i++)
	{
		int64_t part = number_in(line, length, parts[i]);

		sum += part > 0 ? part : 0;
	}
	return sum == number_in(line, length, "Scanned");
}

static void
check_sums(Scene *scene, const char *output)
{
	const char *line;
	int lines = 0, right = 0;

	while (*output != '\0')
	{
		size_t length = next_line(&output, &line);

		if (number_in(line, length, "Scanned") >= 0)
		{
			lines++;
			right += line_adds_up(line, length);
		}
	}
	if (lines > 0)
	{
		CHECK_EQ(scene, right, lines, "lines on which Scanned = Correct + Drifted + Missing + Not checkable");
	}
}

void
tool_free(Scene *scene, Tool tool)
{
	scene_free_process(scene, tool.process);
	free(tool.output);
}

Told
tool_end(Scene *scene, Tool tool)
{
	Told told = {0};

	require(scene, process_wait(tool.process, scene_deadline(scene, TOOL_MS), &told.end));
	require(scene, file_read(tool.output, &told.output));
	tool_free(scene, tool);
	note_output(scene, text_get(&told.output));
	check_sums(scene, text_get(&told.output));
	return told;
}

void
told_free(Told *told)
{
	text_free(&told->output);
}

void
check_exit(Scene *scene, const Told *told, int expected, const char *format, ...)
{
	Text actual = {0}, what = {0};
	char *wanted = string_format("exit %d", expected);
	va_list args;

	va_start(args, format);
	text_append_va(&what, format, args);
	va_end(args);
	process_end_describe(told->end, &actual);
	check_text(scene, text_get(&actual), wanted, "%s", text_get(&what));
	text_free(&actual);
	text_free(&what);
	free(wanted);
}

Told
tool_run(Scene *scene, const char *command, const char *file, const char *const *words, int expected_code,
		 const char *what)
{
	Told told = tool_end(scene, tool_start(scene, command, file, words));

	check_exit(scene, &told, expected_code, "%s", what);
	return told;
}

void
tool_does(Scene *scene, const char *command, const char *file, const char *const *words, int expected_code,
		  const char *what)
{
	Told told = tool_run(scene, command, file, words, expected_code, what);

	told_free(&told);
}


/* --- what it said --- */

void
check_line(Scene *scene, const Told *told, const char *label, const char *expected, const char *what)
{
	const char *output = text_get(&told->output), *line;
	Text last = {0};

	while (*output != '\0')
	{
		size_t length = next_line(&output, &line);

		if (number_in(line, length, label) >= 0)
		{
			text_clear(&last);
			text_append_bytes(&last, line, length);
		}
	}
	check_text(scene, text_get(&last), expected, "%s", what);
	text_free(&last);
}

int64_t
told_number(const Told *told, const char *label)
{
	const char *output = text_get(&told->output), *line;
	int64_t number = -1;

	while (*output != '\0')
	{
		size_t length = next_line(&output, &line);
		int64_t here = number_in(line, length, label);

		number = here >= 0 ? here : number;
	}
	return number;
}

void
check_says(Scene *scene, const Told *told, const char *part, const char *what)
{
	CHECK(scene, strstr(text_get(&told->output), part) != NULL, "%s: it says \"%s\"", what, part);
}

char *
read_wrong_rows(Scene *scene, Session *lab)
{
	SqlResult *result = NULL;
	char *rows;

	require(scene,
			session_query(lab, &result,
						  "SELECT coalesce(string_agg(" ROW_SQL ", E'\n' ORDER BY key), '') FROM lab.wrong", NO_ARGS));
	rows = string_copy(sql_text(result, 0, 0));
	sql_free(result);
	return rows;
}

typedef struct
{
	int64_t key;
	const char *text;
	size_t length;
} Row;

static int
compare_rows(const void *a, const void *b)
{
	const Row *left = a, *right = b;

	return (left->key > right->key) - (left->key < right->key);
}

void
check_rows(Scene *scene, const Told *told, const char *wrong, const char *what)
{
	static const char mark[] = "  drift  ";
	const char *output = text_get(&told->output), *line;
	Row *rows = memory_get(ROWS_MAX * sizeof(Row));
	Text printed = {0};
	size_t count = 0;

	while (*output != '\0')
	{
		size_t length = next_line(&output, &line), begin = sizeof(mark) - 1;

		if (length > begin && memcmp(line, mark, begin) == 0 && count < ROWS_MAX)
		{
			rows[count++] = (Row){strtoll(line + begin + strlen("id="), NULL, 10), line + begin, length - begin};
		}
	}
	qsort(rows, count, sizeof(Row), compare_rows);
	for (size_t i = 0; i < count; i++)
	{
		text_append(&printed, "%s", i == 0 ? "" : "\n");
		text_append_bytes(&printed, rows[i].text, rows[i].length);
	}
	check_text(scene, text_get(&printed), wrong, "%s: rows printed", what);
	text_free(&printed);
	free(rows);
}


/* --- what the tool keeps in the database --- */

int64_t
last_run(Scene *scene, Session *lab)
{
	return number_of(scene, lab, "SELECT max(run) FROM counterproof.run", NO_ARGS);
}

void
check_record(Scene *scene, Session *lab, int64_t run, int64_t keys, const char *what)
{
	char *expected =
		string_format("%lld found, %lld keys, %lld updated", (long long) keys, (long long) keys, (long long) keys);

	check_query(scene, lab,
				"SELECT format('%s found, %s keys, %s updated', count(*), count(DISTINCT key), "
				"count(*) FILTER (WHERE outcome = 'updated')) FROM counterproof.drift WHERE run = $1",
				ARGS(arg_int(run)), expected, "%s: on record", what);
	free(expected);
}
