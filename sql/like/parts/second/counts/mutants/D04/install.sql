-- Twin D04: the baseline takes the place of the count. What is missing: what was applied above S.

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

	skipped := p_seq < base_seq;
	IF skipped THEN
		new_n := old_n;
		applied_after_base := 0;
		RETURN;
	END IF;

	applied_after_base := 0;

	new_n := p_facts + applied_after_base;
	base_seq := p_seq;
	UPDATE like_count c SET n = new_n, base_seq = p_seq WHERE c.item_id = p_item;
END
$$;
