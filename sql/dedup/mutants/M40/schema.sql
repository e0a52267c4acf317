-- M40: registrations without a key.
--
-- The guard taken away: the primary key of registered. Inserting an event that is registered already is no conflict then,
-- so an event delivered again, after a kill between commit and acknowledgement, is added again.
--
-- Lock order: as before.

ALTER TABLE registered DROP CONSTRAINT registered_pkey;
