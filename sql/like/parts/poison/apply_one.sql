-- One event by itself: into its count and its registration, or the reason why not.
--
-- Guarantee: how is APPLIED or COVERED, and it is done; or how is NULL, nothing is, and error, broken and message say what the
-- server did. Only what the event's own values and the constraints of the counts may cause is caught.
--
-- Lock order: none of its own; the caller holds the count row. Called by the consumer where a batch was refused, which is
-- rare, and it costs a subtransaction each.

CREATE OR REPLACE FUNCTION like_apply_one(p_event like_outbox,
	OUT how text, OUT error text, OUT broken text, OUT message text)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_base_seq bigint;
BEGIN
	SELECT c.base_seq INTO STRICT v_base_seq FROM like_count c WHERE c.item_id = p_event.item_id;
	how := CASE WHEN p_event.seq <= v_base_seq THEN 'COVERED' ELSE 'APPLIED' END;
	IF how = 'APPLIED' THEN
		UPDATE like_count c SET n = c.n + p_event.delta WHERE c.item_id = p_event.item_id;
	END IF;
	INSERT INTO processed_event AS p (seq, how, digest) VALUES (p_event.seq, like_apply_one.how, like_digest(p_event))
		ON CONFLICT (seq) DO UPDATE SET how = excluded.how WHERE p.how = 'PARKED';
EXCEPTION
	WHEN integrity_constraint_violation OR data_exception OR raise_exception THEN
		how := NULL;
		GET STACKED DIAGNOSTICS error = RETURNED_SQLSTATE, broken = CONSTRAINT_NAME, message = MESSAGE_TEXT;
END
$$;

-- The events of a batch that was refused, one by one, and again those that were refused as long as others went in: an unlike may
-- have to wait for its like. What is left breaks a constraint by itself. By the mode the first of it fails the batch and is
-- named, or all of it is parked: registered, and written down, in this transaction.
CREATE OR REPLACE FUNCTION like_apply_singly(p_seqs bigint[], OUT applied bigint, OUT covered bigint, OUT parked bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_mode text;
	v_left bigint[] := p_seqs;
	v_refused bigint[];
	v_event like_outbox;
	v_one record;
BEGIN
	SELECT m.mode INTO STRICT v_mode FROM like_poison m WHERE m.id = 1;
	applied := 0;
	covered := 0;
	LOOP
		v_refused := '{}';
		FOR v_event IN SELECT o.* FROM like_outbox o WHERE o.seq = ANY (v_left) ORDER BY o.seq LOOP
			SELECT * INTO v_one FROM like_apply_one(v_event);
			applied := applied + (v_one.how IS NOT DISTINCT FROM 'APPLIED')::integer;
			covered := covered + (v_one.how IS NOT DISTINCT FROM 'COVERED')::integer;
			IF v_one.how IS NULL THEN
				v_refused := v_refused || v_event.seq;
			END IF;
		END LOOP;
		EXIT WHEN cardinality(v_refused) IN (0, cardinality(v_left));
		v_left := v_refused;
	END LOOP;

	parked := cardinality(v_refused);
	FOR v_event IN SELECT o.* FROM like_outbox o WHERE o.seq = ANY (v_refused) ORDER BY o.seq LOOP
		SELECT * INTO v_one FROM like_apply_one(v_event);
		IF v_mode = 'stop' THEN
			RAISE EXCEPTION 'event % of item % cannot be applied: % (% %)', v_event.seq, v_event.item_id, v_one.message,
				v_one.error, v_one.broken USING ERRCODE = 'LK001', CONSTRAINT = v_one.broken,
				HINT = 'See to the constraint, or let such events be parked: UPDATE like_poison SET mode = ''park''.';
		END IF;
		INSERT INTO processed_event (seq, how, digest) VALUES (v_event.seq, 'PARKED', like_digest(v_event));
		INSERT INTO like_parked (seq, user_id, item_id, delta, version, error, broken, message, attempts)
			VALUES (v_event.seq, v_event.user_id, v_event.item_id, v_event.delta, v_event.version,
				v_one.error, v_one.broken, v_one.message, 1);
	END LOOP;
END
$$;
