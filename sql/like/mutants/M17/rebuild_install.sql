-- M17: a rebuild overwrites the count with the snapshot and leaves base_seq where it is.
--
-- The guard taken away: the baseline. Events up to S that are delivered later are added although the snapshot has
-- them, and events above S that were applied already are lost.
--
-- Lock order: the count row. Locking it does not help: the lock orders the two writers, it does not tell which events
-- are inside the snapshot.

CREATE OR REPLACE FUNCTION like_install(p_item bigint, p_seq bigint, p_facts bigint,
	OUT skipped boolean, OUT row_missing boolean, OUT old_n bigint, OUT new_n bigint, OUT base_seq bigint,
	OUT applied_after_base bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	SELECT c.n, c.base_seq INTO old_n, base_seq FROM like_count c WHERE c.item_id = p_item FOR UPDATE;
	row_missing := NOT FOUND;
	IF row_missing THEN
		INSERT INTO like_count (item_id, n, base_seq) VALUES (p_item, 0, 0) ON CONFLICT DO NOTHING;
		SELECT c.n, c.base_seq INTO STRICT old_n, base_seq FROM like_count c WHERE c.item_id = p_item FOR UPDATE;
	END IF;

	PERFORM like_require_log('base_seq', greatest(base_seq, p_seq));
	skipped := false;
	applied_after_base := 0;
	new_n := p_facts;
	UPDATE like_count c SET n = p_facts WHERE c.item_id = p_item;
END
$$;
