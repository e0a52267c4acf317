-- The event was dispatched and the listener did not run: the row is there, the count does not know of it.
INSERT INTO media_usages (media_id) VALUES (1);
