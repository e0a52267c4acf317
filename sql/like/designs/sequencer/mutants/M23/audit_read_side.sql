-- M23: the read-side audit reads the last number first and all the rest in a second statement.
--
-- The guard taken away: one statement, hence one snapshot. VOLATILE gives each statement of the function a snapshot of its
-- own: an event that is written and delivered between the two moves the watermark beyond the number read before, and lag
-- falls below zero.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_audit_read_side(OUT last_seq bigint, OUT watermark bigint, OUT lag bigint,
	OUT unprocessed bigint, OUT count_mismatch_items bigint, OUT max_abs_err bigint, OUT exact_violations bigint,
	OUT bound_violations bigint, OUT watermark_violations bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT s.last INTO STRICT last_seq FROM like_seq s WHERE s.id = 1;

	WITH pending AS (
		SELECT item_id, count(*) AS events, sum(delta) FILTER (WHERE above_base) AS delta_above_base
			FROM (
				SELECT o.item_id, o.delta, o.seq > c.base_seq AS above_base
					FROM like_outbox o LEFT JOIN like_count c USING (item_id)
					WHERE NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
				UNION ALL SELECT item_id, delta, true FROM like_unnumbered) e
			GROUP BY item_id
	), counted AS (
		SELECT c.n, coalesce(f.facts, 0) AS facts, coalesce(e.events, 0) AS events,
			c.n + coalesce(e.delta_above_base, 0) AS n_when_drained
			FROM item i
			LEFT JOIN like_count c USING (item_id)
			LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
			LEFT JOIN pending e USING (item_id)
	), judged AS (
		SELECT count(*) FILTER (WHERE n IS DISTINCT FROM facts) AS mismatch_items,
			coalesce(max(abs(coalesce(n, 0) - facts)), 0) AS max_abs_err,
			count(*) FILTER (WHERE n_when_drained IS DISTINCT FROM facts) AS exact_violations,
			count(*) FILTER (WHERE n IS NULL OR abs(n - facts) > events) AS bound_violations
			FROM counted
	)
	SELECT w.applied_upto, last_seq - w.applied_upto + (SELECT count(*) FROM like_unnumbered),
		(SELECT coalesce(sum(events), 0) FROM pending),
		j.mismatch_items, j.max_abs_err, j.exact_violations, j.bound_violations,
		CASE WHEN w.applied_upto = r.run_end THEN 0 ELSE 1 END
		INTO STRICT watermark, lag, unprocessed, count_mismatch_items, max_abs_err, exact_violations, bound_violations,
			watermark_violations
		FROM counter_watermark w, judged j, (
			SELECT count(*) AS run_end
				FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS k FROM processed_event WHERE seq >= 1) p
				WHERE p.seq = p.k) r
		WHERE w.id = 1;
END
$$;
