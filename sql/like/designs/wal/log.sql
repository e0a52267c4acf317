-- The log is what everything else was derived from: nothing derived may know an event that it does not have. There is no number that
-- could be ahead here: what is looked for are registrations of events that the outbox never drew an id for, and
-- snapshots, of baselines and of the floor, that saw transactions which this server has not had.
--
-- Lock order: none, nothing is locked. accept_log.sql is the way back.
--
-- What it does not see: a server that has had as many transactions again before anybody asked.

CREATE OR REPLACE FUNCTION like_audit_log() RETURNS SETOF text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
	RETURN QUERY
		SELECT format('%s registered events up to %s are ahead of the log, whose last event is %s', count(*), max(p.seq), o.last)
			FROM (SELECT coalesce(max(seq), 0) AS last FROM like_outbox) o JOIN processed_event p ON p.seq > o.last
			GROUP BY o.last
		UNION ALL
		SELECT format('the floor saw transaction %s, this server has had none from %s on', pg_snapshot_xmax(w.floor),
				pg_snapshot_xmax(pg_current_snapshot()))
			FROM counter_watermark w WHERE pg_snapshot_xmax(w.floor) > pg_snapshot_xmax(pg_current_snapshot())
		UNION ALL
		SELECT format('the baseline of %s saw transaction %s, this server has had none from %s on', i.label,
				pg_snapshot_xmax(c.base), pg_snapshot_xmax(pg_current_snapshot()))
			FROM like_count c JOIN item i USING (item_id)
			WHERE pg_snapshot_xmax(c.base) > pg_snapshot_xmax(pg_current_snapshot());
END
$$;
