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
	WITH event AS (
		SELECT seq, NULL::bigint AS id, user_id, item_id, delta, version FROM like_outbox
		UNION ALL SELECT NULL, id, user_id, item_id, delta, version FROM like_unnumbered
	), ordered AS (
		SELECT user_id, item_id, version,
			row_number() OVER (PARTITION BY user_id, item_id ORDER BY seq NULLS LAST, id) AS k FROM event
	)
	SELECT s.last, e.all_rows, (s.last - e.within) + (e.all_rows - e.within) + u.left_behind, v.pairs, 0::bigint
		FROM like_seq s
		CROSS JOIN LATERAL (
			SELECT count(*) AS all_rows, count(*) FILTER (WHERE seq BETWEEN 1 AND s.last) AS within FROM like_outbox) e
		CROSS JOIN LATERAL (SELECT count(*) AS left_behind FROM like_unnumbered WHERE id <= s.floor) u
		CROSS JOIN (
			SELECT count(*) AS pairs
				FROM like_fact f
				FULL JOIN (
					SELECT user_id, item_id, count(*) AS events, bool_and(version = k) AS in_order
						FROM ordered GROUP BY user_id, item_id) o
					USING (user_id, item_id)
				WHERE coalesce(f.version, 0) <> coalesce(o.events, 0) OR NOT coalesce(o.in_order, true)) v
		WHERE s.id = 1
$$;
