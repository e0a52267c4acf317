-- M35: the whole write path is one statement with CTEs.
--
-- The guard taken away: a statement after the wait, with a snapshot of its own. Where the INSERT waits for another
-- first request of the pair, all parts of the statement go on with the snapshot from before the wait, in which there is
-- no row: nothing to lock, nothing to change, and the request is lost. The row it makes has its final state at once,
-- because no other part of the statement could see it.
--
-- Lock order: fact row, as in the right write path.

CREATE OR REPLACE FUNCTION like_set(p_user bigint, p_item bigint, p_want boolean,
	OUT changed boolean, OUT liked boolean, OUT version bigint, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	WITH made AS (
		INSERT INTO like_fact AS f (user_id, item_id, liked, version)
			VALUES (p_user, p_item, p_want, CASE WHEN p_want THEN 1 ELSE 0 END)
			ON CONFLICT DO NOTHING
			RETURNING f.liked, f.version
	), old AS MATERIALIZED (
		SELECT f.liked, f.version FROM like_fact f WHERE f.user_id = p_user AND f.item_id = p_item FOR UPDATE
	), moved AS (
		UPDATE like_fact f SET liked = p_want, version = o.version + 1
			FROM old o
			WHERE f.user_id = p_user AND f.item_id = p_item AND o.liked <> p_want
			RETURNING f.version
	), change AS (
		SELECT m.version FROM made m WHERE m.liked UNION ALL SELECT m.version FROM moved m
	), event AS (
		INSERT INTO like_outbox (user_id, item_id, delta, version)
			SELECT p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, c.version FROM change c
	)
	SELECT EXISTS (SELECT FROM change), p_want,
		coalesce((SELECT c.version FROM change c), (SELECT o.version FROM old o), 0),
		0, pg_current_xact_id()
		INTO changed, liked, version, seq, xid;
END
$$;
