-- H06: the audit looks at the sum of the shards alone.
--
-- The guard taken away: an item whose shards do not share one base_seq is a violation, whatever they add up to. The next event
-- between the two goes by the one or the other, as its lane falls.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_audit_read_side(OUT last_seq bigint, OUT watermark bigint, OUT lag bigint,
	OUT unprocessed bigint, OUT count_mismatch_items bigint, OUT max_abs_err bigint, OUT exact_violations bigint,
	OUT bound_violations bigint, OUT watermark_violations bigint)
LANGUAGE sql STABLE
AS $$
	WITH total AS (
		SELECT c.item_id, sum(c.n)::bigint AS n,
			max(c.base_seq) AS base_seq
			FROM like_count c GROUP BY c.item_id
	), pending AS (
		SELECT o.item_id, count(*) AS events, sum(o.delta) FILTER (WHERE o.seq > c.base_seq) AS delta_above_base
			FROM like_outbox o LEFT JOIN total c USING (item_id)
			WHERE NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
			GROUP BY o.item_id
	), counted AS (
		SELECT c.n, coalesce(f.facts, 0) AS facts, coalesce(e.events, 0) AS events,
			CASE WHEN c.base_seq IS NOT NULL THEN c.n + coalesce(e.delta_above_base, 0) END AS n_when_drained
			FROM item i
			LEFT JOIN total c USING (item_id)
			LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
			LEFT JOIN pending e USING (item_id)
	), judged AS (
		SELECT count(*) FILTER (WHERE n IS DISTINCT FROM facts) AS mismatch_items,
			coalesce(max(abs(coalesce(n, 0) - facts)), 0) AS max_abs_err,
			count(*) FILTER (WHERE n_when_drained IS DISTINCT FROM facts) AS exact_violations,
			count(*) FILTER (WHERE n IS NULL OR abs(n - facts) > events) AS bound_violations
			FROM counted
	)
	SELECT s.last, w.applied_upto, s.last - w.applied_upto, (SELECT coalesce(sum(events), 0) FROM pending),
		j.mismatch_items, j.max_abs_err, j.exact_violations, j.bound_violations,
		CASE WHEN w.applied_upto <= r.run_end THEN 0 ELSE 1 END
		FROM like_seq s, counter_watermark w, judged j, (
			SELECT count(*) AS run_end
				FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS k FROM processed_event WHERE seq >= 1) p
				WHERE p.seq = p.k) r
		WHERE s.id = 1 AND w.id = 1
$$;
