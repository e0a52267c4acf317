-- Q01: a read looks for pending events among all events of the item.
--
-- The guard taken away: it begins at the watermark, below which there is none. The answer is the same, and each read costs what
-- the item's history holds.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, s.last - w.applied_upto,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq <= s.last
				AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL),
		s.last - w.applied_upto > p_allowed_lag
		FROM like_count c, like_seq s, counter_watermark w
		WHERE c.item_id = p_item AND s.id = 1 AND w.id = 1
$$;
