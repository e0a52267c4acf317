-- The first half of a rebuild: S, the last event number, and C(S) of every item, those without any facts included.
--
-- Guarantee: the answer contains exactly the effects of events 1..S. The facts of a snapshot contain more: also what
-- events have left that are committed and have no number yet, which will lie above S. Their deltas are taken off.
--
-- Lock order: none. Run it in a Repeatable Read transaction: S, facts and unnumbered events must come from one snapshot,
-- however many statements ask for them.
--
-- Without any item there is one row that has only seq.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql STABLE
AS $$
	SELECT s.last, i.item_id, i.label, coalesce(f.facts, 0) - coalesce(u.deltas, 0)
		FROM like_seq s
		LEFT JOIN item i ON true
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		LEFT JOIN (SELECT item_id, sum(delta) AS deltas FROM like_unnumbered GROUP BY item_id) u USING (item_id)
		WHERE s.id = 1
		ORDER BY i.item_id
$$;
