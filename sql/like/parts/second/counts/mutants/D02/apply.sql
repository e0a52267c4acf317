-- Twin D02: what is delivered again counts again. What is missing: an event that is registered is left alone.

CREATE OR REPLACE FUNCTION like_apply(p_seqs bigint[], p_items bigint[], p_deltas smallint[],
	OUT applied bigint, OUT covered bigint, OUT dup bigint, OUT watermark bigint)
LANGUAGE plpgsql VOLATILE STRICT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
	STRIDE CONSTANT bigint := 100;
	v_before bigint;
	v_step bigint;
BEGIN
	SELECT w.applied_upto INTO STRICT v_before FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;

	INSERT INTO like_count (item_id, n, base_seq)
		SELECT DISTINCT e.item_id, 0, 0 FROM unnest(p_items) e (item_id) ORDER BY e.item_id ON CONFLICT DO NOTHING;
	PERFORM c.item_id FROM like_count c WHERE c.item_id = ANY (p_items) ORDER BY c.item_id FOR UPDATE;

	WITH registered AS (
		INSERT INTO processed_event (seq, item_id, delta, how)
			SELECT DISTINCT ON (e.seq) e.seq, e.item_id, e.delta,
				CASE WHEN e.seq <= c.base_seq THEN 'COVERED' ELSE 'APPLIED' END
				FROM unnest(p_seqs, p_items, p_deltas) e (seq, item_id, delta) JOIN like_count c USING (item_id)
				ORDER BY e.seq
			ON CONFLICT (seq) DO UPDATE SET how = excluded.how
			RETURNING item_id, delta, how
	), counted AS (
		UPDATE like_count c SET n = c.n + d.delta
			FROM (SELECT r.item_id, sum(r.delta) AS delta FROM registered r WHERE r.how = 'APPLIED' GROUP BY r.item_id) d
			WHERE c.item_id = d.item_id
	)
	SELECT count(*) FILTER (WHERE r.how = 'APPLIED'), count(*) FILTER (WHERE r.how = 'COVERED')
		INTO applied, covered FROM registered r;
	dup := cardinality(p_seqs) - applied - covered;

	-- Of the numbers above it, which are distinct, the k-th is watermark + k exactly as long as none is missing.
	watermark := v_before;
	LOOP
		SELECT count(*) INTO v_step
			FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p
				WHERE p.seq > watermark AND p.seq <= watermark + STRIDE) above
			WHERE above.seq = watermark + above.k;
		watermark := watermark + v_step;
		EXIT WHEN v_step < STRIDE;
	END LOOP;
	IF watermark > v_before THEN
		UPDATE counter_watermark w SET applied_upto = watermark WHERE w.id = 1;
	END IF;
END
$$;
