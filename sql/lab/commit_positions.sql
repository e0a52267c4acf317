-- Where the transactions that wrote the events committed, in the WAL from a position on, beside the numbers of the events: no
-- event may have committed before one with a smaller number. Transaction numbers do not say it, they are drawn before.
-- Needs pg_walinspect, which a superuser has made, and whoever may read WAL (pg_read_server_files). Events of one
-- transaction have one position. What was written before `since`, or in a subtransaction, is not found.

CREATE FUNCTION commit_positions(since pg_lsn, OUT events bigint, OUT found bigint, OUT inverted bigint)
LANGUAGE sql
AS $$
	WITH committed AS MATERIALIZED (
		SELECT xid::text, start_lsn FROM pg_get_wal_records_info(since, pg_current_wal_flush_lsn())
		WHERE resource_manager = 'Transaction' AND record_type = 'COMMIT'
	), numbered AS (
		SELECT seq, start_lsn, lag(start_lsn) OVER (ORDER BY seq) AS before
		FROM like_outbox LEFT JOIN committed ON xid = like_outbox.xmin::text
	)
	SELECT count(*), count(start_lsn), count(*) FILTER (WHERE before > start_lsn) FROM numbered
$$;
