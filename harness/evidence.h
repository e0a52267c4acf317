/*
 * The evidence of one run: one model in memory, of which output.txt is streamed, results.json the only serialisation,
 * and junit.xml and report.html made from results.json. Layout and grammar are in evidence/README.md.
 *
 * A run writes below <root>/.run-<id>/ and is closed by renames; two runs in one root never share a file. Lines of cases
 * that run beside each other appear in the order of the selection whatever the order of their ends.
 * Used by the runner's single thread.
 */
#ifndef COUNTERPROOF_EVIDENCE_H
#define COUNTERPROOF_EVIDENCE_H

#include "base.h"

#define EVIDENCE_RESULTS "results.json"

typedef struct Evidence Evidence;

/* In the folder of a case that ends: its execution, as trace.h makes it. All of a suite's become one file of this name. */
#define EVIDENCE_TRACE "trace.shiviz"

typedef enum
{
	RESULT_UNSET = 0,
	RESULT_PASS,
	RESULT_FAIL,
	RESULT_UNKNOWN,
	RESULT_BROKEN,
	RESULT_SKIP
} Result;

/* A case as the evidence names it; strings are borrowed for the life of the run. */
typedef struct
{
	const char *suite; /* "32": folder below the root */
	const char *id;    /* "32-K" */
	const char *title;
	const char *claim;
	const char *kind;
	int repetition;        /* from 1; printed as "32-K #2" from the second on */
	const char *guarantee; /* what is checked, and where it can be seen; NULL: not told */
	const char *observed;
	const char *method; /* as its author tells it; NULL: not told */
	const char *expect;
	const char *not_shown;
} EvidenceCase;

/* One fact about the environment, for env.txt and results.json, in order. */
typedef struct
{
	const char *name;
	const char *value;
} EvidenceSetting;

typedef struct
{
	const char *root; /* the evidence folder */
	uint64_t seed;
	const EvidenceCase *cases; /* in the order of output.txt */
	int case_count;
	const char *replay; /* the command that runs the same again */
	bool keep;          /* keep logs and histories of passing cases too */
} EvidenceRun;

typedef enum
{
	LINE_UNSET = 0,
	LINE_STEP,
	LINE_NOTE,
	LINE_PASS,
	LINE_FAIL,
	LINE_AUDIT,
	LINE_FAULT
} LineKind;

/* What a case says, one line of output.txt. */
typedef struct
{
	LineKind kind;
	const char *text;     /* newlines become blanks; of a fault: with its count and effect */
	const char *expected; /* checks only */
	const char *actual;   /* checks only */
	int fired;            /* faults only */
} EvidenceLine;

/* Append as one line that is valid UTF-8 and valid in XML: newlines and tabs as blanks, the unprintable as #x07. */
extern void visible_append(Text *text, const char *string);

/* Its first word in output.txt, and what is appended to stand behind it. */
extern const char *evidence_line_word(const EvidenceLine *line);
extern void evidence_line_text(const EvidenceLine *line, Text *text);

typedef struct
{
	int passed, failed, unknown, broken, skipped, scenarios;
	int64_t retries_40001, retries_40p01;
} EvidenceTotals;

/* Make the folder, output.txt and env.txt (seed and replay), and point <root>/output.txt at it. NULL: reported (exit 3). */
extern Evidence *evidence_open(const EvidenceRun *run) MUST_CHECK;

/*
 * A folder for files of this case (history, offset files), made on the first call; valid until evidence_close(), for a
 * case that passes until its end. NULL: reported.
 */
extern const char *evidence_case_folder(Evidence *evidence, int index);

/* Add what is known once the server runs; before the first case begins. A name given twice keeps its last value. */
extern bool evidence_add_settings(Evidence *evidence, const EvidenceSetting *settings, int count) MUST_CHECK;

extern void evidence_case_begin(Evidence *evidence, int index);
extern void evidence_case_line(Evidence *evidence, int index, const EvidenceLine *line);
extern void evidence_case_retries(Evidence *evidence, int index, int64_t retries_40001, int64_t retries_40p01);

/* One line of a plot, a value for each sample: in results.json only, since such numbers differ from run to run. */
typedef struct
{
	const char *plot; /* lines of one name share axes */
	const char *name;
	const int64_t *values;
	size_t count;
} EvidenceSeries;

extern void evidence_case_series(Evidence *evidence, int index, const EvidenceSeries *series);

/* `reason` (may be NULL) says why for UNKNOWN, BROKEN and SKIP. */
extern void evidence_case_end(Evidence *evidence, int index, Result result, const char *reason, int64_t duration_ms);

/* Something could not be written, and that was reported: what follows would be lost too. */
extern bool evidence_failed(const Evidence *evidence);

extern EvidenceTotals evidence_totals(const Evidence *evidence);

/* What the run comes to, where sums over its checks would not tell: stands behind SUMMARY instead of them. Copied. */
extern void evidence_conclude(Evidence *evidence, const char *conclusion);

/* Append the SUMMARY line as output.txt has it, without a newline. */
extern void evidence_summary(const Evidence *evidence, Text *text);

/* While open: of this run; after closing: where it lies. */
extern const char *evidence_output_path(const Evidence *evidence);

/*
 * Write the replay line (when something did not pass) and the SUMMARY, results.json, junit.xml and report.html, and move each
 * suite's folder into place. With interrupted, no SUMMARY and no results: what had been running stays visible.
 * `server_log` (may be NULL) is copied beside them when something did not pass or with keep. false: reported.
 * Where only a page cannot be made, since what it is made of is not as it should be, all else is in place.
 */
extern bool evidence_close(Evidence *evidence, const char *server_log, bool interrupted) MUST_CHECK;
extern void evidence_free(Evidence *evidence); /* NULL allowed */

extern const char *result_name(Result result);


/* --- reading a results.json back --- */

typedef struct
{
	const char *text, *expected, *actual;
	bool held;
} RecordedCheck;

/* A case as it was recorded; all of it is valid during the visit only. */
typedef struct
{
	const char *id;
	Result result;
	const char *reason; /* "" when there was none */
	int passed, failed;
	const RecordedCheck *checks; /* in order */
	size_t check_count;
} RecordedCase;

typedef void (*RecordedVisit)(void *context, const RecordedCase *recorded);

/* Visit each case of <folder>/results.json in order. false: it is not there, or not one of ours; reported. */
extern bool evidence_read(const char *folder, RecordedVisit visit, void *context) MUST_CHECK;

/*
 * The same as the document has it, for what is made from it: first the head, which is all but the cases, then each case.
 * A run that was killed or interrupted has no results.json; if `cut_short` then, what it left is read instead: the cases that
 * ended, under a head that has no totals and, as "cut_short", the lines of the case that was running.
 * Values are those of jansson, valid during the visit, whose false (reported) ends the reading.
 */
struct json_t;
typedef struct
{
	bool (*head)(void *context, const struct json_t *head); /* NULL: not wanted */
	bool (*entry)(void *context, const struct json_t *head, const struct json_t *entry);
} ResultsVisit;

extern bool evidence_scan(const char *folder, bool cut_short, const ResultsVisit *visit, void *context) MUST_CHECK;


/* --- parts of a campaign --- */

/*
 * Write the evidence of runs of one suite into <root>/<suite> as that of one run: every case of every part, in the order of
 * their ids; one that is in several parts is there as so many repetitions. Its environment has what the parts have,
 * and where they differ all of that; numbers of a conclusion are added. *totals are those of the whole, its SUMMARY line is appended.
 * false: a part cannot be read, did not end, is named twice or is of another suite; or nothing can be written. Reported.
 */
extern bool evidence_merge(const char *root, const char *const *folders, int count, EvidenceTotals *totals,
						   Text *summary) MUST_CHECK;

#endif
