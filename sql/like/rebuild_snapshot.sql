-- The first half of a rebuild: S, the last event number, and C(S), the facts of every item, those without any included.
--
-- Guarantee: the answer contains exactly the effects of events 1..S. Number order is commit order, so a snapshot that
-- shows the number row at S shows the facts of all events up to S and of none above.
--
-- Lock order: none. Run it in a Repeatable Read transaction: S and C(S) must come from one snapshot, however many
-- statements ask for them. Taken in two, an event committed between them would be counted and applied, or neither.
--
-- Without any item there is one row that has only seq.

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
