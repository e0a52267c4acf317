/*
 * An append-only record of what clients asked and were told, and of the faults among it.
 *
 * One write(2) a record to a file opened with O_APPEND: safe from threads and processes, no lock, no shared buffer.
 * An operation is two records, its invocation and its end, so that one whose client died stays open.
 * Text, one record a line, tab-separated, so that grep reads it (outcome is ok, failed or unknown; yes and no are 1 and
 * 0; no sqlstate is -; in text a tab, newline, return and backslash are \t \n \r \\):
 *   B id worker ns key1 key2 want            an operation begins
 *   E id ns outcome changed state version number xid sqlstate    it ends
 *   D worker ns list                         events delivered, e.g. 3,4,9
 *   F ns text                                a fault fired
 */
#ifndef COUNTERPROOF_HISTORY_H
#define COUNTERPROOF_HISTORY_H

#include "base.h"

typedef struct History History;

typedef enum
{
	OP_OPEN = 0, /* no end on record: treated as unknown */
	OP_OK,       /* certainly done, and answered */
	OP_FAILED,   /* certainly not done */
	OP_UNKNOWN   /* may be either */
} OpOutcome;

/* One operation on a versioned two-state register: `want` asks for a state; the answer says what it became. */
typedef struct
{
	int64_t id; /* given by history_begin(): unique over the threads and processes of one history */
	int worker;
	int64_t begin_ns;
	int64_t end_ns; /* INT64_MAX while open */
	int64_t key[2]; /* which register, e.g. user and item */
	bool want;
	OpOutcome outcome;
	bool changed; /* the rest is an answer: meaningful for OP_OK, and for OP_UNKNOWN when version > 0 or xid != 0 */
	bool state;
	int64_t version; /* state changes of this register so far */
	int64_t number;  /* place in the global order, 0 unless changed */
	uint64_t xid;    /* transaction number, 0 when not known */
	char sqlstate[6];
} HistoryOp;

extern History *history_open(const char *path) MUST_CHECK; /* created or appended to; NULL: reported */
extern void history_close(History *history);               /* NULL allowed */

/* Record an invocation; fills op->id and op->begin_ns. op's worker, key and want are read. false: reported. */
extern bool history_begin(History *history, HistoryOp *op) MUST_CHECK;
extern bool history_end(History *history, HistoryOp *op) MUST_CHECK; /* fills op->end_ns */
extern bool history_delivery(History *history, int worker, const int64_t *numbers, size_t count) MUST_CHECK;
extern bool history_fault(History *history, const char *what) MUST_CHECK;

/*
 * Operations in order of invocation. *ops is allocated, caller frees. A line that cannot be read, a torn last one (a full
 * disk) and an end without its beginning are errors, reported with the line's number.
 */
extern bool history_read(const char *path, HistoryOp **ops, size_t *count) MUST_CHECK;

#endif
