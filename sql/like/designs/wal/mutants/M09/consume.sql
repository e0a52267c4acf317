-- M09: an event is added to the count in one transaction and registered in the next.
--
-- The guard taken away: registration and effect are one transaction. Killed between the two, an event is added and not
-- registered: delivered again it is added again. So it is when another consumer gets it between the two.
--
-- Lock order: watermark row, then count rows in item order, in both transactions.
--
-- The consumer of this twin calls these two functions instead of like_consume().

CREATE OR REPLACE FUNCTION like_add(p_seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT o.item_id FROM like_outbox o WHERE o.seq = ANY (p_seqs))
		ORDER BY c.item_id FOR UPDATE;

	UPDATE like_count c SET n = c.n + d.delta
		FROM (
			SELECT o.item_id, sum(o.delta) AS delta FROM like_outbox o JOIN like_count k USING (item_id)
				WHERE o.seq = ANY (p_seqs) AND NOT (k.base_seq > 0 AND pg_visible_in_snapshot(o.xid, k.base))
					AND NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
				GROUP BY o.item_id) d
		WHERE c.item_id = d.item_id;
END
$$;

CREATE OR REPLACE FUNCTION like_register(p_seqs bigint[],
	OUT applied bigint, OUT covered bigint, OUT dup bigint, OUT watermark bigint)
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT o.item_id FROM like_outbox o WHERE o.seq = ANY (p_seqs))
		ORDER BY c.item_id FOR UPDATE;

	WITH registered AS (
		INSERT INTO processed_event (seq, how)
			SELECT o.seq, CASE WHEN c.base_seq > 0 AND pg_visible_in_snapshot(o.xid, c.base) THEN 'COVERED' ELSE 'APPLIED' END
				FROM like_outbox o JOIN like_count c USING (item_id)
				WHERE o.seq = ANY (p_seqs) AND NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
			RETURNING seq, how
	)
	SELECT count(*) FILTER (WHERE r.how = 'APPLIED'), count(*) FILTER (WHERE r.how = 'COVERED')
		INTO applied, covered FROM registered r;
	dup := cardinality(p_seqs) - applied - covered;

	SELECT count(*) INTO watermark FROM processed_event p;
	UPDATE counter_watermark w SET applied_upto = watermark, floor = like_floor() WHERE w.id = 1;
END
$$;
