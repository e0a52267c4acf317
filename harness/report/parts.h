/* Inside the report module: what the parts that write a page share. */
#ifndef COUNTERPROOF_REPORT_PARTS_H
#define COUNTERPROOF_REPORT_PARTS_H

#include <jansson.h>
#include <stdio.h>

#include "report.h"

/* The page with its styles and scripts, made by the build of harness/report/page/; ends with a zero. */
extern const unsigned char report_page[];

/* What the data take the place of in it. */
#define PAGE_DATA "<!--data-->"

/* JSON inside a page: no text in it can end its element, since none has a "<". Failures show in ferror(). */
extern void page_json(FILE *page, const json_t *value);

/*
 * The executions of a trace as JSON: [{"label", "events": [[text, host, own, host, entry, ...]], "hosts"}], hosts by their place
 * in the list and an event's own first. Nothing when the file is not there. false: its clocks are wrong, or it is no trace; reported.
 */
extern bool executions_write(const char *path, FILE *page) MUST_CHECK;

#endif
