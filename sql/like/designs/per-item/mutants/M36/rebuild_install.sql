-- M36: a rebuild installs the baseline in one statement, an UPDATE with the sum as its subquery.
--
-- The guard taken away: the sum is a statement after the lock. A statement has one snapshot, taken when it begins: having
-- waited for the row, the UPDATE takes up the row's new version, but its subquery still looks at the registrations as
-- they were before the wait, and overwrites what the consumer has just added. The old count it tells is as old.
--
-- Lock order: the count row. That the lock is held when the value is written does not help.

CREATE OR REPLACE FUNCTION like_install(p_item bigint, p_seq bigint, p_facts bigint,
	OUT skipped boolean, OUT row_missing boolean, OUT old_n bigint, OUT new_n bigint, OUT base_seq bigint,
	OUT applied_after_base bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
	row_missing := false;
	LOOP
		UPDATE like_count c
			SET n = p_facts + (SELECT coalesce(sum(o.delta), 0)
					FROM like_outbox o
					WHERE o.item_id = p_item AND o.seq > p_seq
						AND (SELECT p.how FROM processed_event p WHERE p.item_id = o.item_id AND p.seq = o.seq) = 'APPLIED'),
				base_seq = p_seq
			FROM like_count before
			WHERE c.item_id = p_item AND before.item_id = c.item_id AND c.base_seq <= p_seq
			RETURNING before.n, c.n, c.base_seq INTO old_n, new_n, base_seq;
		skipped := NOT FOUND;
		EXIT WHEN NOT skipped;
		INSERT INTO like_count (item_id, n, base_seq) VALUES (p_item, 0, 0) ON CONFLICT DO NOTHING;
		EXIT WHEN NOT FOUND;
		row_missing := true;
	END LOOP;
	IF skipped THEN
		SELECT c.n, c.n, c.base_seq INTO STRICT old_n, new_n, base_seq FROM like_count c WHERE c.item_id = p_item;
	END IF;
	applied_after_base := CASE WHEN skipped THEN 0 ELSE new_n - p_facts END;
END
$$;
