-- M19b: a rebuild reads the facts first and the number in a second statement, in Read Committed.
--
-- The guard taken away: one snapshot for both. It has two locks of its own, each of which would be enough: Repeatable
-- Read, and a single statement; the pair is gone. VOLATILE gives each statement its snapshot. An event committed between
-- them is not in C(S) and at or below S: delivered, it is taken for COVERED and never counted.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_items bigint[];
	v_facts bigint[];
BEGIN
	SELECT array_agg(l.item_id), array_agg(l.facts) INTO v_items, v_facts
		FROM (SELECT k.item_id, count(*) AS facts FROM like_fact k WHERE k.liked GROUP BY k.item_id) l;

	RETURN QUERY SELECT s.last, i.item_id, i.label, coalesce(f.facts, 0)
		FROM (SELECT) one
		LEFT JOIN item i ON true
		LEFT JOIN like_seq s ON s.item_id = i.item_id
		LEFT JOIN unnest(v_items, v_facts) f (item_id, facts) ON f.item_id = i.item_id
		ORDER BY i.item_id;
END
$$;
