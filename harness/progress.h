/* What the terminal shows while a run goes on; the evidence has the rest. Colours on a terminal only. */
#ifndef COUNTERPROOF_PROGRESS_H
#define COUNTERPROOF_PROGRESS_H

#include "runner.h"

/* One line per case when it has ended, with its duration. */
extern void progress_case(const RunnerConfig *config, const EvidenceCase *name, Result result, int passed, int failed,
						  int64_t duration_ms, const char *reason);

/* One line of a case, as output.txt has it. */
extern void progress_show(const EvidenceCase *name, const EvidenceLine *line);

/* A failed check at once; with -v, every line. */
extern void progress_line(const RunnerConfig *config, const EvidenceCase *name, const EvidenceLine *line);

/* A database that stays after the run, and the command that ends its server. */
extern void progress_kept(const char *conninfo);
extern void progress_ending(const char *command);

/*
 * One line on a terminal (stderr) that is written over while something goes on, with rate and time left; nothing elsewhere.
 * Begin with progress_meter_begin(); an unknown total is 0.
 */
typedef struct
{
	const char *what; /* borrowed */
	double total;
	int64_t began_ns, shown_ns; /* shown_ns 0: there is no line */
	bool terminal;
} ProgressMeter;

extern void progress_meter_begin(ProgressMeter *meter, const char *what, double total);
extern void progress_meter_at(ProgressMeter *meter, double done); /* at most a few times a second is enough */
extern void progress_meter_end(ProgressMeter *meter);             /* the line is gone */

/* The SUMMARY line and where the evidence is. */
extern void progress_end(const RunnerConfig *config, const Evidence *evidence, bool complete);

#endif
