-- M04: the old state is read without locking its row.
--
-- The guard taken away: FOR UPDATE. A request decides by a state that another one is about to end. Both are told that they
-- changed the pair, and write an event of the same version; the key of the outbox refuses the second one.
--
-- Lock order: fact row, by the UPDATE alone.

CREATE OR REPLACE FUNCTION like_set(p_user bigint, p_item bigint, p_want boolean,
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
			FROM like_fact f WHERE f.user_id = p_user AND f.item_id = p_item;
	END IF;

	changed := liked <> p_want;
	seq := 0;
	xid := pg_current_xact_id();
	IF NOT changed THEN
		RETURN;
	END IF;

	liked := p_want;
	version := version + 1;
	IF NOT first THEN
		UPDATE like_fact f SET liked = p_want, version = like_set.version
			WHERE f.user_id = p_user AND f.item_id = p_item;
	END IF;

	INSERT INTO like_outbox (user_id, item_id, delta, version)
		VALUES (p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, like_set.version);
END
$$;
