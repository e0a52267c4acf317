-- M07: the consumer applies what it is given and does not ask whether it was given it before.
--
-- The guard taken away: deduplication. processed_event is still written, so the watermark moves and lag falls to 0 as if
-- all were well, but an event that was registered before is added all the same, as often as it is delivered.
--
-- Lock order: watermark row, then count rows in item order, as in the right consumer.

CREATE OR REPLACE FUNCTION like_consume(p_seqs bigint[],
	OUT applied bigint, OUT covered bigint, OUT dup bigint, OUT watermark bigint)
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;

	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT o.item_id FROM like_outbox o WHERE o.seq = ANY (p_seqs))
		ORDER BY c.item_id FOR UPDATE;

	WITH event AS MATERIALIZED (
		SELECT o.seq, o.item_id, o.delta, o.seq <= c.base_seq AS in_baseline
			FROM unnest(p_seqs) l (seq) JOIN like_outbox o ON o.seq = l.seq JOIN like_count c ON c.item_id = o.item_id
	), registered AS (
		INSERT INTO processed_event (seq, how)
			SELECT DISTINCT e.seq, CASE WHEN e.in_baseline THEN 'COVERED' ELSE 'APPLIED' END FROM event e
			ON CONFLICT DO NOTHING
	), counted AS (
		UPDATE like_count c SET n = c.n + d.delta
			FROM (SELECT e.item_id, sum(e.delta) AS delta FROM event e WHERE NOT e.in_baseline GROUP BY e.item_id) d
			WHERE c.item_id = d.item_id
	)
	SELECT count(*) FILTER (WHERE NOT e.in_baseline), count(*) FILTER (WHERE e.in_baseline)
		INTO applied, covered FROM event e;
	dup := 0;

	SELECT count(*) INTO watermark
		FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p) p WHERE p.seq = p.k;
	UPDATE counter_watermark w SET applied_upto = watermark WHERE w.id = 1;
END
$$;
