-- H08: a batch that waited for a shard takes it for granted that the shard is still there.
--
-- The guard taken away: it looks again when the number of shards has changed meanwhile.
--
-- Lock order: one shard of each item, in item order, then registrations in number order, then the watermark row if free.

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
	v_lane integer;
	v_listed int8multirange;
	v_known int8multirange;
	v_fresh int8multirange;
	v_items bigint[];
	v_shards integer[];
	v_locked bigint;
	v_top bigint;
	v_seq bigint;
	v_item bigint;
	v_met text;
BEGIN
	IF array_position(p_seqs, NULL) IS NOT NULL THEN
		RAISE EXCEPTION 'the list of events contains a null' USING ERRCODE = 'null_value_not_allowed';
	END IF;
	SELECT coalesce(range_agg(int8range(l.seq, l.seq + 1)), '{}') INTO v_listed FROM unnest(p_seqs) l (seq);
	v_lane := like_lane();

	SELECT array_agg(DISTINCT o.item_id ORDER BY o.item_id) INTO v_items
		FROM unnest(v_listed) run CROSS JOIN LATERAL (
			SELECT l.item_id FROM like_outbox l WHERE l.seq >= lower(run) AND l.seq < upper(run) ORDER BY l.seq OFFSET 0) o;

	LOOP
		SELECT array_agg((SELECT max(c.shard) + 1 FROM like_count c WHERE c.item_id = i.item_id) ORDER BY i.k)
			INTO v_shards FROM unnest(v_items) WITH ORDINALITY i (item_id, k);
		BEGIN
			PERFORM c.item_id FROM unnest(v_items, v_shards) i (item_id, shards)
				JOIN like_count c ON c.item_id = i.item_id AND c.shard = v_lane % i.shards
				ORDER BY +c.item_id FOR UPDATE OF c;
			GET DIAGNOSTICS v_locked = ROW_COUNT;
			SELECT max(c.base_seq) INTO v_top FROM like_count c WHERE c.item_id = ANY (v_items);
			PERFORM like_require_log('a base_seq of the batch', v_top);

			SELECT coalesce(range_agg(int8range(p.seq, p.seq + 1)), '{}') INTO v_known
				FROM unnest(v_listed) run CROSS JOIN LATERAL (
					SELECT r.seq FROM processed_event r WHERE r.seq >= lower(run) AND r.seq < upper(run) OFFSET 0) p;
			v_fresh := v_listed - v_known;

			WITH event AS MATERIALIZED (
				SELECT o.seq, o.item_id, o.delta, o.seq <= v_top AND o.seq <= (
						SELECT c.base_seq FROM like_count c WHERE c.item_id = o.item_id AND c.shard = v_lane % (
							SELECT max(m.shard) + 1 FROM like_count m WHERE m.item_id = o.item_id)) AS in_baseline
					FROM unnest(v_fresh) run CROSS JOIN LATERAL (
						SELECT l.* FROM like_outbox l WHERE l.seq >= lower(run) AND l.seq < upper(run)
							ORDER BY l.seq OFFSET 0) o
			), registered AS (
				INSERT INTO processed_event (seq, how)
					SELECT e.seq, CASE WHEN e.in_baseline THEN 'COVERED' ELSE 'APPLIED' END FROM event e ORDER BY e.seq
			), counted AS (
				UPDATE like_count c SET n = c.n + d.delta
					FROM (SELECT e.item_id, sum(e.delta) AS delta FROM event e WHERE NOT e.in_baseline GROUP BY e.item_id) d
					CROSS JOIN LATERAL (
						SELECT k.ctid AS place FROM like_count k WHERE k.item_id = d.item_id AND k.shard = v_lane % (
							SELECT max(m.shard) + 1 FROM like_count m WHERE m.item_id = d.item_id) OFFSET 0) k
					WHERE c.ctid = k.place
			)
			SELECT count(*) FILTER (WHERE NOT e.in_baseline), count(*) FILTER (WHERE e.in_baseline)
				INTO applied, covered FROM event e;
			EXIT;
		EXCEPTION
			WHEN unique_violation THEN
				GET STACKED DIAGNOSTICS v_met = CONSTRAINT_NAME;
				IF v_met <> 'processed_event_pkey' THEN
					RAISE;
				END IF;
		END;
	END LOOP;
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
	watermark := like_follow(false);
END
$$;
