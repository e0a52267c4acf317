/*
 * A consumer in single steps, to be stopped between any two of them: event-consumer CONNINFO [POINT | --flush-on-term].
 *
 * It registers event 1, adds it to the total, commits, acknowledges, and stops at the point that it is given. With
 * --flush-on-term it waits for SIGTERM after the update and commits when that comes and never otherwise: a program that
 * looks the safer the more politely it is stopped.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "point.h"
#include "session.h"

static void
reach(const char *name)
{
	point_reach(name, "pid=%d", (int) getpid());
}

static bool
wait_for_term(void)
{
	sigset_t term;
	int signal_number;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &term, NULL) != 0)
	{
		return false;
	}
	printf("HOLDING pid=%d\n", (int) getpid());
	return fflush(stdout) == 0 && sigwait(&term, &signal_number) == 0;
}

static bool
commit(Session *session)
{
	SqlStatus status = session_commit(session);

	if (status != SQL_OK)
	{
		report_error("not committed: %s", sql_status_name(status));
	}
	return status == SQL_OK;
}

/* Registered before by an earlier run: then nothing is added. */
static bool
deliver(Session *session, bool flush_on_term)
{
	SqlResult *rows;
	bool fresh;

	reach("consumer.before_insert");
	if (!session_query(session, &rows,
					   "INSERT INTO registered (seq, at) VALUES (1, now()) ON CONFLICT DO NOTHING RETURNING seq",
					   NO_ARGS))
	{
		return false;
	}
	fresh = sql_rows(rows) == 1;
	sql_free(rows);
	reach("consumer.after_insert");
	if (fresh && !session_execute(session, "UPDATE total SET n = n + 1 WHERE id = 1"))
	{
		return false;
	}
	reach("consumer.after_update");
	return !flush_on_term || wait_for_term();
}

static bool
consume(Session *session, bool flush_on_term)
{
	if (!session_begin(session, READ_COMMITTED) || !deliver(session, flush_on_term))
	{
		return false;
	}
	reach("consumer.before_commit");
	if (!commit(session))
	{
		return false;
	}
	reach("consumer.after_commit");
	if (!session_execute(session, "SELECT dedup_acknowledge('event-consumer', 1)"))
	{
		return false;
	}
	reach("consumer.after_ack");
	return true;
}

int
main(int argc, char **argv)
{
	bool flush_on_term = argc == 3 && strcmp(argv[2], "--flush-on-term") == 0;
	Session *session;
	bool ok;

	streams_hold();
	notice_set_prefix("event-consumer");
	if (argc < 2 || argc > 3)
	{
		report_error("usage: event-consumer CONNINFO [POINT | --flush-on-term]");
		return EXIT_CODE_USAGE;
	}
	if (argc == 3 && !flush_on_term)
	{
		point_arm_pause(argv[2], 1);
	}
	session = session_open(argv[1], "event-consumer");
	ok = session != NULL && consume(session, flush_on_term);
	session_close(session);
	return ok ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}
