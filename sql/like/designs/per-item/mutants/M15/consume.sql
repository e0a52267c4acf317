-- M15: a second registration is met as an error, 23505, and its transaction goes on.
--
-- The guard taken away: what is registered is looked up before it is inserted. After an error the server refuses
-- everything up to the end of the transaction (25P02), so whoever takes 23505 for "known, go on" loses the whole batch,
-- and loses it again each time: a batch with a single repeat never gets through, and what is new in it neither.
--
-- Lock order: the watermark rows, then count rows as the list has them.
--
-- The consumer of this twin calls these functions, one event after another, instead of like_consume().

CREATE OR REPLACE FUNCTION like_apply(p_seq bigint) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT
AS $$
DECLARE
	v_event like_outbox;
	v_base bigint;
BEGIN
	SELECT o.* INTO STRICT v_event FROM like_outbox o 
		WHERE o.item_id = like_event_item(p_seq) AND o.seq = like_event_seq(p_seq);
	SELECT c.base_seq INTO STRICT v_base FROM like_count c WHERE c.item_id = v_event.item_id FOR UPDATE;
	IF v_event.seq <= v_base THEN
		INSERT INTO processed_event (item_id, seq, how) VALUES (v_event.item_id, v_event.seq, 'COVERED');
		RETURN 'COVERED';
	END IF;
	INSERT INTO processed_event (item_id, seq, how) VALUES (v_event.item_id, v_event.seq, 'APPLIED');
	UPDATE like_count c SET n = c.n + v_event.delta WHERE c.item_id = v_event.item_id;
	RETURN 'APPLIED';
END
$$;

CREATE OR REPLACE FUNCTION like_advance(OUT watermark bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	UPDATE counter_watermark w SET applied_upto = r.run_end
		FROM (
			SELECT p.item_id, count(*) FILTER (WHERE p.seq = p.k) AS run_end
				FROM (SELECT e.item_id, e.seq, row_number() OVER (PARTITION BY e.item_id ORDER BY e.seq) AS k
					FROM processed_event e) p
				GROUP BY p.item_id) r
		WHERE w.item_id = r.item_id;
	SELECT coalesce(sum(w.applied_upto), 0) INTO watermark FROM counter_watermark w;
END
$$;
