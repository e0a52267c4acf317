-- What the rebuild is to mend: events 1 to 3 are numbered, where they have none yet, and consumed; then one count is changed.

SELECT like_number(6);
SELECT like_consume('{1,2,3}');
UPDATE like_count SET n = 5 WHERE item_id = 1;
