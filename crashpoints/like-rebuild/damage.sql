-- What the rebuild is to mend: events are numbered, where they have none yet, and the first three consumed; then one count is changed.

SELECT like_number(6);
SELECT like_consume(like_pull(0, 3));
UPDATE like_count SET n = 5 WHERE item_id = 1;
