-- The read path on a standby, and what the primary has beyond it.
--
-- Guarantee: on the standby everything is as of one snapshot of what it has replayed, n and its bound among it: |n - facts| <=
-- pending, for the facts that the standby shows. Events have their numbers in commit order, so a standby that shows the number
-- row at `last` shows events 1..last and none above. What the primary has of the item above `last`, asked for afterwards, is
-- therefore all that is missing: |n - facts of the primary| <= pending + beyond. Asked for before, it could lack some.
--
-- Lock order: none, nothing is locked.
--
-- A primary that does not answer may have any number of events: then no bound relative to it is known.

CREATE OR REPLACE FUNCTION like_read_count_replayed(p_item bigint, p_allowed_lag bigint)
	RETURNS TABLE (n bigint, lag bigint, pending bigint, stale boolean, last bigint)
LANGUAGE sql STABLE
AS $$
	SELECT c.n, c.lag, c.pending, c.stale, s.last
		FROM like_read_count(p_item, p_allowed_lag) c, like_seq s WHERE s.id = 1
$$;

-- On the primary: events of an item above a number. In proportion to them, by the index on (item_id, seq).
CREATE OR REPLACE FUNCTION like_events_beyond(p_item bigint, p_last bigint) RETURNS bigint
LANGUAGE sql STABLE
SET enable_seqscan = off
AS $$
	SELECT count(*) FROM like_outbox o WHERE o.item_id = p_item AND o.seq > p_last
$$;

-- How far a standby has come, to be asked for before the count: the position, and the milliseconds since the last commit
-- that it replayed was made, by the clocks of both. NULL where it has replayed none. On an idle primary it grows, too.
CREATE OR REPLACE FUNCTION standby_progress(OUT replayed pg_lsn, OUT since_ms bigint)
LANGUAGE sql VOLATILE
AS $$
	SELECT pg_last_wal_replay_lsn(),
		(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000)::bigint
$$;
