-- Where a consumer stands: nowhere, what is processed is known by its registration alone.
--
-- Guarantee: like_watermark() is the number of processed events, which no pull begins behind. like_floor() is the largest
-- snapshot that contains processed events alone, found from the floor that there is; it never loses what that one contains.
-- like_watermark_reset() takes nothing for granted: it counts what is registered, finds the floor again, and has everything
-- else read from the outbox, also what the slot has confirmed.
--
-- Lock order: the reset takes the feed's advisory lock, the watermark row, then like_feed. The rest locks nothing.
--
-- Why a snapshot and not the oldest running transaction: one that stays open would hold it, and every look would walk over
-- all that was processed since. Here it costs one look at that transaction.

CREATE OR REPLACE FUNCTION like_watermark() RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT w.applied_upto FROM counter_watermark w WHERE w.id = 1
$$;

-- An id says nothing about where it lies, so none is impossible, and nothing lies behind one.
CREATE OR REPLACE FUNCTION like_last(p_event bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
	SELECT p_event
$$;

CREATE OR REPLACE FUNCTION like_left_behind(p_event bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
	SELECT false
$$;

CREATE OR REPLACE FUNCTION like_floor() RETURNS pg_snapshot
LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
	WITH top AS MATERIALIZED (
		SELECT least(pg_snapshot_xmax(pg_current_snapshot()), (
				SELECT o.xid FROM like_outbox o
					WHERE o.xid >= pg_snapshot_xmax(w.floor)
						AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL
					ORDER BY o.xid LIMIT 1)) AS xmax
			FROM counter_watermark w WHERE w.id = 1
	), outside AS (
		SELECT pg_snapshot_xip(pg_current_snapshot()) AS xid
		-- This transaction sees itself, and may yet write an event.
		UNION SELECT pg_current_xact_id_if_assigned()
		UNION SELECT o.xid FROM counter_watermark w JOIN like_outbox o ON o.xid = ANY (ARRAY(SELECT pg_snapshot_xip(w.floor)))
			WHERE w.id = 1 AND (SELECT p.seq FROM processed_event p WHERE p.seq = o.seq) IS NULL
	)
	SELECT format('%s:%s:%s', coalesce(min(o.xid), t.xmax), t.xmax, string_agg(o.xid::text, ',' ORDER BY o.xid))::pg_snapshot
		FROM top t LEFT JOIN outside o ON o.xid < t.xmax GROUP BY t.xmax
$$;

CREATE OR REPLACE FUNCTION like_watermark_reset() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('like_feed'));
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	UPDATE counter_watermark SET applied_upto = (SELECT count(*) FROM processed_event), floor = '1:1:' WHERE id = 1;
	UPDATE counter_watermark SET floor = like_floor() WHERE id = 1;
	UPDATE like_feed SET catch_up = greatest(pg_current_xact_id(), pg_snapshot_xmax(pg_current_snapshot())) WHERE id = 1;
END
$$;
