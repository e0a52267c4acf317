-- The feed: a logical replication slot of this database, which has events in the order of their commits.
--
-- Guarantee: like_pull() answers committed events that are not processed, those of the slot in its order; none when
-- every event that was visible and flushed when it was called is processed. The slot is confirmed over whole
-- transactions whose events are all processed, so behind a consumer's commit and never before it; what was not
-- confirmed comes again, and is left out when it is processed. Where a consumer believes to stand (p_after) does not
-- matter.
--
-- Lock order: the feed's advisory lock, then the watermark row, then like_feed. A slot has one reader at a time, and a
-- second one would be refused (55006): here it waits. In a transaction that also writes, pull first (25001 otherwise).
-- Read Committed.
--
-- Why an event may have to wait: its commit is in the log before snapshots see it. One that is not visible yet is left
-- for later, and nothing is confirmed past it. One that is visible and has no row was deleted from the outbox, and is
-- passed over.
--
-- Why the outbox is read at all: what was committed before the slot was there is in no slot. catch_up is a transaction
-- number that was drawn after it was there. Who wrote an event that the slot does not have has a lower one; it may be
-- visible only later, but when all of those have ended, the outbox shows everything that they wrote.
--
-- Why it comes before its transaction writes, and does not read a slot that it has just opened: a flush may end inside a
-- record (at the end of a page), and whoever decodes up to there waits for the rest. Of a record of its own it would
-- wait for ever, or until somebody else flushes. What a new slot lacks is read from the outbox, and that is all there is.
--
-- Why a message of its own, where nothing comes: the slot can only be confirmed up to the end of a transaction that it
-- has seen. In a database in which nothing happens, beside others that write, it would hold back all their log.
--
-- Why the settings: as in the consumer, the plan has to be right on tables that nobody has analysed.

-- Making and dropping a slot is not undone by a rollback: so each has a name of its own, and counts when like_feed
-- names it.
CREATE OR REPLACE FUNCTION like_slot(p_opened bigint) RETURNS name
LANGUAGE sql STABLE
AS $$
	SELECT format('like_%s_%s', d.oid, p_opened)::name FROM pg_database d WHERE d.datname = current_database()
$$;

-- A new slot in the place of the one there is, if there is any. PostgreSQL makes it in a transaction that has written
-- nothing, and waits for the transactions that are writing, anywhere on the server. Whoever is killed in here leaves
-- the feed as it was, and perhaps a slot that nobody knows, which the next one drops.
CREATE OR REPLACE FUNCTION like_feed_open() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_opened bigint;
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('like_feed'));
	SELECT f.opened INTO STRICT v_opened FROM like_feed f WHERE f.id = 1;

	PERFORM pg_drop_replication_slot(s.slot_name) FROM pg_replication_slots s
		WHERE s.slot_name = like_slot(v_opened + 1);
	-- In a block of its own: where others change tables meanwhile, making a slot leaves the resource owner of the transaction
	-- behind it in the place of the statement's (16.14: "snapshot reference ... is not owned"). Here the two are the same.
	BEGIN
		PERFORM pg_create_logical_replication_slot(like_slot(v_opened + 1), 'pgoutput');
	EXCEPTION WHEN object_in_use THEN
		RAISE;
	END;

	PERFORM like_watermark_reset();
	UPDATE like_feed SET opened = v_opened + 1 WHERE id = 1;

	PERFORM pg_drop_replication_slot(s.slot_name) FROM pg_replication_slots s WHERE s.slot_name = like_slot(v_opened);
END
$$;

CREATE OR REPLACE FUNCTION like_pull(p_after bigint, p_most bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
	HELD_BACK CONSTANT bigint := 16777216;
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
	IF v_seqs = '{}' AND (SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn) > HELD_BACK
			FROM pg_replication_slots s WHERE s.slot_name = v_slot) THEN
		PERFORM pg_logical_emit_message(true, 'like_feed', '');
	END IF;
	RETURN v_seqs;
END
$$;
