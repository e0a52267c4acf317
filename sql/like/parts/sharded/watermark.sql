-- The watermark of sharded counts, which no consumer holds while it works.
--
-- Guarantee: never above the end of the contiguous run of processed numbers; like_watermark() carries it to that end, as of
-- its call, and answers it. All that was committed before the call is seen: it waits for whoever is following.
--
-- Lock order: the watermark row, nothing else. Read Committed.
--
-- Why apart: held from the beginning of a batch to its commit, this row would put all batches in a line, and shards would
-- be for nothing. A batch carries it on at its end if nobody else is just doing so. Passed over for that it stays behind for
-- a while, which lag tells as what it is: events that may not be processed yet. It is found by whoever comes next.
--
-- Why counting: of the numbers above the watermark, which are distinct, the k-th is watermark + k exactly as long as none
-- is missing.

CREATE OR REPLACE FUNCTION like_follow(p_wait boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
	STRIDE CONSTANT bigint := 500;
	v_before bigint;
	v_upto bigint;
	v_step bigint;
BEGIN
	IF p_wait THEN
		SELECT w.applied_upto INTO STRICT v_before FROM counter_watermark w WHERE w.id = 1 FOR UPDATE;
	ELSE
		SELECT w.applied_upto INTO v_before FROM counter_watermark w WHERE w.id = 1 FOR UPDATE SKIP LOCKED;
		IF NOT FOUND THEN
			SELECT w.applied_upto INTO STRICT v_before FROM counter_watermark w WHERE w.id = 1;
			RETURN v_before;
		END IF;
	END IF;

	PERFORM like_require_log('watermark', v_before);
	v_upto := v_before;
	LOOP
		SELECT count(*) INTO v_step
			FROM (SELECT p.seq, row_number() OVER (ORDER BY p.seq) AS k FROM processed_event p
				WHERE p.seq > v_upto AND p.seq <= v_upto + STRIDE) above
			WHERE above.seq = v_upto + above.k;
		v_upto := v_upto + v_step;
		EXIT WHEN v_step < STRIDE;
	END LOOP;
	IF v_upto > v_before THEN
		UPDATE counter_watermark w SET applied_upto = v_upto WHERE w.id = 1;
	END IF;
	RETURN v_upto;
END
$$;

CREATE OR REPLACE FUNCTION like_watermark() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
	SELECT like_follow(true)
$$;
