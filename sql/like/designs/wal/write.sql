-- The write path: set the state of a pair, and leave the event in the outbox.
--
-- Guarantee: one event per state change, in the transaction of the change, with a delta that follows from the old state
-- read under the lock; a request that changes nothing writes no event. seq is 0: there is no number, and the id of the
-- event is nobody's business. Repeating a request is safe. An unknown item is refused by the foreign key (23503).
--
-- Lock order: fact row, nothing else: requests of different pairs never wait for one another.
--
-- Why PL/pgSQL and VOLATILE: as in the write path that this takes the place of. A first request writes its own state
-- where that has a placeholder, which is half the work; whoever finds the row there waits for it, locks it, and only
-- then reads. The transaction has its number, and holds the fact row, before the event draws its id: ids of a pair grow
-- with its versions.

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
		UPDATE like_fact f SET liked = p_want, version = like_set.version
			WHERE f.user_id = p_user AND f.item_id = p_item;
	END IF;

	INSERT INTO like_outbox (user_id, item_id, delta, version)
		VALUES (p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, like_set.version);
END
$$;
