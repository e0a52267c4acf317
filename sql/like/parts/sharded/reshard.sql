-- Give an item another number of shards, beside readers, consumers and rebuilds.
--
-- Guarantee: one transaction, so every snapshot has the item with the shards that it had, or with those that it gets, and the
-- same sum in both. New shards begin at 0 with the item's base_seq; what is on shards that go is added to shard 0.
--
-- Lock order: shard 0 of the item, then its other shards in order. Read Committed.
--
-- Why it reads after the locks: a batch that held one of the shards has just added to it.

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
		SELECT p_item, k, 0, v_base_seq FROM generate_series(v_shards, p_shards - 1) k;
	UPDATE like_count c
		SET n = c.n + coalesce((SELECT sum(g.n) FROM like_count g WHERE g.item_id = p_item AND g.shard >= p_shards), 0)
		WHERE c.item_id = p_item AND c.shard = 0 AND p_shards < v_shards;
	DELETE FROM like_count c WHERE c.item_id = p_item AND c.shard >= p_shards;
END
$$;
