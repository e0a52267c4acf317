/*
 * Requests that carry an identity of their own: sent again under it they take effect once. The rules and the lock order
 * stand at the head of sql/request/request.sql.
 */
#ifndef COUNTERPROOF_REQUEST_H
#define COUNTERPROOF_REQUEST_H

#include "base.h"
#include "session.h"

typedef enum
{
	REQUEST_UNSET = 0,
	REQUEST_DONE,     /* committed by this sending */
	REQUEST_REPEATED, /* an earlier sending under this identity had committed */
	REQUEST_FAILED,   /* certainly not committed: refused, or lost before the COMMIT was sent */
	REQUEST_UNKNOWN   /* lost while committing: it may be either */
} RequestOutcome;

/* One sending: BEGIN, the function, COMMIT. session_error() has why. A session that was lost before: REQUEST_FAILED. */
extern RequestOutcome request_submit(Session *session, const char *id, const char *wish);

/*
 * Under which identity a wish is sent; `attempt` counts from 1. The caller frees. The right one answers the same for every
 * attempt, also of another process.
 */
typedef char *(*RequestIdentity)(const char *wish, int attempt);
extern char *request_identity(const char *wish, int attempt);

/* Told before and after each sending. */
typedef struct
{
	bool (*before)(void *context, int attempt);
	bool (*after)(void *context, int attempt, RequestOutcome outcome, const char *sqlstate);
	void *context;
} RequestWitness;

/*
 * Send a wish until it is answered, over connections of its own, one after another: what is lost or unknown is sent again.
 * `witness` may be NULL. false: the server refused it, or there was no answer within the deadline; reported.
 */
extern bool request_insist(const char *conninfo, const char *wish, RequestIdentity identity,
						   const RequestWitness *witness, Deadline deadline) MUST_CHECK;

/*
 * A client that is a program of its own: --conninfo STRING WISH.., each wish until it is answered.
 */
extern ExitCode request_client_main(int argc, char **argv, RequestIdentity identity);

#endif
