-- The rows of four media went in one transaction; the job that was to bring their counts after it died half way.
DELETE FROM media_usages WHERE media_id BETWEEN 6 AND 9;
UPDATE media SET usage_count = 0 WHERE id BETWEEN 6 AND 7;
