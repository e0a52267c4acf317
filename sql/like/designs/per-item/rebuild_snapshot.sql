-- The first half of a rebuild: of each item S, its last event number, and C(S), its facts, those without any included.
--
-- Guarantee: of each item the answer contains exactly the effects of its events 1..S. In an item number order is commit
-- order, so a snapshot that shows its number row at S shows the facts of all its events up to S and of none above.
--
-- Lock order: none. Run it in a Repeatable Read transaction: S and C(S) of an item must come from one snapshot, however many
-- statements ask for them. Taken in two, an event committed between them would be counted and applied, or neither.
--
-- Without any item there is one row that has nothing.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql STABLE
AS $$
	SELECT s.last, i.item_id, i.label, coalesce(f.facts, 0)
		FROM (SELECT) one
		LEFT JOIN item i ON true
		LEFT JOIN like_seq s USING (item_id)
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		ORDER BY i.item_id
$$;
