-- Five counts, of which four are wrong, one of those NULL; every update of one is noted.
CREATE TABLE par (id integer PRIMARY KEY, n integer);
CREATE TABLE ch (pid integer REFERENCES par);
CREATE TABLE written (id integer);
INSERT INTO par VALUES (1, 7), (2, 2), (3, NULL), (4, -1), (5, 9);
INSERT INTO ch VALUES (1), (2), (2), (3), (5), (5), (5);
CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql
	AS $$BEGIN INSERT INTO written VALUES (NEW.id); RETURN NEW; END$$;
CREATE TRIGGER note_write AFTER UPDATE ON par FOR EACH ROW EXECUTE FUNCTION note_write();
