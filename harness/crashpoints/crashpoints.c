#include "../crashpoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cluster.h"
#include "../environment.h"
#include "../evidence.h"
#include "../lab.h"
#include "../progress.h"
#include "crew.h"

#define SUITE "crashpoints"

typedef struct
{
	int tried, held, violated, unknown;
	int64_t duration_ns; /* of all of them */
} Tally;

/* One file on its way. */
typedef struct
{
	const CrashSelection *selection;
	const CrashPlan *plan;
	const char *replay;
	Evidence *evidence;
	const EvidenceCase *name;
	int index; /* in the evidence */
	CrashPoints points;
	CrashPair *pairs;
	int pair_count;
	Tally tallies[CRASH_FAULTS + 1];
	int passed;
	int failed;
	Text unknown; /* the first of the reasons */
	Text broken;
	int64_t begin_ns;
	int64_t runs_begin_ns;
	int64_t waited_ms; /* the longest wait for a backend */
	int64_t alone_ns;  /* the program without a fault */
	bool line_open;    /* of progress, on the terminal */
	bool found;        /* a program known to be wrong was */
} FileRun;

typedef struct
{
	const CrashSelection *selection;
	CrashPlan **plans;
	EvidenceCase *names;
	int count;
	ServerKit *kit;
	Evidence *evidence;
	bool recorded; /* the server's settings */
} Run;


/* --- saying --- */

static void
close_line(FileRun *file)
{
	if (file->line_open)
	{
		printf("\r\033[K");
		file->line_open = false;
	}
}

/* To the evidence; on the terminal when `shown` or with -v. */
static void
say_line(FileRun *file, const EvidenceLine *line, bool shown)
{
	evidence_case_line(file->evidence, file->index, line);
	if (shown || file->selection->run->verbose)
	{
		close_line(file);
		progress_show(file->name, line);
	}
}

static void say(FileRun *file, LineKind kind, bool shown, const char *format, ...) PRINTF_LIKE(4, 5);

static void
say(FileRun *file, LineKind kind, bool shown, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	say_line(file, &(EvidenceLine){.kind = kind, .text = text_get(&text)}, shown);
	text_free(&text);
}

static void
check(FileRun *file, const char *what, const char *expected, const char *actual, bool held)
{
	EvidenceLine line = {.kind = held ? LINE_PASS : LINE_FAIL, .text = what, .expected = expected, .actual = actual};

	file->passed += held ? 1 : 0;
	file->failed += held ? 0 : 1;
	say_line(file, &line, !held);
}

/* The next line of a text, which is used up; NULL at its end. */
static char *
next_line(char **rest)
{
	char *line = *rest;
	char *newline = line != NULL ? strchr(line, '\n') : NULL;

	if (newline == NULL)
	{
		return NULL;
	}
	*newline = '\0';
	*rest = newline + 1;
	return line;
}

/* `meant`: of a program that is known to be wrong; then it is what was looked for, and no check that failed. */
static void
say_failures(FileRun *file, const char *where, const TrialOutcome *outcome, bool meant)
{
	char *copy = string_copy(text_get(&outcome->failures));
	char *rest = copy;
	char *line;

	while ((line = next_line(&rest)) != NULL)
	{
		const char *invariant = strsep(&line, "\t");
		const char *expected = strsep(&line, "\t");
		char *what = string_format("%s: %s", where, invariant);

		if (meant)
		{
			say(file, LINE_NOTE, !file->found, "violated: %s; expected %s, got %s", what, expected, line);
			file->found = true;
		}
		else
		{
			check(file, what, expected, line, false);
		}
		free(what);
	}
	free(copy);
	copy = string_copy(text_get(&outcome->notes));
	rest = copy;
	while ((line = next_line(&rest)) != NULL)
	{
		say(file, LINE_NOTE, !meant, "%s", line);
	}
	free(copy);
}

static char *
pair_name(const FileRun *file, const CrashPair *pair)
{
	Text text = {0};

	text_append(&text, "#%d ", pair->point + 1);
	crash_point_describe(&file->points, &file->points.points[pair->point], &text);
	text_append(&text, ", %s", crash_fault_name(pair->fault));
	return text.data;
}

static void
hear_outcome(void *context, int index, const TrialOutcome *outcome)
{
	FileRun *file = context;
	const CrashPair *pair = &file->pairs[index];
	Tally *tally = &file->tallies[pair->fault];
	char *where = pair_name(file, pair);

	tally->tried++;
	tally->duration_ns += outcome->duration_ns;
	switch (outcome->verdict)
	{
		case TRIAL_VIOLATED:
			tally->violated++;
			say_failures(file, where, outcome, file->plan->expects_violation);
			say(file, LINE_NOTE, !file->plan->expects_violation, "replay %s --point %d --fault %s", file->replay,
				pair->point + 1, crash_fault_name(pair->fault));
			break;
		case TRIAL_HELD:
			tally->held++;
			check(file, where, "held", "held", true);
			break;
		default:
			tally->unknown++;
			say(file, LINE_NOTE, true, "%s: unknown: %s", where, text_get(&outcome->reason));
			if (file->unknown.length == 0)
			{
				text_append(&file->unknown, "%s: %s", where, text_get(&outcome->reason));
			}
			break;
	}
	file->waited_ms = outcome->waited_ms > file->waited_ms ? outcome->waited_ms : file->waited_ms;
	free(where);
}

/* On a terminal only: how far, how fast, how long still. */
static void
hear_moved(void *context, int ended)
{
	FileRun *file = context;
	double seconds = (double) (time_now_ns() - file->runs_begin_ns) / 1e9;

	if (!isatty(STDOUT_FILENO) || ended == 0)
	{
		return;
	}
	printf("\r%s  %d of %d runs, %.1f a second, about %.0f s left\033[K", file->name->id, ended, file->pair_count,
		   ended / seconds, (file->pair_count - ended) * seconds / ended);
	fflush(stdout);
	file->line_open = true;
}


/* --- one file --- */

static void
say_points(FileRun *file)
{
	say(file, LINE_STEP, true, "%d points, from %d runs without a fault%s", file->points.count, TRIAL_REFERENCES,
		file->points.unstable ? "; UNSTABLE: the runs differed, so points are found again by kind and ordinal" : "");
	for (int i = 0; i < file->points.count; i++)
	{
		Text text = {0};

		crash_point_describe(&file->points, &file->points.points[i], &text);
		say(file, LINE_NOTE, false, "#%d %s", i + 1, text_get(&text));
		text_free(&text);
	}
}

static void
say_partial(FileRun *file)
{
	const CrashSelection *selection = file->selection;
	int all = file->points.count * file->plan->fault_count;
	Text text = {0};

	if (selection->first_point > 0 && selection->first_point == selection->last_point)
	{
		text_append(&text, " point %d,", selection->first_point);
	}
	else if (selection->first_point > 0)
	{
		text_append(&text, " points %d-%d,", selection->first_point, selection->last_point);
	}
	if (selection->fault != 0)
	{
		text_append(&text, " fault %s,", crash_fault_name(selection->fault));
	}
	if (selection->sample > 0)
	{
		text_append(&text, " sample %d with seed %" PRIu64 ",", selection->sample, selection->run->seed);
	}
	if (selection->shard_count > 1)
	{
		text_append(&text, " shard %d/%d,", selection->shard_index, selection->shard_count);
	}
	if (file->pair_count < all)
	{
		say(file, LINE_NOTE, true, "partial: %d of %d runs:%.*s", file->pair_count, all, (int) text.length - 1,
			text_get(&text));
	}
	text_free(&text);
}

static void
say_tallies(FileRun *file)
{
	double seconds = (double) (time_now_ns() - file->runs_begin_ns) / 1e9;
	int tried = 0;

	for (int fault = CRASH_KILL_CLIENT; fault <= CRASH_FAULTS; fault++)
	{
		const Tally *tally = &file->tallies[fault];
		int fired = tally->held + tally->violated;
		char *text;

		if (tally->tried == 0)
		{
			continue;
		}
		text =
			string_format("%s: fired %d, tried %d held %d violated %d unknown %d", crash_fault_name((CrashFault) fault),
						  fired, tally->tried, tally->held, tally->violated, tally->unknown);
		evidence_case_line(file->evidence, file->index,
						   &(EvidenceLine){.kind = LINE_FAULT, .text = text, .fired = fired});
		printf("%s  fault    %s; %.0f ms a run\n", file->name->id, text,
			   (double) tally->duration_ns / 1e6 / tally->tried);
		tried += tally->tried;
		free(text);
	}
	printf("%s  %d runs in %.1f s: %.1f points a second, the program alone %.0f ms, "
		   "the longest wait for a backend that outlived its client %" PRId64 " ms\n",
		   file->name->id, tried, seconds, seconds > 0 ? tried / seconds : 0, (double) file->alone_ns / 1e6,
		   file->waited_ms);
}

/* Of a program that is known to be wrong: a run of all of it has to find that out. A part of it may miss it. */
static void
check_found(FileRun *file)
{
	int violated = 0;
	int tried = 0;
	char actual[16];

	for (int fault = CRASH_KILL_CLIENT; fault <= CRASH_FAULTS; fault++)
	{
		violated += file->tallies[fault].violated;
		tried += file->tallies[fault].tried;
	}
	snprintf(actual, sizeof(actual), "%d", violated);
	if (violated > 0 || tried == file->points.count * file->plan->fault_count)
	{
		check(file, "runs of a program known to be wrong that violate an invariant", "at least 1", actual,
			  violated > 0);
	}
	else
	{
		text_append(&file->unknown, "none of the %d runs of this part found the program wrong", tried);
	}
}

/* false: not all of it was run. */
static bool
run_pairs(FileRun *file, Crew *crew)
{
	CrewEars ears = {.context = file, .outcome = hear_outcome, .moved = hear_moved};
	bool done;

	file->pairs = crash_pairs_select(file->selection, file->plan, file->points.count, &file->pair_count);
	say_points(file);
	say_partial(file);
	file->runs_begin_ns = time_now_ns();
	done = crew_run(crew, &file->points, file->pairs, file->pair_count, &ears);
	close_line(file);
	say_tallies(file);
	if (done && file->plan->expects_violation)
	{
		check_found(file);
	}
	return done;
}

static void
end_file(FileRun *file, bool complete)
{
	int64_t duration_ms = (time_now_ns() - file->begin_ns) / 1000000;
	Result result = RESULT_PASS;
	const char *reason = NULL;

	if (complete && file->failed == 0 && file->passed == 0 && file->unknown.length == 0)
	{
		text_append(&file->unknown, "nothing was tried: the program has %d points", file->points.count);
	}
	if (file->failed > 0)
	{
		result = RESULT_FAIL;
	}
	else if (!complete)
	{
		result = RESULT_BROKEN;
		reason = text_get(&file->broken);
	}
	else if (file->unknown.length > 0)
	{
		result = RESULT_UNKNOWN;
		reason = text_get(&file->unknown);
	}
	evidence_case_end(file->evidence, file->index, result, reason, duration_ms);
	progress_case(file->selection->run, file->name, result, file->passed, file->failed, duration_ms, reason);
}

/* The settings of the first server stand for all: they are made alike. */
static bool
record_server(Run *run, Crew *crew)
{
	const char *server = crew_server(crew);

	run->recorded = run->recorded || (server != NULL && environment_record(run->selection->run, server, run->evidence));
	return server != NULL && run->recorded;
}

static bool
run_with_crew(Run *run, FileRun *file, Crew *crew)
{
	TrialOutcome reference = {0};
	bool done = record_server(run, crew);

	evidence_case_begin(run->evidence, file->index);
	done = done && crew_reference(crew, &file->points, &reference);
	file->alone_ns = reference.duration_ns;
	if (done && reference.verdict == TRIAL_VIOLATED)
	{
		say_failures(file, "without any fault", &reference, false);
	}
	else if (done)
	{
		done = run_pairs(file, crew);
	}
	trial_outcome_free(&reference);
	return done;
}

/* true: it was, because the machine lacks what it needs. */
static bool
skip_file(Run *run, int index)
{
	const CrashPlan *plan = run->plans[index];
	char *found = plan->needs != NULL ? process_find_program(plan->needs, run->selection->run->programs) : NULL;
	bool lacking = plan->needs != NULL && found == NULL;
	char *reason;

	free(found);
	if (!lacking)
	{
		return false;
	}
	reason = string_format("it needs %s, which is not installed", plan->needs);
	evidence_case_end(run->evidence, index, RESULT_SKIP, reason, 0);
	progress_case(run->selection->run, &run->names[index], RESULT_SKIP, 0, 0, 0, reason);
	free(reason);
	return true;
}

/* false: broken, reported, or interrupted. */
static bool
run_file(Run *run, int index)
{
	SiteSetup setup = {.run = run->selection->run, .kit = run->kit, .plan = run->plans[index]};
	FileRun file = {.selection = run->selection,
					.plan = run->plans[index],
					.replay = run->selection->replays[index],
					.evidence = run->evidence,
					.name = &run->names[index],
					.index = index,
					.begin_ns = time_now_ns()};
	Crew *crew = crew_start(&setup, run->selection->run->jobs);
	bool done = crew != NULL && run_with_crew(run, &file, crew);
	char last[600];

	text_append(&file.broken, "%s", crew != NULL ? crew_complaint(crew) : "");
	done = crew_end(crew) && done;
	if (file.broken.length == 0)
	{
		notice_last_error(last, sizeof(last));
		text_append(&file.broken, "%s", last);
	}
	if (!interrupt_seen())
	{
		end_file(&file, done);
	}
	crash_points_free(&file.points);
	free(file.pairs);
	text_free(&file.unknown);
	text_free(&file.broken);
	return done;
}


/* --- all files --- */

static bool
read_plans(Run *run, const char *const *files)
{
	bool done = true;

	for (int i = 0; i < run->count; i++)
	{
		run->plans[i] = crash_plan_read(files[i]);
		done = done && run->plans[i] != NULL;
		for (int j = 0; done && j < i; j++)
		{
			if (strcmp(run->plans[i]->id, run->plans[j]->id) == 0)
			{
				report_error("%s and %s would have one name in the evidence: %s", files[j], files[i],
							 run->plans[i]->id);
				done = false;
			}
		}
	}
	for (int i = 0; done && i < run->count; i++)
	{
		run->names[i] =
			(EvidenceCase){.suite = SUITE,
						   .id = run->plans[i]->id,
						   .title = "every message, every fault",
						   .claim = run->plans[i]->expects_violation
										? "a fault at some message shows that the program is wrong"
										: "after a fault at any message, and recovery, no invariant returns a row",
						   .kind = "crash points",
						   .repetition = 1};
	}
	return done;
}

/* In the lab. */
static ExitCode
run_files(void *context, ServerKit *kit, Evidence *evidence)
{
	Run *run = context;
	bool done = true;

	run->kit = kit;
	run->evidence = evidence;
	for (int i = 0; i < run->count && !interrupt_seen() && !evidence_failed(evidence); i++)
	{
		done = (skip_file(run, i) || run_file(run, i)) && done;
	}
	return lab_conclude(run->selection->run, evidence, done);
}

ExitCode
crashpoints_run(const CrashSelection *selection, const char *const *files, int count)
{
	Run run = {.selection = selection,
			   .plans = memory_get(sizeof(CrashPlan *) * (size_t) count),
			   .names = memory_get(sizeof(EvidenceCase) * (size_t) count),
			   .count = count};
	ExitCode code = read_plans(&run, files)
						? lab_run(selection->run, run.names, count, selection->run->jobs * SITE_BYTES, run_files, &run)
						: EXIT_CODE_USAGE;

	for (int i = 0; i < count; i++)
	{
		crash_plan_free(run.plans[i]);
	}
	free(run.plans);
	free(run.names);
	return code;
}
