-- M08: an event is registered in one transaction and added to the count in the next.
--
-- The guard taken away: registration and effect are one transaction. Killed between the two, an event is registered and
-- never added: delivered again it is a dup. The watermark goes on and lag gets to 0 as if all were well.
--
-- Lock order: count rows in item order, in both transactions.
--
-- The consumer of this twin calls these two functions instead of like_consume().

CREATE OR REPLACE FUNCTION like_register(p_seqs bigint[],
	OUT to_add bigint[], OUT applied bigint, OUT covered bigint, OUT dup bigint, OUT watermark bigint)
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT like_event_item(l.event) FROM unnest(p_seqs) l (event))
		ORDER BY c.item_id FOR UPDATE;

	WITH registered AS (
		INSERT INTO processed_event (item_id, seq, how)
			SELECT o.item_id, o.seq, CASE WHEN o.seq <= c.base_seq THEN 'COVERED' ELSE 'APPLIED' END
				FROM like_outbox o JOIN like_count c USING (item_id)
				WHERE like_event(o.item_id, o.seq) = ANY (p_seqs) AND NOT EXISTS (
						SELECT FROM processed_event p WHERE p.item_id = o.item_id AND p.seq = o.seq)
			RETURNING like_event(item_id, seq) AS event, how
	)
	SELECT coalesce(array_agg(r.event) FILTER (WHERE r.how = 'APPLIED'), '{}'), count(*) FILTER (WHERE r.how = 'APPLIED'),
		count(*) FILTER (WHERE r.how = 'COVERED') INTO to_add, applied, covered FROM registered r;
	dup := cardinality(p_seqs) - applied - covered;

	UPDATE counter_watermark w SET applied_upto = r.run_end
		FROM (
			SELECT p.item_id, count(*) FILTER (WHERE p.seq = p.k) AS run_end
				FROM (SELECT e.item_id, e.seq, row_number() OVER (PARTITION BY e.item_id ORDER BY e.seq) AS k
					FROM processed_event e) p
				GROUP BY p.item_id) r
		WHERE w.item_id = r.item_id AND w.item_id IN (SELECT like_event_item(l.event) FROM unnest(p_seqs) l (event));
	SELECT coalesce(sum(w.applied_upto), 0) INTO watermark FROM counter_watermark w;
END
$$;

CREATE OR REPLACE FUNCTION like_add(p_seqs bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT like_event_item(l.event) FROM unnest(p_seqs) l (event))
		ORDER BY c.item_id FOR UPDATE;
	UPDATE like_count c SET n = c.n + d.delta
		FROM (SELECT o.item_id, sum(o.delta) AS delta FROM like_outbox o WHERE like_event(o.item_id, o.seq) = ANY (p_seqs) GROUP BY o.item_id) d
		WHERE c.item_id = d.item_id;
END
$$;
