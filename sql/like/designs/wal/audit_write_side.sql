-- The proof audit of the write side: do facts and events agree?
--
-- Guarantee: one statement, hence one snapshot. It reads every fact and every event once. A count other than 0 says
-- that facts or events were changed past the write path; no rebuild can mend that.
--
-- Lock order: none, nothing is locked.
--
-- last_seq: the number of events, whatever their ids. gap_violations: events whose id was not drawn, which a writer
-- will meet again; holes are none. version_mismatch_pairs: pairs whose version is not their number of events, be it
-- that one side lacks them, or whose versions do not grow with the ids. delta_sum_mismatch_items: items whose deltas do
-- not add up to their facts.

CREATE OR REPLACE FUNCTION like_audit_write_side(OUT last_seq bigint, OUT outbox_rows bigint, OUT gap_violations bigint,
	OUT version_mismatch_pairs bigint, OUT delta_sum_mismatch_items bigint)
LANGUAGE sql STABLE
AS $$
	SELECT e.all_rows, e.all_rows, e.not_drawn, v.pairs, d.items
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
		CROSS JOIN (
			SELECT count(*) AS items
				FROM (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f
				FULL JOIN (SELECT item_id, sum(delta) AS deltas FROM like_outbox GROUP BY item_id) o USING (item_id)
				WHERE coalesce(f.facts, 0) <> coalesce(o.deltas, 0)) d
$$;
