-- The smallest counter: parents, children, and beside each parent how many it has. n may be NULL, and nothing keeps it.

CREATE TABLE par (
	id bigint PRIMARY KEY,
	n integer
);

CREATE TABLE ch (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	par_id bigint NOT NULL REFERENCES par
);

-- A writer: the child and the count in one transaction.
CREATE FUNCTION add_child(p_par bigint) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	INSERT INTO ch (par_id) VALUES (p_par);
	UPDATE par SET n = n + 1 WHERE id = p_par;
$$;

-- The case's own truth, row by row: what the tool is judged by.
CREATE SCHEMA lab;

CREATE VIEW lab.wrong AS
	SELECT key, stored, actual
	FROM (SELECT p.id AS key, p.n AS stored, (SELECT count(*) FROM ch WHERE ch.par_id = p.id) AS actual FROM par p) each
	WHERE stored IS DISTINCT FROM actual;
