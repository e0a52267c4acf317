/* What check programs have in common to which with-server gives a server. */
#ifndef COUNTERPROOF_SERVED_SUITE_H
#define COUNTERPROOF_SERVED_SUITE_H

#include <stdio.h>

#include "session.h"
#include "suite.h"

static const char *server; /* conninfo of its maintenance database, a superuser's */

#define WITH_SQL "COUNTERPROOF_SQL"
#define WITH_PROGRAMS "COUNTERPROOF_PROGRAMS"

/* Finds the server; false: it, or one of the variables that are needed besides (ended by NULL), is not set; reported. */
static inline bool
suite_has_server(const char *const *variables)
{
	const char *missing = NULL;

	server = getenv("COUNTERPROOF_TEST_CONNINFO");
	missing = server == NULL || server[0] == '\0' ? "COUNTERPROOF_TEST_CONNINFO" : NULL;
	for (; missing == NULL && *variables != NULL; variables++)
	{
		missing = getenv(*variables) == NULL ? *variables : NULL;
	}
	if (missing != NULL)
	{
		fprintf(stderr, "%s is not set: this test needs a server of its own (with-server)\n", missing);
	}
	return missing == NULL;
}

static inline Session *
must_open(const char *conninfo, const char *name)
{
	Session *session = session_open(conninfo, name);

	ck_assert_ptr_nonnull(session);
	ck_assert(session_execute(session, "SET client_min_messages = warning"));
	return session;
}

static inline void
server_execute(const char *sql)
{
	Session *session = must_open(server, "tests");

	ck_assert(session_execute(session, sql));
	session_close(session);
}

/* Commits wait for a standby that does not exist, from soon on. They do so until they are cancelled. */
static inline void
standby_is_missing(bool missing)
{
	server_execute(missing ? "ALTER SYSTEM SET synchronous_standby_names = 'ghost'"
						   : "ALTER SYSTEM RESET synchronous_standby_names");
	server_execute("SELECT pg_reload_conf()");
}

#endif
