#include "matrix.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environment.h"
#include "evidence.h"
#include "proc.h"
#include "reaper.h"
#include "registry.h"

#define SUITE "mutants"

/* The canary: this twin while the case that catches it is switched off, and one that cannot catch it runs instead. */
#define CANARY_TWIN "M07"
#define CANARY_CASE "32-B"

/* Cases end by deadlines of their own; this is for a program that does not. */
#define PROGRAM_MS 1800000
#define INTERRUPT_MS 15000

typedef enum
{
	CELL_NOT_RUN = 0,
	CELL_SURVIVED,
	CELL_CAUGHT,
	CELL_SKIPPED, /* the case says that it is not for this run */
	CELL_NO_VERDICT
} CellState;

/* What one case found about one twin. */
typedef struct
{
	CellState state;
	bool named; /* the check that the twin names has failed */
	int failed;
	char *first; /* the first check that failed, or why there is no verdict; NULL: none */
} Cell;

/* A program that runs cases over one twin, and what they found. */
typedef struct
{
	const Twin *twin; /* NULL: the system as it is */
	const char *only; /* the one case that it runs; NULL: all */
	bool canary;
	const char *id;
	const Scenario *const *cases; /* the matrix' */
	const char *folder;           /* of its own evidence */
	Process *program;             /* while it runs */
	int slot;                     /* with the reaper */
	int64_t begin_ns, duration_ms;
	bool done;
	bool recorded;
	Cell *cells; /* one for each of the matrix' cases */
} Row;

typedef struct
{
	const MatrixConfig *config;
	const Scenario **cases; /* of the suites in which twins are caught, ended by NULL */
	Evidence *evidence;
	Row *rows; /* the system as it is, the twins, the canary */
	int row_count;
	int next;    /* the next to start */
	int running; /* programs */
	int told;    /* rows that stand in the evidence */
	int caught, survived, skipped, broken;
	bool system_green, canary_survived;
} Matrix;


/* --- one program --- */

typedef struct
{
	char **words; /* ended by NULL once there is one */
	int count;
} Words;

static void words_add(Words *words, const char *format, ...) PRINTF_LIKE(2, 3);

static void
words_add(Words *words, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	words->words = memory_grow(words->words, sizeof(char *) * ((size_t) words->count + 2));
	words->words[words->count++] = string_copy(text_get(&text));
	words->words[words->count] = NULL;
	text_free(&text);
}

static void
words_free(Words *words)
{
	for (int i = 0; i < words->count; i++)
	{
		free(words->words[i]);
	}
	free(words->words);
}

static bool
catches_a_twin(const Matrix *matrix, const Scenario *scenario)
{
	for (int i = 0; i < matrix->config->twin_count; i++)
	{
		if (strcmp(matrix->config->twins[i]->caught_in, scenario->id) == 0)
		{
			return true;
		}
	}
	return false;
}

/* All of them; in short those that must catch a twin. A row that runs one case has its name. */
static bool
row_runs(const Matrix *matrix, const Row *row, const Scenario *scenario)
{
	return row->only != NULL ? strcmp(row->only, scenario->id) == 0
							 : !matrix->config->brief || catches_a_twin(matrix, scenario);
}

static void
words_add_cases(const Matrix *matrix, const Row *row, Words *words)
{
	for (int i = 0; matrix->cases[i] != NULL; i++)
	{
		if (row_runs(matrix, row, matrix->cases[i]))
		{
			words_add(words, "%s", matrix->cases[i]->id);
		}
	}
}

static void
words_of_row(const Matrix *matrix, const Row *row, Words *words)
{
	const RunnerConfig *run = matrix->config->run;

	words_add(words, "/proc/self/exe");
	words_add(words, "run");
	words_add_cases(matrix, row, words);
	words_add(words, "--jobs=1");
	words_add(words, "--no-trace"); /* what catches a twin is the check that it names */
	words_add(words, "--seed=%" PRIu64, run->seed);
	words_add(words, "--scale=%g", run->scale);
	words_add(words, "--pg=%d", run->pg_major);
	if (run->timeout_s > 0)
	{
		words_add(words, "--timeout=%d", run->timeout_s);
	}
	words_add(words, "--pg-bin=%s", run->pg_bin);
	words_add(words, "--programs=%s", run->programs);
	words_add(words, "--sql=%s", run->sql);
	words_add(words, "--evidence=%s", row->folder);
	words_add(words, "--design=%s", row->twin == NULL ? run->design : twin_design(row->twin, run->design, NULL));
	if (row->twin != NULL)
	{
		words_add(words, "--variant=%s", row->twin->id);
	}
}

static bool
row_start(Matrix *matrix, Row *row)
{
	/* What selects here would select once more there, or be refused. */
	static const char *const env[] = {"COUNTERPROOF_BRIEF=", "COUNTERPROOF_SHARD=", "COUNTERPROOF_DESIGN=", NULL};
	Words words = {.count = 0};
	char *output;

	row->folder = evidence_case_folder(matrix->evidence, (int) (row - matrix->rows));
	if (row->folder == NULL)
	{
		return false;
	}
	output = string_format("%s/run.txt", row->folder);
	words_of_row(matrix, row, &words);
	row->program = process_start(&(ProcessSpec){
		.argv = (const char *const *) words.words, .env = env, .output_file = output, .own_group = true});
	words_free(&words);
	free(output);
	if (row->program == NULL)
	{
		return false;
	}
	row->begin_ns = time_now_ns();
	row->slot = reaper_enter_group(process_pid(row->program));
	matrix->running++;
	return row->slot >= 0;
}


/* --- what it recorded --- */

static int
column_of(const Scenario *const *cases, const char *id)
{
	for (int i = 0; cases[i] != NULL; i++)
	{
		if (strcmp(cases[i]->id, id) == 0)
		{
			return i;
		}
	}
	return -1;
}

static bool
is_named(const Twin *twin, const char *case_id, const RecordedCheck *check)
{
	return twin != NULL && strcmp(twin->caught_in, case_id) == 0 && strstr(check->text, twin->caught_by) != NULL;
}

static void
take_check(Row *row, Cell *cell, const char *case_id, const RecordedCheck *check)
{
	bool named = is_named(row->twin, case_id, check);

	if (check->held)
	{
		return;
	}
	/* The named check is the one to show, else the first. */
	if (cell->first == NULL || (named && !cell->named))
	{
		free(cell->first);
		cell->first = string_format("%s; expected %s, got %s", check->text, check->expected, check->actual);
	}
	cell->named = cell->named || named;
}

static void
take_case(void *context, const RecordedCase *recorded)
{
	Row *row = context;
	int column = column_of(row->cases, recorded->id);
	Cell *cell;

	if (column < 0)
	{
		return;
	}
	cell = &row->cells[column];
	cell->failed = recorded->failed;
	cell->state = recorded->result == RESULT_PASS   ? CELL_SURVIVED
				  : recorded->result == RESULT_FAIL ? CELL_CAUGHT
				  : recorded->result == RESULT_SKIP ? CELL_SKIPPED
													: CELL_NO_VERDICT;
	for (size_t i = 0; i < recorded->check_count; i++)
	{
		take_check(row, cell, recorded->id, &recorded->checks[i]);
	}
	if (cell->state == CELL_SKIPPED || cell->state == CELL_NO_VERDICT)
	{
		free(cell->first);
		cell->first = string_format("%s: %s", result_name(recorded->result), recorded->reason);
	}
}

/* The evidence of each suite that the program ran. */
static bool
read_suites(Row *row, const Words *words)
{
	const char *last = "";

	for (int i = 0; row->cases[i] != NULL; i++)
	{
		const char *suite = row->cases[i]->suite;
		bool run = false;
		char *folder;
		bool done;

		for (int w = 0; w < words->count; w++)
		{
			run = run || strcmp(words->words[w], row->cases[i]->id) == 0;
		}
		if (!run || strcmp(suite, last) == 0)
		{
			continue;
		}
		last = suite;
		folder = string_format("%s/%s", row->folder, suite);
		done = evidence_read(folder, take_case, row);
		free(folder);
		if (!done)
		{
			return false;
		}
	}
	return true;
}

/* A program that found failures exits with 1, one that found nothing with 0 or 4; otherwise its evidence is not whole. */
static void
row_finish(Matrix *matrix, Row *row, const ProcessEnd *end)
{
	Words words = {.count = 0};

	row->duration_ms = (time_now_ns() - row->begin_ns) / 1000000;
	row->done = true;
	reaper_leave(row->slot);
	process_free(row->program);
	row->program = NULL;
	matrix->running--;
	words_add_cases(matrix, row, &words);
	if (end->how != ENDED_EXIT || end->code == EXIT_CODE_USAGE || end->code == EXIT_CODE_INTERRUPTED)
	{
		Text how = {0};

		process_end_describe(*end, &how);
		report_error("the run over %s ended by %s, see %s/run.txt", row->id, text_get(&how), row->folder);
		text_free(&how);
	}
	else
	{
		row->recorded = read_suites(row, &words);
	}
	words_free(&words);
}


/* --- what a row comes to --- */

static void say(Matrix *matrix, int index, LineKind kind, const char *expected, const char *actual, const char *format,
				...) PRINTF_LIKE(6, 7);

static void
say(Matrix *matrix, int index, LineKind kind, const char *expected, const char *actual, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	evidence_case_line(matrix->evidence, index, &(EvidenceLine){kind, text_get(&text), expected, actual, 0});
	text_free(&text);
}

/* The cell that decides: where a check that the twin names has failed; NULL: nowhere. */
static const Cell *
deciding_cell(const Row *row)
{
	int column = row->twin == NULL ? -1 : column_of(row->cases, row->twin->caught_in);

	return column >= 0 && row->cells[column].named ? &row->cells[column] : NULL;
}

static void
tell_cells(Matrix *matrix, int index)
{
	const Row *row = &matrix->rows[index];
	Text survived = {0};

	for (int i = 0; matrix->cases[i] != NULL; i++)
	{
		const Cell *cell = &row->cells[i];
		const char *id = matrix->cases[i]->id;

		if (cell->state == CELL_SURVIVED)
		{
			text_append(&survived, " %s", id);
		}
		else if (cell->state == CELL_CAUGHT)
		{
			say(matrix, index, LINE_NOTE, NULL, NULL, "%s: %d checks failed: %s", id, cell->failed, cell->first);
		}
		else if (cell->state == CELL_SKIPPED || cell->state == CELL_NO_VERDICT)
		{
			say(matrix, index, LINE_NOTE, NULL, NULL, "%s: %s", id, cell->first);
		}
	}
	if (survived.length > 0)
	{
		say(matrix, index, LINE_NOTE, NULL, NULL, "all checks held in:%s", text_get(&survived));
	}
	text_free(&survived);
}

/*
 * Cells that are not green though their case was to run: of the system as it is, one would make every other row worthless.
 * A case of which nothing was recorded is not green either.
 */
static int
red_cells(const Matrix *matrix, const Row *row)
{
	int red = 0;

	for (int i = 0; matrix->cases[i] != NULL; i++)
	{
		red += row_runs(matrix, row, matrix->cases[i]) && row->cells[i].state != CELL_SURVIVED &&
			   row->cells[i].state != CELL_SKIPPED;
	}
	return red;
}

/* The case that is to catch it says that it is not for this machine: nothing is known of the twin. */
static bool
is_skipped(const Row *row)
{
	int column = row->twin == NULL || row->canary ? -1 : column_of(row->cases, row->twin->caught_in);

	return column >= 0 && row->cells[column].state == CELL_SKIPPED;
}

static bool
tell_verdict(Matrix *matrix, int index)
{
	const Row *row = &matrix->rows[index];
	const Cell *cell = deciding_cell(row);
	bool holds;

	if (row->twin == NULL)
	{
		int red_count = red_cells(matrix, row);
		char red[16];

		snprintf(red, sizeof(red), "%d", red_count);
		holds = matrix->system_green = red_count == 0;
		say(matrix, index, holds ? LINE_PASS : LINE_FAIL, "0", red, "cases that do not pass over the system as it is");
	}
	else if (row->canary)
	{
		holds = matrix->canary_survived = cell == NULL && red_cells(matrix, row) == 0;
		say(matrix, index, holds ? LINE_PASS : LINE_FAIL, "survived", holds ? "survived" : "caught",
			"%s while %s is switched off and only %s runs", row->twin->id, row->twin->caught_in, row->only);
	}
	else
	{
		holds = cell != NULL;
		matrix->caught += holds;
		matrix->survived += !holds;
		say(matrix, index, holds ? LINE_PASS : LINE_FAIL, "caught", holds ? "caught" : "survived", "%s by: %s",
			row->twin->caught_in, row->twin->caught_by);
	}
	return holds;
}

static void
print_row(const Row *row, bool holds)
{
	const Cell *cell = deciding_cell(row);

	printf("%-8s %-9s %3" PRId64 ".%02d s  ", row->id,
		   !row->recorded    ? "BROKEN"
		   : is_skipped(row) ? "SKIP"
		   : holds           ? "ok"
							 : "NOT OK",
		   row->duration_ms / 1000, (int) (row->duration_ms % 1000 / 10));
	if (row->twin == NULL)
	{
		printf("the system as it is%s\n", holds ? "" : " is red");
	}
	else if (row->canary)
	{
		printf("canary: %s %s\n", row->twin->id, holds ? "survives, as it must" : "was said to be caught");
	}
	else if (cell != NULL)
	{
		printf("%s: %s: %s\n", row->twin->wrong, row->twin->caught_in, cell->first);
	}
	else if (is_skipped(row))
	{
		printf("%s: %s is skipped\n", row->twin->wrong, row->twin->caught_in);
	}
	else
	{
		printf("%s: SURVIVED %s\n", row->twin->wrong, row->twin->caught_in);
	}
	fflush(stdout);
}

static void
tell_row(Matrix *matrix, int index)
{
	const Row *row = &matrix->rows[index];
	bool holds = false;

	evidence_case_begin(matrix->evidence, index);
	if (row->twin != NULL)
	{
		say(matrix, index, LINE_NOTE, NULL, NULL, "instead of: %s", row->twin->guard);
		say(matrix, index, LINE_NOTE, NULL, NULL, "source: %s", row->twin->source);
	}
	if (row->recorded)
	{
		tell_cells(matrix, index);
		holds = !is_skipped(row) && tell_verdict(matrix, index);
	}
	matrix->broken += !row->recorded;
	matrix->skipped += is_skipped(row);
	evidence_case_end(matrix->evidence, index,
					  !row->recorded    ? RESULT_BROKEN
					  : is_skipped(row) ? RESULT_SKIP
					  : holds           ? RESULT_PASS
										: RESULT_FAIL,
					  !row->recorded    ? "its program did not record what it found"
					  : is_skipped(row) ? "the case that catches it is skipped"
										: NULL,
					  row->duration_ms);
	print_row(row, holds);
}


/* --- all rows --- */

static void
poll_rows(Matrix *matrix)
{
	for (int i = 0; i < matrix->next; i++)
	{
		Row *row = &matrix->rows[i];
		ProcessEnd end = {0};

		if (row->program != NULL && process_poll(row->program, &end))
		{
			row_finish(matrix, row, &end);
		}
	}
	while (matrix->told < matrix->next && matrix->rows[matrix->told].done)
	{
		tell_row(matrix, matrix->told++);
	}
}

static ProbeAnswer
probe_rows(void *context, Text *seen)
{
	Matrix *matrix = context;
	int before = matrix->running;

	poll_rows(matrix);
	text_append(seen, "%d programs run", matrix->running);
	return matrix->running < before ? PROBE_DONE : PROBE_AGAIN;
}

static bool
run_rows(Matrix *matrix)
{
	while (matrix->next < matrix->row_count || matrix->running > 0)
	{
		bool room = matrix->next < matrix->row_count && matrix->running < matrix->config->run->jobs;

		if (room ? !row_start(matrix, &matrix->rows[matrix->next++])
				 : !wait_until("the end of a run over a twin", deadline_in_ms(PROGRAM_MS), probe_rows, matrix))
		{
			return false;
		}
	}
	return !evidence_failed(matrix->evidence);
}

/* Interrupted, or something went wrong: the programs end their cases and say nothing more. */
static void
end_programs(Matrix *matrix)
{
	Deadline deadline = deadline_in_ms(INTERRUPT_MS);

	for (int i = 0; i < matrix->next; i++)
	{
		if (matrix->rows[i].program != NULL)
		{
			kill(process_pid(matrix->rows[i].program), SIGTERM);
		}
	}
	for (int i = 0; i < matrix->next; i++)
	{
		ProcessEnd end = {0};

		if (matrix->rows[i].program != NULL)
		{
			(void) !process_wait(matrix->rows[i].program, deadline, &end);
			process_free(matrix->rows[i].program);
			matrix->rows[i].program = NULL;
		}
	}
}


/* --- the matrix as a picture --- */

/*
 * A line of one letter a case: X the named check failed, x others did, . all held, - skipped, ! no verdict, blank not run. Suites
 * are set apart by two blanks.
 */
static void
append_letters(const Matrix *matrix, const Row *row, Text *text)
{
	for (int i = 0; matrix->cases[i] != NULL; i++)
	{
		const Cell *cell = row == NULL ? NULL : &row->cells[i];
		const char *id = matrix->cases[i]->id;
		char letter = cell == NULL                     ? id[strlen(id) - 1]
					  : cell->named                    ? 'X'
					  : cell->state == CELL_CAUGHT     ? 'x'
					  : cell->state == CELL_SURVIVED   ? '.'
					  : cell->state == CELL_SKIPPED    ? '-'
					  : cell->state == CELL_NO_VERDICT ? '!'
													   : ' ';

		if (i > 0 && strcmp(matrix->cases[i]->suite, matrix->cases[i - 1]->suite) != 0)
		{
			text_append(text, "  ");
		}
		text_append(text, " %c", letter);
	}
}

static void
tell_matrix(Matrix *matrix)
{
	int index = matrix->row_count;
	int judged = matrix->config->twin_count - matrix->skipped;
	char expected[16];
	char actual[16];

	evidence_case_begin(matrix->evidence, index);
	for (int i = -1; i < matrix->row_count; i++)
	{
		Text line = {0};

		append_letters(matrix, i < 0 ? NULL : &matrix->rows[i], &line);
		say(matrix, index, LINE_NOTE, NULL, NULL, "%-7s%s", i < 0 ? "" : matrix->rows[i].id, text_get(&line));
		printf("%-7s%s\n", i < 0 ? "" : matrix->rows[i].id, text_get(&line));
		text_free(&line);
	}
	snprintf(expected, sizeof(expected), "%d", judged);
	snprintf(actual, sizeof(actual), "%d", matrix->caught);
	say(matrix, index, matrix->caught == judged ? LINE_PASS : LINE_FAIL, expected, actual,
		"twins caught by the check that they name");
	evidence_case_end(matrix->evidence, index, matrix->caught == judged ? RESULT_PASS : RESULT_FAIL, NULL, 0);
}

static void
conclude(Matrix *matrix)
{
	Text text = {0};

	text_append(&text, "caught=%d survived=%d canary=%s%s", matrix->caught, matrix->survived,
				matrix->canary_survived ? "survived" : "caught", matrix->system_green ? "" : " system=red");
	if (matrix->skipped > 0)
	{
		text_append(&text, " skipped=%d", matrix->skipped);
	}
	if (matrix->broken > 0)
	{
		text_append(&text, " broken=%d", matrix->broken);
	}
	tell_matrix(matrix);
	evidence_conclude(matrix->evidence, text_get(&text));
	text_free(&text);
}


/* --- from beginning to end --- */

static bool
suite_has_twins(const char *suite)
{
	for (const Twin *twin = twins; twin->id != NULL; twin++)
	{
		if (strncmp(twin->caught_in, suite, strlen(suite)) == 0 && strchr("-/", twin->caught_in[strlen(suite)]) != NULL)
		{
			return true;
		}
	}
	return false;
}

/* Answers how many there are. */
static size_t
plan_cases(Matrix *matrix)
{
	size_t count = 0;

	while (registry_scenarios[count] != NULL)
	{
		count++;
	}
	matrix->cases = memory_get((count + 1) * sizeof(*matrix->cases));
	count = 0;
	for (int i = 0; registry_scenarios[i] != NULL; i++)
	{
		if (suite_has_twins(registry_scenarios[i]->suite))
		{
			matrix->cases[count++] = registry_scenarios[i];
		}
	}
	return count;
}

static void
plan_rows(Matrix *matrix)
{
	const MatrixConfig *config = matrix->config;
	size_t cases = plan_cases(matrix);

	matrix->row_count = config->twin_count + 2;
	matrix->rows = memory_get((size_t) matrix->row_count * sizeof(Row));
	matrix->rows[0] = (Row){.id = "system"};
	for (int i = 0; i < config->twin_count; i++)
	{
		const Twin *twin = config->twins[i];

		matrix->rows[i + 1] = (Row){.twin = twin, .id = twin->id, .only = config->brief ? twin->caught_in : NULL};
	}
	matrix->rows[config->twin_count + 1] =
		(Row){.twin = twin_find(CANARY_TWIN), .only = CANARY_CASE, .id = "canary", .canary = true};
	for (int i = 0; i < matrix->row_count; i++)
	{
		matrix->rows[i].cases = matrix->cases;
		matrix->rows[i].cells = memory_get(cases * sizeof(Cell));
	}
}

/* How the evidence names the rows, and the matrix behind them. */
static EvidenceCase *
name_rows(const Matrix *matrix)
{
	EvidenceCase *names = memory_get(((size_t) matrix->row_count + 1) * sizeof(*names));

	for (int i = 0; i < matrix->row_count; i++)
	{
		const Row *row = &matrix->rows[i];

		names[i] = (EvidenceCase){.suite = SUITE, .id = row->id, .repetition = 1};
		names[i].title = row->canary ? "a twin whose case is switched off" : "the system as it is";
		names[i].claim = row->canary ? "a twin that is not looked for survives" : "every case passes";
		if (row->twin != NULL && !row->canary)
		{
			names[i].title = row->twin->wrong;
			names[i].claim = "a check notices";
			names[i].kind = row->twin->layer;
		}
	}
	names[matrix->row_count] = (EvidenceCase){.suite = SUITE,
											  .id = "matrix",
											  .title = "every twin and every case",
											  .claim = "each twin is caught by the check that it names",
											  .repetition = 1};
	return names;
}

static ExitCode
run_with_evidence(Matrix *matrix)
{
	bool complete =
		environment_record(matrix->config->run, NULL, matrix->evidence) && run_rows(matrix) && !interrupt_seen();
	Text summary = {0};
	bool closed;

	interrupt_defer();
	end_programs(matrix);
	if (complete)
	{
		conclude(matrix);
	}
	closed = evidence_close(matrix->evidence, NULL, !complete);
	evidence_summary(matrix->evidence, &summary);
	printf("evidence  %s\n%s\n", evidence_output_path(matrix->evidence),
		   complete ? text_get(&summary) : "not finished: no SUMMARY");
	text_free(&summary);
	interrupt_resume();
	if (interrupt_seen() && !complete)
	{
		return EXIT_CODE_INTERRUPTED;
	}
	if (matrix->survived > 0 || (complete && (!matrix->system_green || !matrix->canary_survived)))
	{
		return EXIT_CODE_FAIL;
	}
	if (!complete || !closed || matrix->broken > 0)
	{
		return EXIT_CODE_BROKEN;
	}
	return matrix->caught > 0 ? EXIT_CODE_PASS : EXIT_CODE_INCONCLUSIVE;
}

static void
rows_free(Matrix *matrix)
{
	for (int i = 0; i < matrix->row_count; i++)
	{
		for (int c = 0; matrix->cases[c] != NULL; c++)
		{
			free(matrix->rows[i].cells[c].first);
		}
		free(matrix->rows[i].cells);
	}
	free(matrix->rows);
	free(matrix->cases);
}

ExitCode
matrix_run(const MatrixConfig *config)
{
	Matrix matrix = {.config = config};
	EvidenceCase *names;
	ExitCode code = EXIT_CODE_BROKEN;

	plan_rows(&matrix);
	names = name_rows(&matrix);
	environment_scrub();
	interrupt_catch();
	(void) signal(SIGPIPE, SIG_IGN);
	if (process_adopt_orphans() && reaper_start())
	{
		matrix.evidence = evidence_open(&(EvidenceRun){.root = config->run->evidence_root,
													   .seed = config->run->seed,
													   .cases = names,
													   .case_count = matrix.row_count + 1,
													   .replay = config->run->replay,
													   .keep = config->run->keep});
		if (matrix.evidence != NULL)
		{
			code = run_with_evidence(&matrix);
		}
		evidence_free(matrix.evidence);
		reaper_dismiss();
	}
	rows_free(&matrix);
	free(names);
	return code;
}
