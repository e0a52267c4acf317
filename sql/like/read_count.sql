-- The read path: the count of one item, how far it may be off, and whether that is more than the caller allows.
--
-- Guarantee: one statement, hence one snapshot. |n - facts| <= pending, this item's unprocessed events; all of them lie
-- in (watermark, last], so pending <= lag. stale says lag > p_allowed_lag. n is not clamped: while events are applied out
-- of order it may be below zero, and the bound holds all the same. No row: the item has no count row.
--
-- Lock order: none, nothing is locked.
--
-- Why so: it never counts facts. The count row is found by its key, pending events through the index on
-- (item_id, seq), each registration by a probe of its own, so that a read costs what lags and never what history holds;
-- a scalar subquery cannot be turned into a join that reads all registrations. LANGUAGE sql and STABLE, so that a call in
-- FROM is inlined and EXPLAIN shows its plan.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, s.last - w.applied_upto,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq > w.applied_upto AND o.seq <= s.last
				AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL),
		s.last - w.applied_upto > p_allowed_lag
		FROM like_count c, like_seq s, counter_watermark w
		WHERE c.item_id = p_item AND s.id = 1 AND w.id = 1
$$;
