-- The proof audit of the write side: do facts and events agree?
--
-- Guarantee: one statement, hence one snapshot. It reads every fact and every event once. A count other than 0 says that
-- facts or events were changed past the write path; no rebuild can mend that.
--
-- Lock order: none, nothing is locked.
--
-- gap_violations: numbers missing from 1..last_seq, and numbers outside it. version_mismatch_pairs: pairs whose version
-- is not their number of events, be it that one side lacks them. delta_sum_mismatch_items: items whose deltas do not
-- add up to their facts.

CREATE OR REPLACE FUNCTION like_audit_write_side(OUT last_seq bigint, OUT outbox_rows bigint, OUT gap_violations bigint,
	OUT version_mismatch_pairs bigint, OUT delta_sum_mismatch_items bigint)
LANGUAGE sql STABLE
AS $$
	SELECT s.last, e.all_rows, (s.last - e.within) + (e.all_rows - e.within), v.pairs, d.items
		FROM like_seq s
		CROSS JOIN LATERAL (
			SELECT count(*) AS all_rows, count(*) FILTER (WHERE seq BETWEEN 1 AND s.last) AS within FROM like_outbox) e
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
		WHERE s.id = 1
$$;
