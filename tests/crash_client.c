/*
 * crash-client SQL...: one connection to where the PG* variables point, each statement in turn, 0 when all went well. What
 * a user's program is to the crash points, for the tests of them.
 */
#include <stdio.h>

#include "session.h"

int
main(int argc, char **argv)
{
	Session *session = session_open("", "crash-client");
	bool done = session != NULL;

	notice_set_prefix("crash-client");
	for (int i = 1; done && i < argc; i++)
	{
		done = session_execute(session, argv[i]);
	}
	session_close(session);
	return done ? EXIT_CODE_PASS : EXIT_CODE_FAIL;
}
