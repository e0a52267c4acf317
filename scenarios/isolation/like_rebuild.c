/*
 * isolation/like-rebuild  a consumer against a rebuild, in every order and everything between
 *
 * Claim      Whatever the order, a rebuild beside a consumer and a writer loses no event and counts none twice, and no
 *            snapshot in between shows anything else.
 * Method     All interleavings, judged after each step by the invariants of the like system (sql/isolation/like_judged.sql).
 *            like_consumer_rebuild: a writer's like, like_consume() and like_install(), each one call in its transaction
 *            (BEGIN is part of the setup or of the step: at Read Committed it takes no snapshot), and the snapshot of the
 *            rebuild in between. like_install_statements: what consume.sql and rebuild_install.sql do inside, a step each,
 *            with a snapshot that is older than two of the events: taking it is no step there, because it reads nothing that
 *            a consumer writes. like_snapshot_statements: the snapshot as two statements of one Repeatable Read transaction,
 *            beside a writer. Then twins over the same files, and the same steps in wrong orders.
 * Expect     Everything holds in every interleaving. The install that sums before it locks (M18, and as steps), the one of a
 *            single statement (M36), the consumer that reads base_seq while it waits (M33) and the snapshot of two
 *            statements at Read Committed each break the counts, and the shortest way there is found, not written.
 * Not shown  Two rebuilds, more than one item, more than one batch (32-H to 32-J). Interleavings are of whole statements
 *            (L22).
 */
#include "like_specs.h"

static void
wrong_system(Scene *scene, const char *prepared, const char *twin, const char *sql, int64_t interleavings,
			 const char *order, const char *detail)
{
	SpecReport *report = judge_twin(scene, "like_consumer_rebuild.spec", prepared, twin, sql);

	check_broken(scene, report, "invariant counts", interleavings, order, detail);
	spec_report_free(report);
}

static void
wrong_order(Scene *scene, const char *prepared, const char *file, int64_t interleavings, const char *order,
			const char *detail)
{
	SpecReport *report = judge_spec(scene, file, prepared);

	check_broken(scene, report, "invariant counts", interleavings, order, detail);
	spec_report_free(report);
}

static void
wrong(Scene *scene, const char *prepared)
{
	step(scene, "M18: sum before the lock");
	wrong_system(scene, prepared, "M18", "rebuild_install.sql", 1, "s w d i dc ic",
				 "(item_id=1, n=3, base_seq=3, facts=4, pending=0, pending_delta=0) after ic");
	step(scene, "M36: one statement");
	wrong_system(scene, prepared, "M36", "rebuild_install.sql", 1, "s w d i dc ic",
				 "(item_id=1, n=3, base_seq=3, facts=4, pending=0, pending_delta=0) after ic");
	step(scene, "M33: base_seq read in the statement that waits");
	wrong_system(scene, prepared, "M33", "consume.sql", 6, "s i d ic dc w",
				 "(item_id=1, n=6, base_seq=3, facts=3, pending=0, pending_delta=0) after dc");
	step(scene, "sum before the lock, statement by statement");
	wrong_order(scene, prepared, "like_install_sum_first.spec", 17, "dw dl de da is dc il iu ic",
				"(item_id=1, n=3, base_seq=3, facts=5, pending=0, pending_delta=0) after ic");
	step(scene, "a snapshot for each of the two statements");
	wrong_order(scene, prepared, "like_snapshot_read_committed.spec", 2, "sn w wc sf i",
				"(item_id=1, n=4, base_seq=3, facts=4, pending=4, pending_delta=1) after i");
}

static void
run(Scene *scene)
{
	const char *prepared = like_prepared(scene);

	step(scene, "as they are");
	judge_clean(scene, "like_consumer_rebuild.spec", prepared, 42);
	step(scene, "statement by statement: the consumer and an install");
	judge_clean(scene, "like_install_statements.spec", prepared, 18);
	step(scene, "statement by statement: a writer and a snapshot");
	judge_clean(scene, "like_snapshot_statements.spec", prepared, 10);
	wrong(scene, prepared);
}

const Scenario scenario_isolation_like_rebuild = {
	.suite = "isolation",
	.id = "isolation/like-rebuild",
	.title = "a consumer against a rebuild, in every order",
	.claim = "a rebuild beside a consumer and a writer loses no event and counts none twice, in any interleaving",
	.kind = "every interleaving, twins",
	.guarantee = "invariants 1 to 5 in every snapshot",
	.observed = "facts, events, registrations and counts after each step",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 180000,
	.run = run,
};
