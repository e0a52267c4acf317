-- M02: the event of a change is written in a second transaction, after the one that changed the fact.
--
-- The guard taken away: fact and event are one transaction. A client calls the two functions one after the other, each
-- as a transaction of its own; whatever ends it in between leaves a change that no count will ever hear of. Each half
-- is as it should be, and like_set(), for those who send it themselves, is left as it is.
--
-- Lock order: the fact row in the first transaction, the number row in the second.

CREATE OR REPLACE FUNCTION like_set_fact(p_user bigint, p_item bigint, p_want boolean,
	OUT changed boolean, OUT liked boolean, OUT version bigint, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql VOLATILE
AS $$
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
	UPDATE like_fact f SET liked = p_want, version = like_set_fact.version
		WHERE f.user_id = p_user AND f.item_id = p_item;
END
$$;

-- For a request that like_set_fact() answered with changed and this version.
CREATE OR REPLACE FUNCTION like_set_event(p_user bigint, p_item bigint, p_want boolean, p_version bigint,
	OUT changed boolean, OUT liked boolean, OUT version bigint, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_seq bigint;
BEGIN
	changed := true;
	liked := p_want;
	version := p_version;
	xid := pg_current_xact_id();

	UPDATE like_seq s SET last = s.last + 1 WHERE s.item_id = p_item RETURNING s.last INTO STRICT v_seq;
	seq := like_event(p_item, v_seq);

	INSERT INTO like_outbox (seq, user_id, item_id, delta, version)
		VALUES (v_seq, p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, p_version);
END
$$;
