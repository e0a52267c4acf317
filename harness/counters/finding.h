/* What there is to say about one counter after looking, and how it was looked at. */
#ifndef COUNTERPROOF_COUNTERS_FINDING_H
#define COUNTERPROOF_COUNTERS_FINDING_H

#include "../counters.h"
#include "scan.h"
#include "spool.h"

typedef enum
{
	READ_NOTHING = 0, /* there was an obstacle */
	READ_ONE_PASS,
	READ_CHUNKS,
	READ_SAMPLE,
	READ_ONE_KEY
} FindingRead;

typedef enum
{
	LAG_NONE = 0, /* no outbox */
	LAG_KNOWN,
	LAG_UNKNOWN, /* a number could not be read: never taken for 0 */
	LAG_AHEAD    /* the watermark is above the last event: one of them is wrong */
} FindingLag;

typedef struct
{
	Counter *counter;
	char *obstacle; /* why it could not be checked, NULL: it was */
	bool denied;
	FindingRead read;
	int64_t chunks, chunk_keys;
	CounterTotals totals;
	Spool *rows; /* what is neither correct nor lagging nor in flight */
	FindingLag lag;
	char *lag_why;           /* LAG_UNKNOWN */
	int64_t last, watermark; /* LAG_KNOWN with a watermark, LAG_AHEAD */
	int64_t behind;          /* events, LAG_KNOWN */
	bool looked_twice;       /* for what is in flight; the next are of that second look */
	int64_t arrived;         /* keys that are right by now: counted as correct */
	int64_t moving;          /* keys that differ, but by another amount than before: counted as not checkable */
	int64_t waited_ms;
	bool still_open; /* transactions of the first look did not end in time: all that differed is not checkable */
} Finding;

/* Look at one counter. NULL: the session is lost or there is no temporary file, reported (EXIT_CODE_BROKEN). */
extern Finding *finding_make(Session *session, const CounterSpec *spec, const CountersRequest *request) MUST_CHECK;
extern void finding_free(Finding *finding); /* NULL allowed */
extern ExitCode finding_code(const Finding *finding);

#endif
