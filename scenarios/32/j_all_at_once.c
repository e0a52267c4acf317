/*
 * 32-J  writers, consumers, redelivery, rebuilds and a sampler, all at once
 *
 * Claim      While all of them run, every snapshot keeps the identity (n + unprocessed deltas above base_seq = facts),
 *            the error bound of each item, and unprocessed <= lag; each event ends APPLIED or COVERED, once.
 * Method     8 writers x 300 requests on 6 items, half of them on item-lab-01; 3 competing consumers; a redeliverer that
 *            draws from the run's seed; a full rebuild every 100 ms; a sampler that runs the proof audit without a pause
 *            until it has 50 samples and the writers have ended. Both outcomes are made certain: rebuild 1 takes its
 *            snapshot after 100 events and is in place before a consumer starts (those 100 end COVERED), and the writers
 *            hold before their last third until the last rebuild has ended (what they write then ends APPLIED, and the
 *            drained counts judge the consumers and not the repair).
 * Expect     0 violations over all samples; CHANGED = events = APPLIED + COVERED; drained counts equal facts; the
 *            independent judge finds one order for the requests.
 * Not shown  A proof: this is a search, samples are spot checks (L8); each race it could meet also has a fixed
 *            interleaving (32-C, 32-E, 32-G, 32-H, 32-I). Numbers vary (L7) and are no performance data (L1).
 */
#include "storm.h"

static void
run(Scene *scene)
{
	storm_run(scene, like_lab(scene, STORM_ITEMS), NULL);
}

const Scenario scenario_32_j = {
	.suite = "32",
	.id = "32-J",
	.title = "writers, consumers, redelivery, rebuilds and a sampler at once",
	.claim = "every snapshot keeps identity, error bound and lag while all run; each event takes effect once",
	.kind = "real component, real threads",
	.guarantee = "the identity holds in every sample; drained counts equal facts",
	.observed = "read-side audit of every sample, processed_event, the judge's verdict",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 90000,
	.run = run,
};
