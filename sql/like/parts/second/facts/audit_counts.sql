-- The proof audit over both databases: are the counts that were read there what facts and events here say they must be?
--
-- Guarantee: two snapshots, that of the second database the older one. All that is processed in it was committed here before, so
-- it is among the events of this snapshot, and the rest of these is what is unprocessed: n plus the deltas of unprocessed
-- events above base_seq is the number of facts, as in one database. The other way round events may be processed that the
-- snapshot here does not have, and the same sum differs though nothing is wrong.
--
-- Lock order: none, nothing is locked.
--
-- The columns are those of like_audit_read_side(). An item without a count has n = 0 and base 0: its first event makes its row.
-- watermark_violations: 1, too, where the watermark is above the last event, or something is processed that is no event:
-- this database was restored, or lost what it had not made durable.

CREATE OR REPLACE FUNCTION like_audit_counts(p_items bigint[], p_ns bigint[], p_bases bigint[], p_watermark bigint,
	p_processed int8multirange, OUT last_seq bigint, OUT watermark bigint, OUT lag bigint, OUT unprocessed bigint,
	OUT count_mismatch_items bigint, OUT max_abs_err bigint, OUT exact_violations bigint, OUT bound_violations bigint,
	OUT watermark_violations bigint)
LANGUAGE sql STABLE
AS $$
	WITH counted AS (
		SELECT i.item_id, coalesce(c.n, 0) AS n, coalesce(c.base_seq, 0) AS base_seq
			FROM item i LEFT JOIN unnest(p_items, p_ns, p_bases) c (item_id, n, base_seq) USING (item_id)
	), pending AS (
		SELECT o.item_id, count(*) AS events, sum(o.delta) FILTER (WHERE o.seq > c.base_seq) AS delta_above_base
			FROM like_outbox o JOIN counted c USING (item_id)
			WHERE NOT o.seq <@ p_processed
			GROUP BY o.item_id
	), compared AS (
		SELECT c.n, coalesce(f.facts, 0) AS facts, coalesce(e.events, 0) AS events,
			c.n + coalesce(e.delta_above_base, 0) AS n_when_drained
			FROM counted c
			LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
			LEFT JOIN pending e USING (item_id)
	), judged AS (
		SELECT count(*) FILTER (WHERE n <> facts) AS mismatch_items, coalesce(max(abs(n - facts)), 0) AS max_abs_err,
			count(*) FILTER (WHERE n_when_drained <> facts) AS exact_violations,
			count(*) FILTER (WHERE abs(n - facts) > events) AS bound_violations
			FROM compared
	)
	SELECT s.last, p_watermark, s.last - p_watermark, (SELECT coalesce(sum(events), 0)::bigint FROM pending),
		j.mismatch_items, j.max_abs_err, j.exact_violations, j.bound_violations,
		CASE WHEN p_watermark = (SELECT coalesce(max(upper(run)) - 1, 0) FROM unnest(p_processed) run WHERE 1::bigint <@ run)
				AND p_processed <@ int8range(1, s.last + 1)
			THEN 0 ELSE 1 END
		FROM like_seq s, judged j WHERE s.id = 1
$$;
