-- The bound of a count that was read in the second database before: the item's events that are not processed there.
--
-- Guarantee: what is processed there was committed here before, so a snapshot that is taken here afterwards has all of it, and
-- what it has besides is pending: |n - facts| <= pending, lag >= 0. Asked for before, events that are counted there could be
-- missing here.
--
-- Lock order: none, nothing is locked. In proportion to what lags.

CREATE OR REPLACE FUNCTION like_pending(p_item bigint, p_watermark bigint, p_above int8multirange,
	OUT lag bigint, OUT pending bigint)
LANGUAGE sql STABLE
SET enable_seqscan = off
AS $$
	SELECT s.last - p_watermark,
		(SELECT count(*) FROM like_outbox o
			WHERE o.item_id = p_item AND o.seq > p_watermark AND NOT o.seq <@ p_above)
		FROM like_seq s WHERE s.id = 1
$$;
