#include "request.h"

#include <stdlib.h>

RequestOutcome
request_submit(Session *session, const char *id, const char *wish)
{
	SqlResult *rows = NULL;
	SqlStatus status = SQL_LOST;
	bool fresh = false;

	if (session_is_lost(session) || !session_begin(session, READ_COMMITTED))
	{
		return REQUEST_FAILED;
	}
	status =
		session_try(session, &rows, "SELECT fresh FROM request_submit($1, $2)", ARGS(arg_text(id), arg_text(wish)));
	if (status == SQL_OK)
	{
		fresh = sql_bool(rows, 0, 0);
		sql_free(rows);
		status = session_commit(session);
	}
	session_rollback(session);
	if (status == SQL_UNKNOWN)
	{
		return REQUEST_UNKNOWN;
	}
	return status != SQL_OK ? REQUEST_FAILED : fresh ? REQUEST_DONE : REQUEST_REPEATED;
}

char *
request_identity(const char *wish, int attempt)
{
	(void) attempt;
	return string_copy(wish);
}


/* --- insisting --- */

typedef struct
{
	const char *wish;
	RequestIdentity identity;
	const RequestWitness *witness;
	int attempts;
} Insistence;

/* false: a witness could not do its work. */
static bool
send_once(Insistence *this, Session *session, RequestOutcome *outcome)
{
	const RequestWitness *witness = this->witness;
	char *id = this->identity(this->wish, ++this->attempts);

	*outcome = REQUEST_UNSET;
	if (witness == NULL || witness->before(witness->context, this->attempts))
	{
		*outcome = request_submit(session, id, this->wish);
		if (witness != NULL &&
			!witness->after(witness->context, this->attempts, *outcome, session_error(session)->sqlstate))
		{
			*outcome = REQUEST_UNSET;
		}
	}
	free(id);
	return *outcome != REQUEST_UNSET;
}

bool
request_insist(const char *conninfo, const char *wish, RequestIdentity identity, const RequestWitness *witness,
			   Deadline deadline)
{
	Insistence this = {.wish = wish, .identity = identity, .witness = witness};

	while (!deadline_passed(deadline))
	{
		Session *session = session_open_patiently(conninfo, "request-client", deadline);
		RequestOutcome outcome;
		bool lost;

		if (session == NULL || !send_once(&this, session, &outcome))
		{
			session_close(session);
			return false;
		}
		lost = session_is_lost(session);
		if (!lost && outcome == REQUEST_FAILED)
		{
			report_error("%s was refused: %s %s", wish, session_error(session)->sqlstate,
						 session_error(session)->message);
		}
		session_close(session);
		if (outcome == REQUEST_DONE || outcome == REQUEST_REPEATED || !lost)
		{
			return outcome != REQUEST_FAILED;
		}
	}
	report_error("%s: no answer to %d sendings", wish, this.attempts);
	return false;
}
