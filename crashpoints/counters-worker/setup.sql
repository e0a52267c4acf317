-- Ten counts without facts, which repair does not write unless it is told to, and two that are right; every update is noted.
CREATE TABLE par (id integer PRIMARY KEY, n integer);
CREATE TABLE ch (pid integer REFERENCES par);
CREATE TABLE written (id integer);
INSERT INTO par SELECT g, CASE WHEN g <= 10 THEN 7 ELSE 1 END FROM generate_series(1, 12) g;
INSERT INTO ch VALUES (11), (12);
CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql
	AS $$BEGIN INSERT INTO written VALUES (NEW.id); RETURN NEW; END$$;
CREATE TRIGGER note_write AFTER UPDATE ON par FOR EACH ROW EXECUTE FUNCTION note_write();
