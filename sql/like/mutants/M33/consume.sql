-- M33: base_seq is read in the statement that waits for the lock on the count row.
--
-- The guard taken away: lock first, then read in a later statement. The statement's snapshot is as old as its
-- beginning, so the consumer that waited for an install locks the new row and reads the baseline before it: events that
-- the new one contains are added once more.
--
-- Lock order: watermark row, then count rows in item order, as in the right consumer.

CREATE OR REPLACE FUNCTION like_consume(p_seqs bigint[],
	OUT applied bigint, OUT covered bigint, OUT dup bigint, OUT watermark bigint)
LANGUAGE plpgsql VOLATILE STRICT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_material = off
SET jit = off
AS $$
DECLARE
	STRIDE CONSTANT bigint := 100;
	v_listed int8multirange;
	v_known int8multirange;
	v_fresh int8multirange;
	v_items bigint[];
	v_locked bigint;
	v_locked_items bigint[];
	v_bases bigint[];
	v_seq bigint;
	v_item bigint;
	v_before bigint;
	v_step bigint;
BEGIN
	IF array_position(p_seqs, NULL) IS NOT NULL THEN
		RAISE EXCEPTION 'the list of events contains a null' USING ERRCODE = 'null_value_not_allowed';
	END IF;
	SELECT coalesce(range_agg(int8range(l.seq, l.seq + 1)), '{}') INTO v_listed FROM unnest(p_seqs) l (seq);

	SELECT w.applied_upto INTO STRICT v_before FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	PERFORM like_require_log('watermark', v_before);

	SELECT array_agg(DISTINCT o.item_id) INTO v_items
		FROM unnest(v_listed) run CROSS JOIN LATERAL (
			SELECT l.item_id FROM like_outbox l WHERE l.seq >= lower(run) AND l.seq < upper(run) ORDER BY l.seq OFFSET 0) o;

	SELECT array_agg(b.item_id), array_agg(b.base_seq), count(*) INTO v_locked_items, v_bases, v_locked
		FROM (SELECT c.item_id FROM like_count c WHERE c.item_id = ANY (v_items) ORDER BY +c.item_id FOR UPDATE) l
		JOIN like_count b ON b.item_id = l.item_id;

	SELECT coalesce(range_agg(int8range(p.seq, p.seq + 1)), '{}') INTO v_known
		FROM unnest(v_listed) run CROSS JOIN LATERAL (
			SELECT r.seq FROM processed_event r WHERE r.seq >= lower(run) AND r.seq < upper(run) OFFSET 0) p;
	v_fresh := v_listed - v_known;

	WITH event AS MATERIALIZED (
		SELECT o.seq, o.item_id, o.delta, o.seq <= (
				SELECT b.base_seq FROM unnest(v_locked_items, v_bases) b (item_id, base_seq)
					WHERE b.item_id = o.item_id) AS in_baseline
			FROM unnest(v_fresh) run CROSS JOIN LATERAL (
				SELECT l.* FROM like_outbox l WHERE l.seq >= lower(run) AND l.seq < upper(run) ORDER BY l.seq OFFSET 0) o
	), registered AS (
		INSERT INTO processed_event (seq, how)
			SELECT e.seq, CASE WHEN e.in_baseline THEN 'COVERED' ELSE 'APPLIED' END FROM event e
	), counted AS (
		UPDATE like_count c SET n = c.n + d.delta
			FROM (SELECT e.item_id, sum(e.delta) AS delta FROM event e WHERE NOT e.in_baseline GROUP BY e.item_id) d
			CROSS JOIN LATERAL (SELECT k.ctid AS place FROM like_count k WHERE k.item_id = d.item_id OFFSET 0) k
			WHERE c.ctid = k.place
	)
	SELECT count(*) FILTER (WHERE NOT e.in_baseline), count(*) FILTER (WHERE e.in_baseline)
		INTO applied, covered FROM event e;
	dup := cardinality(p_seqs) - applied - covered;

	IF v_locked < cardinality(v_items) THEN
		SELECT o.seq, o.item_id INTO v_seq, v_item FROM unnest(p_seqs) l (seq) JOIN like_outbox o ON o.seq = l.seq
			WHERE NOT EXISTS (SELECT FROM like_count c WHERE c.item_id = o.item_id)
			ORDER BY o.seq LIMIT 1;
		RAISE EXCEPTION 'event %: item % has no count row', v_seq, v_item USING ERRCODE = 'no_data_found';
	END IF;
	IF applied + covered < (SELECT sum(upper(run) - lower(run)) FROM unnest(v_fresh) run) THEN
		SELECT min(l.seq) INTO v_seq FROM unnest(p_seqs) l (seq)
			WHERE l.seq <@ v_fresh AND NOT EXISTS (SELECT FROM like_outbox o WHERE o.seq = l.seq);
		RAISE EXCEPTION 'event % is not in the outbox', v_seq USING ERRCODE = 'no_data_found';
	END IF;

	-- All that was listed is processed now: the run that begins at or before the next number carries the watermark to
	-- its end. From there it follows what was processed earlier: of the numbers above it, which are distinct, the k-th is
	-- watermark + k exactly as long as none is missing.
	SELECT coalesce(max(upper(run)) - 1, v_before) INTO watermark
		FROM unnest(v_listed) run WHERE v_before + 1 <@ run;
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
