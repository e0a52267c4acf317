-- The rebuild for many items, as in the file that this takes the place of; the baseline is the snapshot of the
-- statement that finds what is wrong, and is kept beside S.
--
-- Lock order: count rows in the order of their items. Finding locks nothing. It trusts the floor: what is in it is
-- processed.
--
-- Why it does not ask like_snapshot(): that one writes, and so has a snapshot of its own. What is wrong has to be told
-- from facts, counts and events of one.

CREATE OR REPLACE FUNCTION like_find_wrong() RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET work_mem = '64MB'
SET client_min_messages = 'warning'
AS $$
BEGIN
	DROP TABLE IF EXISTS pg_temp.like_wrong;
	CREATE TEMP TABLE like_wrong AS
		SELECT row_number() OVER (ORDER BY i.item_id) AS place, i.item_id, s.seq, s.base, coalesce(f.facts, 0) AS facts
			FROM (SELECT w.applied_upto + (SELECT count(*) FROM like_pending) AS seq, pg_current_snapshot() AS base
				FROM counter_watermark w WHERE w.id = 1) s
			CROSS JOIN item i
			LEFT JOIN like_count c USING (item_id)
			LEFT JOIN (SELECT item_id, count(*) AS facts FROM like_fact WHERE liked GROUP BY item_id) f USING (item_id)
			LEFT JOIN (
				SELECT e.item_id, sum(e.delta) AS delta
					FROM like_pending e
					JOIN like_count b ON b.item_id = e.item_id
						AND (b.base_seq = 0 OR NOT pg_visible_in_snapshot(e.xid, b.base))
					GROUP BY e.item_id
			) u USING (item_id)
			WHERE c.item_id IS NULL OR c.n + coalesce(u.delta, 0) <> coalesce(f.facts, 0);
	CREATE INDEX ON like_wrong (place);
	ANALYZE like_wrong;
	RETURN (SELECT count(*) FROM like_wrong);
END
$$;

CREATE OR REPLACE FUNCTION like_install_wrong(p_from bigint, p_to bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	installed bigint;
BEGIN
	INSERT INTO like_count (item_id, n, base_seq)
		SELECT w.item_id, 0, 0 FROM like_wrong w
			WHERE w.place BETWEEN p_from AND p_to
				AND NOT EXISTS (SELECT FROM like_count c WHERE c.item_id = w.item_id)
			ORDER BY w.item_id
		ON CONFLICT DO NOTHING;

	PERFORM c.item_id FROM like_count c
		WHERE c.item_id IN (SELECT w.item_id FROM like_wrong w WHERE w.place BETWEEN p_from AND p_to)
		ORDER BY c.item_id FOR UPDATE;

	UPDATE like_count c SET n = w.facts + coalesce(a.delta, 0), base_seq = w.seq, base = w.base
		FROM like_wrong w
		LEFT JOIN (
			SELECT o.item_id, sum(o.delta) AS delta
				FROM like_outbox o
				JOIN processed_event p ON p.seq = o.seq AND p.how = 'APPLIED'
				JOIN like_wrong m ON m.item_id = o.item_id
					AND o.xid >= pg_snapshot_xmin(m.base) AND NOT pg_visible_in_snapshot(o.xid, m.base)
				WHERE m.place BETWEEN p_from AND p_to
				GROUP BY o.item_id
		) a USING (item_id)
		WHERE w.place BETWEEN p_from AND p_to AND c.item_id = w.item_id AND c.base_seq <= w.seq;
	GET DIAGNOSTICS installed = ROW_COUNT;
	RETURN installed;
END
$$;
