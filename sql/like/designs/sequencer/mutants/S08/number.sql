-- S08: the events of a batch are numbered by item, user and version.
--
-- The guard taken away: numbers follow the ids. A pair's versions are in order all the same, and no number is missing; but of
-- two likes that one client sends one after the other, the earlier may have the higher number.
--
-- Lock order: the advisory lock, then like_seq, as for the right sequencer.

CREATE OR REPLACE FUNCTION like_number(p_most bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
DECLARE
	v_has_xid boolean := pg_current_xact_id_if_assigned() IS NOT NULL;
	v_seq like_seq;
	v_oldest xid8;
	v_count bigint;
	v_highest bigint;
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('like_number'));

	SELECT s.* INTO STRICT v_seq FROM like_seq s WHERE s.id = 1;
	v_oldest := pg_snapshot_xmin(pg_current_snapshot());

	WITH moved AS (
		DELETE FROM like_unnumbered u
			WHERE u.ctid = ANY (ARRAY(
				SELECT l.ctid FROM like_unnumbered l WHERE l.id > v_seq.floor ORDER BY l.id LIMIT p_most))
			RETURNING u.*
	), numbered AS (
		INSERT INTO like_outbox (seq, user_id, item_id, delta, version)
			SELECT v_seq.last + row_number() OVER (ORDER BY m.item_id, m.user_id, m.version), m.user_id, m.item_id, m.delta, m.version FROM moved m
	)
	SELECT count(*), coalesce(max(m.id), 0) INTO v_count, v_highest FROM moved m;

	IF v_seq.next_floor > v_seq.floor AND v_oldest >= v_seq.next_floor_from THEN
		v_seq.floor := CASE WHEN v_count < p_most THEN v_seq.next_floor
			ELSE greatest(v_seq.floor, least(v_seq.next_floor, v_highest)) END;
	ELSIF v_count = 0 THEN
		RETURN 0;
	END IF;
	IF v_seq.next_floor <= v_seq.floor AND v_highest > v_seq.floor AND NOT v_has_xid THEN
		v_seq.next_floor := v_highest;
		v_seq.next_floor_from := pg_current_xact_id();
	END IF;

	UPDATE like_seq s SET last = v_seq.last + v_count, floor = v_seq.floor,
			next_floor = v_seq.next_floor, next_floor_from = v_seq.next_floor_from
		WHERE s.id = 1;
	RETURN v_count;
END
$$;
