-- M06: a request decides by a state that it read in an earlier transaction.
--
-- The guard taken away: the old state is read under the lock under which it is changed. The client reads the state, and
-- hands it over to a transaction that writes by it. What came between the two is not seen: of two likes that read the
-- same state both count. Row and version are read under the lock, so no key is violated. like_set(), for those who send
-- it themselves, is left as it is.
--
-- Lock order: fact row, then the item's number row, as in the right write path.

CREATE OR REPLACE FUNCTION like_set_knowing(p_user bigint, p_item bigint, p_want boolean, p_liked boolean,
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

	changed := p_liked <> p_want;
	seq := 0;
	xid := pg_current_xact_id();
	IF NOT changed THEN
		RETURN;
	END IF;

	liked := p_want;
	version := version + 1;
	UPDATE like_fact f SET liked = p_want, version = like_set_knowing.version
		WHERE f.user_id = p_user AND f.item_id = p_item;

	-- From here to the end of the transaction every other state change of this item waits.
	UPDATE like_seq s SET last = s.last + 1 WHERE s.item_id = p_item RETURNING s.last INTO STRICT v_seq;
	seq := like_event(p_item, v_seq);

	INSERT INTO like_outbox (seq, user_id, item_id, delta, version)
		VALUES (v_seq, p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, like_set_knowing.version);
END
$$;
