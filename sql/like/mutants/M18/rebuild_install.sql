-- M18: a rebuild sums what was applied above S before it locks the count row.
--
-- The guard taken away: lock first, then sum. A consumer that holds the row has events in flight that the sum does not
-- see; the install then waits for exactly that consumer and overwrites what it has just added.
--
-- Lock order: the count row, as in the right install, only too late.

CREATE OR REPLACE FUNCTION like_install(p_item bigint, p_seq bigint, p_facts bigint,
	OUT skipped boolean, OUT row_missing boolean, OUT old_n bigint, OUT new_n bigint, OUT base_seq bigint,
	OUT applied_after_base bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
	SELECT coalesce(sum(o.delta), 0) INTO applied_after_base
		FROM like_outbox o
		WHERE o.item_id = p_item AND o.seq > p_seq
			AND (SELECT p.how FROM processed_event p WHERE p.seq = o.seq) = 'APPLIED';

	SELECT c.n, c.base_seq INTO old_n, base_seq FROM like_count c WHERE c.item_id = p_item FOR UPDATE;
	row_missing := NOT FOUND;
	IF row_missing THEN
		INSERT INTO like_count (item_id, n, base_seq) VALUES (p_item, 0, 0) ON CONFLICT DO NOTHING;
		SELECT c.n, c.base_seq INTO STRICT old_n, base_seq FROM like_count c WHERE c.item_id = p_item FOR UPDATE;
	END IF;

	PERFORM like_require_log('base_seq', greatest(base_seq, p_seq));
	skipped := p_seq < base_seq;
	IF skipped THEN
		new_n := old_n;
		applied_after_base := 0;
		RETURN;
	END IF;

	new_n := p_facts + applied_after_base;
	base_seq := p_seq;
	UPDATE like_count c SET n = new_n, base_seq = p_seq WHERE c.item_id = p_item;
END
$$;
