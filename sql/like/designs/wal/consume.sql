-- The consumer: deliver a list of events as one batch, in any order, with any repetition.
--
-- Guarantee: each event takes effect exactly once, whoever delivers it and how often. Its registration and its effect
-- are one transaction: APPLIED, added to the count, or COVERED, because the installed baseline contains it. The rest of
-- the list is dup; applied + covered + dup is the length of the list, or the batch fails and names an event that could
-- not be counted. The watermark is the number of processed events, and the floor follows what is processed.
--
-- Lock order: watermark row, then count rows in item order. Read Committed.
--
-- Why separate statements: baseline and processed_event are read after the locks are held, in later statements, whose
-- snapshots contain what the previous holder committed. Read in the statement that waits for the lock they would be as
-- old as its beginning, and an event inside a baseline just installed would be added again. What is registered is only
-- what was not known by then; the key of processed_event is the last guard and fails the batch whole.
--
-- Why runs: the list as a multirange has each id once, so an id the list repeats meets its event once, and ids that
-- follow each other are one index range instead of a probe each. A few old events cost a few probes.
--
-- Why a snapshot: the baseline contains the events that its transaction saw, and no others. A position in the log says
-- something else: a commit is in the log before snapshots see it, so an event at or below the log's end may be in none
-- of the facts that were read.
--
-- Why the settings: the plan has to be right on tables that nobody has analysed and for the whole life of a session, in
-- which they grow from nothing. One index range per run, one probe per event and per item are right whatever history
-- holds, so nothing else is left to choose from, and OFFSET 0 keeps the smaller side outside: joined the other way
-- round, or by hash or merge, a few events would cost a walk over history or over all items. ORDER BY seq keeps the
-- range on the key: another index would be walked whole; +item_id is sorted and not read off its key for the same
-- reason. The locked count rows stay where they are, so they are updated by their place. An event above the highest of
-- the baselines needs no look at its own. Compiling the plan would cost more than the batch.

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
	v_listed int8multirange;
	v_known int8multirange;
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

	SELECT coalesce(range_agg(int8range(p.seq, p.seq + 1)), '{}') INTO v_known
		FROM unnest(v_listed) run CROSS JOIN LATERAL (
			SELECT r.seq FROM processed_event r WHERE r.seq >= lower(run) AND r.seq < upper(run) OFFSET 0) p;
	v_fresh := v_listed - v_known;

	WITH event AS MATERIALIZED (
		SELECT o.seq, o.item_id, o.delta, coalesce(o.xid < v_top, false) AND (
				SELECT c.base_seq > 0 AND pg_visible_in_snapshot(o.xid, c.base)
					FROM like_count c WHERE c.item_id = o.item_id) AS in_baseline
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

	watermark := v_before + coalesce((SELECT sum(upper(run) - lower(run)) FROM unnest(v_fresh) run), 0);
	IF watermark > v_before THEN
		UPDATE counter_watermark w SET applied_upto = watermark, floor = like_floor() WHERE w.id = 1;
	END IF;
END
$$;
