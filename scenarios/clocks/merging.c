/*
 * clocks/merging  two values are concurrent, and the application decides
 *
 * Claim      Concurrent is neither a winner nor a conflict. Fields that were changed apart can be united; siblings can be kept; one
 *            can be dropped by a rule that always chooses the same. That is the application's policy: the clocks found no order.
 * Method     Two clients change the same record on two replicas without having read each other, once different fields and once
 *            the same field. The store is by dots. The application unites, keeps, or lets the greater value win.
 * Expect     The clocks say the same each time. United, both changes are there. Kept, both values are. By the rule one is gone
 *            on both replicas, although nothing had replaced it. A decision is a write: made on both replicas, it is two.
 * Not shown  Which policy is right for which data; types that merge by themselves.
 */
#include "lab.h"

#include <stdlib.h>
#include <string.h>

/* Two siblings on both replicas. */
static Store *
concurrent(Scene *scene, const char *left, const char *right)
{
	Store *store = store_new(STORE_DOTS, 2);

	put_blind(scene, store, 1, NULL, "name=? mail=?");
	replicate(scene, store, 1, 2);
	put_seen(scene, store, 1, NULL, left);
	put_seen(scene, store, 2, NULL, right);
	replicate(scene, store, 1, 2);
	replicate(scene, store, 2, 1);
	return store;
}

static char *
field(const char *record, const char *name)
{
	const char *value = strstr(record, name) + strlen(name);

	return string_format("%.*s", (int) strcspn(value, " "), value);
}

/* Of each field the value that somebody knows. The caller frees. */
static char *
known(const StoreReading *reading, const char *name)
{
	char *best = string_copy("?");

	for (int i = 0; i < reading->count; i++)
	{
		char *value = field(reading->values[i], name);

		if (strcmp(value, "?") != 0)
		{
			free(best);
			best = value;
		}
		else
		{
			free(value);
		}
	}
	return best;
}

static void
unite(Scene *scene, Store *store, int replica)
{
	StoreReading reading = store_read(store, replica, STORE_KEY);
	char *name = known(&reading, "name=");
	char *mail = known(&reading, "mail=");
	char *united = string_format("name=%s mail=%s", name, mail);

	put_with(scene, store, replica, NULL, &reading.context, united);
	free(name);
	free(mail);
	free(united);
	store_reading_free(&reading);
}

static void
let_greatest_win(Scene *scene, Store *store, int replica)
{
	StoreReading reading = store_read(store, replica, STORE_KEY);

	put_with(scene, store, replica, NULL, &reading.context, reading.values[reading.count - 1]);
	store_reading_free(&reading);
}

static void
both_have(Scene *scene, Store *store, const char *expected)
{
	replicate(scene, store, 1, 2);
	replicate(scene, store, 2, 1);
	check_values(scene, store, 1, expected, "after the exchange");
	check_values(scene, store, 2, expected, "after the exchange");
}

static void
different_fields(Scene *scene)
{
	Store *store = concurrent(scene, "name=Ann mail=?", "name=? mail=a@example.org");

	step(scene, "two fields, changed apart: the application unites them");
	check_values(scene, store, 1, "name=? mail=a@example.org name=Ann mail=?", "two siblings");
	unite(scene, store, 1);
	both_have(scene, store, "name=Ann mail=a@example.org");
	store_free(store);
}

static void
same_field(Scene *scene)
{
	Store *store = concurrent(scene, "name=Ann mail=?", "name=Bea mail=?");

	step(scene, "one field, changed twice: the application keeps both, and asks somebody");
	both_have(scene, store, "name=Ann mail=? name=Bea mail=?");
	step(scene, "or a rule: the greater wins. Nothing had replaced the other, and it is gone");
	let_greatest_win(scene, store, 1);
	both_have(scene, store, "name=Bea mail=?");
	store_free(store);
}

static void
decided_twice(Scene *scene)
{
	Store *store = concurrent(scene, "name=Ann mail=?", "name=Bea mail=?");

	step(scene, "the rule on both replicas at once: the same decision, and two events");
	let_greatest_win(scene, store, 1);
	let_greatest_win(scene, store, 2);
	both_have(scene, store, "name=Bea mail=? name=Bea mail=?");
	let_greatest_win(scene, store, 2);
	both_have(scene, store, "name=Bea mail=?");
	store_free(store);
}

static void
run(Scene *scene)
{
	different_fields(scene);
	same_field(scene);
	decided_twice(scene);
}

const Scenario scenario_clocks_merging = {
	.suite = "clocks",
	.id = "clocks/merging",
	.title = "two values are concurrent, and the application decides",
	.claim = "concurrent names no winner; to unite, to keep or to drop by a rule is the application's policy",
	.kind = "fixed order",
	.guarantee = "both values reach the application",
	.observed = "values on both replicas after each policy",
	.needs = NEEDS_NOTHING,
	.deadline_ms = 10000,
	.run = run,
};
