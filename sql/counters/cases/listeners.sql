-- One stream of events, two listeners: one adds what the event says, one counts again.

CREATE TABLE par (
	id bigint PRIMARY KEY,
	by_increment integer NOT NULL DEFAULT 0,
	by_recount integer NOT NULL DEFAULT 0
);

CREATE TABLE ch (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	par_id bigint NOT NULL REFERENCES par
);

INSERT INTO par (id) VALUES (1), (2), (3);

-- A child is added; its event is delivered `times` times.
CREATE FUNCTION add_child_and_deliver(p_par bigint, times integer) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	INSERT INTO ch (par_id) VALUES (p_par);
	FOR i IN 1..times LOOP
		UPDATE par SET by_increment = by_increment + 1 WHERE id = p_par;
		UPDATE par SET by_recount = (SELECT count(*) FROM ch WHERE par_id = p_par) WHERE id = p_par;
	END LOOP;
END
$$;

-- The case's own truth, row by row: what the tool is judged by. The last digit of a key: 1 by_increment, 2 by_recount.
CREATE SCHEMA lab;

CREATE VIEW lab.wrong AS
	SELECT key, stored, actual
	FROM (SELECT id * 10 + column_of.number AS key, column_of.stored,
			(SELECT count(*) FROM ch WHERE par_id = par.id) AS actual
		FROM par CROSS JOIN LATERAL (VALUES (1, by_increment), (2, by_recount)) column_of (number, stored)) each
	WHERE stored <> actual;
