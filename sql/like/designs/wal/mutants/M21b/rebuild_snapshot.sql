-- M21b: a rebuild takes up the items that have a count row.
--
-- The guard taken away: every row of item is in the snapshot, whatever the derived side holds. An item whose count row is
-- gone gets none, reads as not there, and the consumer goes on being refused at its events.
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
	SELECT b.seq, i.item_id, i.label, coalesce(f.facts, 0)
		FROM baseline b
		LEFT JOIN (item JOIN like_count USING (item_id)) i ON true
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		ORDER BY i.item_id
$$;
