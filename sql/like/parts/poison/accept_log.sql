-- The way back from a log that was restored or rewound, where registrations know their events.
--
-- Guarantee: as in the one that this takes the place of; registrations of another event than the log has under their number are
-- forgotten as well, with what is parked of them, and those events are delivered.
--
-- Lock order: the number row, the watermark row, then all count rows in item order.

CREATE OR REPLACE FUNCTION like_is_of_lost_event(p_registration processed_event, p_last bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
	SELECT p_registration.seq > p_last OR p_registration.digest IS DISTINCT FROM (
		SELECT like_digest(o) FROM like_outbox o WHERE o.seq = p_registration.seq)
$$;

CREATE OR REPLACE FUNCTION like_accept_log(OUT last_seq bigint, OUT watermark bigint, OUT forgotten bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT s.last INTO STRICT last_seq FROM like_seq s WHERE s.id = 1 FOR UPDATE;
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	PERFORM FROM like_count c ORDER BY c.item_id FOR UPDATE;
	DELETE FROM like_parked k USING processed_event p WHERE p.seq = k.seq AND like_is_of_lost_event(p, last_seq);
	DELETE FROM processed_event p WHERE like_is_of_lost_event(p, last_seq);
	GET DIAGNOSTICS forgotten = ROW_COUNT;
	UPDATE like_count c SET base_seq = last_seq WHERE c.base_seq > last_seq;
	PERFORM like_install(s.item_id, s.seq, s.facts) FROM like_snapshot() s WHERE s.item_id IS NOT NULL;
	SELECT count(*) INTO watermark
		FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p WHERE p.seq >= 1) r
		WHERE r.seq = r.k;
	UPDATE counter_watermark w SET applied_upto = like_accept_log.watermark WHERE w.id = 1;
END
$$;
