-- M10a and M10b: what was added is remembered in a file of the consumer, outside the database. M10a writes it before
-- the commit, M10b after it: that is the consumer's step, the SQL is the same.
--
-- The guard taken away: whether an event was added is known by the database, in the transaction that adds it.
-- processed_event is still written, so the watermark moves, but it is not asked. Killed between file and commit (M10a),
-- the batch is known and not added: it is lost. Killed between commit and file (M10b), it is added and not known: it is
-- added again.
--
-- Lock order: watermark row, then count rows in item order, as in the right consumer. p_known is the number in the
-- file: events up to it are taken for added.

CREATE OR REPLACE FUNCTION like_consume(p_seqs bigint[], p_known bigint,
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
	v_listed int8multirange;
	v_fresh int8multirange;
	v_items bigint[];
	v_locked bigint;
	v_top xid8;
	v_seq bigint;
	v_item bigint;
	v_before bigint;
BEGIN
	IF array_position(p_seqs, NULL) IS NOT NULL THEN
		RAISE EXCEPTION 'the list of events contains a null' USING ERRCODE = 'null_value_not_allowed';
	END IF;
	SELECT coalesce(range_agg(int8range(l.seq, l.seq + 1)), '{}') INTO v_listed FROM unnest(p_seqs) l (seq);

	SELECT w.applied_upto INTO STRICT v_before FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;

	SELECT array_agg(DISTINCT o.item_id) INTO v_items
		FROM unnest(v_listed) run CROSS JOIN LATERAL (
			SELECT l.item_id FROM like_outbox l WHERE l.seq >= lower(run) AND l.seq < upper(run) ORDER BY l.seq OFFSET 0) o;

	PERFORM c.item_id FROM like_count c WHERE c.item_id = ANY (v_items) ORDER BY +c.item_id FOR UPDATE;
	GET DIAGNOSTICS v_locked = ROW_COUNT;
	SELECT max(pg_snapshot_xmax(c.base)) INTO v_top FROM like_count c WHERE c.item_id = ANY (v_items) AND c.base_seq > 0;

	v_fresh := v_listed * int8multirange(int8range(p_known + 1, NULL));

	WITH event AS MATERIALIZED (
		SELECT o.seq, o.item_id, o.delta, coalesce(o.xid < v_top, false) AND (
				SELECT c.base_seq > 0 AND pg_visible_in_snapshot(o.xid, c.base)
					FROM like_count c WHERE c.item_id = o.item_id) AS in_baseline,
				o.seq <@ v_fresh AS fresh
			FROM unnest(v_listed) run CROSS JOIN LATERAL (
				SELECT l.* FROM like_outbox l WHERE l.seq >= lower(run) AND l.seq < upper(run) ORDER BY l.seq OFFSET 0) o
	), registered AS (
		INSERT INTO processed_event (seq, how)
			SELECT e.seq, CASE WHEN e.in_baseline THEN 'COVERED' ELSE 'APPLIED' END FROM event e
			ON CONFLICT DO NOTHING
	), counted AS (
		UPDATE like_count c SET n = c.n + d.delta
			FROM (SELECT e.item_id, sum(e.delta) AS delta FROM event e WHERE e.fresh AND NOT e.in_baseline GROUP BY e.item_id) d
			CROSS JOIN LATERAL (SELECT k.ctid AS place FROM like_count k WHERE k.item_id = d.item_id OFFSET 0) k
			WHERE c.ctid = k.place
	)
	SELECT count(*) FILTER (WHERE NOT e.in_baseline), count(*) FILTER (WHERE e.in_baseline)
		INTO applied, covered FROM event e WHERE e.fresh;
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

	watermark := v_before + coalesce((SELECT sum(upper(run) - lower(run)) FROM unnest(v_fresh) run), 0);
	IF watermark > v_before THEN
		UPDATE counter_watermark w SET applied_upto = watermark, floor = like_floor() WHERE w.id = 1;
	END IF;
END
$$;
