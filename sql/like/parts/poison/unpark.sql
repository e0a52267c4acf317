-- Try a parked event again, by an operator who has seen to what it broke.
--
-- Guarantee: APPLIED or COVERED, and it is no longer parked; or PARKED, and it has one attempt more and the newest reason. An
-- event that a baseline has come to contain meanwhile is COVERED, and adds nothing.
--
-- Lock order: the count row, then the parked row. Read Committed.

CREATE OR REPLACE FUNCTION like_unpark(p_seq bigint) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT
AS $$
DECLARE
	v_item bigint;
	v_parked like_parked;
	v_event like_outbox;
	v_one record;
BEGIN
	SELECT p.item_id INTO v_item FROM like_parked p WHERE p.seq = p_seq;
	PERFORM FROM like_count c WHERE c.item_id = v_item FOR UPDATE;
	SELECT p.* INTO v_parked FROM like_parked p WHERE p.seq = p_seq FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'event % is not parked', p_seq USING ERRCODE = 'no_data_found';
	END IF;
	v_event := ROW(v_parked.seq, v_parked.user_id, v_parked.item_id, v_parked.delta, v_parked.version);
	SELECT * INTO v_one FROM like_apply_one(v_event);
	IF v_one.how IS NULL THEN
		UPDATE like_parked p SET attempts = p.attempts + 1, error = v_one.error, broken = v_one.broken, message = v_one.message
			WHERE p.seq = p_seq;
		RETURN 'PARKED';
	END IF;
	DELETE FROM like_parked p WHERE p.seq = p_seq;
	RETURN v_one.how;
END
$$;
