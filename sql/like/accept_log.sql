-- The way back from a log that was restored or rewound: it is right, as it is now.
--
-- Guarantee: every count is made from facts as of the log's last event, whose number becomes every item's baseline, so that no
-- event of the log can count once more; what is registered above it is forgotten. The offset file of a consumer that is ahead is
-- refused by itself, and has to be removed.
--
-- Lock order: the number row, the watermark row, then all count rows in item order: writers and consumers wait until it is
-- done, which takes as long as reading all facts.

CREATE OR REPLACE FUNCTION like_accept_log(OUT last_seq bigint, OUT watermark bigint, OUT forgotten bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT s.last INTO STRICT last_seq FROM like_seq s WHERE s.id = 1 FOR UPDATE;
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	PERFORM FROM like_count c ORDER BY c.item_id FOR UPDATE;
	DELETE FROM processed_event p WHERE p.seq > last_seq;
	GET DIAGNOSTICS forgotten = ROW_COUNT;
	UPDATE like_count c SET base_seq = last_seq WHERE c.base_seq > last_seq;
	PERFORM like_install(s.item_id, s.seq, s.facts) FROM like_snapshot() s WHERE s.item_id IS NOT NULL;
	SELECT count(*) INTO watermark
		FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p WHERE p.seq >= 1) r
		WHERE r.seq = r.k;
	UPDATE counter_watermark w SET applied_upto = like_accept_log.watermark WHERE w.id = 1;
END
$$;
