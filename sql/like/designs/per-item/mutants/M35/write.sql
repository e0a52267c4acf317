-- M35: the whole write path is one statement with CTEs.
--
-- The guard taken away: a statement after the wait, with a snapshot of its own. Where the INSERT waits for another
-- first request of the pair, all parts of the statement go on with the snapshot from before the wait, in which there is
-- no row: nothing to lock, nothing to change, and the request is lost. The row it makes has its final state at once,
-- because no other part of the statement could see it.
--
-- Lock order: fact row, then the item's number row, as in the right write path.

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
	), number AS (
		UPDATE like_seq s SET last = s.last + 1 WHERE s.item_id = p_item AND EXISTS (SELECT FROM change) RETURNING s.last
	), event AS (
		INSERT INTO like_outbox (seq, user_id, item_id, delta, version)
			SELECT n.last, p_user, p_item, CASE WHEN p_want THEN 1 ELSE -1 END, c.version FROM number n, change c
	)
	SELECT EXISTS (SELECT FROM change), p_want,
		coalesce((SELECT c.version FROM change c), (SELECT o.version FROM old o), 0),
		coalesce((SELECT like_event(p_item, n.last) FROM number n), 0), pg_current_xact_id()
		INTO changed, liked, version, seq, xid;
END
$$;
