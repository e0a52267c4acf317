-- P02: one S for all items, the largest of their last numbers.
--
-- The guard taken away: each item's baseline is installed at its own S. An item that has fewer events gets a baseline above
-- all of them: the next ones lie at or below it, are taken for COVERED and never counted.
--
-- Lock order: none. Repeatable Read, as for the right snapshot.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql STABLE
AS $$
	SELECT max(s.last) OVER (), i.item_id, i.label, coalesce(f.facts, 0)
		FROM (SELECT) one
		LEFT JOIN item i ON true
		LEFT JOIN like_seq s USING (item_id)
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		ORDER BY i.item_id
$$;
