/* What the main function of each check_*.c has in common. */
#ifndef COUNTERPROOF_SUITE_H
#define COUNTERPROOF_SUITE_H

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

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

/* An empty file of its own; `path` ends with XXXXXX, which becomes its name. */
static inline void
temporary_file(char *path)
{
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

#endif
