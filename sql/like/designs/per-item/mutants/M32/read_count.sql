-- M32: the read path shows no count below zero.
--
-- The guard taken away: n is told as it is. Events applied out of order take it below zero for a while, which pending
-- accounts for; raised to 0, it misses the identity, and a count that was written wrongly looks like one that is right.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT greatest(c.n, 0), s.last - w.applied_upto,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq > w.applied_upto AND o.seq <= s.last
				AND (SELECT p.seq FROM processed_event p WHERE p.item_id = o.item_id AND p.seq = o.seq) IS NULL),
		s.last - w.applied_upto > p_allowed_lag
		FROM like_count c, like_seq s, counter_watermark w
		WHERE c.item_id = p_item AND s.item_id = p_item AND w.item_id = p_item
$$;
