/* A session of this tool: settings of its own, SQL shown with -v, errors told as what they mean. */
#ifndef COUNTERPROOF_COUNTERS_CONNECT_H
#define COUNTERPROOF_COUNTERS_CONNECT_H

#include "../counters.h"
#include "../session.h"
#include "config.h"

/*
 * Connect; sets work_mem to 64MB, row_security off (a policy that hides rows is an error and not a wrong count), no statement_timeout, and
 * bounded idle time in a transaction. NULL: reported (EXIT_CODE_BROKEN).
 */
extern Session *counters_connect(const CountersRequest *request) MUST_CHECK;

/* BEGIN, Repeatable Read, nothing can be written whatever the file's SQL calls; session_rollback() ends it. Not reported. */
extern SqlStatus counters_begin_reading(Session *session) MUST_CHECK;

/* Read the file; NULL: reported (EXIT_CODE_USAGE), also when a name is in it nowhere. */
extern CounterConfig *counters_read(const CountersRequest *request) MUST_CHECK;

/*
 * Read the file, connect, and hand both over; what `look` answers is the answer. EXIT_CODE_USAGE: the file is refused,
 * EXIT_CODE_BROKEN: no session; reported.
 */
typedef ExitCode (*CountersLook)(Session *session, const CounterConfig *config, const CountersRequest *request);

extern ExitCode counters_look(const CountersRequest *request, CountersLook look);

/* Whether the command line names this counter, or none. */
extern bool counters_selected(const CountersRequest *request, const CounterSpec *spec);

/* The worse of two in the order 1, 3, 4, 0. */
extern ExitCode counters_worse(ExitCode a, ExitCode b);

#endif
