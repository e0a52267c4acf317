-- M21a: a rebuild takes up the items that somebody likes.
--
-- The guard taken away: every row of item is in the snapshot, with 0 facts if it has none. An item that nobody likes (any
-- longer) is left alone, and whatever wrong count it has stays.
--
-- Lock order: none. Repeatable Read, as for the right snapshot.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql STABLE
AS $$
	SELECT s.last, i.item_id, i.label, i.facts
		FROM (SELECT) one
		LEFT JOIN (item JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f
			USING (item_id)) i ON true
		LEFT JOIN like_seq s USING (item_id)
		ORDER BY i.item_id
$$;
