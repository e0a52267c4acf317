#include "client_steps.h"

#include <inttypes.h>
#include <unistd.h>

typedef struct
{
	const TransactionBody *parts;
	void *context;
	bool decided; /* the wrong ones keep these over attempts: the first part is done, */
	int done;     /* or so many of them */
} Parts;

static SqlStatus
run_parts(Session *session, const TransactionBody *parts, void *context)
{
	SqlStatus status = SQL_OK;

	for (; status == SQL_OK && *parts != NULL; parts++)
	{
		status = (*parts)(session, context);
	}
	return status;
}

static SqlStatus
run_whole(Session *session, void *context)
{
	const Parts *this = context;

	return run_parts(session, this->parts, this->context);
}

SqlStatus
transaction_whole(Session *session, Isolation isolation, const TransactionBody *parts, void *context)
{
	Parts this = {.parts = parts, .context = context};

	return session_transaction(session, isolation, run_whole, &this);
}


/* --- M25a: what was read and decided before the conflict is written again --- */

static SqlStatus
run_once_decided(Session *session, void *context)
{
	Parts *this = context;
	const TransactionBody *parts = this->decided ? this->parts + 1 : this->parts;

	this->decided = true;
	return run_parts(session, parts, this->context);
}

static SqlStatus
transaction_old_decision(Session *session, Isolation isolation, const TransactionBody *parts, void *context)
{
	Parts this = {.parts = parts, .context = context};

	return session_transaction(session, isolation, run_once_decided, &this);
}

const ClientSteps old_decision_steps = {.transaction = transaction_old_decision};


/* --- M25b: the COMMIT that failed is sent again, and what it answers is believed --- */

static SqlStatus
transaction_commit_again(Session *session, Isolation isolation, const TransactionBody *parts, void *context)
{
	SqlStatus status;

	if (!session_begin(session, isolation))
	{
		return SQL_LOST;
	}
	status = run_parts(session, parts, context);
	if (status == SQL_OK)
	{
		status = session_commit(session);
	}
	for (int attempt = 1; status == SQL_ERROR && session_retry_due(session, attempt); attempt++)
	{
		/* By now there is no transaction: COMMIT, with a warning that nobody reads. */
		status = session_try(session, NULL, "COMMIT", NO_ARGS);
	}
	return status;
}

const ClientSteps commit_again_steps = {.transaction = transaction_commit_again};


/* --- M25c: the COMMIT of a failed transaction answers ROLLBACK, and that there was an answer is enough --- */

static SqlStatus
transaction_tag_unread(Session *session, Isolation isolation, const TransactionBody *parts, void *context)
{
	for (int attempt = 1;; attempt++)
	{
		SqlStatus status;

		if (!session_begin(session, isolation))
		{
			return SQL_LOST;
		}
		(void) run_parts(session, parts, context);
		status = session_try(session, NULL, "COMMIT", NO_ARGS);
		if (status != SQL_ERROR || !session_retry_due(session, attempt))
		{
			return status;
		}
	}
}

const ClientSteps tag_unread_steps = {.transaction = transaction_tag_unread};


/* --- M25d: the place in the batch outlives the attempt, and the next one goes on from there --- */

static SqlStatus
run_from_place(Session *session, void *context)
{
	Parts *this = context;
	SqlStatus status = SQL_OK;

	while (status == SQL_OK && this->parts[this->done] != NULL)
	{
		status = this->parts[this->done](session, this->context);
		this->done += status == SQL_OK;
	}
	return status;
}

static SqlStatus
transaction_place_kept(Session *session, Isolation isolation, const TransactionBody *parts, void *context)
{
	Parts this = {.parts = parts, .context = context};

	return session_transaction(session, isolation, run_from_place, &this);
}

const ClientSteps place_kept_steps = {.transaction = transaction_place_kept};


/* --- M26: a request that is sent again gets an identity of its own --- */

static char *
identity_fresh(const char *wish, int attempt)
{
	return string_format("%s/%d.%" PRId64 ".%d", wish, (int) getpid(), time_now_ns(), attempt);
}

const ClientSteps fresh_identity_steps = {.request_identity = identity_fresh};
