-- H01: an install is a transaction for each shard; scenarios/twins/rebuild_steps.c calls this once for each of them.
--
-- The guard taken away: all shards are locked, then read and written, in one transaction. The first shard gets the baseline
-- and what was applied above it so far, and the rest are emptied one after another, with what was applied to them meanwhile.
--
-- Lock order: one shard.

CREATE OR REPLACE FUNCTION like_install_shard(p_item bigint, p_shard integer, p_seq bigint, p_facts bigint,
	OUT old_n bigint, OUT new_n bigint, OUT applied_after_base bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT c.n INTO STRICT old_n FROM like_count c WHERE c.item_id = p_item AND c.shard = p_shard FOR UPDATE;
	applied_after_base := 0;
	new_n := 0;
	IF p_shard = 0 THEN
		SELECT coalesce(sum(o.delta), 0) INTO applied_after_base
			FROM like_outbox o JOIN processed_event p USING (seq)
			WHERE o.item_id = p_item AND o.seq > p_seq AND p.how = 'APPLIED';
		new_n := p_facts + applied_after_base;
	END IF;
	UPDATE like_count c SET n = new_n, base_seq = p_seq WHERE c.item_id = p_item AND c.shard = p_shard;
END
$$;
