-- The names of committed events above a name and above their item's watermark, in order of item and number: what a consumer
-- fetches for its next batch.
--
-- Guarantee: in an item number order is commit order, so whoever has seen its number k never finds a smaller one later. From
-- one item to the next there is no such order: a pass ends behind the last item, and what has come meanwhile to an item
-- before it is for the next pass, which begins anew (see like_left_behind()). An item is not passed over twice before all
-- others had their turn.
--
-- Lock order: none, nothing is locked; consumers that pull at once get the same events, and the dedup sorts that out.
--
-- Why the settings: the two rows of each item are read by their keys, in item order, up to where the list is full; the
-- events of those that lag are one index range each, and nothing is sorted but within an item.

CREATE OR REPLACE FUNCTION like_pull(p_after bigint, p_most bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_sort = off
SET jit = off
AS $$
DECLARE
	v_item CONSTANT bigint := like_event_item(p_after);
	v_seq CONSTANT bigint := like_event_seq(p_after);
BEGIN
	RETURN ARRAY(
		SELECT like_event(s.item_id, o.seq)
			FROM like_seq s
			JOIN counter_watermark w USING (item_id)
			CROSS JOIN LATERAL (
				SELECT l.seq FROM like_outbox l
					WHERE l.item_id = s.item_id AND l.seq > w.applied_upto AND (s.item_id > v_item OR l.seq > v_seq)
					ORDER BY l.seq LIMIT p_most) o
			WHERE s.item_id >= v_item AND s.last > w.applied_upto
			ORDER BY s.item_id, o.seq
			LIMIT p_most);
END
$$;
