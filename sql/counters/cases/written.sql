-- A row for each time that n of a parent was written.

CREATE TABLE written (par_id bigint NOT NULL);

CREATE FUNCTION lab.tell_write() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	INSERT INTO written VALUES (NEW.id);
	RETURN NULL;
END
$$;

CREATE TRIGGER tell_write AFTER UPDATE OF n ON par FOR EACH ROW EXECUTE FUNCTION lab.tell_write();
