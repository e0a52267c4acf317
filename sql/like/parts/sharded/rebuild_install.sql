-- The second half of a rebuild, of sharded counts: install the baseline of one item beside running consumers.
--
-- Guarantee: afterwards the sum of the shards is C(S) plus what consumers applied above S, and base_seq is S on all of them.
-- Events up to S that are still to be delivered become COVERED, events above S that were applied stay counted, on
-- whichever shard: none twice, none lost. A snapshot older than the installed baseline changes nothing; an equal one is
-- installed again, which mends a damaged count.
--
-- Lock order: shard 0 of the item, then its other shards in order. Read Committed.
--
-- Why all at once: what a shard holds is told apart from the baseline by base_seq alone. With a new one on some shards and an
-- old one on others, an event below S still counts on the one, and one above S that was counted on the other is lost.
--
-- Why the sum is a statement after the locks, and why the settings: as in the install that this takes the place of.

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
	PERFORM FROM like_count c WHERE c.item_id = p_item ORDER BY c.shard FOR UPDATE;
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
