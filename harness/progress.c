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
		snprintf(counts, sizeof(counts), "%d of %d failed", failed, passed + failed);
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

#define METER_EVERY_NS 200000000
#define NS_PER_S 1e9

void
progress_meter_begin(ProgressMeter *meter, const char *what, double total)
{
	*meter = (ProgressMeter){
		.what = what, .total = total, .began_ns = time_now_ns(), .terminal = isatty(STDERR_FILENO) == 1};
	if (meter->terminal)
	{
		fprintf(stderr, "\r%s ...\033[K", what);
		meter->shown_ns = meter->began_ns;
	}
}

void
progress_meter_at(ProgressMeter *meter, double done)
{
	int64_t now_ns = time_now_ns();
	double seconds = (double) (now_ns - meter->began_ns) / NS_PER_S;
	double rate = seconds > 0 ? done / seconds : 0;

	if (!meter->terminal || now_ns - meter->shown_ns < METER_EVERY_NS)
	{
		return;
	}
	fprintf(stderr, "\r%s %.0f", meter->what, done);
	if (meter->total > done && rate > 0)
	{
		fprintf(stderr, " of %.0f (%.0f%%)", meter->total, 100 * done / meter->total);
		fprintf(stderr, ", %.0f/s, %.0f s left", rate, (meter->total - done) / rate);
	}
	else
	{
		fprintf(stderr, ", %.0f/s", rate);
	}
	fprintf(stderr, "\033[K");
	meter->shown_ns = now_ns;
}

void
progress_meter_end(ProgressMeter *meter)
{
	if (meter->shown_ns != 0)
	{
		fprintf(stderr, "\r\033[K");
		meter->shown_ns = 0;
	}
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
