-- M27: a fact that was changed by hand is not noticed, and recovery goes on over it.
--
-- The guard taken away: the deltas of an item are compared with its facts. Numbers and versions are audited as they
-- should be, but a changed fact leaves both as they were. A rebuild then counts what the facts say, the read side is
-- clean, and that the events never said so is no longer asked.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_audit_write_side(OUT last_seq bigint, OUT outbox_rows bigint, OUT gap_violations bigint,
	OUT version_mismatch_pairs bigint, OUT delta_sum_mismatch_items bigint)
LANGUAGE sql STABLE
AS $$
	WITH numbers AS (
		SELECT coalesce(s.last, 0) AS last, count(o.seq) AS all_rows,
			count(o.seq) FILTER (WHERE o.seq BETWEEN 1 AND s.last) AS within
			FROM like_seq s
			FULL JOIN like_outbox o USING (item_id)
			GROUP BY item_id, s.last
	)
	SELECT n.last, n.all_rows, n.gaps, v.pairs, 0::bigint
		FROM (
			SELECT coalesce(sum(last), 0)::bigint AS last, coalesce(sum(all_rows), 0)::bigint AS all_rows,
				coalesce(sum((last - within) + (all_rows - within)), 0)::bigint AS gaps FROM numbers) n
		CROSS JOIN (
			SELECT count(*) AS pairs
				FROM like_fact f
				FULL JOIN (SELECT user_id, item_id, count(*) AS events FROM like_outbox GROUP BY user_id, item_id) o
					USING (user_id, item_id)
				WHERE coalesce(f.version, 0) <> coalesce(o.events, 0)) v
$$;
