/*
 * The points of a program: derived from what the proxy recorded of fault-free runs, in an order that does not depend on
 * how the two directions were interleaved. Nothing here is connected to anything.
 */
#ifndef COUNTERPROOF_CRASHPOINTS_POINTS_H
#define COUNTERPROOF_CRASHPOINTS_POINTS_H

#include "../proxy.h"

/* One message at which something can break. */
typedef struct
{
	ProxyMessage message; /* first == last: its number in that direction of that connection */
	int64_t ordinal;      /* among those of its type and tag there, from 1 */
	bool tag_varies;      /* from run to run: only the type names it */
} CrashPoint;

typedef struct
{
	CrashPoint *points;
	int count;
	int connections;
	bool
		unstable; /* the counts differed from run to run: a point is known by type, tag and ordinal, not by its number */
} CrashPoints;

/*
 * Append the points of one run's record. Of a start: the startup packet, the first Authentication, the first
 * ReadyForQuery, and errors. Of a run of like messages: the first, one inside, the last.
 */
extern void crash_points_derive(const ProxyMessage *record, size_t count, CrashPoints *points);

/* Another run of the same program: where it differs decides how points are found again. */
extern void crash_points_compare(CrashPoints *points, const CrashPoints *other);

/*
 * Of each turn, what one side sends before the other answers, keep the first and the last point. Call it last: what is compared
 * is all of a run.
 */
extern void crash_points_keep_ends(CrashPoints *points);

/* Is this message, which was held for it, the point? */
extern bool crash_point_is(const CrashPoint *point, const ProxyMessage *message);

/* "client Query COMMIT", with the connection when there are several, with its ordinal when points are known by that. */
extern void crash_point_describe(const CrashPoints *points, const CrashPoint *point, Text *text);

extern void crash_points_free(CrashPoints *points);

#endif
