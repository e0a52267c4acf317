/*
 * The table. A row that is added here is run by ./run.sh mutants; its check must exist and must fail.
 */
#include "twins.h"

#include <string.h>

const ClientSteps right_steps = {
	.set = like_set,
	.deliver = like_deliver,
	.snapshot = like_snapshot,
	.install = like_install,
	.recovery_horizon = like_recovery_horizon,
	.transaction = session_transaction,
	.consumer = "like-consumer",
};

const Twin twins[] = {
	/* --- write --- */

	/* --- consumer --- */
	{.id = "M07",
	 .layer = "consumer",
	 .wrong = "applies what it is given, however often",
	 .guard = "an event that is registered is not added again",
	 .source = "invariant 4: each event takes effect on the count exactly once",
	 .caught_in = "32-G",
	 .caught_by = "applied"},
	/* --- rebuild, audit, read --- */

	/* --- client, server --- */

	{.id = NULL},
};

int
twin_count(void)
{
	return (int) LENGTH_OF(twins) - 1;
}

const Twin *
twin_find(const char *id)
{
	for (const Twin *twin = twins; twin->id != NULL; twin++)
	{
		if (strcmp(twin->id, id) == 0)
		{
			return twin;
		}
	}
	return NULL;
}

bool
twin_known(const char *id)
{
	const char *names[LENGTH_OF(twins)];

	if (twin_find(id) != NULL)
	{
		return true;
	}
	for (size_t i = 0; i < LENGTH_OF(twins); i++)
	{
		names[i] = twins[i].id;
	}
	report_error("there is no twin \"%s\"; the nearest is \"%s\" (see: mutants)", id, string_nearest(id, names));
	return false;
}
