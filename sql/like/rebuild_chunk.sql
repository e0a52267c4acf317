-- The rebuild for many items: find the rows that are wrong in one snapshot, then mend those, in chunks.
--
-- Guarantee: like_find_wrong() keeps, in a table of the session, each item whose count row is missing or breaks the identity (n and what is
-- unprocessed above its base is not C(S)), with S and C(S) of that one statement. A row whose identity holds keeps it whatever the
-- consumer does, so it is left alone. like_install_wrong() installs the baselines of some of them in one transaction, as
-- like_install() does for one; a row that has a newer baseline meanwhile is skipped.
--
-- Lock order: count rows in the order of their items. Finding locks nothing. It trusts the watermark: what is at or below it is
-- processed (the proof audit does not trust it, and reads all of history for that).
--
-- Why the deltas above S are read in a statement after the locks: a consumer that held the row has committed by then.

CREATE OR REPLACE FUNCTION like_find_wrong() RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET work_mem = '64MB'
SET client_min_messages = 'warning'
AS $$
BEGIN
	PERFORM like_require_log('watermark', w.applied_upto) FROM counter_watermark w WHERE w.id = 1;
	PERFORM like_require_log('base_seq', (SELECT max(c.base_seq) FROM like_count c));
	DROP TABLE IF EXISTS pg_temp.like_wrong;
	CREATE TEMP TABLE like_wrong AS
		SELECT row_number() OVER (ORDER BY s.item_id) AS place, s.item_id, s.seq, s.facts
			FROM like_snapshot() s
			LEFT JOIN like_count c USING (item_id)
			LEFT JOIN (
				SELECT o.item_id, sum(o.delta) AS delta
					FROM like_outbox o
					JOIN like_count b ON b.item_id = o.item_id AND o.seq > b.base_seq
					WHERE o.seq > (SELECT w.applied_upto FROM counter_watermark w)
						AND NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
					GROUP BY o.item_id
			) u USING (item_id)
			WHERE s.item_id IS NOT NULL
				AND (c.item_id IS NULL OR c.n + coalesce(u.delta, 0) <> s.facts);
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

	UPDATE like_count c SET n = w.facts + coalesce(a.delta, 0), base_seq = w.seq
		FROM like_wrong w
		LEFT JOIN (
			SELECT o.item_id, sum(o.delta) AS delta
				FROM like_outbox o
				JOIN processed_event p ON p.seq = o.seq AND p.how = 'APPLIED'
				JOIN like_wrong m ON m.item_id = o.item_id AND o.seq > m.seq
				WHERE m.place BETWEEN p_from AND p_to
				GROUP BY o.item_id
		) a USING (item_id)
		WHERE w.place BETWEEN p_from AND p_to AND c.item_id = w.item_id AND c.base_seq <= w.seq;
	GET DIAGNOSTICS installed = ROW_COUNT;
	RETURN installed;
END
$$;
