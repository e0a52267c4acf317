-- M21b: a rebuild takes up the items that have a count row.
--
-- The guard taken away: every row of item is in the snapshot, whatever the derived side holds. An item whose count row is
-- gone gets none, reads as not there, and the consumer goes on being refused at its events.
--
-- Lock order: none. Repeatable Read, as for the right snapshot.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql STABLE
AS $$
	SELECT s.last, i.item_id, i.label, coalesce(f.facts, 0)
		FROM (SELECT) one
		LEFT JOIN (item JOIN like_count USING (item_id)) i ON true
		LEFT JOIN like_seq s USING (item_id)
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		ORDER BY i.item_id
$$;
