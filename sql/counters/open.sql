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

-- The same for those who have run INSERT, UPDATE or DELETE on a table, also one that met no row and so gave them no number.
PREPARE counters_writing (oid) AS
	SELECT array(SELECT l.virtualtransaction FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted AND l.relation = $1
				AND d.datname = current_database() AND l.pid IS DISTINCT FROM pg_backend_pid())::text AS writing;

PREPARE counters_gone (text[]) AS
	SELECT NOT EXISTS (SELECT FROM pg_locks l WHERE l.virtualtransaction = ANY ($1)) AS gone;
