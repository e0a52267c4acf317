-- M19a: a rebuild reads the number first and the facts in a second statement, in Read Committed.
--
-- The guard taken away: one snapshot for both. It has two locks of its own, each of which would be enough: Repeatable
-- Read, and a single statement; the pair is gone. VOLATILE gives each statement its snapshot. An event committed between
-- them is above S and in C(S): delivered, it is counted a second time.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_items bigint[];
	v_lasts bigint[];
BEGIN
	SELECT array_agg(s.item_id), array_agg(s.last) INTO v_items, v_lasts FROM like_seq s;

	RETURN QUERY SELECT s.last, i.item_id, i.label, coalesce(f.facts, 0)
		FROM (SELECT) one
		LEFT JOIN item i ON true
		LEFT JOIN unnest(v_items, v_lasts) s (item_id, last) ON s.item_id = i.item_id
		LEFT JOIN (SELECT l.item_id, count(*) AS facts FROM like_fact l WHERE l.liked GROUP BY l.item_id) f
			ON f.item_id = i.item_id
		ORDER BY i.item_id;
END
$$;
