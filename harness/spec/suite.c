/*
 * Files as cases of a suite: a server for each run, evidence, and what the terminal shows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../environment.h"
#include "../lab.h"
#include "../progress.h"
#include "file.h"

#define SUITE "spec"
#define START_MS 60000
#define STEP_LIMIT_MS 30000
#define DATABASE_BYTES ((int64_t) 32 << 20) /* of one lane, with its log */
#define SERVER_BYTES ((int64_t) 256 << 20)

/* A case of the evidence: a file, or a part of it. */
typedef struct
{
	int file;
	SpecPart part;
	int number; /* of the permutation */
	char *id;
} Case;

typedef struct
{
	const SpecSelection *selection;
	SpecFile **files;
	int file_count;
	Case *cases;
	EvidenceCase *names;
	int case_count;
	ServerKit *kit;
	Cluster *cluster; /* NULL: --server */
	Evidence *evidence;
	bool refused;
	/* of the case that runs */
	int now;
	int64_t begin_ns;
	bool line_open; /* of progress, on the terminal */
	int passed, failed;
} Run;


/* --- saying --- */

static void
close_line(Run *run)
{
	if (run->line_open)
	{
		printf("\r\033[K");
		run->line_open = false;
	}
}

static void
say_line(Run *run, const EvidenceLine *line, bool shown)
{
	evidence_case_line(run->evidence, run->now, line);
	if (shown || run->selection->run->verbose)
	{
		close_line(run);
		progress_show(&run->names[run->now], line);
	}
}

static void say(Run *run, LineKind kind, bool shown, const char *format, ...) PRINTF_LIKE(4, 5);

static void
say(Run *run, LineKind kind, bool shown, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	say_line(run, &(EvidenceLine){.kind = kind, .text = text_get(&text)}, shown);
	text_free(&text);
}

static void
say_lines(Run *run, const char *lines)
{
	while (*lines != '\0')
	{
		int length = (int) strcspn(lines, "\n");

		say(run, LINE_NOTE, true, "%.*s", length, lines);
		lines += length + (lines[length] == '\n' ? 1 : 0);
	}
}

static void
append_count(Text *text, uint64_t count)
{
	if (count == UINT64_MAX)
	{
		text_append(text, "more than can be counted");
	}
	else
	{
		text_append(text, "%" PRIu64, count);
	}
}

/* On a terminal only: how far, how fast, how long still. */
static void
hear_progress(void *context, uint64_t done, uint64_t planned)
{
	Run *run = context;
	double seconds = (double) (time_now_ns() - run->begin_ns) / 1e9;
	double rate = (double) done / seconds;

	if (!isatty(STDOUT_FILENO) || done == 0)
	{
		return;
	}
	printf("\r%s  %" PRIu64 " interleavings, %.0f a second", run->names[run->now].id, done, rate);
	if (planned != UINT64_MAX && planned > done)
	{
		printf(", at most %" PRIu64 ", about %.0f s left", planned, (double) (planned - done) / rate);
	}
	printf("\033[K");
	(void) fflush(stdout);
	run->line_open = true;
}


/* --- the report of a case --- */

static void
say_replay(Run *run, const char *order)
{
	Text quoted = {0};

	text_append_word(&quoted, order);
	say(run, LINE_NOTE, true, "replay %s --order %s", run->selection->replays[run->cases[run->now].file],
		text_get(&quoted));
	text_free(&quoted);
}

/* `before`: another that was violated, whose story was told; NULL: none. */
static void
say_check(Run *run, const SpecCheck *check, const SpecCheck *before)
{
	char *actual = string_format("%" PRIu64 " of %" PRIu64, check->held, check->held + check->violated);
	EvidenceLine line = {.kind = check->violated > 0 ? LINE_FAIL : LINE_PASS,
						 .text = check->what,
						 .expected = "every interleaving",
						 .actual = actual};

	if (check->held + check->violated > 0)
	{
		run->passed += check->violated == 0 ? 1 : 0;
		run->failed += check->violated > 0 ? 1 : 0;
		say_line(run, &line, check->violated > 0);
	}
	if (check->violated > 0)
	{
		say(run, LINE_NOTE, true, "shortest: %s", text_get(&check->order));
		say_lines(run, text_get(&check->detail));
		if (before == NULL || strcmp(text_get(&before->order), text_get(&check->order)) != 0)
		{
			say_lines(run, text_get(&check->story));
			say_replay(run, text_get(&check->order));
		}
	}
	free(actual);
}

static int
compare_outcomes(const void *a, const void *b)
{
	const SpecOutcome *left = a;
	const SpecOutcome *right = b;

	return left->count != right->count ? (left->count < right->count) * 2 - 1 : strcmp(left->text, right->text);
}

static void
say_outcomes(Run *run, SpecReport *report)
{
	qsort(report->outcomes, (size_t) report->outcome_count, sizeof(SpecOutcome), compare_outcomes);
	for (int i = 0; i < report->outcome_count; i++)
	{
		const SpecOutcome *outcome = &report->outcomes[i];

		say(run, LINE_NOTE, true, "%" PRIu64 " x %s; such as %s", outcome->count, outcome->text,
			text_get(&outcome->order));
	}
	if (report->others > 0)
	{
		say(run, LINE_NOTE, true, "%" PRIu64 " interleavings ended in yet other ways", report->others);
	}
}

static void
say_faults(Run *run, const SpecReport *report)
{
	for (int i = 0; i < report->fault_count; i++)
	{
		char *text = string_format("%s: fired in %" PRIu64 " of %" PRIu64 " interleavings", report->fault_names[i],
								   report->fired[i], report->run);

		say_line(run,
				 &(EvidenceLine){.kind = LINE_FAULT,
								 .text = text,
								 .fired = report->fired[i] > INT32_MAX ? INT32_MAX : (int) report->fired[i]},
				 true);
		free(text);
	}
}

static void
say_rate(Run *run, const SpecReport *report)
{
	double seconds = (double) report->duration_ns / 1e9;
	Text skipped = {0};

	if (report->skipped > 0)
	{
		text_append(&skipped, ", ");
		append_count(&skipped, report->skipped);
		text_append(&skipped, " more skipped, which differ from these only in the order of reads");
	}
	say(run, LINE_NOTE, true, "%" PRIu64 " interleavings run%s; %" PRIu64 " waits, %" PRId64 " retries", report->run,
		text_get(&skipped), report->waits, report->retries_40001 + report->retries_40p01);
	if (report->false_conflicts > 0)
	{
		say(run, LINE_NOTE, true,
			"%" PRId64 " of the retries after 40001 met just what had been refused: false conflict possible, by a "
			"sequential scan or a lock on a page",
			report->false_conflicts);
	}
	close_line(run);
	printf("%s  %.0f interleavings a second\n", run->names[run->now].id,
		   seconds > 0 ? (double) report->run / seconds : 0);
	text_free(&skipped);
}

static void
say_report(Run *run, SpecReport *report)
{
	Result result = spec_report_result(report);
	const char *reason = result == RESULT_BROKEN
							 ? text_get(report->broken.length > 0 ? &report->broken : &report->refused)
						 : result == RESULT_UNKNOWN ? text_get(&report->unknown)
													: NULL;
	int64_t duration_ms = (time_now_ns() - run->begin_ns) / 1000000;
	const SpecCheck *told = NULL;

	say_outcomes(run, report);
	say_faults(run, report);
	for (int i = 0; i < report->check_count; i++)
	{
		say_check(run, &report->checks[i], told);
		told = report->checks[i].violated > 0 ? &report->checks[i] : told;
	}
	say_rate(run, report);
	if (report->refused.length > 0)
	{
		close_line(run);
		report_error("%s", text_get(&report->refused));
	}
	evidence_case_retries(run->evidence, run->now, report->retries_40001, report->retries_40p01);
	evidence_case_end(run->evidence, run->now, result, reason, duration_ms);
	progress_case(run->selection->run, &run->names[run->now], result, run->passed, run->failed, duration_ms, reason);
	run->refused = run->refused || report->refused.length > 0;
}


/* --- a case --- */

/* Where what is tried again is explored, too. */
static bool
begins_again(const SpecFile *file, SpecPart part)
{
	return file->spec->retry_count > 0 && (part == SPEC_EXPLORED || (part == SPEC_ALL && spec_file_explores(file)));
}

static void
say_plan(Run *run, const Case *one)
{
	uint64_t planned;
	bool exact;
	Text text = {0};

	planned = spec_file_planned(run->files[one->file], one->part, run->selection->run->seed, &exact);
	append_count(&text, planned);
	say(run, LINE_STEP, true, "interleavings to run: %s%s%s", exact ? "at most " : "more than ", text_get(&text),
		begins_again(run->files[one->file], one->part) ? ", and more when a session begins again" : "");
	text_free(&text);
}

static bool
skip_case(Run *run, const Case *one)
{
	const char *reason = "it restarts the server, and --server names one that is not the lab's to break";

	if (run->cluster != NULL || !spec_file_restarts(run->files[one->file]))
	{
		return false;
	}
	evidence_case_end(run->evidence, run->now, RESULT_SKIP, reason, 0);
	progress_case(run->selection->run, &run->names[run->now], RESULT_SKIP, 0, 0, 0, reason);
	return true;
}

static void
run_case(Run *run, int index)
{
	const RunnerConfig *config = run->selection->run;
	const Case *one = &run->cases[index];
	char *server = string_copy(run->cluster != NULL ? cluster_conninfo(run->cluster, "postgres") : config->server);
	SpecJudging judging = {.server = server,
						   .cluster = run->cluster,
						   .jobs = config->jobs,
						   .seed = config->seed,
						   .step_limit_ms = config->timeout_s > 0 ? config->timeout_s * 1000
																  : (int64_t) (STEP_LIMIT_MS * config->scale),
						   .part = one->part,
						   .number = one->number,
						   .order = run->selection->order,
						   .progress = hear_progress,
						   .context = run};
	SpecReport *report;

	run->now = index;
	run->begin_ns = time_now_ns();
	run->passed = run->failed = 0;
	if (!skip_case(run, one))
	{
		evidence_case_begin(run->evidence, index);
		say_plan(run, one);
		report = spec_judge(run->files[one->file], &judging);
		if (!interrupt_seen())
		{
			say_report(run, report);
		}
		spec_report_free(report);
	}
	free(server);
}


/* --- the run --- */

static bool
start_server(Run *run)
{
	const RunnerConfig *config = run->selection->run;
	const char *server = config->server;

	if (server == NULL)
	{
		run->cluster = cluster_create(run->kit, SUITE);
		if (run->cluster == NULL || !cluster_start(run->cluster, deadline_in_ms(START_MS)))
		{
			return false;
		}
		server = cluster_conninfo(run->cluster, "postgres");
	}
	return environment_record(config, server, run->evidence);
}

static ExitCode
run_all(void *context, ServerKit *kit, Evidence *evidence)
{
	Run *run = context;
	ExitCode code;
	bool done;

	run->kit = kit;
	run->evidence = evidence;
	done = start_server(run);
	for (int i = 0; done && i < run->case_count && !interrupt_seen() && !evidence_failed(evidence); i++)
	{
		run_case(run, i);
	}
	done = cluster_free(run->cluster) && done;
	code = lab_conclude(run->selection->run, evidence, done);
	return run->refused && code != EXIT_CODE_FAIL && code != EXIT_CODE_INTERRUPTED ? EXIT_CODE_USAGE : code;
}

static char *
name_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = string_copy(slash != NULL ? slash + 1 : path);
	char *dot = strrchr(name, '.');

	if (dot != NULL && dot != name)
	{
		*dot = '\0';
	}
	return name;
}

static void
add_case(Run *run, int file, SpecPart part, int number, char *id)
{
	run->cases = memory_grow(run->cases, sizeof(Case) * ((size_t) run->case_count + 1));
	run->cases[run->case_count++] = (Case){.file = file, .part = part, .number = number, .id = id};
}

static void
add_cases(Run *run, int file, const char *path)
{
	char *name = name_file(path);

	if (run->selection->order != NULL || !run->selection->each)
	{
		add_case(run, file, run->selection->order != NULL ? SPEC_ORDER : SPEC_ALL, 0, string_copy(name));
	}
	else
	{
		for (int i = 0; i < spec_file_permutations(run->files[file]); i++)
		{
			add_case(run, file, SPEC_WRITTEN, i, string_format("%s-%d", name, i + 1));
		}
		if (spec_file_explores(run->files[file]))
		{
			add_case(run, file, SPEC_EXPLORED, 0, string_format("%s-explored", name));
		}
	}
	free(name);
}

static bool
check_names(const Run *run, const char *const *files)
{
	for (int i = 0; i < run->case_count; i++)
	{
		for (int k = 0; k < i; k++)
		{
			if (strcmp(run->cases[i].id, run->cases[k].id) == 0)
			{
				report_error("%s and %s would have one name in the evidence: %s", files[run->cases[k].file],
							 files[run->cases[i].file], run->cases[i].id);
				return false;
			}
		}
	}
	return true;
}

/* All of them, so that whoever has made several mistakes is told of each. */
static bool
read_files(Run *run, const char *const *files)
{
	bool done = true;

	for (int i = 0; i < run->file_count; i++)
	{
		run->files[i] = spec_file_read(files[i]);
		done = run->files[i] != NULL && done;
	}
	for (int i = 0; done && i < run->file_count; i++)
	{
		add_cases(run, i, files[i]);
	}
	run->names = memory_get(sizeof(EvidenceCase) * ((size_t) run->case_count + 1));
	for (int i = 0; i < run->case_count; i++)
	{
		run->names[i] = (EvidenceCase){.suite = SUITE,
									   .id = run->cases[i].id,
									   .title = files[run->cases[i].file],
									   .claim = "what the file says must hold does, in each interleaving that was run",
									   .kind = "spec",
									   .repetition = 1};
	}
	return done && check_names(run, files);
}

ExitCode
spec_run_files(const SpecSelection *selection, const char *const *files, int count)
{
	Run run = {.selection = selection, .files = memory_get(sizeof(SpecFile *) * (size_t) count), .file_count = count};
	ExitCode code = read_files(&run, files)
						? lab_run(selection->run, run.names, run.case_count,
								  SERVER_BYTES + selection->run->jobs * DATABASE_BYTES, run_all, &run)
						: EXIT_CODE_USAGE;

	for (int i = 0; i < count; i++)
	{
		spec_file_free(run.files[i]);
	}
	for (int i = 0; i < run.case_count; i++)
	{
		free(run.cases[i].id);
	}
	free(run.files);
	free(run.cases);
	free(run.names);
	return code;
}
