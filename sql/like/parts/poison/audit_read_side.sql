-- The proof audit of the read side, beside parked events.
--
-- Guarantee: as in the audit that this takes the place of. The difference that parked events make is known and no violation of
-- the identity: n plus the deltas of unprocessed events and of parked ones above base_seq is the number of facts. An event that
-- is registered as parked without its row explains nothing. In count_mismatch_items and max_abs_err it shows.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_audit_read_side(OUT last_seq bigint, OUT watermark bigint, OUT lag bigint,
	OUT unprocessed bigint, OUT count_mismatch_items bigint, OUT max_abs_err bigint, OUT exact_violations bigint,
	OUT bound_violations bigint, OUT watermark_violations bigint)
LANGUAGE sql STABLE
AS $$
	WITH pending AS (
		SELECT o.item_id, count(*) AS events, sum(o.delta) FILTER (WHERE o.seq > c.base_seq) AS delta_above_base
			FROM like_outbox o LEFT JOIN like_count c USING (item_id)
			WHERE NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
			GROUP BY o.item_id
	), parked AS (
		SELECT p.item_id, count(*) AS events, sum(p.delta) AS delta
			FROM like_parked p JOIN like_count c USING (item_id)
			JOIN processed_event r ON r.seq = p.seq AND r.how = 'PARKED'
			WHERE p.seq > c.base_seq GROUP BY p.item_id
	), counted AS (
		SELECT c.n, coalesce(f.facts, 0) AS facts, coalesce(e.events, 0) + coalesce(k.events, 0) AS events,
			c.n + coalesce(e.delta_above_base, 0) + coalesce(k.delta, 0) AS n_when_drained
			FROM item i
			LEFT JOIN like_count c USING (item_id)
			LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
			LEFT JOIN pending e USING (item_id)
			LEFT JOIN parked k USING (item_id)
	), judged AS (
		SELECT count(*) FILTER (WHERE n IS DISTINCT FROM facts) AS mismatch_items,
			coalesce(max(abs(coalesce(n, 0) - facts)), 0) AS max_abs_err,
			count(*) FILTER (WHERE n_when_drained IS DISTINCT FROM facts) AS exact_violations,
			count(*) FILTER (WHERE n IS NULL OR abs(n - facts) > events) AS bound_violations
			FROM counted
	)
	SELECT s.last, w.applied_upto, s.last - w.applied_upto, (SELECT coalesce(sum(events), 0) FROM pending),
		j.mismatch_items, j.max_abs_err, j.exact_violations, j.bound_violations,
		CASE WHEN w.applied_upto = r.run_end THEN 0 ELSE 1 END
		FROM like_seq s, counter_watermark w, judged j, (
			SELECT count(*) AS run_end
				FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS k FROM processed_event WHERE seq >= 1) p
				WHERE p.seq = p.k) r
		WHERE s.id = 1 AND w.id = 1
$$;

-- What is parked, and whether it explains what is missing: per item, the difference between its facts and its n with pending
-- deltas, and the deltas of its parked events above the baseline. They are the same, or something else is wrong too.
CREATE OR REPLACE FUNCTION like_audit_parked(OUT item_id bigint, OUT known_difference bigint, OUT difference bigint)
	RETURNS SETOF record
LANGUAGE sql STABLE
AS $$
	SELECT i.item_id, coalesce(k.delta, 0), f.facts - c.n - e.delta
		FROM item i JOIN like_count c USING (item_id)
		CROSS JOIN LATERAL (SELECT count(*) AS facts FROM like_fact l WHERE l.item_id = i.item_id AND l.liked) f
		CROSS JOIN LATERAL (
			SELECT coalesce(sum(o.delta), 0) AS delta FROM like_outbox o
				WHERE o.item_id = i.item_id AND o.seq > c.base_seq
					AND NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)) e
		LEFT JOIN LATERAL (
			SELECT sum(p.delta) AS delta FROM like_parked p WHERE p.item_id = i.item_id AND p.seq > c.base_seq) k ON true
		WHERE k.delta IS NOT NULL OR f.facts <> c.n + e.delta
		ORDER BY i.item_id
$$;
