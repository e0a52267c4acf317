-- The second half of a rebuild: install the baseline of one item beside running consumers.
--
-- Guarantee: afterwards n is C(S) plus what consumers applied above S, and base_seq is S. Events up to S that are still
-- to be delivered become COVERED, events above S that were applied stay counted: none twice, none lost. A snapshot
-- older than the installed baseline changes nothing; an equal one is installed again, which mends a damaged count.
--
-- Lock order: the count row, nothing else. Read Committed; in Repeatable Read a count row that a consumer has changed
-- since the snapshot is 40001, and the whole transaction has to be run again.
--
-- Why the sum is a statement after the lock: a consumer that held the row until now has just committed what it applied,
-- and only a later snapshot shows it. Summed first, its events would be missing from n for ever.
--
-- Why the settings and the scalar subquery: the work is in proportion to the item's events above S, each of them one
-- probe, whatever statistics say and whatever the tables held when the session made its plan.

CREATE OR REPLACE FUNCTION like_install(p_item bigint, p_seq bigint, p_facts bigint,
	OUT skipped boolean, OUT row_missing boolean, OUT old_n bigint, OUT new_n bigint, OUT base_seq bigint,
	OUT applied_after_base bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
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

	SELECT coalesce(sum(o.delta), 0) INTO applied_after_base
		FROM like_outbox o
		WHERE o.item_id = p_item AND o.seq > p_seq
			AND (SELECT p.how FROM processed_event p WHERE p.seq = o.seq) = 'APPLIED';

	new_n := p_facts + applied_after_base;
	base_seq := p_seq;
	UPDATE like_count c SET n = new_n, base_seq = p_seq WHERE c.item_id = p_item;
END
$$;
