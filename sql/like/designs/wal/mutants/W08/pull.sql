-- W08: nothing is written where no event comes.
--
-- The guard taken away: the message that a slot can be confirmed behind. In a database in which nothing happens the
-- slot stays where it is, and holds back the log of all others.
--
-- Lock order: as in the right pull.

CREATE OR REPLACE FUNCTION like_pull(p_after bigint, p_most bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
	v_feed like_feed;
	v_slot name;
	v_status text;
	v_seqs bigint[] := '{}';
	v_has_slot boolean;
	v_caught_up boolean := false;
	v_more bigint[];
	v_confirm pg_lsn;
BEGIN
	IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
		RAISE EXCEPTION 'like_pull() has to come before its transaction writes' USING ERRCODE = 'active_sql_transaction';
	END IF;
	PERFORM pg_advisory_xact_lock(hashtext('like_feed'));
	SELECT f.* INTO STRICT v_feed FROM like_feed f WHERE f.id = 1;
	SELECT s.wal_status INTO v_status FROM pg_replication_slots s WHERE s.slot_name = like_slot(v_feed.opened);

	-- A copy of a database has no slot. One that was left too far behind is lost (max_slot_wal_keep_size).
	v_has_slot := coalesce(v_status, 'lost') <> 'lost';
	IF NOT v_has_slot THEN
		IF v_status = 'lost' THEN
			RAISE WARNING 'replication slot % was lost: what it had is read from the outbox', like_slot(v_feed.opened);
		END IF;
		PERFORM like_feed_open();
		SELECT f.* INTO STRICT v_feed FROM like_feed f WHERE f.id = 1;
	END IF;
	v_slot := like_slot(v_feed.opened);

	IF v_feed.catch_up IS NOT NULL THEN
		SELECT ARRAY(SELECT e.seq FROM like_pending e WHERE e.xid < v_feed.catch_up ORDER BY e.xid, e.seq LIMIT p_most),
				pg_snapshot_xmin(pg_current_snapshot()) >= v_feed.catch_up
			INTO v_seqs, v_caught_up;
		v_caught_up := v_caught_up AND v_seqs = '{}';
	END IF;

	WHILE v_has_slot AND cardinality(v_seqs) < p_most LOOP
		-- Three rows for a transaction of one event, and as many for one that is processed and not confirmed yet. Transactions
		-- come whole, whatever their length.
		WITH change AS MATERIALIZED (
			SELECT c.k, c.lsn, c.data, chr(get_byte(c.data, 0)) AS kind
				FROM pg_logical_slot_peek_binary_changes(v_slot, NULL, least(6 * p_most, 2147483647)::integer,
					'proto_version', '1', 'publication_names', 'like_events', 'messages', 'true')
					WITH ORDINALITY c (lsn, xid, data, k)
		), inserted AS MATERIALIZED (
			-- Manual 55.9: 'I', the table (4 bytes), 'N', the columns (2); of each column 't', its length (4), its text.
			SELECT c.k, convert_from(substring(c.data FROM 14 FOR get_byte(c.data, 12)), 'UTF8')::bigint AS seq,
				convert_from(substring(c.data FROM 19 + get_byte(c.data, 12)), 'UTF8')::xid8 AS xid
				FROM change c WHERE c.kind = 'I'
		), waiting AS MATERIALIZED (
			SELECT i.k, i.seq, pg_visible_in_snapshot(i.xid, pg_current_snapshot()) AS visible
				FROM inserted i
				WHERE NOT pg_visible_in_snapshot(i.xid, pg_current_snapshot())
					OR ((SELECT o.seq FROM like_outbox o WHERE o.seq = i.seq) IS NOT NULL
						AND (SELECT p.seq FROM processed_event p WHERE p.seq = i.seq) IS NULL)
		)
		SELECT ARRAY(
				SELECT w.seq FROM waiting w WHERE w.visible AND w.seq <> ALL (v_seqs)
					ORDER BY w.k LIMIT p_most - cardinality(v_seqs)),
			(SELECT max(c.lsn) FROM change c
				WHERE c.kind = 'C' AND c.k < coalesce((SELECT min(w.k) FROM waiting w), 9223372036854775807))
			INTO v_more, v_confirm;

		IF v_confirm IS NOT NULL THEN
			PERFORM pg_replication_slot_advance(v_slot, v_confirm);
		END IF;
		v_seqs := v_seqs || v_more;
		EXIT WHEN v_confirm IS NULL OR v_more <> '{}';
	END LOOP;

	IF v_caught_up THEN
		UPDATE like_feed SET catch_up = NULL WHERE id = 1;
	END IF;
	RETURN v_seqs;
END
$$;
