-- The read path: the count of one item, how far it may be off, and whether that is more than the caller allows.
--
-- Guarantee: one statement, hence one snapshot. |n - facts| <= pending, this item's unprocessed events, those without a
-- number among them; pending <= lag, which is last - watermark + unnumbered. stale says lag > p_allowed_lag. n is not
-- clamped. No row: the item has no count row.
--
-- Lock order: none, nothing is locked.
--
-- Why so: as in the read path that this takes the place of. Events without a number are those above the floor; below it
-- the index may hold many dead entries, which a read does not walk over.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, s.last - w.applied_upto + u.events,
		u.of_item + (SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq > w.applied_upto AND o.seq <= s.last
				AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL),
		s.last - w.applied_upto + u.events > p_allowed_lag
		FROM like_count c, like_seq s, counter_watermark w,
			LATERAL (SELECT count(*) AS events, count(*) FILTER (WHERE l.item_id = p_item) AS of_item
				FROM like_unnumbered l WHERE l.id > s.floor) u
		WHERE c.item_id = p_item AND s.id = 1 AND w.id = 1
$$;
