-- The proof audit of the read side: are the counts what facts, events and registrations say they must be?
--
-- Guarantee: one statement, hence one snapshot. It reads facts, events and registrations once and does not trust the
-- watermarks it judges: what is unprocessed is what is not registered, wherever its number lies.
--
-- Lock order: none, nothing is locked.
--
-- last_seq, watermark, lag: those of all items added up. watermark_violations: items whose watermark is not the end of the
-- contiguous run of their registered numbers, or that have none. The other fields are those of the audit that this
-- takes the place of.

CREATE OR REPLACE FUNCTION like_audit_read_side(OUT last_seq bigint, OUT watermark bigint, OUT lag bigint,
	OUT unprocessed bigint, OUT count_mismatch_items bigint, OUT max_abs_err bigint, OUT exact_violations bigint,
	OUT bound_violations bigint, OUT watermark_violations bigint)
LANGUAGE sql STABLE
AS $$
	WITH pending AS (
		SELECT o.item_id, count(*) AS events, sum(o.delta) FILTER (WHERE o.seq > c.base_seq) AS delta_above_base
			FROM like_outbox o LEFT JOIN like_count c USING (item_id)
			WHERE NOT EXISTS (SELECT FROM processed_event p WHERE p.item_id = o.item_id AND p.seq = o.seq)
			GROUP BY o.item_id
	), run AS (
		SELECT item_id, count(*) FILTER (WHERE seq = k) AS run_end
			FROM (
				SELECT item_id, seq, row_number() OVER (PARTITION BY item_id ORDER BY seq) AS k
					FROM processed_event WHERE seq >= 1) p
			GROUP BY item_id
	), counted AS (
		SELECT c.n, coalesce(f.facts, 0) AS facts, coalesce(e.events, 0) AS events,
			c.n + coalesce(e.delta_above_base, 0) AS n_when_drained,
			s.last, w.applied_upto, coalesce(r.run_end, 0) AS run_end
			FROM item i
			LEFT JOIN like_count c USING (item_id)
			LEFT JOIN like_seq s USING (item_id)
			LEFT JOIN counter_watermark w USING (item_id)
			LEFT JOIN run r USING (item_id)
			LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
			LEFT JOIN pending e USING (item_id)
	)
	SELECT coalesce(sum(last), 0)::bigint, coalesce(sum(applied_upto), 0)::bigint,
		coalesce(sum(last), 0)::bigint - coalesce(sum(applied_upto), 0)::bigint,
		(SELECT coalesce(sum(events), 0) FROM pending)::bigint,
		count(*) FILTER (WHERE n IS DISTINCT FROM facts),
		coalesce(max(abs(coalesce(n, 0) - facts)), 0),
		count(*) FILTER (WHERE n_when_drained IS DISTINCT FROM facts),
		count(*) FILTER (WHERE n IS NULL OR abs(n - facts) > events),
		count(*) FILTER (WHERE applied_upto IS DISTINCT FROM run_end)
		FROM counted
$$;
