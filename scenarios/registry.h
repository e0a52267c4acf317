/*
 * Every numbered case, each on exactly one line, in the order in which they run. A number is never used again.
 */
#ifndef COUNTERPROOF_REGISTRY_H
#define COUNTERPROOF_REGISTRY_H

#include "base.h"
#include "scenario.h"

/* clang-format off */
#define SCENARIO_LIST(SCENARIO) \
	SCENARIO(32_a) \
	SCENARIO(32_b) \
	SCENARIO(32_c) \
	SCENARIO(32_d) \
	SCENARIO(32_e) \
	SCENARIO(32_f) \
	SCENARIO(32_g) \
	SCENARIO(32_h) \
	SCENARIO(32_i) \
	SCENARIO(32_j) \
	SCENARIO(32_k) \
	SCENARIO(32_l) \
	SCENARIO(33_a) \
	SCENARIO(33_b) \
	SCENARIO(33_c) \
	SCENARIO(33_d) \
	SCENARIO(33_e) \
	SCENARIO(isolation_skew) \
	SCENARIO(isolation_rows) \
	SCENARIO(isolation_insert) \
	SCENARIO(isolation_lock_all) \
	SCENARIO(isolation_count_row) \
	SCENARIO(isolation_own_row) \
	SCENARIO(isolation_paths) \
	SCENARIO(isolation_levels) \
	SCENARIO(isolation_retry) \
	SCENARIO(isolation_give_up) \
	SCENARIO(isolation_psql) \
	SCENARIO(isolation_hermitage) \
	SCENARIO(isolation_unrelated) \
	SCENARIO(isolation_unrunnable) \
	SCENARIO(isolation_lost) \
	SCENARIO(isolation_like_rebuild) \
	SCENARIO(isolation_like_consumers) \
	SCENARIO(isolation_like_writers) \
	SCENARIO(isolation_like_wrapped) \
	SCENARIO(isolation_repair) \
	SCENARIO(isolation_two_deletes) \
	SCENARIO(isolation_counter_rows) \
	SCENARIO(clocks_relations) \
	SCENARIO(clocks_receive) \
	SCENARIO(clocks_refused) \
	SCENARIO(clocks_history) \
	SCENARIO(clocks_scalars) \
	SCENARIO(clocks_pruned) \
	SCENARIO(clocks_reused) \
	SCENARIO(clocks_payloads) \
	SCENARIO(clocks_context) \
	SCENARIO(clocks_merging) \
	SCENARIO(clocks_siblings) \
	SCENARIO(clocks_growth) \
	SCENARIO(clocks_dotted) \
	SCENARIO(repair_causes) \
	SCENARIO(repair_column) \
	SCENARIO(repair_listener) \
	SCENARIO(repair_negative) \
	SCENARIO(repair_childless) \
	SCENARIO(repair_bulk) \
	SCENARIO(repair_shapes) \
	SCENARIO(repair_missing) \
	SCENARIO(repair_dry_run) \
	SCENARIO(repair_unlocked) \
	SCENARIO(repair_race) \
	SCENARIO(repair_pairing) \
	SCENARIO(repair_flight) \
	SCENARIO(repair_one_key) \
	SCENARIO(repair_late) \
	SCENARIO(repair_stop) \
	SCENARIO(repair_resume) \
	SCENARIO(repair_restart) \
	SCENARIO(repair_workers) \
	SCENARIO(repair_lag) \
	SCENARIO(repair_outbox) \
	SCENARIO(repair_storm) \
	SCENARIO(scale_direct) \
	SCENARIO(scale_counted) \
	SCENARIO(scale_bounded) \
	SCENARIO(scale_recounted) \
	SCENARIO(scale_sequencer) \
	SCENARIO(scale_per_item) \
	SCENARIO(scale_chunks) \
	SCENARIO(scale_failover) \
	SCENARIO(scale_failover_async) \
	SCENARIO(scale_fence) \
	SCENARIO(scale_standby_read) \
	SCENARIO(scale_wal) \
	SCENARIO(scale_relay) \
	SCENARIO(scale_relay_crash)
/* clang-format on */

/* All of them, ended by NULL. A program with cases of its own defines this list itself and does not get the above. */
extern const Scenario *const registry_scenarios[];

/*
 * Those of `all` that a word names by suite or id, or all with the word `all`: in the order of `all`, none twice.
 * false: a word names nothing; reported with the nearest name, which may be one of `others`, ended by NULL: what else
 * could have been meant (EXIT_CODE_NO_MATCH). The caller frees *selected.
 */
extern bool registry_select(const Scenario *const *all, const char *const *words, int word_count,
							const char *const *others, const Scenario ***selected, int *selected_count) MUST_CHECK;

#endif
