-- The read path beside parked events.
--
-- Guarantee: as in the read path that this takes the place of; pending counts the item's parked events above its baseline as well,
-- for n is off by them. They lie below the watermark, so pending may be more than lag.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, s.last - w.applied_upto,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq > w.applied_upto AND o.seq <= s.last
				AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL)
			+ (SELECT count(*) FROM like_parked p WHERE p.item_id = c.item_id AND p.seq > c.base_seq),
		s.last - w.applied_upto > p_allowed_lag
		FROM like_count c, like_seq s, counter_watermark w
		WHERE c.item_id = p_item AND s.id = 1 AND w.id = 1
$$;
