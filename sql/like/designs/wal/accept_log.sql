-- The way back from a log that was restored or rewound: the derived side begins again from it.
--
-- Guarantee: no registration is left of an event that the outbox does not have, no snapshot that this server has not had; counts are
-- baselines of a snapshot of now, and what is not registered comes again. Run it with the writers stopped.
--
-- Lock order: watermark row, then count rows in the order of their items.

CREATE OR REPLACE FUNCTION like_accept_log(OUT last_seq bigint, OUT watermark bigint, OUT forgotten bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	PERFORM FROM like_count c ORDER BY c.item_id FOR UPDATE;
	SELECT coalesce(max(o.seq), 0) INTO STRICT last_seq FROM like_outbox o;
	DELETE FROM processed_event p WHERE p.seq > last_seq;
	GET DIAGNOSTICS forgotten = ROW_COUNT;
	UPDATE like_count c SET base_seq = 0, base = '1:1:';
	DELETE FROM like_baseline;
	PERFORM like_watermark_reset();
	PERFORM like_install(s.item_id, s.seq, s.facts) FROM like_snapshot() s WHERE s.item_id IS NOT NULL;
	SELECT w.applied_upto INTO STRICT watermark FROM counter_watermark w WHERE w.id = 1;
END
$$;
