-- M24: sessions of this database answer a COMMIT before it is on disk.
--
-- The guard taken away: synchronous_commit, which is on by default. The last changes before a crash have been acknowledged
-- and are gone; facts and events agree all the same, for what is lost is the end of the log and nothing out of its
-- middle, so that no audit of what is there can tell.
--
-- It holds for sessions that are opened afterwards.

DO $$
BEGIN
	EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database());
END
$$;
