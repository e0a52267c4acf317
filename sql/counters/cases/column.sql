-- Two ways to add a count to rows that are there: a DEFAULT 0, which is wrong for all that have usages and does not show it, and
-- NULL, which says that nobody has counted yet.

ALTER TABLE media ADD COLUMN by_default integer DEFAULT 0, ADD COLUMN by_null integer;

CREATE OR REPLACE VIEW lab.wrong AS
	SELECT key, stored, actual
	FROM (SELECT m.id AS key, column_of.stored,
			(SELECT count(*) FROM media_usages u WHERE u.media_id = m.id AND u.deleted_at IS NULL) AS actual
		FROM media m CROSS JOIN LATERAL (VALUES (m.by_default), (m.by_null)) column_of (stored)) each
	WHERE stored IS DISTINCT FROM actual;
