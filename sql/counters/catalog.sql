-- What the tool asks the catalogs about the tables and columns that a file of counters names.
--
-- Guarantee: names come in as values and go out quoted by the server, so no name can become SQL. Nothing is read but catalogs, and
-- nothing is written: the statements are prepared in the session that runs this file, and end with it.
--
-- Lock order: none beyond what reading catalogs takes.

-- A relation as SQL would write it, by the session's search_path. No row: there is none.
PREPARE counters_relation (text) AS
	SELECT c.oid::bigint,
		format('%I.%I', n.nspname, c.relname) AS quoted,
		c.relkind IN ('r', 'p', 'v', 'm', 'f') AS has_rows,
		CASE WHEN c.relkind = 'p'
			THEN (SELECT coalesce(sum(greatest(l.reltuples, 0)), -1) FROM pg_partition_tree(c.oid) t JOIN pg_class l ON l.oid = t.relid WHERE t.isleaf)
			ELSE c.reltuples END AS rows
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.oid = to_regclass($1);

-- A column by its literal name. No row: there is none.
PREPARE counters_column (bigint, text) AS
	SELECT quote_ident(a.attname) AS quoted,
		format_type(a.atttypid, -1) AS type, -- NULL would make it character, which is character(1)
		CASE WHEN a.attcollation <> 0
			THEN (SELECT format('%I.%I', n.nspname, l.collname) FROM pg_collation l JOIN pg_namespace n ON n.oid = l.collnamespace WHERE l.oid = a.attcollation)
			END AS collation,
		NOT a.attnotnull AS nullable,
		a.attnum,
		'timestamptz'::regtype IN (a.atttypid, t.typbasetype) AS moment,
		c.relkind NOT IN ('r', 'p', 'm') OR EXISTS (SELECT FROM pg_index i
			WHERE i.indrelid = a.attrelid AND i.indisvalid AND i.indkey[0] = a.attnum) AS leads_index -- or who knows
	FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid
	WHERE a.attrelid = $1::oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped;

-- Whether no two rows can have the same values in these columns, NULLs taken for values: a whole, valid unique index over some of them,
-- that are NOT NULL or whose NULLs it does not tell apart (PostgreSQL 15 and later have those).
PREPARE counters_unique (bigint, int2[]) AS
	SELECT EXISTS (
		SELECT FROM pg_index i
		WHERE i.indrelid = $1::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
			AND (SELECT bool_and(k.attnum = ANY ($2)
					AND (a.attnotnull OR coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)))
				FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, nth)
				JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
				WHERE k.nth <= i.indnkeyatts));

-- The events of a table that an enabled trigger of someone hears, and those of them whose function names a column.
PREPARE counters_triggers (bigint, text) AS
	SELECT e.event,
		string_agg(t.tgname, ', ' ORDER BY t.tgname) AS triggers,
		bool_or(strpos(p.prosrc, $2) > 0) AS named
	FROM (VALUES (1, 'INSERT', 4), (2, 'UPDATE', 16), (3, 'DELETE', 8), (4, 'TRUNCATE', 32)) e (nth, event, bit)
	JOIN pg_trigger t ON t.tgrelid = $1::oid AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & e.bit <> 0
	JOIN pg_proc p ON p.oid = t.tgfoid
	GROUP BY e.nth, e.event
	ORDER BY e.nth;

-- Whether this role could repair: write the column, and add rows; and why nobody could write it, NULL: somebody could.
PREPARE counters_privileges (bigint, text) AS
	SELECT has_column_privilege($1::oid, $2, 'UPDATE') AS may_update, has_table_privilege($1::oid, 'INSERT') AS may_insert,
		CASE WHEN a.attgenerated <> '' THEN 'it is generated from other columns'
			WHEN a.attidentity = 'a' THEN 'it is GENERATED ALWAYS AS IDENTITY'
			WHEN c.relkind = 'm' THEN 'a materialized view is refreshed'
			WHEN NOT pg_column_is_updatable(a.attrelid::regclass, a.attnum, true) THEN
				CASE c.relkind WHEN 'v' THEN 'it is of a view that has neither a rule nor a trigger for it' ELSE 'the server cannot update it' END
			END AS unwritable
	FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
	WHERE a.attrelid = $1::oid AND a.attname = $2;
