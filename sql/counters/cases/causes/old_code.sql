-- Old code removes rows itself; it was written before there was a count.
DELETE FROM media_usages WHERE media_id = 2;
