-- 1,000,000 counters over 10,000,000 source rows; every hundredth count is one too many.
CREATE TABLE media (id bigint PRIMARY KEY, usage_count bigint NOT NULL);
CREATE TABLE media_usages (id bigint NOT NULL, media_id bigint NOT NULL);
INSERT INTO media_usages SELECT g, 1 + (hashint8(g)::bigint & 2147483647) % 1000000 FROM generate_series(1, 10000000) g;
CREATE INDEX media_usages_media_id ON media_usages (media_id);
INSERT INTO media SELECT g, coalesce(s.n, 0) + CASE WHEN g % 100 = 0 THEN 1 ELSE 0 END
	FROM generate_series(1, 1000000) g
	LEFT JOIN (SELECT media_id, count(*) AS n FROM media_usages GROUP BY media_id) s ON s.media_id = g;
