-- M03: a sequence in the place of the number rows, see write.sql beside this.
--
-- Readers of like_seq find the last number that was drawn, and who sets it, sets the sequence. One for all items is enough
-- where there is one item.
--
-- Lock order: none.

DROP TABLE like_seq;

CREATE SEQUENCE like_number;

CREATE VIEW like_seq AS
	SELECT i.item_id, CASE WHEN n.is_called THEN n.last_value ELSE n.last_value - 1 END AS last
		FROM item i, like_number n;

CREATE FUNCTION like_seq_set() RETURNS trigger
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	PERFORM setval('like_number', new.last + 1, false);
	RETURN new;
END
$$;

CREATE TRIGGER like_seq_set INSTEAD OF INSERT OR UPDATE ON like_seq
	FOR EACH ROW EXECUTE FUNCTION like_seq_set();
