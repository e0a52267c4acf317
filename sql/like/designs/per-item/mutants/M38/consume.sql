-- M38: the consumer locks count rows in the order in which the list names their events.
--
-- The guard taken away: count rows in item order. There is no lock before them that could hide its lack. Batches that name
-- the same items in opposite order hold what the other waits for: 40P01.
--
-- Lock order: count rows as the list has them, each watermark under its own.

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
	v_marked bigint;
	v_top bigint;
	v_event bigint;
	v_item bigint;
	v_upto bigint;
	v_step bigint;
BEGIN
	IF array_position(p_seqs, NULL) IS NOT NULL THEN
		RAISE EXCEPTION 'the list of events contains a null' USING ERRCODE = 'null_value_not_allowed';
	END IF;
	SELECT coalesce(range_agg(int8range(l.event, l.event + 1)), '{}') INTO v_listed FROM unnest(p_seqs) l (event);
	SELECT array_agg(DISTINCT like_event_item(lower(run))) INTO v_items FROM unnest(v_listed) run;

	PERFORM c.item_id FROM like_count c WHERE c.item_id = ANY (v_items)
		ORDER BY (SELECT min(l.place) FROM unnest(p_seqs) WITH ORDINALITY l (event, place)
			WHERE like_event_item(l.event) = c.item_id)
		FOR UPDATE;
	GET DIAGNOSTICS v_locked = ROW_COUNT;
	SELECT max(c.base_seq) INTO v_top FROM like_count c WHERE c.item_id = ANY (v_items);
	PERFORM like_require_log(v_items);
	SELECT count(*) INTO v_marked FROM counter_watermark w WHERE w.item_id = ANY (v_items);

	SELECT coalesce(range_agg(int8range(like_event(p.item_id, p.seq), like_event(p.item_id, p.seq) + 1)), '{}') INTO v_known
		FROM unnest(v_listed) run CROSS JOIN LATERAL (
			SELECT r.item_id, r.seq FROM processed_event r
				WHERE r.item_id = like_event_item(lower(run)) AND r.seq >= like_event_seq(lower(run))
					AND r.seq <= like_event_seq(upper(run) - 1) OFFSET 0) p;
	v_fresh := v_listed - v_known;

	WITH event AS MATERIALIZED (
		SELECT o.seq, o.item_id, o.delta, o.seq <= v_top AND o.seq <= (
				SELECT c.base_seq FROM like_count c WHERE c.item_id = o.item_id) AS in_baseline
			FROM unnest(v_fresh) run CROSS JOIN LATERAL (
				SELECT l.* FROM like_outbox l
					WHERE l.item_id = like_event_item(lower(run)) AND l.seq >= like_event_seq(lower(run))
						AND l.seq <= like_event_seq(upper(run) - 1)
					ORDER BY l.seq OFFSET 0) o
	), registered AS (
		INSERT INTO processed_event (item_id, seq, how)
			SELECT e.item_id, e.seq, CASE WHEN e.in_baseline THEN 'COVERED' ELSE 'APPLIED' END FROM event e
	), counted AS (
		UPDATE like_count c SET n = c.n + d.delta
			FROM (SELECT e.item_id, sum(e.delta) AS delta FROM event e WHERE NOT e.in_baseline GROUP BY e.item_id) d
			CROSS JOIN LATERAL (SELECT k.ctid AS place FROM like_count k WHERE k.item_id = d.item_id OFFSET 0) k
			WHERE c.ctid = k.place
	)
	SELECT count(*) FILTER (WHERE NOT e.in_baseline), count(*) FILTER (WHERE e.in_baseline)
		INTO applied, covered FROM event e;
	dup := cardinality(p_seqs) - applied - covered;

	IF applied + covered < (SELECT sum(upper(run) - lower(run)) FROM unnest(v_fresh) run) THEN
		SELECT min(l.event) INTO v_event FROM unnest(p_seqs) l (event)
			WHERE l.event <@ v_fresh AND NOT EXISTS (
				SELECT FROM like_outbox o
					WHERE o.item_id = like_event_item(l.event) AND o.seq = like_event_seq(l.event));
		IF v_event IS NOT NULL THEN
			RAISE EXCEPTION 'event % of item % is not in the outbox', like_event_seq(v_event), like_event_item(v_event)
				USING ERRCODE = 'no_data_found';
		END IF;
	END IF;
	IF least(v_locked, v_marked) < cardinality(v_items) THEN
		SELECT min(l.event) INTO v_event FROM unnest(p_seqs) l (event)
			WHERE NOT EXISTS (SELECT FROM like_count c WHERE c.item_id = like_event_item(l.event))
				OR NOT EXISTS (SELECT FROM counter_watermark w WHERE w.item_id = like_event_item(l.event));
		RAISE EXCEPTION 'event % of item %: the item has no % row', like_event_seq(v_event), like_event_item(v_event),
			CASE WHEN v_locked < cardinality(v_items) THEN 'count' ELSE 'watermark' END USING ERRCODE = 'no_data_found';
	END IF;

	UPDATE counter_watermark w SET applied_upto = r.upto
		FROM (
			SELECT like_event_item(lower(run)) AS item_id, like_event_seq(lower(run)) AS first,
				like_event_seq(upper(run) - 1) AS upto FROM unnest(v_listed) run) r
		CROSS JOIN LATERAL (
			SELECT k.ctid AS place, k.applied_upto FROM counter_watermark k WHERE k.item_id = r.item_id OFFSET 0) k
		WHERE w.ctid = k.place AND r.first <= k.applied_upto + 1 AND r.upto > k.applied_upto;
	FOR v_item, v_upto IN
		SELECT w.item_id, w.applied_upto FROM counter_watermark w
			WHERE w.item_id = ANY (v_items) AND (
				SELECT p.seq FROM processed_event p WHERE p.item_id = w.item_id AND p.seq = w.applied_upto + 1) IS NOT NULL
	LOOP
		LOOP
			SELECT count(*) INTO v_step
				FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p
					WHERE p.item_id = v_item AND p.seq > v_upto AND p.seq <= v_upto + STRIDE) above
				WHERE above.seq = v_upto + above.k;
			v_upto := v_upto + v_step;
			EXIT WHEN v_step < STRIDE;
		END LOOP;
		UPDATE counter_watermark w SET applied_upto = v_upto WHERE w.item_id = v_item;
	END LOOP;
	SELECT coalesce(sum(w.applied_upto), 0) INTO watermark FROM counter_watermark w WHERE w.item_id = ANY (v_items);
END
$$;
