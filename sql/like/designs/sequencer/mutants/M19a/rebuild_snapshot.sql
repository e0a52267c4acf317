-- M19a: a rebuild reads the number first and the facts in a second statement, in Read Committed.
--
-- The guard taken away: one snapshot for both. It has two locks of its own, each of which would be enough: Repeatable
-- Read, and a single statement; the pair is gone. VOLATILE gives each statement its snapshot. An event committed
-- and numbered between them is above S and in C(S): delivered, it is counted a second time.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_last bigint;
BEGIN
	SELECT s.last INTO STRICT v_last FROM like_seq s WHERE s.id = 1;

	RETURN QUERY SELECT v_last, i.item_id, i.label, coalesce(f.facts, 0) - coalesce(u.deltas, 0)
		FROM (SELECT) one
		LEFT JOIN item i ON true
		LEFT JOIN (SELECT l.item_id, count(*) AS facts FROM like_fact l WHERE l.liked GROUP BY l.item_id) f
			ON f.item_id = i.item_id
		LEFT JOIN (SELECT l.item_id, sum(l.delta) AS deltas FROM like_unnumbered l GROUP BY l.item_id) u
			ON u.item_id = i.item_id
		ORDER BY i.item_id;
END
$$;
