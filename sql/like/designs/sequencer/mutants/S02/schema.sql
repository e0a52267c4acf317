-- S02: a session draws twenty ids at a time and keeps them in stock.
--
-- The guard taken away: CACHE 1. The id is still drawn under the lock of the fact row, but it may be one that a session
-- has had for long: a pair's later version gets an older id than the one before it, and the lower number.
--
-- Lock order: none.

ALTER TABLE like_unnumbered ALTER COLUMN id SET CACHE 20;
