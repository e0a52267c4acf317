-- The read path: the count of one item, how far it may be off, and whether that is more than the caller allows.
--
-- Guarantee: one statement, hence one snapshot. |n - facts| <= pending, this item's unprocessed events; pending <= lag, which
-- is this item's last number - its watermark: what lags elsewhere makes no count here stale. n is not clamped. No row: the
-- item has no count row.
--
-- Lock order: none, nothing is locked.
--
-- Why so: as in the read path that this takes the place of.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, s.last - w.applied_upto,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq > w.applied_upto AND o.seq <= s.last
				AND (SELECT p.seq FROM processed_event p WHERE p.item_id = o.item_id AND p.seq = o.seq) IS NULL),
		s.last - w.applied_upto > p_allowed_lag
		FROM like_count c, like_seq s, counter_watermark w
		WHERE c.item_id = p_item AND s.item_id = p_item AND w.item_id = p_item
$$;
