-- M03: the number of an event comes from a sequence.
--
-- The guard taken away: the number row, which is locked to the end of the transaction. A sequence does not take part in
-- transactions: a rollback leaves a hole, and who draws first may commit last. schema.sql beside this has the sequence.
--
-- Lock order: fact row.

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

	v_seq := nextval('like_number');
	seq := like_event(p_item, v_seq);

	INSERT INTO like_outbox (seq, user_id, item_id, delta, version)
		VALUES (v_seq, p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, like_set.version);
END
$$;
