-- The proof audit of the read side: are the counts what facts, events and registrations say they must be?
--
-- Guarantee: one statement, hence one snapshot. It reads facts, events and registrations once and does not trust the
-- floor it judges: what is unprocessed is what is not registered, wherever it lies.
--
-- Lock order: none, nothing is locked.
--
-- last_seq: the number of events. lag: unprocessed events as readers find them, outside the floor. exact_violations:
-- items whose n plus the deltas of unprocessed events that its baseline does not contain is not their number of facts.
-- bound_violations: items whose n is off by more than their unprocessed events. watermark_violations: 1 when the
-- watermark is not the number of registrations, or the floor hides an unprocessed event. An item without a count row
-- has no n that could be right and counts in all three item columns; max_abs_err takes its n as 0.

CREATE OR REPLACE FUNCTION like_audit_read_side(OUT last_seq bigint, OUT watermark bigint, OUT lag bigint,
	OUT unprocessed bigint, OUT count_mismatch_items bigint, OUT max_abs_err bigint, OUT exact_violations bigint,
	OUT bound_violations bigint, OUT watermark_violations bigint)
LANGUAGE sql STABLE
AS $$
	WITH pending AS (
		SELECT o.item_id, count(*) AS events, sum(o.delta) FILTER (
				WHERE c.base_seq = 0 OR NOT pg_visible_in_snapshot(o.xid, c.base)) AS delta_above_base
			FROM like_outbox o LEFT JOIN like_count c USING (item_id)
			WHERE NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
			GROUP BY o.item_id
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
	SELECT (SELECT count(*) FROM like_outbox), w.applied_upto, l.lag, u.unprocessed,
		j.mismatch_items, j.max_abs_err, j.exact_violations, j.bound_violations,
		CASE WHEN w.applied_upto = (SELECT count(*) FROM processed_event) AND l.lag = u.unprocessed THEN 0 ELSE 1 END
		FROM counter_watermark w, judged j,
			(SELECT count(*) AS lag FROM like_pending) l,
			(SELECT coalesce(sum(events), 0)::bigint AS unprocessed FROM pending) u
		WHERE w.id = 1
$$;
