-- The proof audit of the write side: do facts and events agree?
--
-- Guarantee: one statement, hence one snapshot. It reads every fact and every event once, numbered or not, and does not
-- trust the floor. A count other than 0 says that facts or events were changed past the write path and the sequencer; no
-- rebuild can mend that.
--
-- Lock order: none, nothing is locked.
--
-- gap_violations: numbers missing from 1..last_seq, numbers outside it, and events left behind at or below the floor,
-- which will never get one. version_mismatch_pairs: pairs whose version is not their number of events, be it that one side
-- lacks them, or whose versions do not grow with their numbers. delta_sum_mismatch_items: items whose deltas do not add
-- up to their facts.

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
	SELECT s.last, e.all_rows, (s.last - e.within) + (e.all_rows - e.within) + u.left_behind, v.pairs, d.items
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
		CROSS JOIN (
			SELECT count(*) AS items
				FROM (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f
				FULL JOIN (SELECT item_id, sum(delta) AS deltas FROM event GROUP BY item_id) o USING (item_id)
				WHERE coalesce(f.facts, 0) <> coalesce(o.deltas, 0)) d
		WHERE s.id = 1
$$;
