-- M16: registrations are kept in an UNLOGGED table.
--
-- The guard taken away: a registration is as durable as its effect. An unlogged table is empty after a crash, while the
-- counts that it stands for are there: every event up to the last is taken for pending, and would be added again. The
-- watermark still stands where it was, so lag says nothing; only an audit that reads history sees it.
--
-- Lock order: none, nothing but the table's storage is changed.

ALTER TABLE processed_event SET UNLOGGED;
