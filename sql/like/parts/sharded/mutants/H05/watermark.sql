-- H05: the watermark is the highest processed number.
--
-- The guard taken away: it goes as far as none is missing. Batches that do not wait for each other commit in any order.
--
-- Lock order: the watermark row, nothing else.

CREATE OR REPLACE FUNCTION like_follow(p_wait boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
	v_before bigint;
	v_upto bigint;
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
	SELECT coalesce(max(p.seq), v_before) INTO v_upto FROM processed_event p;
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
