-- Add an item together with its count row, its number row and its watermark.
--
-- Guarantee: one statement, so that no transaction ever shows an item without them.
--
-- Lock order: none that others wait for; the rows are new.

CREATE OR REPLACE FUNCTION like_add_item(p_item bigint, p_label text) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	WITH added AS (INSERT INTO item (item_id, label) VALUES (p_item, p_label) RETURNING item_id),
		counted AS (INSERT INTO like_count (item_id, n, base_seq) SELECT item_id, 0, 0 FROM added),
		numbered AS (INSERT INTO like_seq (item_id, last) SELECT item_id, 0 FROM added)
	INSERT INTO counter_watermark (item_id, applied_upto) SELECT item_id, 0 FROM added
$$;
