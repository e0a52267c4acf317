-- M06: a request decides by a state that it read in an earlier transaction.
--
-- The guard taken away: the old state is read under the lock under which it is changed. The client reads the state, and
-- hands it over to a transaction that writes by it. What came between the two is not seen: of two likes that read the
-- same state both count. Row and version are read under the lock, so no key is violated. like_set(), for those who send
-- it themselves, is left as it is.
--
-- Lock order: fact row, as in the right write path.

CREATE OR REPLACE FUNCTION like_set_knowing(p_user bigint, p_item bigint, p_want boolean, p_liked boolean,
	OUT changed boolean, OUT liked boolean, OUT version bigint, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	first boolean;
BEGIN
	INSERT INTO like_fact (user_id, item_id, liked, version) VALUES (p_user, p_item, p_want, p_want::int)
		ON CONFLICT DO NOTHING;
	first := FOUND;

	IF first THEN
		liked := false;
		version := 0;
	ELSE
		SELECT f.liked, f.version INTO STRICT liked, version
			FROM like_fact f WHERE f.user_id = p_user AND f.item_id = p_item FOR UPDATE;
	END IF;

	changed := p_liked <> p_want;
	seq := 0;
	xid := pg_current_xact_id();
	IF NOT changed THEN
		RETURN;
	END IF;

	liked := p_want;
	version := version + 1;
	IF NOT first THEN
		UPDATE like_fact f SET liked = p_want, version = like_set_knowing.version
			WHERE f.user_id = p_user AND f.item_id = p_item;
	END IF;

	INSERT INTO like_outbox (user_id, item_id, delta, version)
		VALUES (p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, like_set_knowing.version);
END
$$;
