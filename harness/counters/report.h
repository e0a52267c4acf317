/* What is printed of a finding: lines for people, or a part of one JSON document. */
#ifndef COUNTERPROOF_COUNTERS_REPORT_H
#define COUNTERPROOF_COUNTERS_REPORT_H

#include <stdio.h>

#include <jansson.h>

#include "finding.h"

/* `Scanned: 5  Correct: 3  Drifted: 2  Missing: 0`, with `tail` the rest of it. */
extern void report_append_totals(Text *text, const CounterTotals *totals, bool tail);

/* One row of the report, as a line. */
extern void report_print_row(FILE *stream, const Counter *counter, const CounterDrift *drift);

/* That there are more rows than were printed. */
extern void report_print_more(FILE *stream, int64_t more);

/* The line of the counter, then its rows, at most `limit` of them (0: all). false: reported. */
extern bool report_print(FILE *stream, const Finding *finding, int limit) MUST_CHECK;

/* The same as an object; NULL: reported. */
extern json_t *report_json(const Finding *finding, int limit) MUST_CHECK;

#endif
