-- S01: C(S) is the number of liked facts.
--
-- The guard taken away: the deltas of committed events without a number are taken off. Their effects are in the facts, and
-- they will be numbered above S: delivered, they are counted a second time.
--
-- Lock order: none. Repeatable Read, as for the right snapshot.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql STABLE
AS $$
	SELECT s.last, i.item_id, i.label, coalesce(f.facts, 0)
		FROM like_seq s
		LEFT JOIN item i ON true
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		WHERE s.id = 1
		ORDER BY i.item_id
$$;
