-- P03: the read path reads the item's last number first and its watermark in a second statement.
--
-- The guard taken away: one statement, hence one snapshot. VOLATILE gives each statement of the function a snapshot of its
-- own: an event that is written and consumed between the two moves the watermark beyond the number read before.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_read_count(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_last bigint;
BEGIN
	SELECT s.last INTO STRICT v_last FROM like_seq s WHERE s.item_id = p_item;

	RETURN QUERY SELECT c.n, v_last - w.applied_upto,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = c.item_id AND o.seq > w.applied_upto AND o.seq <= v_last
				AND (SELECT p.seq FROM processed_event p WHERE p.item_id = o.item_id AND p.seq = o.seq) IS NULL),
		v_last - w.applied_upto > p_allowed_lag
		FROM like_count c, counter_watermark w
		WHERE c.item_id = p_item AND w.item_id = p_item;
END
$$;
