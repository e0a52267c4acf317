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
	SELECT greatest(c.n, 0), e.events, e.of_item, e.events > p_allowed_lag
		FROM like_count c,
			LATERAL (SELECT count(*) AS events, count(*) FILTER (WHERE l.item_id = p_item) AS of_item FROM like_pending l) e
		WHERE c.item_id = p_item
$$;
