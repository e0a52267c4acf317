/* What the twins of twins.c do otherwise in C, each beside the guard that it lacks. */
#ifndef COUNTERPROOF_WRONG_STEPS_H
#define COUNTERPROOF_WRONG_STEPS_H

#include "twins.h"


/* --- write --- */

extern const ClientSteps event_apart_steps;    /* M02 */
extern const ClientSteps decided_early_steps;  /* M06 */
extern const ClientSteps warning_unread_steps; /* F02 */


/* --- rebuild --- */

extern const ClientSteps snapshot_in_read_committed_steps; /* M19a, M19b */
extern const ClientSteps install_once_steps;               /* M22 */


/* --- client: after 40001 or 40P01, after an unknown COMMIT --- */

extern const ClientSteps old_decision_steps;         /* M25a */
extern const ClientSteps commit_again_steps;         /* M25b */
extern const ClientSteps tag_unread_steps;           /* M25c */
extern const ClientSteps place_kept_steps;           /* M25d */
extern const ClientSteps fresh_identity_steps;       /* M26 */
extern const ClientSteps horizon_after_writes_steps; /* M37 */


/* --- consumer: its program too --- */

extern const ClientSteps registered_first_steps; /* M08 */
extern const ClientSteps added_first_steps;      /* M09 */
extern const ClientSteps file_first_steps;       /* M10a */
extern const ClientSteps file_last_steps;        /* M10b */
extern const ClientSteps offset_first_steps;     /* M11 */
extern const ClientSteps on_after_23505_steps;   /* M15 */


/* --- transport: programs --- */

extern const ClientSteps acknowledged_first_steps;  /* T01 */
extern const ClientSteps position_remembered_steps; /* T02 */
extern const ClientSteps never_claims_steps;        /* T03 */
extern const ClientSteps trims_published_steps;     /* T04 */

#endif
