-- Another way to keep a count: only facts are written, and all of them are counted from time to time.
--
-- Guarantee: right at the snapshot of the last like_recount(), and at no other moment. Nobody is told how far it is off since:
-- there is no event whose number could say so.
--
-- Lock order: fact row. like_recount(): all count rows in key order, then it reads every fact in a later statement, so that of two
-- at once the second counts what the first had not seen.

CREATE TABLE like_recounted (
	item_id bigint PRIMARY KEY REFERENCES item,
	n bigint NOT NULL,
	at timestamptz NOT NULL
);

INSERT INTO like_recounted (item_id, n, at) SELECT item_id, 0, now() FROM item;

CREATE OR REPLACE FUNCTION like_set_fact(p_user bigint, p_item bigint, p_want boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	was boolean;
BEGIN
	INSERT INTO like_fact (user_id, item_id, liked, version) VALUES (p_user, p_item, false, 0)
		ON CONFLICT DO NOTHING;

	SELECT f.liked INTO STRICT was FROM like_fact f WHERE f.user_id = p_user AND f.item_id = p_item FOR UPDATE;
	IF was <> p_want THEN
		UPDATE like_fact f SET liked = p_want, version = f.version + 1
			WHERE f.user_id = p_user AND f.item_id = p_item;
	END IF;
	RETURN was <> p_want;
END
$$;

CREATE OR REPLACE FUNCTION like_recount() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	changed bigint;
BEGIN
	PERFORM r.item_id FROM like_recounted r ORDER BY r.item_id FOR UPDATE;

	WITH counted AS (
		SELECT i.item_id, count(f.item_id) AS n
			FROM item i LEFT JOIN like_fact f ON f.item_id = i.item_id AND f.liked
			GROUP BY i.item_id
	)
	UPDATE like_recounted r SET n = c.n, at = statement_timestamp()
		FROM counted c WHERE c.item_id = r.item_id AND c.n <> r.n;
	GET DIAGNOSTICS changed = ROW_COUNT;
	RETURN changed;
END
$$;
