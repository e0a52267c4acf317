-- M29: facts may be about items that do not exist.
--
-- The guard taken away: the foreign key of like_fact. The functions do not look whether there is such an item; a
-- request for one that does not exist is carried out, and its event has no count to go to.
--
-- Lock order: none.

ALTER TABLE like_fact DROP CONSTRAINT like_fact_item_id_fkey;
