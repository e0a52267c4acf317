-- A database to try the tool on: media that know how often they are used, and 13 of 1,240 counts gone wrong in the ways in which
-- counts do: an increment missed or made twice, rows written past the code that counts, rows from before the column.
CREATE TABLE media (id int PRIMARY KEY, name text NOT NULL, usage_count int);
CREATE TABLE media_usages (id int PRIMARY KEY, media_id int REFERENCES media, usage_context text NOT NULL, deleted_at timestamptz);
INSERT INTO media SELECT g, 'picture ' || g, g % 7 FROM generate_series(1, 1240) g;
INSERT INTO media_usages (id, media_id, usage_context)
	SELECT row_number() OVER (), g, 'page ' || n FROM generate_series(1, 1240) g, generate_series(1, g % 7) n;
UPDATE media SET usage_count = usage_count + 2 WHERE id = 42;
UPDATE media SET usage_count = usage_count - 1 WHERE id IN (77, 80, 81);
UPDATE media_usages SET deleted_at = now() WHERE media_id IN (100, 101, 102) AND usage_context = 'page 1';
UPDATE media SET usage_count = NULL WHERE id IN (1201, 1202, 1203, 1204, 1205);
UPDATE media SET usage_count = -1 WHERE id = 7;
INSERT INTO media_usages (id, media_id, usage_context) VALUES (100001, NULL, 'nowhere');
