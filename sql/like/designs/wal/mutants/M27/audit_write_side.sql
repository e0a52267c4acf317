-- M27: a fact that was changed by hand is not noticed, and recovery goes on over it.
--
-- The guard taken away: the deltas of an item are compared with its facts. Versions are audited as they
-- should be, but a changed fact leaves them as they were. A rebuild then counts what the facts say, the read side is
-- clean, and that the events never said so is no longer asked.
--
-- Lock order: none, nothing is locked.

CREATE OR REPLACE FUNCTION like_audit_write_side(OUT last_seq bigint, OUT outbox_rows bigint, OUT gap_violations bigint,
	OUT version_mismatch_pairs bigint, OUT delta_sum_mismatch_items bigint)
LANGUAGE sql STABLE
AS $$
	SELECT e.all_rows, e.all_rows, e.not_drawn, v.pairs, 0::bigint
		FROM (SELECT count(*) AS all_rows, count(*) FILTER (WHERE o.seq NOT BETWEEN 1 AND s.drawn) AS not_drawn
				FROM (SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS drawn FROM like_outbox_seq_seq) s
				LEFT JOIN like_outbox o ON true
				WHERE o.seq IS NOT NULL) e
		CROSS JOIN (
			SELECT count(*) AS pairs
				FROM like_fact f
				FULL JOIN (
					SELECT user_id, item_id, count(*) AS events, bool_and(version = k) AS in_order
						FROM (SELECT user_id, item_id, version,
							row_number() OVER (PARTITION BY user_id, item_id ORDER BY seq) AS k FROM like_outbox) o
						GROUP BY user_id, item_id) o
					USING (user_id, item_id)
				WHERE coalesce(f.version, 0) <> coalesce(o.events, 0) OR NOT coalesce(o.in_order, true)) v
$$;
