/*
 * What the bench says, on stdout and as evidence of suite `bench`: each part is a case, each row that has a bar a check, and
 * curves are its series. A row that misses its bar is marked, and the bench then ends with 1.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "evidence.h"

#define SUITE "bench"

static struct
{
	Evidence *evidence;
	EvidenceCase *cases;
	char *root, *replay;
	int running; /* the case */
	int64_t began_ns;
	int missed; /* rows of the case */
} record;

bool
record_open(const char *root, const BenchTitle *titles, int count, const char *replay)
{
	record.cases = memory_get(sizeof(EvidenceCase) * (size_t) count);
	for (int i = 0; i < count; i++)
	{
		record.cases[i] = (EvidenceCase){.suite = SUITE,
										 .id = string_format(SUITE "/%s", titles[i].name),
										 .title = titles[i].what,
										 .claim = "measured beside its yardstick, in one run",
										 .kind = "measurement",
										 .repetition = 1};
	}
	record.root = string_copy(root);
	record.replay = string_copy(replay);
	record.evidence = evidence_open(
		&(EvidenceRun){.root = record.root, .cases = record.cases, .case_count = count, .replay = record.replay});
	return record.evidence != NULL;
}

void
record_begin(int part)
{
	record.running = part;
	record.missed = 0;
	record.began_ns = time_now_ns();
	evidence_case_begin(record.evidence, part);
}

void
record_end(bool done)
{
	Result result = !done ? RESULT_BROKEN : record.missed > 0 ? RESULT_FAIL : RESULT_PASS;

	evidence_case_end(record.evidence, record.running, result, done ? NULL : "it could not be measured",
					  (time_now_ns() - record.began_ns) / 1000000);
}

bool
record_close(bool *missed)
{
	EvidenceTotals totals = evidence_totals(record.evidence);
	bool done = evidence_close(record.evidence, NULL, false);

	*missed = totals.failed > 0;
	if (done)
	{
		printf("evidence  %s\n", evidence_output_path(record.evidence));
	}
	evidence_free(record.evidence);
	for (int i = 0; i < totals.scenarios; i++)
	{
		free((char *) record.cases[i].id);
	}
	free(record.cases);
	free(record.root);
	free(record.replay);
	return done;
}

static void
say(LineKind kind, const char *text)
{
	evidence_case_line(record.evidence, record.running, &(EvidenceLine){.kind = kind, .text = text});
}

void
bench_say(const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	printf("%s\n", text_get(&text));
	fflush(stdout);
	say(LINE_NOTE, text_get(&text));
	text_free(&text);
}

/* Of a bar that is none, anything holds. */
static bool
bar_holds(const char *bar, double ratio)
{
	const char *least = strstr(bar, "at least ");
	const char *most = strstr(bar, "at most ");

	return (least == NULL || ratio >= strtod(least + strlen("at least "), NULL)) &&
		   (most == NULL || ratio <= strtod(most + strlen("at most "), NULL));
}

void
bench_print_row(const char *what, double value, double yardstick, const char *unit, double ratio, const char *bar)
{
	bool held = bar_holds(bar, ratio);
	char *row = string_format("%-38s %12.3f %12.3f %-10s %8.2f   %s%s", what, value, yardstick, unit, ratio, bar,
							  held ? "" : "   <- missed");
	char *got = string_format("%.2f", ratio);

	printf("%s\n", row);
	fflush(stdout);
	say(LINE_NOTE, row);
	if (bar[0] != '\0')
	{
		evidence_case_line(
			record.evidence, record.running,
			&(EvidenceLine){.kind = held ? LINE_PASS : LINE_FAIL, .text = what, .expected = bar, .actual = got});
	}
	record.missed += !held;
	free(row);
	free(got);
}

void
bench_series(const char *plot, const char *name, const double *values, size_t count)
{
	int64_t *whole = memory_get(sizeof(int64_t) * (count + 1));

	for (size_t i = 0; i < count; i++)
	{
		whole[i] = (int64_t) (values[i] + 0.5);
	}
	evidence_case_series(record.evidence, record.running,
						 &(EvidenceSeries){.plot = plot, .name = name, .values = whole, .count = count});
	free(whole);
}

void
bench_print_growth(const char *what, const double *x, const double *y, size_t count)
{
	size_t from = count > 3 ? count / 2 - 1 : 0;
	double n = (double) (count - from), sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, exponent;

	for (size_t i = from; i < count; i++)
	{
		sum_x += log(x[i]);
		sum_y += log(y[i]);
		sum_xx += log(x[i]) * log(x[i]);
		sum_xy += log(x[i]) * log(y[i]);
	}
	exponent = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
	bench_print_row(what, exponent, 1, "exponent", exponent, "at most 1.1");
}
