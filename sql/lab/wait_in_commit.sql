-- A transaction that wrote a fact stops inside its COMMIT until advisory lock 32 can be had: the trigger is deferred,
-- so it runs when the client has been told its row and has asked for the commit, and before the commit record exists.

CREATE FUNCTION wait_in_commit() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(32);
	RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER wait_in_commit AFTER INSERT OR UPDATE ON like_fact
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_in_commit();
