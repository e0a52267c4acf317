-- M15: a second registration is met as an error, 23505, and its transaction goes on.
--
-- The guard taken away: what is registered is looked up before it is inserted. After an error the server refuses
-- everything up to the end of the transaction (25P02), so whoever takes 23505 for "known, go on" loses the whole batch,
-- and loses it again each time: a batch with a single repeat never gets through, and what is new in it neither.
--
-- Lock order: watermark row, then count rows as the list has them, under the watermark row.
--
-- The consumer of this twin calls these functions, one event after another, instead of like_consume().

CREATE OR REPLACE FUNCTION like_apply(p_seq bigint) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT
AS $$
DECLARE
	v_event like_outbox;
	v_covered boolean;
BEGIN
	SELECT o.* INTO STRICT v_event FROM like_outbox o WHERE o.seq = p_seq;
	SELECT c.base_seq > 0 AND pg_visible_in_snapshot(v_event.xid, c.base) INTO STRICT v_covered
		FROM like_count c WHERE c.item_id = v_event.item_id FOR UPDATE;
	IF v_covered THEN
		INSERT INTO processed_event (seq, how) VALUES (p_seq, 'COVERED');
		RETURN 'COVERED';
	END IF;
	INSERT INTO processed_event (seq, how) VALUES (p_seq, 'APPLIED');
	UPDATE like_count c SET n = c.n + v_event.delta WHERE c.item_id = v_event.item_id;
	RETURN 'APPLIED';
END
$$;

CREATE OR REPLACE FUNCTION like_advance(OUT watermark bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT count(*) INTO watermark FROM processed_event p;
	UPDATE counter_watermark w SET applied_upto = watermark, floor = like_floor() WHERE w.id = 1;
END
$$;
