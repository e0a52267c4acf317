-- H03: new shards begin without a baseline.
--
-- The guard taken away: they begin with the item's base_seq. An event that the baseline of the item contains counts once more on
-- a new shard.
--
-- Lock order: shard 0 of the item, then its other shards in order.

CREATE OR REPLACE FUNCTION like_reshard(p_item bigint, p_shards integer) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
AS $$
DECLARE
	LANES CONSTANT integer := 1000;
	v_shards integer;
	v_base_seq bigint;
BEGIN
	IF p_shards NOT BETWEEN 1 AND LANES THEN
		RAISE EXCEPTION 'an item has from 1 to % shards, not %', LANES, p_shards USING ERRCODE = 'invalid_parameter_value';
	END IF;
	PERFORM FROM like_count c WHERE c.item_id = p_item AND c.shard = 0 FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'item % has no count row', p_item USING ERRCODE = 'no_data_found';
	END IF;
	PERFORM FROM like_count c WHERE c.item_id = p_item ORDER BY c.shard FOR UPDATE;

	SELECT max(c.shard) + 1, max(c.base_seq) INTO v_shards, v_base_seq FROM like_count c WHERE c.item_id = p_item;
	INSERT INTO like_count (item_id, shard, n, base_seq)
		SELECT p_item, k, 0, 0 FROM generate_series(v_shards, p_shards - 1) k;
	UPDATE like_count c
		SET n = c.n + coalesce((SELECT sum(g.n) FROM like_count g WHERE g.item_id = p_item AND g.shard >= p_shards), 0)
		WHERE c.item_id = p_item AND c.shard = 0 AND p_shards < v_shards;
	DELETE FROM like_count c WHERE c.item_id = p_item AND c.shard >= p_shards;
END
$$;
