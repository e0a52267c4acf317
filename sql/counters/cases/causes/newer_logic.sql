-- Usages that were put aside long ago, when everything was counted; only since then are live ones counted alone.
UPDATE media_usages SET deleted_at = '2020-01-01' WHERE media_id IN (11, 12);
