-- M21a: a rebuild takes up the items that somebody likes.
--
-- The guard taken away: every row of item is in the snapshot, with 0 facts if it has none. An item that nobody likes (any
-- longer) is left alone, and whatever wrong count it has stays.
--
-- Lock order: none. Repeatable Read, as for the right snapshot.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql VOLATILE
AS $$
	WITH baseline AS (
		INSERT INTO like_baseline (seq, snapshot)
			SELECT w.applied_upto + (SELECT count(*) FROM like_pending), pg_current_snapshot()
				FROM counter_watermark w WHERE w.id = 1
			RETURNING like_baseline.seq
	)
	SELECT b.seq, i.item_id, i.label, i.facts
		FROM baseline b
		LEFT JOIN (item JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f
			USING (item_id)) i ON true
		ORDER BY i.item_id
$$;
