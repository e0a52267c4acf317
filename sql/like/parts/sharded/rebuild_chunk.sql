-- The rebuild for many items, of sharded counts: find the items that are wrong in one snapshot, then mend those, in chunks.
--
-- Guarantee: as in the one that this takes the place of, over the sum of an item's shards; an item whose shards do not share one
-- base_seq is wrong. Each item of a chunk is installed as by itself, all in one transaction.
--
-- Lock order: the shards of the items in item order, shard 0 first. Finding locks nothing.

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
		WITH total AS (
			SELECT k.item_id, sum(k.n) AS n, max(k.base_seq) AS base_seq,
					max(k.base_seq) <> min(k.base_seq) OR max(k.shard) <> count(*) - 1 AS torn
				FROM like_count k GROUP BY k.item_id
		)
		SELECT row_number() OVER (ORDER BY s.item_id) AS place, s.item_id, s.seq, s.facts
			FROM like_snapshot() s
			LEFT JOIN total c USING (item_id)
			LEFT JOIN (
				SELECT o.item_id, sum(o.delta) AS delta
					FROM like_outbox o
					JOIN total b ON b.item_id = o.item_id AND o.seq > b.base_seq
					WHERE o.seq > (SELECT w.applied_upto FROM counter_watermark w)
						AND NOT EXISTS (SELECT FROM processed_event p WHERE p.seq = o.seq)
					GROUP BY o.item_id
			) u USING (item_id)
			WHERE s.item_id IS NOT NULL
				AND (c.item_id IS NULL OR c.torn OR c.n + coalesce(u.delta, 0) <> s.facts);
	CREATE INDEX ON like_wrong (place);
	ANALYZE like_wrong;
	RETURN (SELECT count(*) FROM like_wrong);
END
$$;

CREATE OR REPLACE FUNCTION like_install_wrong(p_from bigint, p_to bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_wrong record;
	installed bigint := 0;
BEGIN
	FOR v_wrong IN SELECT w.item_id, w.seq, w.facts FROM like_wrong w WHERE w.place BETWEEN p_from AND p_to ORDER BY w.place LOOP
		installed := installed + (SELECT (NOT i.skipped)::integer FROM like_install(v_wrong.item_id, v_wrong.seq, v_wrong.facts) i);
	END LOOP;
	RETURN installed;
END
$$;
