-- Columns named like counts, and the tables that reference theirs: what a starting file of counters is made of.
--
-- Guarantee: only catalogs are read. One row for each pair of a count-like column and a foreign key to its table; columns whose table
-- nothing references have one row without a source. `likely` says that the source's name has the column's in it, `usage` of
-- usage_count in media_usages, or that there is no other candidate. Tables come as SQL would write them, columns as they are.
--
-- Lock order: none.

PREPARE counters_init AS
	WITH counts AS (
		SELECT c.oid AS target, a.attname AS count_column,
			rtrim(regexp_replace(s.name, '^(num|n|cnt|count|nb|total)_|_?(count|counter|cnt|total|num)$', '', 'g'), 's') AS stem
		FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		CROSS JOIN LATERAL (SELECT lower(regexp_replace(a.attname, '([a-z0-9])([A-Z])', E'\\1_\\2', 'g'))) s (name) -- postsCount, too
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_t%'
			AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype)
			AND s.name ~ '^(num|n|cnt|count|nb|total)_|_(count|counter|cnt|total|num)$|^(count|counter|total|n)$'
			AND has_table_privilege(c.oid, 'SELECT')
	), candidates AS (
		SELECT k.*, f.conrelid AS source,
			(SELECT array_agg(a.attname ORDER BY u.nth) FROM unnest(f.confkey) WITH ORDINALITY u (attnum, nth)
				JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = u.attnum) AS key,
			(SELECT array_agg(a.attname ORDER BY u.nth) FROM unnest(f.conkey) WITH ORDINALITY u (attnum, nth)
				JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = u.attnum) AS source_key,
			EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = f.conrelid AND a.attname = 'deleted_at' AND NOT a.attisdropped) AS soft_delete,
			k.stem <> '' AND strpos(lower((SELECT relname FROM pg_class WHERE oid = f.conrelid)), k.stem) > 0 AS by_name,
			count(f.oid) OVER (PARTITION BY k.target, k.count_column) AS alternatives
		FROM counts k LEFT JOIN pg_constraint f ON f.confrelid = k.target AND f.contype = 'f'
	)
	SELECT target::regclass::text AS target, (SELECT relname FROM pg_class WHERE oid = target) AS target_name,
		count_column, source::regclass::text AS source, array_to_json(key)::text AS key, array_to_json(source_key)::text AS source_key,
		soft_delete, by_name OR alternatives = 1 AS likely
	FROM candidates
	ORDER BY target::regclass::text, count_column, by_name DESC NULLS LAST, source::regclass::text, source_key;
