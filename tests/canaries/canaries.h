/* Cases that must not pass; see canaries.c. */
#ifndef COUNTERPROOF_CANARIES_H
#define COUNTERPROOF_CANARIES_H

#include "cluster.h"
#include "scenario.h"

extern const Scenario *const *canary_scenarios(void); /* NULL-ended */

/* Of the program that runs them; for the canary that starts a server behind the lab's back. */
extern const ServerKit *canary_server_kit(void);

#endif
