-- Which medium is used where, and how often beside it: usage_count can be made from media_usages, never the other way round.
--
-- The functions are the flow that keeps it: each changes rows and counts in one transaction, counts only rows that it did
-- change, and updates the counts of two media in the order of their ids.

CREATE TABLE media (
	id bigint PRIMARY KEY,
	usage_count integer DEFAULT 0
);

CREATE TABLE media_usages (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	media_id bigint NOT NULL REFERENCES media,
	usage_context text NOT NULL DEFAULT 'body',
	usable_type text NOT NULL DEFAULT 'post',
	usable_id bigint NOT NULL DEFAULT 1,
	deleted_at timestamptz
);

CREATE INDEX media_usages_media ON media_usages (media_id);

CREATE FUNCTION media_use(p_media bigint) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	INSERT INTO media_usages (media_id) VALUES (p_media);
	UPDATE media SET usage_count = usage_count + 1 WHERE id = p_media;
$$;

-- A live usage of this medium that nobody else is changing, locked; NULL when there is none.
CREATE FUNCTION media_take_usage(p_media bigint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
	SELECT id FROM media_usages WHERE media_id = p_media AND deleted_at IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED
$$;

CREATE FUNCTION media_release(p_media bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_usage bigint := media_take_usage(p_media);
BEGIN
	DELETE FROM media_usages WHERE id = v_usage;
	IF FOUND THEN
		UPDATE media SET usage_count = usage_count - 1 WHERE id = p_media;
	END IF;
END
$$;

CREATE FUNCTION media_soft_delete(p_media bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_usage bigint := media_take_usage(p_media);
BEGIN
	UPDATE media_usages SET deleted_at = now() WHERE id = v_usage;
	IF FOUND THEN
		UPDATE media SET usage_count = usage_count - 1 WHERE id = p_media;
	END IF;
END
$$;

CREATE FUNCTION media_move(p_from bigint, p_to bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
	v_usage bigint := media_take_usage(p_from);
BEGIN
	UPDATE media_usages SET media_id = p_to WHERE id = v_usage;
	IF FOUND AND p_from <> p_to THEN
		UPDATE media SET usage_count = usage_count + CASE WHEN p_from < p_to THEN -1 ELSE 1 END WHERE id = least(p_from, p_to);
		UPDATE media SET usage_count = usage_count + CASE WHEN p_from < p_to THEN 1 ELSE -1 END WHERE id = greatest(p_from, p_to);
	END IF;
END
$$;

-- The case's own truth, row by row: what the tool is judged by.
CREATE SCHEMA lab;

CREATE VIEW lab.wrong AS
	SELECT key, stored, actual
	FROM (SELECT m.id AS key, m.usage_count AS stored,
			(SELECT count(*) FROM media_usages u WHERE u.media_id = m.id AND u.deleted_at IS NULL) AS actual
		FROM media m) each
	WHERE stored IS DISTINCT FROM actual;
