-- Another way to keep a count: in the transaction of the fact.
--
-- Guarantee: at every commit the count of an item is the number of its liked facts. A request that is repeated changes
-- nothing, since the old state is read under the lock, as in like_set().
--
-- Lock order: fact row, then the item's count row, which is held until the commit: whoever likes the same item waits, also when
-- it is another user's like.
--
-- Nothing is left to a consumer, so there is no event, no number and no lag.

CREATE TABLE like_counted (
	item_id bigint PRIMARY KEY REFERENCES item,
	n bigint NOT NULL
) WITH (fillfactor = 50);

INSERT INTO like_counted (item_id, n) SELECT item_id, 0 FROM item;

CREATE OR REPLACE FUNCTION like_set_counted(p_user bigint, p_item bigint, p_want boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	was boolean;
BEGIN
	INSERT INTO like_fact (user_id, item_id, liked, version) VALUES (p_user, p_item, false, 0)
		ON CONFLICT DO NOTHING;

	SELECT f.liked INTO STRICT was FROM like_fact f WHERE f.user_id = p_user AND f.item_id = p_item FOR UPDATE;
	IF was = p_want THEN
		RETURN false;
	END IF;

	UPDATE like_fact f SET liked = p_want, version = f.version + 1
		WHERE f.user_id = p_user AND f.item_id = p_item;
	UPDATE like_counted c SET n = c.n + CASE WHEN p_want THEN 1 ELSE -1 END WHERE c.item_id = p_item;
	RETURN true;
END
$$;
