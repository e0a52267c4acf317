/*
 * The evidence of a suite as a page for people: report.html, one file that needs no network, made from what lies in the
 * suite's folder (results.json and, where there is one, trace.shiviz) and from nothing else, so that it can be made
 * again from evidence of any age.
 *
 * A page is written beside its place and renamed: there is a whole one or none.
 */
#ifndef COUNTERPROOF_REPORT_H
#define COUNTERPROOF_REPORT_H

#include "base.h"

#define REPORT_PAGE "report.html"

typedef enum
{
	REPORT_UNSET = 0,
	REPORT_WRITTEN,
	REPORT_UNREADABLE, /* the evidence is damaged, cut, of another format or not there; reported */
	REPORT_UNWRITABLE  /* reported */
} ReportEnd;

/* Write <folder>/report.html. Also of a run that was cut short: of what it left. */
extern ReportEnd report_write(const char *folder) MUST_CHECK;

/* Write a page of what differs between two runs. */
extern ReportEnd report_compare(const char *before, const char *after, const char *path) MUST_CHECK;

#endif
