/* Between two chunks: wait while somebody asks for a pause, the server is busy, or a replica is behind. */
#ifndef COUNTERPROOF_COUNTERS_THROTTLE_H
#define COUNTERPROOF_COUNTERS_THROTTLE_H

#include "../counters.h"
#include "../session.h"

/* Whether the limits can be seen at all from this session: a lag that is not visible is not a lag of 0. false: reported. */
extern bool throttle_possible(Session *session, const CountersRepair *limits) MUST_CHECK;

/* Outside a transaction. Returns when all limits are kept, or on an interrupt. false: reported. */
extern bool throttle_wait(Session *session, const CountersRepair *limits) MUST_CHECK;

#endif
