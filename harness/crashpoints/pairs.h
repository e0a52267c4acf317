/* Which point is tried with which fault: all, or the part that was asked for. Pure. */
#ifndef COUNTERPROOF_CRASHPOINTS_PAIRS_H
#define COUNTERPROOF_CRASHPOINTS_PAIRS_H

#include "plan.h"

typedef struct
{
	int point; /* from 0 */
	CrashFault fault;
} CrashPair;

/*
 * In the order of points, then of faults. A sample deals the faults out in turn over points that lie evenly apart, so
 * that four pairs have all four faults; a shard takes every so manieth. The caller frees; *count may be 0.
 */
extern CrashPair *crash_pairs_select(const CrashSelection *selection, const CrashPlan *plan, int point_count,
									 int *count);

#endif
