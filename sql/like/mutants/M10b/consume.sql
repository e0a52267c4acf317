-- M10b: what was added is remembered in a file of the consumer, outside the database; it is written after the commit.
--
-- The guard taken away: whether an event was added is known by the database, in the transaction that adds it.
-- processed_event is still written, so the watermark moves, but it is not asked. Killed between
-- commit and file, the batch is added and not known: it is added again.
--
-- Lock order: watermark row, then count rows in item order, as in the right consumer.
--
-- p_known is the number in the file: events up to it are taken for added.

CREATE OR REPLACE FUNCTION like_consume(p_seqs bigint[], p_known bigint,
	OUT applied bigint, OUT covered bigint, OUT dup bigint, OUT watermark bigint)
LANGUAGE plpgsql VOLATILE STRICT
AS $$
BEGIN
	PERFORM FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT o.item_id FROM like_outbox o WHERE o.seq = ANY (p_seqs))
		ORDER BY c.item_id FOR UPDATE;

	WITH event AS MATERIALIZED (
		SELECT o.seq, o.item_id, o.delta, o.seq <= c.base_seq AS in_baseline, o.seq <= p_known AS known
			FROM like_outbox o JOIN like_count c USING (item_id) WHERE o.seq = ANY (p_seqs)
	), registered AS (
		INSERT INTO processed_event (seq, how)
			SELECT e.seq, CASE WHEN e.in_baseline THEN 'COVERED' ELSE 'APPLIED' END FROM event e
			ON CONFLICT DO NOTHING
	), counted AS (
		UPDATE like_count c SET n = c.n + d.delta
			FROM (
				SELECT e.item_id, sum(e.delta) AS delta FROM event e WHERE NOT e.known AND NOT e.in_baseline
					GROUP BY e.item_id) d
			WHERE c.item_id = d.item_id
	)
	SELECT count(*) FILTER (WHERE NOT e.known AND NOT e.in_baseline), count(*) FILTER (WHERE NOT e.known AND e.in_baseline)
		INTO applied, covered FROM event e;
	dup := cardinality(p_seqs) - applied - covered;

	SELECT count(*) INTO watermark
		FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p) p WHERE p.seq = p.k;
	UPDATE counter_watermark w SET applied_upto = watermark WHERE w.id = 1;
END
$$;
