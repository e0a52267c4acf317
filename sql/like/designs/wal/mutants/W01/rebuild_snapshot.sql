-- W01: a rebuild takes a position for its baseline: every event whose commit lies before the end of the log.
--
-- The guard taken away: the baseline is the snapshot in which the facts were read. A commit is in the log before
-- snapshots see it: its fact is not in C(S), its event lies before the position, and delivered, it is taken for COVERED
-- and never counted. The events before the position are written down as a snapshot here, so that all else is as it was.
--
-- Lock order: the feed's advisory lock. Repeatable Read, as for the right snapshot.

CREATE OR REPLACE FUNCTION like_snapshot() RETURNS TABLE (seq bigint, item_id bigint, label text, facts bigint)
LANGUAGE sql VOLATILE
AS $$
	SELECT pg_advisory_xact_lock(hashtext('like_feed'));

	WITH logged AS MATERIALIZED (
		SELECT DISTINCT convert_from(substring(c.data FROM 19 + get_byte(c.data, 12)), 'UTF8')::xid8 AS xid
			FROM like_feed f, pg_logical_slot_peek_binary_changes(like_slot(f.opened),
				pg_current_wal_insert_lsn(), NULL, 'proto_version', '1', 'publication_names', 'like_events') c
			WHERE chr(get_byte(c.data, 0)) = 'I'
	), top AS (
		SELECT greatest(pg_snapshot_xmax(pg_current_snapshot()),
			(SELECT (max(l.xid::text::bigint) + 1)::text::xid8 FROM logged l)) AS xmax
	), outside AS (
		(SELECT pg_snapshot_xip(pg_current_snapshot()) AS xid UNION SELECT e.xid FROM like_pending e)
		EXCEPT SELECT l.xid FROM logged l
	), baseline AS (
		INSERT INTO like_baseline (seq, snapshot)
			SELECT w.applied_upto + (SELECT count(*) FROM like_pending),
				(SELECT format('%s:%s:%s', coalesce(min(o.xid), t.xmax), t.xmax,
						string_agg(o.xid::text, ',' ORDER BY o.xid))::pg_snapshot
					FROM top t LEFT JOIN outside o ON o.xid < t.xmax GROUP BY t.xmax)
				FROM counter_watermark w WHERE w.id = 1
			RETURNING like_baseline.seq
	)
	SELECT b.seq, i.item_id, i.label, coalesce(f.facts, 0)
		FROM baseline b
		LEFT JOIN item i ON true
		LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
		ORDER BY i.item_id
$$;
