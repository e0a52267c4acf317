/*
 * Inside the evidence module: the model of a run and the parts that write it.
 *
 * A case is kept in memory only from its begin until its lines and its entry of results.json are written, so that a
 * run of any length takes the memory of the cases that run beside each other.
 * The first failure to write is reported and makes the run's evidence worthless; later ones are silent.
 */
#ifndef COUNTERPROOF_EVIDENCE_MODEL_H
#define COUNTERPROOF_EVIDENCE_MODEL_H

#include <jansson.h>

#include "evidence.h"

#define EVIDENCE_OUTPUT "output.txt"
#define EVIDENCE_ENVIRONMENT "env.txt"

#define EVIDENCE_ENTRIES EVIDENCE_RESULTS ".part" /* the cases, while the run lasts */

#define RESULTS_FORMAT 1

/* The lines of results.json between which each line is a case. */
#define RESULTS_CASES_BEGIN "\"cases\": [\n"
#define RESULTS_CASES_END "]}\n"

typedef struct
{
	char *path;
	int fd; /* -1: closed */
} OutputFile;

/* What is known of a case that has begun and is not yet written. */
typedef struct
{
	Text pending; /* lines of output.txt, not yet written */
	json_t *checks;
	json_t *faults;
	json_t *lines;
	json_t *series;
	int passed, failed;
	int64_t retries_40001, retries_40p01;
	char *entry; /* its line in results.json once it ended */
	Text trace;  /* its execution */
} LiveCase;

typedef struct
{
	LiveCase *live; /* NULL before its begin and after it is written */
	char *folder;   /* NULL unless asked for */
	int suite;
	bool written;
} CaseRecord;

typedef struct
{
	const char *name;
	char *folder;
	OutputFile output;
	OutputFile entries; /* the cases of results.json, in order, while the run lasts */
	int entries_written;
	OutputFile trace; /* opened by the first case that has one */
	EvidenceTotals totals;
	int scenarios_failed;
	int64_t duration_ms;
} Suite;

struct Evidence
{
	EvidenceRun run;
	char *folder; /* <root>/.run-<id> */
	int lock;     /* held as long as the run lives: says that the folder is not a dead run's */
	OutputFile output;
	char *final_path; /* where output.txt lies after closing */
	Suite *suites;
	int suite_count;
	CaseRecord *cases;
	int front;           /* the first case that is not written yet */
	json_t *environment; /* name: value, in order */
	char *conclusion;    /* NULL: the sums over all checks */
	bool failed;
	bool pageless; /* what a page is made of is not as it should be; reported */
	bool in_place;
};

/* Report the first failure of this run's evidence, keep silent about later ones. Answers false, for the caller to return. */
extern bool evidence_fail(Evidence *evidence, const char *format, ...) PRINTF_LIKE(2, 3);

extern bool suite_passed(const Suite *suite); /* nothing in it failed, broke or stayed unknown */
extern void live_case_free(LiveCase *live);   /* NULL allowed */


/* --- files and folders --- */

extern bool output_open(Evidence *evidence, OutputFile *file, const char *folder, const char *name) MUST_CHECK;
extern bool output_write(Evidence *evidence, OutputFile *file, const char *bytes, size_t length) MUST_CHECK;
extern bool output_copy(Evidence *evidence, OutputFile *file, const char *source) MUST_CHECK; /* append all of source */
extern void output_close(OutputFile *file);

/* Make the root and the run's folder, locked, and remove the folders of dead runs. */
extern bool folder_open(Evidence *evidence) MUST_CHECK;
extern bool folder_make(Evidence *evidence, const char *path) MUST_CHECK;
extern void folder_remove(const char *path);

/* Let <root>/output.txt point into the run's folder. */
extern bool folder_point(Evidence *evidence) MUST_CHECK;

/* "32-K", from the second repetition on "32-K#2"; without slashes. The caller frees. */
extern char *case_folder_name(const char *id, int repetition);

/* Put the suite's folder in the place of <root>/<suite>. What lay there ends up in the run's folder. */
extern bool folder_install(Evidence *evidence, const Suite *suite) MUST_CHECK;


/* --- output.txt --- */

extern void stream_line(LiveCase *live, const char *word, const char *text);

/* The line that begins its execution in a trace. */
extern void trace_label(const char *id, int repetition, Text *text);

/* Write what may be written: all of the case at the front, and of those behind it that follow without a gap. */
extern void stream_flush(Evidence *evidence);

/* Write all that is left, past cases that never began. */
extern void stream_drain(Evidence *evidence);
extern bool stream_end(Evidence *evidence) MUST_CHECK;


/* --- the other files --- */

extern char *results_entry(const EvidenceCase *about, LiveCase *live, Result result, const char *reason,
						   int64_t duration_ms);
extern bool results_write(Evidence *evidence, Suite *suite) MUST_CHECK;

/* Of what a results.json has on record: a text, "" when it is not there; a result by its name. */
extern const char *results_text(const json_t *object, const char *name);
extern Result results_result(const char *name);

/* Made from the suite's results.json alone, as report.html is. */
extern bool junit_write(Evidence *evidence, const Suite *suite) MUST_CHECK;

#endif
