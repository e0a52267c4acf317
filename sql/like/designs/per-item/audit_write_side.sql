-- The proof audit of the write side: do facts and events agree?
--
-- Guarantee: one statement, hence one snapshot. It reads every fact and every event once. A count other than 0 says that
-- facts or events were changed past the write path; no rebuild can mend that.
--
-- Lock order: none, nothing is locked.
--
-- last_seq: all items' last numbers added up. gap_violations: of each item the numbers missing from 1..its last, and numbers
-- outside of that. The other fields are those of the audit that this takes the place of.

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
	SELECT n.last, n.all_rows, n.gaps, v.pairs, d.items
		FROM (
			SELECT coalesce(sum(last), 0)::bigint AS last, coalesce(sum(all_rows), 0)::bigint AS all_rows,
				coalesce(sum((last - within) + (all_rows - within)), 0)::bigint AS gaps FROM numbers) n
		CROSS JOIN (
			SELECT count(*) AS pairs
				FROM like_fact f
				FULL JOIN (SELECT user_id, item_id, count(*) AS events FROM like_outbox GROUP BY user_id, item_id) o
					USING (user_id, item_id)
				WHERE coalesce(f.version, 0) <> coalesce(o.events, 0)) v
		CROSS JOIN (
			SELECT count(*) AS items
				FROM (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f
				FULL JOIN (SELECT item_id, sum(delta) AS deltas FROM like_outbox GROUP BY item_id) o USING (item_id)
				WHERE coalesce(f.facts, 0) <> coalesce(o.deltas, 0)) d
$$;
