-- M08: an event is registered in one transaction and added to the count in the next.
--
-- The guard taken away: registration and effect are one transaction. Killed between the two, an event is registered and
-- never added: delivered again it is a dup. The watermark goes on and lag gets to 0 as if all were well.
--
-- Lock order: watermark row, then count rows in item order; in the second transaction count rows alone.
--
-- The consumer of this twin calls these two functions instead of like_consume().

CREATE OR REPLACE FUNCTION like_register(p_seqs bigint[],
	OUT to_add bigint[], OUT applied bigint, OUT covered bigint, OUT dup bigint, OUT watermark bigint)
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
	SELECT coalesce(array_agg(r.seq) FILTER (WHERE r.how = 'APPLIED'), '{}'), count(*) FILTER (WHERE r.how = 'APPLIED'),
		count(*) FILTER (WHERE r.how = 'COVERED') INTO to_add, applied, covered FROM registered r;
	dup := cardinality(p_seqs) - applied - covered;

	SELECT count(*) INTO watermark FROM processed_event p;
	UPDATE counter_watermark w SET applied_upto = watermark, floor = like_floor() WHERE w.id = 1;
END
$$;

CREATE OR REPLACE FUNCTION like_add(p_seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT o.item_id FROM like_outbox o WHERE o.seq = ANY (p_seqs))
		ORDER BY c.item_id FOR UPDATE;
	UPDATE like_count c SET n = c.n + d.delta
		FROM (SELECT o.item_id, sum(o.delta) AS delta FROM like_outbox o WHERE o.seq = ANY (p_seqs) GROUP BY o.item_id) d
		WHERE c.item_id = d.item_id;
END
$$;
