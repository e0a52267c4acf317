-- W07: the floor stays below the oldest transaction that is running.
--
-- The guard taken away: the floor names who is still running, and goes on. Here one transaction that stays open, be it
-- in another database, holds it, and every read walks over all that was processed since.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_floor() RETURNS pg_snapshot
LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
	SELECT format('%s:%s:', f.xid, f.xid)::pg_snapshot
		FROM counter_watermark w, LATERAL (
			SELECT least(pg_snapshot_xmin(pg_current_snapshot()), (
				SELECT o.xid FROM like_outbox o
					WHERE o.xid >= pg_snapshot_xmax(w.floor)
						AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL
					ORDER BY o.xid LIMIT 1)) AS xid) f
		WHERE w.id = 1
$$;
