-- M28: there is no placeholder; the first request of a pair that changes something makes its row.
--
-- The guard taken away: a row to lock. Of two first requests neither finds one, both decide by a state before both of
-- them, and the second meets the key of the outbox (23505) for the same version. An unlike of an unknown item is a
-- NOOP.
--
-- Lock order: fact row, if there is one; then the item's number row.

CREATE OR REPLACE FUNCTION like_set(p_user bigint, p_item bigint, p_want boolean,
	OUT changed boolean, OUT liked boolean, OUT version bigint, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_seq bigint;
BEGIN
	SELECT f.liked, f.version INTO liked, version
		FROM like_fact f WHERE f.user_id = p_user AND f.item_id = p_item FOR UPDATE;
	IF NOT FOUND THEN
		liked := false;
		version := 0;
	END IF;

	changed := liked <> p_want;
	seq := 0;
	xid := pg_current_xact_id();
	IF NOT changed THEN
		RETURN;
	END IF;

	liked := p_want;
	version := version + 1;
	INSERT INTO like_fact AS f (user_id, item_id, liked, version) VALUES (p_user, p_item, p_want, like_set.version)
		ON CONFLICT (user_id, item_id) DO UPDATE SET liked = excluded.liked, version = excluded.version;

	-- From here to the end of the transaction every other state change of this item waits.
	UPDATE like_seq s SET last = s.last + 1 WHERE s.item_id = p_item RETURNING s.last INTO STRICT v_seq;
	seq := like_event(p_item, v_seq);

	INSERT INTO like_outbox (seq, user_id, item_id, delta, version)
		VALUES (v_seq, p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, like_set.version);
END
$$;
