-- Whoever writes n of a parent stops there, with the row written and not committed, while somebody else has the advisory
-- lock of the parent's id. However long that takes: the program's own lock_timeout would end the wait, and with it the chunk.

CREATE FUNCTION lab.hold() RETURNS trigger
LANGUAGE plpgsql
SET lock_timeout = 0
AS $$
BEGIN
	PERFORM pg_advisory_xact_lock_shared(NEW.id);
	RETURN NULL;
END
$$;

CREATE TRIGGER hold AFTER UPDATE OF n ON par FOR EACH ROW EXECUTE FUNCTION lab.hold();
