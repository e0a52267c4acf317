/* What the main function of each check_*.c has in common. */
#ifndef COUNTERPROOF_SUITE_H
#define COUNTERPROOF_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Run a suite and free it. EXIT_SUCCESS when every test passed. */
static inline int
suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
