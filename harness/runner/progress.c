#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const char *const reset = "\033[0m";

static bool
colored(const RunnerConfig *config)
{
	return config->color == COLOR_ALWAYS || (config->color == COLOR_AUTO && isatty(STDOUT_FILENO));
}

static const char *
color_of(const RunnerConfig *config, Result result)
{
	if (!colored(config))
	{
		return "";
	}
	switch (result)
	{
		case RESULT_PASS:
			return "\033[32m";
		case RESULT_FAIL:
		case RESULT_BROKEN:
			return "\033[31m";
		default:
			return "\033[33m";
	}
}

static const char *
color_end(const RunnerConfig *config)
{
	return colored(config) ? reset : "";
}

void
progress_case(const RunnerConfig *config, const EvidenceCase *name, Result result, int passed, int failed,
			  int64_t duration_ms, const char *reason)
{
	char repetition[24] = "";
	char counts[48];

	if (config->repeat > 1 || config->until_fail)
	{
		snprintf(repetition, sizeof(repetition), " #%d", name->repetition);
	}
	snprintf(counts, sizeof(counts), "%d checks%s", passed + failed, failed > 0 ? "" : " held");
	if (failed > 0)
	{
		snprintf(counts, sizeof(counts), "%d of %d checks failed", failed, passed + failed);
	}
	printf("%s%s  %s%-7s%s %5" PRId64 ".%02d s  %-16s %s%s%s\n", name->id, repetition, color_of(config, result),
		   result_name(result), color_end(config), duration_ms / 1000, (int) (duration_ms % 1000 / 10), counts,
		   name->title, reason != NULL ? ": " : "", reason != NULL ? reason : "");
	fflush(stdout);
}

void
progress_show(const EvidenceCase *name, const EvidenceLine *line)
{
	Text text = {0};

	evidence_line_text(line, &text);
	printf("%s  %-8s %s\n", name->id, evidence_line_word(line), text_get(&text));
	fflush(stdout);
	text_free(&text);
}

void
progress_line(const RunnerConfig *config, const EvidenceCase *name, const EvidenceLine *line)
{
	if (line->kind == LINE_FAIL || config->verbose)
	{
		progress_show(name, line);
	}
}

void
progress_kept(const char *conninfo)
{
	printf("kept      psql \"%s\"\n", conninfo);
	fflush(stdout);
}

void
progress_ending(const char *command)
{
	printf("to end it %s\n", command);
	fflush(stdout);
}

void
progress_end(const RunnerConfig *config, const Evidence *evidence, bool complete)
{
	EvidenceTotals totals = evidence_totals(evidence);
	Result worst = totals.failed > 0 || totals.broken > 0 ? RESULT_FAIL
				   : totals.unknown > 0                   ? RESULT_UNKNOWN
														  : RESULT_PASS;
	Text summary = {0};

	if (complete)
	{
		evidence_summary(evidence, &summary);
		printf("%s%s%s\n", color_of(config, worst), text_get(&summary), color_end(config));
	}
	else
	{
		printf("not finished: no SUMMARY\n");
	}
	printf("evidence  %s\n", evidence_output_path(evidence));
	fflush(stdout);
	text_free(&summary);
}
