-- Photos in albums, kept by a flow that knows one photo at a time; photos go with their owner. No foreign key to the album.

CREATE TABLE owner (id bigint PRIMARY KEY);

CREATE TABLE album (
	id bigint PRIMARY KEY,
	photos integer NOT NULL DEFAULT 0
);

CREATE TABLE photo (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	album_id bigint,
	owner_id bigint NOT NULL REFERENCES owner ON DELETE CASCADE
);

CREATE FUNCTION photo_add(p_album bigint, p_owner bigint) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	INSERT INTO photo (album_id, owner_id) VALUES (p_album, p_owner);
	UPDATE album SET photos = photos + 1 WHERE id = p_album;
$$;

-- Three albums, each with two photos of either owner.
INSERT INTO owner VALUES (1), (2);
INSERT INTO album (id) VALUES (1), (2), (3);
SELECT photo_add(album.id, owner.id) FROM album, owner, generate_series(1, 2);

-- The case's own truth, row by row: what the tool is judged by.
CREATE SCHEMA lab;

CREATE VIEW lab.wrong AS
	SELECT key, stored, actual
	FROM (SELECT id AS key, photos AS stored, (SELECT count(*) FROM photo WHERE album_id = album.id) AS actual FROM album) each
	WHERE stored <> actual;
