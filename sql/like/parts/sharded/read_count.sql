-- The read path of sharded counts: the count of one item, how far it may be off, and whether that is more than the caller
-- allows.
--
-- Guarantee: as in the read path that this takes the place of; n is the sum of the item's shards in one snapshot. The
-- watermark may be behind, so lag may be more than what is unprocessed, and never less; pending is exact.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, s.last - w.applied_upto,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq > w.applied_upto AND o.seq <= s.last
				AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL),
		s.last - w.applied_upto > p_allowed_lag
		FROM (SELECT k.item_id, sum(k.n)::bigint AS n FROM like_count k WHERE k.item_id = p_item GROUP BY k.item_id) c,
			like_seq s, counter_watermark w
		WHERE s.id = 1 AND w.id = 1
$$;
