-- Add an item together with its count row.
--
-- Guarantee: one statement, so that no transaction ever shows an item without its count row.
--
-- Lock order: none that others wait for; the rows are new.

CREATE OR REPLACE FUNCTION like_add_item(p_item bigint, p_label text) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	WITH added AS (INSERT INTO item (item_id, label) VALUES (p_item, p_label) RETURNING item_id)
	INSERT INTO like_count (item_id, n, base_seq) SELECT item_id, 0, 0 FROM added
$$;
