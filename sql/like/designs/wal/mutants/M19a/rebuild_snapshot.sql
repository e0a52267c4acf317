-- M19a: a rebuild keeps its snapshot first and reads the facts in a second statement, in Read Committed.
--
-- The guard taken away: one snapshot for both. It has two locks of its own, each of which would be enough: Repeatable
-- Read, and a single statement; the pair is gone. VOLATILE gives each statement its snapshot. An event committed
-- between them is not in the snapshot and in C(S): delivered, it is counted a second time.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_seq bigint;
BEGIN
	INSERT INTO like_baseline (seq, snapshot)
		SELECT w.applied_upto + (SELECT count(*) FROM like_pending), pg_current_snapshot()
			FROM counter_watermark w WHERE w.id = 1
		RETURNING like_baseline.seq INTO STRICT v_seq;

	RETURN QUERY SELECT v_seq, i.item_id, i.label, coalesce(f.facts, 0)
		FROM (SELECT) one
		LEFT JOIN item i ON true
		LEFT JOIN (SELECT l.item_id, count(*) AS facts FROM like_fact l WHERE l.liked GROUP BY l.item_id) f
			ON f.item_id = i.item_id
		ORDER BY i.item_id;
END
$$;
