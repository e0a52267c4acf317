-- The write path: set the state of a pair.
--
-- Guarantee: as in the write path that this takes the place of. The number is the item's next, and seq the event's name, of
-- item and number.
--
-- Lock order: fact row, then the item's number row. Requests for different items never wait for one another, those that
-- change pairs of one item do. Read Committed, one state change a transaction.
--
-- Why PL/pgSQL and VOLATILE: as there.

CREATE OR REPLACE FUNCTION like_set(p_user bigint, p_item bigint, p_want boolean,
	OUT changed boolean, OUT liked boolean, OUT version bigint, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_seq bigint;
BEGIN
	INSERT INTO like_fact (user_id, item_id, liked, version) VALUES (p_user, p_item, false, 0)
		ON CONFLICT DO NOTHING;

	SELECT f.liked, f.version INTO STRICT liked, version
		FROM like_fact f WHERE f.user_id = p_user AND f.item_id = p_item FOR UPDATE;

	changed := liked <> p_want;
	seq := 0;
	xid := pg_current_xact_id();
	IF NOT changed THEN
		RETURN;
	END IF;

	liked := p_want;
	version := version + 1;
	UPDATE like_fact f SET liked = p_want, version = like_set.version
		WHERE f.user_id = p_user AND f.item_id = p_item;

	-- From here to the end of the transaction every other state change of this item waits.
	UPDATE like_seq s SET last = s.last + 1 WHERE s.item_id = p_item RETURNING s.last INTO STRICT v_seq;
	seq := like_event(p_item, v_seq);

	INSERT INTO like_outbox (seq, user_id, item_id, delta, version)
		VALUES (v_seq, p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, like_set.version);
END
$$;
