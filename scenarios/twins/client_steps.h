/*
 * How clients run a transaction that has several parts: whole, as it must be, and four ways that are wrong after 40001 or
 * 40P01. And one way to send a request again that makes it another request.
 */
#ifndef COUNTERPROOF_CLIENT_STEPS_H
#define COUNTERPROOF_CLIENT_STEPS_H

#include "twins.h"

/* The right one: session_transaction() over all parts. Parts end with NULL. */
extern SqlStatus transaction_whole(Session *session, Isolation isolation, const TransactionBody *parts, void *context);

extern const ClientSteps old_decision_steps;   /* M25a */
extern const ClientSteps commit_again_steps;   /* M25b */
extern const ClientSteps tag_unread_steps;     /* M25c */
extern const ClientSteps place_kept_steps;     /* M25d */
extern const ClientSteps fresh_identity_steps; /* M26 */

#endif
