-- Whether every transaction that was open at a moment has ended.
--
-- Guarantee: counters_open told at that moment, counters_ended says true only when none of what could have been invisible to a snapshot
-- taken before is still open. A snapshot's own bounds are not enough: its xmax is the first number above those that have completed, so
-- that the newest transactions are open at or above it. Each of them holds a lock on its number, prepared ones, too.
--
-- On a standby the locks of the primary's transactions are not visible, and only those below the snapshot's xmax are waited for.

PREPARE counters_open AS
	SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS xmax,
		array(SELECT l.transactionid::text FROM pg_locks l
			WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted)::text AS open;

PREPARE counters_ended (text, text[]) AS
	SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::xid8
		AND NOT EXISTS (SELECT FROM pg_locks l
			WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid::text = ANY ($2)) AS ended;
