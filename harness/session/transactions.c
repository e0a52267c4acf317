/*
 * Transactions: what a COMMIT's answer means, and the retry of a whole transaction.
 */
#include "session_private.h"

#include <stdatomic.h>
#include <string.h>

#define RETRY_FIRST_US 500
#define RETRY_LAST_US 50000
#define NEVER ((Deadline){INT64_MAX})

static atomic_int_fast64_t retries_40001;
static atomic_int_fast64_t retries_40p01;

int64_t
session_retries_40001(void)
{
	return atomic_load(&retries_40001);
}

int64_t
session_retries_40p01(void)
{
	return atomic_load(&retries_40p01);
}

static SqlStatus
begin_quietly(Session *session, Isolation isolation)
{
	static const char *const begin[] = {
		[READ_COMMITTED] = "BEGIN ISOLATION LEVEL READ COMMITTED",
		[REPEATABLE_READ] = "BEGIN ISOLATION LEVEL REPEATABLE READ",
		[SERIALIZABLE] = "BEGIN ISOLATION LEVEL SERIALIZABLE",
	};
	SqlStatus status;

	if (!session->lost && !session->awaiting && !session_block_is(session, PQTRANS_IDLE))
	{
		return session_refuse(session, SQLSTATE_BLOCK_OPEN, "BEGIN inside a transaction block");
	}
	status = session_run(session, NULL, begin[isolation]);
	/* lost before there was anything to commit */
	return status == SQL_UNKNOWN ? SQL_LOST : status;
}

bool
session_begin(Session *session, Isolation isolation)
{
	if (begin_quietly(session, isolation) != SQL_OK)
	{
		session_report(session, "BEGIN");
		return false;
	}
	return true;
}

void
session_rollback(Session *session)
{
	SqlError why = session->error;

	if (session->lost || session->awaiting || session_block_is(session, PQTRANS_IDLE))
	{
		return;
	}
	if (session_run(session, NULL, "ROLLBACK") == SQL_OK)
	{
		session->error = why; /* callers ask for it after they rolled back */
	}
}

SqlStatus
session_commit(Session *session)
{
	SqlResult *result;
	SqlStatus status;
	bool open, committed;

	if (!session_ready(session, &status))
	{
		return status;
	}
	if (!session->in_block)
	{
		return session_refuse(session, SQLSTATE_NO_BLOCK, "COMMIT without a transaction");
	}
	open = session_block_is(session, PQTRANS_INTRANS);
	status = session_run(session, &result, "COMMIT");
	if (status != SQL_OK)
	{
		/* with an error the transaction was rolled back, and a failed one could not have committed */
		return status == SQL_LOST && open && !session->failed ? SQL_UNKNOWN : status;
	}
	committed = strcmp(PQcmdStatus((PGresult *) result), "COMMIT") == 0;
	sql_free(result);
	return committed ? SQL_OK : session_refuse(session, SQLSTATE_BLOCK_FAILED, "COMMIT of a failed transaction");
}

/* Backs off; a pause that reaches the deadline is no pause for a further attempt. */
static bool
retry_due(Session *session, int attempt, int attempts, Deadline deadline)
{
	bool serialization = strcmp(session->error.sqlstate, "40001") == 0;
	int64_t most_us = RETRY_FIRST_US;
	int64_t pause_us;

	if (session->lost || attempt >= attempts || (!serialization && strcmp(session->error.sqlstate, "40P01") != 0))
	{
		return false;
	}
	for (int i = 1; i < attempt && most_us < RETRY_LAST_US; i++)
	{
		most_us *= 2;
	}
	pause_us = (int64_t) rng_below(&session->jitter, (uint64_t) most_us + 1);
	if (time_now_ns() >= deadline.at_ns - pause_us * 1000)
	{
		return false;
	}
	atomic_fetch_add(serialization ? &retries_40001 : &retries_40p01, 1);
	backoff_us(pause_us);
	return true;
}

bool
session_retry_due(Session *session, int attempt)
{
	return retry_due(session, attempt, RETRY_ATTEMPTS_MAX, NEVER);
}

SqlStatus
session_transaction_within(Session *session, Isolation isolation, TransactionBody body, void *context, int attempts,
						   Deadline deadline)
{
	for (int attempt = 1;; attempt++)
	{
		SqlStatus status = begin_quietly(session, isolation);

		if (status != SQL_OK)
		{
			return status;
		}
		status = body(session, context);
		if (status == SQL_OK)
		{
			status = session_commit(session);
		}
		else
		{
			session_rollback(session);
		}
		if (status != SQL_ERROR || !retry_due(session, attempt, attempts, deadline))
		{
			return status;
		}
	}
}

SqlStatus
session_transaction(Session *session, Isolation isolation, TransactionBody body, void *context)
{
	return session_transaction_within(session, isolation, body, context, RETRY_ATTEMPTS_MAX, NEVER);
}
