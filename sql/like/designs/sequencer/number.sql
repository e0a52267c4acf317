-- The sequencer: give committed events their numbers, at most p_most of them. Answers how many got one.
--
-- Guarantee: numbers have no gap. A batch appears at once, with its commit. The events of a pair are numbered in the order
-- of their versions. Numbers respect real time: an event whose commit was seen before another one's transaction began has
-- the lower number. Inside a batch they follow the ids, which need not be the order of the commits.
--
-- Lock order: the advisory lock, which makes the sequencer single, then like_seq. Read Committed. It may run in the
-- transaction of a like, after it; nobody who has this lock may wait for a fact row.
--
-- Why the lock is a statement of its own: who waited for it must see what the sequencer before has numbered. It takes no
-- transaction number, so this transaction has none before it looks for events, if the caller wrote nothing.
--
-- Why a floor: the events that were numbered leave dead entries in the index, which stay for as long as any snapshot may
-- see them, and every round would walk over all of them. Why not simply the highest id that has been numbered: ids are
-- drawn before the commit, so a lower one may still be on its way. Whoever drew an id below the highest one of a round
-- had its transaction number by then, and so a lower one than the round, which draws its own after it has looked. When
-- everything below the round's number has ended, what committed is visible and nothing more can come: that id is the
-- next floor. A batch that was cut short has seen it through only up to its own end.
--
-- Why not the snapshot's xmax in the place of the round's own number: it follows the highest transaction that has ended,
-- and one that is running may have a higher number.

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
			SELECT v_seq.last + row_number() OVER (ORDER BY m.id), m.user_id, m.item_id, m.delta, m.version FROM moved m
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
