-- The way back from logs that were restored or rewound: they are right, as they are now.
--
-- Guarantee: as in the one that this takes the place of, by item. last_seq and watermark are sums over all items.
--
-- Lock order: all number rows in item order, then all count rows, then all watermark rows: writers and consumers wait until it is
-- done, which takes as long as reading all facts.

CREATE OR REPLACE FUNCTION like_accept_log(OUT last_seq bigint, OUT watermark bigint, OUT forgotten bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM FROM like_seq s ORDER BY s.item_id FOR UPDATE;
	PERFORM FROM like_count c ORDER BY c.item_id FOR UPDATE;
	PERFORM FROM counter_watermark w ORDER BY w.item_id FOR UPDATE;
	DELETE FROM processed_event p USING like_seq s WHERE s.item_id = p.item_id AND p.seq > s.last;
	GET DIAGNOSTICS forgotten = ROW_COUNT;
	UPDATE like_count c SET base_seq = s.last FROM like_seq s WHERE s.item_id = c.item_id AND c.base_seq > s.last;
	UPDATE counter_watermark w SET applied_upto = (
		SELECT count(*)
			FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p
				WHERE p.item_id = w.item_id AND p.seq >= 1) r
			WHERE r.seq = r.k);
	PERFORM like_install(s.item_id, s.seq, s.facts) FROM like_snapshot() s WHERE s.item_id IS NOT NULL;
	SELECT sum(s.last) INTO last_seq FROM like_seq s;
	SELECT sum(w.applied_upto) INTO watermark FROM counter_watermark w;
END
$$;
