-- M02: the event of a change is written in a second transaction, after the one that changed the fact.
--
-- The guard taken away: fact and event are one transaction. A client calls the two functions one after the other, each
-- as a transaction of its own; whatever ends it in between leaves a change that no count will ever hear of. Each half
-- is as it should be, and like_set(), for those who send it themselves, is left as it is.
--
-- Lock order: the fact row in the first transaction, nothing in the second.

CREATE OR REPLACE FUNCTION like_set_fact(p_user bigint, p_item bigint, p_want boolean,
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

	changed := liked <> p_want;
	seq := 0;
	xid := pg_current_xact_id();
	IF NOT changed THEN
		RETURN;
	END IF;

	liked := p_want;
	version := version + 1;
	IF NOT first THEN
		UPDATE like_fact f SET liked = p_want, version = like_set_fact.version
			WHERE f.user_id = p_user AND f.item_id = p_item;
	END IF;
END
$$;

-- For a request that like_set_fact() answered with changed and this version.
CREATE OR REPLACE FUNCTION like_set_event(p_user bigint, p_item bigint, p_want boolean, p_version bigint,
	OUT changed boolean, OUT liked boolean, OUT version bigint, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	changed := true;
	liked := p_want;
	version := p_version;
	seq := 0;
	xid := pg_current_xact_id();

	INSERT INTO like_outbox (user_id, item_id, delta, version)
		VALUES (p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, p_version);
END
$$;
