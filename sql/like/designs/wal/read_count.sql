-- The read path: the count of one item, how far it may be off, and whether that is more than the caller allows.
--
-- Guarantee: one statement, hence one snapshot. |n - facts| <= pending, this item's unprocessed events; pending <= lag, all
-- unprocessed events. stale says lag > p_allowed_lag. n is not clamped. No row: the item has no count row.
--
-- Lock order: none, nothing is locked.
--
-- Why so: as in the read path that this takes the place of. The walk over what lies outside the floor finds both numbers.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, e.events, e.of_item, e.events > p_allowed_lag
		FROM like_count c,
			LATERAL (SELECT count(*) AS events, count(*) FILTER (WHERE l.item_id = p_item) AS of_item FROM like_pending l) e
		WHERE c.item_id = p_item
$$;
