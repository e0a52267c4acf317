-- H07: an install locks the first shard of the item and no other.
--
-- The guard taken away: all are locked before registrations are read. A batch on another shard commits after they were read, and
-- its event is overwritten with the shard.
--
-- Lock order: shard 0 of the item, then the others as they are written.

CREATE OR REPLACE FUNCTION like_install(p_item bigint, p_seq bigint, p_facts bigint,
	OUT skipped boolean, OUT row_missing boolean, OUT old_n bigint, OUT new_n bigint, OUT base_seq bigint,
	OUT applied_after_base bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
	PERFORM FROM like_count c WHERE c.item_id = p_item AND c.shard = 0 FOR UPDATE;
	row_missing := NOT FOUND;
	IF row_missing THEN
		INSERT INTO like_count (item_id, shard, n, base_seq) VALUES (p_item, 0, 0, 0) ON CONFLICT DO NOTHING;
		PERFORM FROM like_count c WHERE c.item_id = p_item AND c.shard = 0 FOR UPDATE;
	END IF;
	SELECT sum(c.n), max(c.base_seq) INTO STRICT old_n, base_seq FROM like_count c WHERE c.item_id = p_item;

	PERFORM like_require_log('base_seq', greatest(base_seq, p_seq));
	skipped := p_seq < base_seq;
	IF skipped THEN
		new_n := old_n;
		applied_after_base := 0;
		RETURN;
	END IF;

	SELECT coalesce(sum(o.delta), 0) INTO applied_after_base
		FROM like_outbox o
		WHERE o.item_id = p_item AND o.seq > p_seq
			AND (SELECT p.how FROM processed_event p WHERE p.seq = o.seq) = 'APPLIED';

	new_n := p_facts + applied_after_base;
	base_seq := p_seq;
	UPDATE like_count c SET n = CASE WHEN c.shard = 0 THEN new_n ELSE 0 END, base_seq = p_seq WHERE c.item_id = p_item;
END
$$;
